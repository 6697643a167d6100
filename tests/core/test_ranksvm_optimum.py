"""Rank-SVM against interior points (tests/oracle), its certificate, and faults that implementations of it have had."""

from __future__ import annotations

import functools
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import hamming_loss

from gbdtmo_core import RankSVMClassifier
from tests.core.ranking_problems import FloatArray, RankingProblem, laplacian, ranking_problem
from tests.oracle import weston_watkins
from tests.oracle.label_pairs import all_pairs, dual_value, primal_value
from tests.oracle.rank_svm import Solution, solve_dual

TIGHT: dict[str, Any] = {"tol": 1e-9, "max_iter": 200_000, "label_set": "none", "random_state": 0}


@functools.cache
def optimum(seed: int) -> Solution:
    problem = ranking_problem(seed)
    K = problem.gram
    found = solve_dual(K, problem.indicator, problem.C, problem.weight, scale=float(K.diagonal().mean()))
    assert found.primal == pytest.approx(found.dual, rel=1e-9)
    return found


def fitted(problem: RankingProblem, **params: Any) -> RankSVMClassifier:
    """The estimator trained, whether it converges or not."""
    model = RankSVMClassifier(**{**TIGHT, **problem.params, **params})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(problem.given, problem.indicator, sample_weight=problem.weight)


def squared_norm(problem: RankingProblem, model: RankSVMClassifier) -> float:
    """Σ_k |w_k|² of w_k = ½ Σ_i dual_coef_ki φ(x_i)."""
    return 0.25 * float(np.einsum("ki,ij,kj->", model.dual_coef_, problem.gram, model.dual_coef_))


@pytest.mark.parametrize("seed", range(20))
def test_objective_is_that_of_interior_points(seed: int) -> None:
    problem, best = ranking_problem(seed), optimum(seed)
    model = fitted(problem)
    assert model.converged_, str(problem)
    assert model.primal_objective_ == pytest.approx(best.primal, rel=1e-6), str(problem)
    assert model.dual_objective_ == pytest.approx(best.dual, rel=1e-6), str(problem)
    assert 0 <= model.duality_gap_ <= 1e-9, str(problem)
    # A biased score is free up to a constant, and to what the pairs leave open.
    pairs = all_pairs(problem.indicator, problem.C, problem.weight)
    scores = model.decision_function(problem.given)
    assert primal_value(squared_norm(problem, model), scores, pairs) == pytest.approx(best.primal, rel=1e-6)
    np.testing.assert_allclose(
        _centred(problem.gram @ model.dual_coef_.T), _centred(problem.gram @ best.A), atol=2e-3 * np.abs(scores).max()
    )


def _centred(scores: FloatArray) -> FloatArray:
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("max_iter", [1, 2, 5, 10, 30])
@pytest.mark.parametrize("seed", range(20))
def test_certificate_bounds_the_optimum_wherever_it_stops(seed: int, max_iter: int) -> None:
    problem, best = ranking_problem(seed), optimum(seed)
    model = fitted(problem, max_iter=max_iter)
    assert model.n_iter_ <= max_iter
    rounding = 1e-9 * best.primal
    assert model.dual_objective_ <= best.primal + rounding, str(problem)
    assert model.primal_objective_ >= best.dual - rounding, str(problem)
    assert model.duality_gap_ >= 0
    if np.isfinite(model.primal_objective_):
        relative = (model.primal_objective_ - model.dual_objective_) / model.primal_objective_
        assert model.duality_gap_ == pytest.approx(relative, abs=1e-12)
    assert model.converged_ == (model.duality_gap_ <= 1e-9)
    # The primal value is that of the very scores that the model gives.
    pairs = all_pairs(problem.indicator, problem.C, problem.weight)
    own = primal_value(squared_norm(problem, model), model.decision_function(problem.given), pairs)
    assert own == pytest.approx(model.primal_objective_, rel=1e-6), str(problem)


def test_an_early_end_is_warned_of_with_its_gap() -> None:
    problem = ranking_problem(0)
    model = RankSVMClassifier(**{**TIGHT, **problem.params, "max_iter": 1})
    with pytest.warns(ConvergenceWarning, match="after 1 epoch") as caught:
        model.fit(problem.given, problem.indicator, sample_weight=problem.weight)
    assert f"gap {model.duality_gap_:.3g}" in str(caught[-1].message)


