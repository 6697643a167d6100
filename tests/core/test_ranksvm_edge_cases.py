"""Rank-SVM where labels, rows or kernels are out of the ordinary: a defined result, or an error that says why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from gbdtmo_core import BinarySVMClassifier, RankSVMClassifier, _lib_ranksvm
from gbdtmo_core._label_groups import find_groups
from tests.core.test_ranksvm import TIGHT, problem
from tests.oracle.ranksvm_objective import pairs_of, primal

RBF: dict[str, Any] = {"kernel": "rbf", "gamma": 1.0, "random_state": 0}
BOTH = pytest.mark.parametrize("C", [1.0, np.inf])


@BOTH
def test_empty_and_full_sets_carry_no_pairs_but_count_for_the_threshold(C: float) -> None:
    X, Y = problem(1, n=30)
    X = X[2:]
    Y = Y[2:]
    plain = RankSVMClassifier(C, **RBF).fit(X, Y)
    more_X = np.r_[X, 3 + np.random.default_rng(0).normal(size=(8, 3))]
    more_Y = np.r_[Y, np.zeros((4, 4), int), np.ones((4, 4), int)]
    more = RankSVMClassifier(C, **RBF).fit(more_X, more_Y)
    assert np.isclose(more.primal_objective_, plain.primal_objective_, rtol=2e-3)
    assert not more.dual_coef_[:, len(X) :].any()
    assert not np.allclose(more.label_set_.coef, plain.label_set_.coef, rtol=0.05)


@BOTH
def test_a_label_that_never_or_always_occurs_is_ranked_by_its_bias(C: float) -> None:
    X, Y = problem(1, n=30)
    Y = np.column_stack([Y, np.ones(30, int), np.zeros(30, int)])[2:]
    X = X[2:]
    model = RankSVMClassifier(C, **RBF).fit(X, Y)
    assert model.converged_
    assert not model.dual_coef_[4:].any()
    scores = model.decision_function(X)
    for s, relevant in zip(scores, Y, strict=True):
        assert s[4] >= s[relevant == 0].max() + 1 - 1e-9
        assert s[5] <= s[relevant == 1].min() - 1 + 1e-9
    gram = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    assert np.isclose(primal(model.dual_coef_, model.intercept_, gram, Y, C), model.primal_objective_, rtol=1e-9)


@BOTH
def test_labels_that_always_occur_together_score_alike(C: float) -> None:
    X, Y = problem(1, n=30)
    model = RankSVMClassifier(C, **RBF, **TIGHT).fit(X, np.column_stack([Y, Y[:, 0]]))
    scores = model.decision_function(X)
    assert np.allclose(scores[:, 0], scores[:, 4], atol=1e-2)


def test_groups_of_labels_that_biases_order() -> None:
    """0 and 1 come first in either order, then 2, then 3 and 4 in either order."""
    Y = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 1]], np.uint8)
    groups = find_groups(Y)
    assert groups.group[0] == groups.group[1] != groups.group[2]
    assert groups.group[3] == groups.group[4] != groups.group[2]
    X = np.random.default_rng(0).normal(size=(5, 3))
    for C in (0.5, np.inf):
        model = RankSVMClassifier(C, **RBF, **TIGHT).fit(X, Y)
        scores = model.decision_function(X)
        group = groups.group
        for s, relevant in zip(scores, Y, strict=True):
            across = [s[k] - s[j] for k, j in pairs_of(relevant) if group[k] != group[j]]
            assert all(margin >= 1 - 1e-9 for margin in across)
        gram = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
        assert np.isclose(primal(model.dual_coef_, model.intercept_, gram, Y, C), model.primal_objective_, rtol=1e-9)


def test_equal_rows_with_different_sets_have_no_hard_margin() -> None:
    X, Y = problem(1, n=30)
    X, Y = np.r_[X, X[2:4]], np.r_[Y, 1 - Y[2:4]]
    for kernel in ("linear", "rbf"):
        with pytest.warns(ConvergenceWarning, match="not ranked without error"):
            model = RankSVMClassifier(np.inf, kernel=kernel, max_iter=300, random_state=0).fit(X, Y)
        assert np.isinf(model.primal_objective_)
        assert np.isinf(model.duality_gap_)
        assert np.isfinite(model.dual_objective_)
        assert np.isnan(model.margin_)
        assert not model.converged_
        assert np.isfinite(model.decision_function(X)).all()
    assert RankSVMClassifier(1.0, **RBF).fit(X, Y).converged_


def test_one_column_is_refused() -> None:
    X, Y = problem(1, n=30)
    with pytest.raises(ValueError, match="one column"):
        RankSVMClassifier().fit(X, Y[:, :1])


def test_rows_of_zeros_leave_biases_alone() -> None:
    _, Y = problem(1, n=30)
    X = np.zeros((30, 3))
    model = RankSVMClassifier(1.0, random_state=0).fit(X, Y)
    assert model.converged_
    assert not model.coef_.any()
    gram = np.zeros((30, 30))
    assert np.isclose(primal(model.dual_coef_, model.intercept_, gram, Y, 1.0), model.primal_objective_, rtol=1e-9)
    with pytest.warns(ConvergenceWarning, match="not ranked without error"):
        RankSVMClassifier(np.inf, max_iter=300, random_state=0).fit(X, Y)


@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_tiny_and_huge_costs(name: str) -> None:
    X, Y = problem(4, n=30, separable=True)
    settings = {"kernel": name, "gamma": 1.0, "random_state": 0, "tol": 1e-6, "max_iter": 20_000}
    # w is almost 0: what remains is the best constant ranking.
    tiny = RankSVMClassifier(1e-12, **settings).fit(X, Y)
    constant = RankSVMClassifier(1.0, **{**settings, "kernel": "linear"}).fit(np.zeros_like(X), Y)
    assert tiny.converged_
    assert np.isclose(tiny.primal_objective_, 1e-12 * constant.primal_objective_, rtol=1e-5)
    huge = RankSVMClassifier(1e12, **settings).fit(X, Y)
    hard = RankSVMClassifier(np.inf, **settings).fit(X, Y)
    assert np.isclose(huge.primal_objective_, hard.primal_objective_, rtol=2e-6)


@BOTH
def test_a_kernel_that_is_not_positive_semi_definite_is_warned_of(C: float) -> None:
    X, Y = problem(1, n=30)
    for gram in (X @ X.T - 3 * np.eye(30), -X @ X.T, X @ X.T - 100):
        with pytest.warns(UserWarning, match="not positive semi-definite"):
            model = RankSVMClassifier(C, kernel="precomputed", max_iter=50).fit(gram, Y)
        assert np.isnan(model.duality_gap_)
        assert not model.converged_
        assert np.isfinite(model.decision_function(gram)).all()


def test_unusable_kernels_are_refused() -> None:
    X, Y = problem(1, n=30)
    gram = X @ X.T
    with pytest.raises(ValueError, match="not symmetric"):
        RankSVMClassifier(kernel="precomputed").fit(gram + np.triu(np.ones((30, 30))), Y)
    for cache_size in (1024, 1e-3):
        with pytest.raises(ValueError, match="not symmetric"):
            RankSVMClassifier(kernel=lambda a, b: a @ (b + 1).T, cache_size=cache_size).fit(X, Y)
    with pytest.raises(ValueError, match="must return shape"):
        RankSVMClassifier(kernel=lambda a, b: a).fit(X, Y)
    with pytest.raises(ValueError, match="NaN or infinite"):
        RankSVMClassifier(kernel=lambda a, b: np.full((len(a), len(b)), np.nan)).fit(X, Y)
    with pytest.raises(ValueError, match=r"K\(x, x\) of a training row is inf; expected 0, or 1e-100 to 1e\+100"):
        RankSVMClassifier().fit(X * 1e200, Y)
    with pytest.raises(ValueError, match="is inf; expected"):
        RankSVMClassifier(kernel="poly", degree=100_000, coef0=1.0).fit(X, Y)


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("model", [RankSVMClassifier, BinarySVMClassifier])
def test_a_callable_cannot_change_the_rows(model: type, rows: Callable[[Any], Any]) -> None:
    X, Y = problem(1, n=30)
    given = rows(X)

    def scaling(a: Any, b: Any) -> Any:
        a *= 0.5
        return a @ b.T

    with pytest.raises(ValueError, match="read-only"):
        model(kernel=scaling).fit(given, Y)
    assert (given == rows(X)).sum() == X.size


def test_nan_is_refused() -> None:
    X, Y = problem(1, n=30)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        RankSVMClassifier().fit(X, Y)


@BOTH
def test_without_pairs_nothing_is_left_to_do(C: float) -> None:
    X, Y = problem(1, n=30)
    for sets in (np.ones_like(Y), np.zeros_like(Y)):
        model = RankSVMClassifier(C, **RBF).fit(X, sets)
        assert model.primal_objective_ == model.dual_objective_ == model.duality_gap_ == 0
        assert model.n_iter_ == 0
        assert model.converged_
        assert len(model.support_) == 0
        assert np.isinf(model.margin_)
        assert np.array_equal(model.predict(X), sets)


@BOTH
def test_one_row(C: float) -> None:
    X, _ = problem(1, n=30)
    model = RankSVMClassifier(C, **RBF).fit(X[:1], np.array([[1, 0, 1]]))
    assert model.primal_objective_ == 0
    assert model.converged_
    assert np.array_equal(model.predict(X[:1]), [[1, 0, 1]])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("C", value) for value in (0, -1.0, "1", None, np.nan)),
        *(("kernel", value) for value in ("cosine", None, 3)),
        *(("degree", value) for value in (-1, 1.5)),
        *(("gamma", value) for value in (0, -1.0, "none", np.inf)),
        ("coef0", np.inf),
        *(("tol", value) for value in (-1e-3, np.inf)),
        *(("max_iter", value) for value in (-1, 1.5)),
        ("cache_size", 0),
        ("n_jobs", 0),
        ("label_set", "some"),
        ("verbose", -1),
    ],
)
def test_parameters_out_of_range_are_refused(name: str, value: Any) -> None:
    X, Y = problem(1, n=30)
    with pytest.raises(ValueError, match=name):
        RankSVMClassifier(**{name: value}).fit(X, Y)


def test_an_interrupt_states_the_gap_and_leaves_the_estimator_as_it_was() -> None:
    X, Y = problem(1, n=30)
    calls = 0

    def kernel(a: Any, b: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 40:
            raise KeyboardInterrupt
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=2))

    model = RankSVMClassifier(kernel=kernel, cache_size=1e-3, tol=0, random_state=0)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        model.fit(X, Y)
    assert any("relative duality gap" in note for note in interrupt.value.__notes__)
    assert not hasattr(model, "dual_coef_")


def test_a_failed_allocation_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __getattr__(self, name: str) -> Any:
            return (lambda *arguments: lib.GMO_ERR_MEMORY) if name == "gmo_ranksvm_create" else getattr(lib, name)

    lib = _lib_ranksvm.lib
    monkeypatch.setattr(_lib_ranksvm, "lib", Full())
    X, Y = problem(1, n=30)
    with pytest.raises(MemoryError, match="cache_size"):
        RankSVMClassifier(**RBF).fit(X, Y)


def test_costs_beyond_the_range_of_numbers_are_refused() -> None:
    X, Y = problem(1, n=30)
    for C in (1e-310, 1e300):
        with pytest.raises(ValueError, match="the largest C times sample_weight"):
            RankSVMClassifier(C).fit(X, Y)
    with pytest.raises(ValueError, match="C must be a number above 0"):
        RankSVMClassifier(10**400).fit(X, Y)


def test_a_certificate_of_rounding_is_none() -> None:
    """An optimum that is known: on the way multipliers shrink to rounding, which must not pass for a bound."""
    rows = [[1.0, -1], [1, 2], [1, -1]], [[1, 0], [0, 1], [1, 1]]
    for seed in range(100):
        model = RankSVMClassifier(np.inf, kernel="rbf", gamma=15.0, random_state=seed).fit(*rows)
        assert model.converged_
        assert 1 - 1e-9 <= model.primal_objective_ <= 1 + 1e-3
        assert 1 - 1e-3 <= model.dual_objective_ <= 1 + 1e-9


@pytest.mark.parametrize(("n", "n_labels", "C"), [(300, 64, 1.0), (150, 100, 0.1), (50, 100, 1.0)])
def test_many_labels_of_rows_with_small_bounds_are_certified(n: int, n_labels: int, C: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    scores = X @ rng.normal(size=(20, n_labels)) + 5 * rng.normal(size=(n, n_labels))
    Y = (scores > np.sort(scores, axis=1)[:, [-11]]).astype(int)  # ten labels a row
    model = RankSVMClassifier(C, random_state=0, label_set="none").fit(X, Y)
    assert model.converged_
    assert model.n_iter_ < 200


def test_rows_of_no_weight_leave_a_given_kernel() -> None:
    X, Y = problem(1, n=30)
    weight = np.r_[np.zeros(5), np.ones(25)]
    given = RankSVMClassifier(kernel="precomputed", random_state=0).fit(X @ X.T, Y, sample_weight=weight)
    fewer = RankSVMClassifier(kernel="precomputed", random_state=0).fit(X[5:] @ X[5:].T, Y[5:])
    np.testing.assert_allclose(given.decision_function(X @ X.T), fewer.decision_function(X @ X[5:].T), atol=1e-12)
