"""The oracles of Rank-SVM against one another: interior points of primal and dual, and Frank-Wolfe."""

import numpy as np
import pytest

from tests.oracle.frank_wolfe import ascend
from tests.oracle.label_pairs import all_pairs
from tests.oracle.rank_svm import NoSolution, solve_dual, solve_primal


def _problem(seed: int, n: int = 12, d: int = 2, q: int = 4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 2, size=(n, q)), rng.uniform(0.2, 2.0, size=n)


@pytest.mark.parametrize("seed", range(5))
def test_primal_dual_and_frank_wolfe_agree(seed: int) -> None:
    X, indicator, weight = _problem(seed)
    K, C = X @ X.T, 2.0
    by_dual, by_primal = solve_dual(K, indicator, C, weight), solve_primal(X, indicator, C, weight)
    assert by_dual.primal == pytest.approx(by_dual.dual, rel=1e-8)
    assert by_primal.primal == pytest.approx(by_primal.dual, rel=1e-8)
    assert by_primal.primal == pytest.approx(by_dual.primal, rel=1e-8)

    pairs = all_pairs(indicator, C, weight)
    steps = ascend(K, pairs, tol=1e-2, max_iter=500)
    assert steps.relative_gap <= 1e-2
    assert steps.dual <= by_dual.primal <= steps.dual + steps.gap


def test_hard_margin_by_hand() -> None:
    """Two samples at ±x with opposite labels: the least w_1 - w_2 that ranks both by 1 is x / |x|², half a label."""
    X, indicator = np.array([[2.0], [-2.0]]), np.array([[1, 0], [0, 1]])
    expected = 2 * (0.5 / 2.0) ** 2
    for found in (solve_primal(X, indicator, np.inf), solve_dual(X @ X.T, indicator, np.inf)):
        assert (found.primal, found.dual) == (pytest.approx(expected, rel=1e-8), pytest.approx(expected, rel=1e-8))
        np.testing.assert_allclose(found.scores, [[0.5, -0.5], [-0.5, 0.5]], atol=1e-6)
        np.testing.assert_allclose(found.alpha, [expected, expected], rtol=1e-6)


def test_a_hard_margin_that_cannot_be_had() -> None:
    X, indicator = np.array([[1.0], [1.0]]), np.array([[1, 0], [0, 1]])
    with pytest.raises(NoSolution):
        solve_primal(X, indicator, np.inf)
    with pytest.raises(NoSolution):
        solve_dual(X @ X.T, indicator, np.inf)
    with pytest.raises(ValueError, match="unbounded"):
        ascend(X @ X.T, all_pairs(indicator, np.inf))