def test_small_steps_are_no_reason_to_stop() -> None:
    """Rows that hardly differ with sets that do: multipliers must grow far, by little at a time."""
    rng = np.random.default_rng(3)
    base = rng.normal(size=(8, 3))
    X = np.vstack([base, base + 3e-2 * rng.normal(size=base.shape)])
    indicator = np.eye(3, dtype=np.int64)[np.concatenate([np.arange(8) % 3, np.arange(1, 9) % 3])]
    best = solve_dual(np.exp(-_squares(X)), indicator, 1e5)
    params = {**TIGHT, "tol": 1e-3, "C": 1e5, "kernel": "rbf", "gamma": 1.0}
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for max_iter in (8, 16, 32, 64, 128, 256, 512, 1024):
            before, after = (
                RankSVMClassifier(**{**params, "max_iter": n}).fit(X, indicator) for n in (max_iter, max_iter + 1)
            )
            if before.converged_ or after.dual_objective_ > 0.9 * best.dual:
                break
            assert before.duality_gap_ > 0.1  # it knows how far it is
            seen.append(after.dual_objective_ / before.dual_objective_ - 1)
    assert min(seen) < 1e-2  # else this problem shows nothing: a step of a hundredth, a tenth from the optimum
    end = RankSVMClassifier(**params).fit(X, indicator)
    assert end.converged_
    assert end.primal_objective_ == pytest.approx(best.primal, rel=1e-3)


def _squares(X: FloatArray) -> FloatArray:
    return np.asarray(((X[:, None] - X[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize(("C", "weight"), [(0.25, 0.25), (0.4, 0.4), (0.5, 0.5), (7.0, 0.5), (np.inf, 0.5)])
def test_C_is_in_the_papers_scaling(C: float, weight: float) -> None:
    """Two samples at ±1 with opposite labels, worked out by hand: w_1 = -w_2 = min(C, 1/2).

    The primal is 2w² + 2C max(0, 1 - 2w). With half the squared norms, as some write it, w would be min(2C, 1/2).
    """
    X, indicator = np.array([[1.0], [-1.0]]), np.array([[1, 0], [0, 1]])
    model = RankSVMClassifier(**{**TIGHT, "C": C, "kernel": "linear"}).fit(X, indicator)
    np.testing.assert_allclose(model.coef_, [[weight], [-weight]], rtol=1e-3)
    loss = 2 * C * (1 - 2 * weight) if np.isfinite(C) else 0.0
    assert model.primal_objective_ == pytest.approx(2 * weight**2 + loss, rel=1e-7)
    if C >= 0.5:  # below, a range of biases is as good
        np.testing.assert_allclose(np.diff(model.intercept_), 0, atol=1e-3)


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e6])
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_tiny_and_huge_C(seed: int, C: float) -> None:
    """As estimators are used: default tolerance and number of epochs, kernels that can rank all training rows.

    With tiny C every multiplier is at its bound, so that no single sample tells the bias.
    """
    problem = ranking_problem(seed)
    K = problem.gram
    bound = np.inf if C > 1 else C  # beyond all multipliers it is none
    best = solve_dual(K, problem.indicator, bound, problem.weight, scale=float(K.diagonal().mean()))
    model = RankSVMClassifier(**{**problem.params, "C": C, "random_state": 0})
    model.fit(problem.given, problem.indicator, sample_weight=problem.weight)
    assert model.converged_, str(problem)
    assert best.dual * (1 - 1e-7) <= model.primal_objective_ <= best.primal * (1 + 1e-3)


@pytest.mark.parametrize("seed", [0, 1, 4, 12, 13])
def test_the_bias_serves_all_samples(seed: int) -> None:
    """With these w, no other bias lowers the loss: an exact search label by label finds none."""
    problem = ranking_problem(seed)
    model = fitted(problem)
    pairs = all_pairs(problem.indicator, problem.C, problem.weight)
    scores, norm = model.decision_function(problem.given), squared_norm(problem, model)
    own = primal_value(norm, scores, pairs)
    for label in range(scores.shape[1]):
        margins = pairs.differences(scores)
        moved = (pairs.relevant == label).astype(float) - (pairs.irrelevant == label)
        for kink in ((1 - margins)[moved != 0] / moved[moved != 0]).tolist():  # the loss is linear in between
            other = scores.copy()
            other[:, label] += kink
            assert primal_value(norm, other, pairs) >= own * (1 - 1e-6)


def test_rows_without_pairs_do_not_change_the_ranking() -> None:
    problem = ranking_problem(5)
    sizes = problem.indicator.sum(axis=1)
    kept = (sizes > 0) & (sizes < problem.indicator.shape[1])
    assert 0 < kept.sum() < len(kept)
    whole = fitted(problem)
    part = RankSVMClassifier(**{**TIGHT, **problem.params}).fit(problem.X[kept], problem.indicator[kept])
    np.testing.assert_allclose(whole.coef_, part.coef_, atol=1e-5)
    assert not whole.dual_coef_[:, ~kept].any()


@pytest.mark.parametrize(("fill", "direction"), [(0, -1), (1, 1)])
def test_rows_without_pairs_count_for_the_threshold(fill: int, direction: int) -> None:
    """Rows like the others, all of them with an empty (a full) set, must make predicted sets smaller (larger)."""
    problem = ranking_problem(5)
    more = np.full_like(problem.indicator, fill)
    X, indicator = np.vstack([problem.X, problem.X]), np.vstack([problem.indicator, more])
    params = {**TIGHT, **problem.params, "label_set": "threshold"}
    before = RankSVMClassifier(**params).fit(problem.X, problem.indicator).predict(problem.X).sum()
    after = RankSVMClassifier(**params).fit(X, indicator).predict(problem.X).sum()
    assert direction * (int(after) - int(before)) > 0


PEAK_OF_A_FIT = """
import numpy as np
from gbdtmo_core import RankSVMClassifier
from repro import memory

rng = np.random.default_rng(0)
X, indicator = rng.normal(size=(300, 10)), np.zeros((300, 40), dtype=np.int64)
for row in indicator:
    row[rng.choice(40, size=20, replace=False)] = 1
model = RankSVMClassifier(C=1.0, kernel="rbf", gamma=0.1, tol=1e-1, max_iter=3, label_set="none")
model.fit(X[:20], indicator[:20])
assert memory.reset_peak()
before = memory.resident_mb()
model.fit(X, indicator)
print(memory.peak_mb() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of a stretch is told by Linux alone")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_memory_does_not_grow_with_the_square_of_the_pairs(project_root: Path) -> None:
    """300 rows with 400 pairs each: a matrix of pairs by pairs would take 115 GB, one of pairs by rows 288 MB."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEAK_OF_A_FIT], cwd=project_root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 50


def test_one_label_a_sample_is_weston_and_watkins() -> None:
    """Their w is twice ours, their objective twice ours, their C is ours over Q - 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = rng.permutation(np.arange(24) % 4)
    C = 0.7
    objective, W, b = weston_watkins.solve(X, y, C)
    model = RankSVMClassifier(**{**TIGHT, "C": 3 * C, "kernel": "linear"}).fit(X, y)
    assert 2 * model.primal_objective_ == pytest.approx(objective, rel=1e-7)
    coef = model.coef_ - model.coef_.mean(axis=0)
    np.testing.assert_allclose(2 * coef, W - W.mean(axis=0), atol=1e-4)
    intercept = model.intercept_ - model.intercept_.mean()
    np.testing.assert_allclose(2 * intercept, b, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), (X @ W.T + b).argmax(axis=1))

    # Hamming loss of one-label sets is 2/Q times the multi-class error.
    error = float((model.predict(X) != y).mean())
    assert error > 0
    assert hamming_loss(np.eye(4)[y], np.eye(4)[model.predict(X)]) == pytest.approx(2 / 4 * error)


@pytest.mark.parametrize("seed", [5, 6, 7, 8, 9])
def test_margin_is_the_papers(seed: int) -> None:
    """The least (r_k - r_j) / |w_k - w_j| over samples and pairs (Knowl 2), with the optimum's w."""
    problem, best = ranking_problem(seed), optimum(seed)
    pairs = all_pairs(problem.indicator, 1.0)
    margins = []
    for k, j, difference in zip(pairs.relevant, pairs.irrelevant, pairs.differences(best.scores), strict=True):
        direction = 0.5 * (best.A[:, k] - best.A[:, j])
        margins.append(difference / np.sqrt(direction @ problem.gram @ direction))
    model = fitted(problem)
    assert model.margin_ == pytest.approx(min(margins), rel=1e-3)


def test_a_ranking_by_bias_alone_costs_nothing() -> None:
    """All rows agree on the order of the labels: the optimum is w = 0, its value 0."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    indicator = np.array([[1, 0, 0], [1, 1, 0]] * 3)
    for C in (1.0, np.inf):
        model = RankSVMClassifier(**{**TIGHT, "C": C, "kernel": "linear"}).fit(X, indicator)
        assert model.converged_
        assert (model.primal_objective_, model.duality_gap_) == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))
        scores = model.decision_function(X)
        assert (np.diff(scores, axis=1) < 0).all()


def test_sparse_and_dense_rows_make_the_same_machine() -> None:
    problem = ranking_problem(10)
    by_csr = fitted(problem)
    assert sparse.issparse(problem.given)
    by_rows = RankSVMClassifier(**{**TIGHT, **problem.params}).fit(problem.X, problem.indicator)
    assert by_csr.primal_objective_ == pytest.approx(by_rows.primal_objective_, rel=1e-8)
    np.testing.assert_allclose(by_csr.coef_, by_rows.coef_, atol=1e-4)


@pytest.mark.parametrize("n", [32, 64, 128])
def test_an_epoch_touches_at_most_n_squared_kernel_entries(n: int) -> None:
    """With room for ten rows; the entries of each epoch, with those that its certificate and the scores need."""
    rng = np.random.default_rng(n)
    X, indicator = rng.normal(size=(n, 3)), rng.integers(0, 2, size=(n, 4))
    touched = 0

    def kernel(A: FloatArray, B: FloatArray) -> FloatArray:
        nonlocal touched
        touched += len(A) * len(B)
        return laplacian(A, B)

    params = {**TIGHT, "C": 10.0, "max_iter": 8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        by_rows = RankSVMClassifier(**params, kernel=kernel, cache_size=10 * 8 * n / 2**20).fit(X, indicator)
        entries_by_rows, touched = touched, 0
        at_once = RankSVMClassifier(**params, kernel=kernel).fit(X, indicator)
    assert touched <= 2 * n**2
    assert n**2 < entries_by_rows <= (by_rows.n_iter_ + 2) * n**2
    assert by_rows.primal_objective_ == pytest.approx(at_once.primal_objective_, rel=0.2)


@pytest.fixture(scope="module")
def genes(shared: Path) -> tuple[FloatArray, Any]:
    """The first 100 training genes: 103 features, 14 labels."""
    lines = (shared / "data/yeast_ml/yeast-train.arff").read_text().splitlines()
    rows = [line for line in lines if line.strip() and line[0] not in "@%"][:100]
    table = np.array([[float(value) for value in row.split(",")] for row in rows])
    return table[:, :103], table[:, 103:].astype(np.int64)


@pytest.mark.parametrize(("degree", "C"), [(2, np.inf), (8, np.inf), (2, 1.0)])
def test_a_hundred_genes_to_1e_8(genes: tuple[FloatArray, Any], degree: int, C: float) -> None:
    X, indicator = genes
    K = (X @ X.T + 1) ** degree
    best = solve_dual(K, indicator, C, scale=float(K.diagonal().mean()))
    params = {**TIGHT, "tol": 5e-9, "C": C, "kernel": "poly", "degree": degree, "gamma": 1.0, "coef0": 1.0}
    model = RankSVMClassifier(**params).fit(X, indicator)
    assert model.converged_
    assert model.primal_objective_ == pytest.approx(best.primal, rel=1e-8)
    assert model.dual_objective_ == pytest.approx(best.dual, rel=1e-8)
    A = model.dual_coef_
    assert np.abs(A.sum(axis=1)).max() < 1e-6 * np.abs(A).max()  # the balance of each label
    pairs = all_pairs(indicator, C)
    assert dual_value(K, pairs, best.alpha) == pytest.approx(model.dual_objective_, rel=1e-8)
