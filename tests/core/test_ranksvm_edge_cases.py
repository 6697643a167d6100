"""Rank-SVM where labels, rows or kernels are out of the ordinary: a defined result, or an error that says why not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

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


def test_asymmetry_and_indefiniteness_show_without_the_whole_matrix() -> None:
    X, Y = problem(1, n=60)
    few: dict[str, Any] = {"C": 0.1, "max_iter": 300, "random_state": 0}

    def lopsided(a: Any, b: Any) -> Any:
        return a @ b.T + 0.1 * (a[:, :1] > b[:, 0])

    for cache_size in (1024, 1e-3):
        with pytest.raises(ValueError, match="not symmetric"):
            RankSVMClassifier(kernel=lopsided, cache_size=cache_size, **few).fit(X, Y)
        with pytest.warns(UserWarning, match="not positive semi-definite"):
            model = RankSVMClassifier(
                kernel=lambda a, b: np.tanh(0.5 * a @ b.T - 0.3), cache_size=cache_size, **few
            ).fit(X, Y)
        assert np.isnan(model.duality_gap_)


@pytest.mark.parametrize("answer", [sparse.csr_array, np.ma.masked_array, lambda k: k * 1j, lambda k: k.astype(str)])
def test_a_kernel_function_returns_real_numbers(answer: Callable[[Any], Any]) -> None:
    X, Y = problem(1, n=30)
    with pytest.raises(TypeError, match="must return a dense array of real numbers; it returned"):
        RankSVMClassifier(kernel=lambda a, b: answer(a @ b.T)).fit(X, Y)


@pytest.mark.parametrize("scale", [1e3, 1e4])
@pytest.mark.parametrize("C", [1e8, 1e10, 1e13])
def test_the_primal_bound_holds_where_rounding_decides_the_hinges(scale: float, C: float) -> None:
    rng = np.random.RandomState(2)
    X = rng.randn(40, 5) * scale
    Y = (X @ rng.randn(5, 3) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RankSVMClassifier(C, random_state=0, max_iter=3000).fit(X, Y)
    assert exact_primal(model, X, Y) <= model.primal_objective_ * (1 + 1e-12)


def exact_primal(model: RankSVMClassifier, X: Any, Y: Any) -> float:
    """The objective in rational numbers."""
    rows = [[Fraction(value) for value in row] for row in X.tolist()]
    w = [
        [sum(Fraction(a) * row[f] for a, row in zip(own, rows, strict=True)) / 2 for f in range(X.shape[1])]
        for own in model.dual_coef_.tolist()
    ]
    total = sum((value * value for own in w for value in own), Fraction(0))
    for row, relevant in zip(rows, Y, strict=True):
        scores = [
            sum(a * x for a, x in zip(own, row, strict=True)) + Fraction(b)
            for own, b in zip(w, model.intercept_.tolist(), strict=True)
        ]
        pairs = pairs_of(relevant)
        hinges = sum((max(Fraction(0), 1 - scores[k] + scores[j]) for k, j in pairs), Fraction(0))
        total += Fraction(model.C) * hinges / len(pairs) if pairs else 0
    return float(total)


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("model", [RankSVMClassifier, BinarySVMClassifier])
def test_a_callable_cannot_change_the_rows(model: type, rows: Callable[[Any], Any]) -> None:
    X, Y = problem(1, n=30)
    given = rows(X)

    def scaling(a: Any, b: Any) -> Any:
        a *= 0.5
        return (a @ b.T).toarray() if sparse.issparse(a) else a @ b.T

    fitted = model(kernel=scaling, label_set="size").fit(given, Y)
    fitted.predict(given)
    assert np.array_equal(np.asarray(given @ np.eye(X.shape[1])), X)


KERNELS_OF_ROWS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": lambda a, b: (a @ b.T).toarray() if sparse.issparse(a) else a @ b.T},
]


@pytest.mark.parametrize("settings", KERNELS_OF_ROWS)
@pytest.mark.parametrize("label_set", ["threshold", "size"])
@pytest.mark.parametrize("model", [RankSVMClassifier, BinarySVMClassifier])
def test_new_rows_may_be_dense_or_sparse_whatever_the_training_rows_were(
    model: type, label_set: str, settings: dict[str, Any]
) -> None:
    X, Y = problem(1, n=40)
    X = np.where(np.abs(X) < 0.4, 0.0, X)
    forms = [X, sparse.csr_matrix(X), sparse.csc_array(X), sparse.csr_array(X)]
    for training in forms[:2]:
        fitted = model(label_set=label_set, **settings).fit(training, Y)
        expected = fitted.decision_function(training)
        for form in forms:
            np.testing.assert_allclose(fitted.decision_function(form), expected, rtol=1e-12, atol=1e-12)
            assert np.array_equal(fitted.predict(form), fitted.predict(training))


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("model", [RankSVMClassifier, BinarySVMClassifier])
def test_rbf_sees_distances_alone(model: type, rows: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(0)
    X, Y = np.round(rng.normal(size=(60, 4)), 6), rng.random((60, 3)) < 0.4
    far = X + 2.0**30  # adds without rounding beyond 1e-7
    near = far - 2.0**30
    settings: dict[str, Any] = {"C": 10, "kernel": "rbf", "gamma": 0.25, "random_state": 0}
    scores = model(**settings).fit(rows(far), Y).decision_function(rows(far))
    expected = model(**settings).fit(near, Y).decision_function(near)
    np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_scale_is_one_over_the_variance_of_sparse_rows_too() -> None:
    X, Y = problem(1, n=30)
    far = np.where(np.abs(X) < 0.4, 0.0, X + 1e8)
    for rows in (X, far):
        dense, kept = (
            RankSVMClassifier(kernel="rbf").fit(form, Y)._kernel.gamma for form in (rows, sparse.csr_array(rows))
        )
        assert kept == pytest.approx(dense, rel=1e-12)


def test_pairs_that_biases_rank_stay_ranked_in_spite_of_rounding() -> None:
    X = np.array([[0.0], [0.9], [-0.7], [-0.5]])
    Y = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])
    model = RankSVMClassifier(1e12, tol=1e-6, label_set="none", random_state=0).fit(X, Y)
    assert exact_primal(model, X, Y) <= model.primal_objective_ * (1 + 1e-12)


def test_functions_of_sklearn_are_kernels() -> None:
    X, Y = problem(1, n=30)
    for kernel in (pairwise.chi2_kernel, pairwise.rbf_kernel, pairwise.laplacian_kernel):
        assert RankSVMClassifier(kernel=kernel, random_state=0).fit(np.abs(X), Y).converged_
        BinarySVMClassifier(kernel=kernel, label_set="size").fit(np.abs(X), Y).predict(np.abs(X))


def test_rows_that_are_too_large_are_refused_in_prediction_too() -> None:
    X, Y = problem(1, n=30)
    for model in (RankSVMClassifier(kernel="poly"), BinarySVMClassifier(kernel="poly")):
        model.fit(X, Y)
        with pytest.raises(ValueError, match="scores of some rows are NaN or infinite"):
            model.predict(X * 1e155)


@pytest.mark.parametrize("model", [RankSVMClassifier, BinarySVMClassifier])
def test_a_fit_leaves_nothing_of_the_fit_before(model: type) -> None:
    X, Y = problem(1, n=30)
    again = model(kernel="linear").fit(X, Y).set_params(kernel="precomputed").fit(X @ X.T, Y)
    assert not hasattr(again, "coef_")
    assert not hasattr(again, "support_vectors_")
    fitted = model(kernel="rbf").fit(X, Y)
    expected = fitted.decision_function(X)
    assert np.array_equal(fitted.set_params(kernel="linear").decision_function(X), expected)


def test_rows_whose_flags_are_outdated_are_put_in_order() -> None:
    X, Y = problem(1, n=30)
    both = sparse.csr_matrix(np.hstack([X, X]))
    parts = both.data, both.indices % X.shape[1], both.indptr  # every entry stands twice
    twice = sparse.csr_matrix(parts, shape=X.shape)
    twice.has_canonical_format = twice.has_sorted_indices = True
    plain = RankSVMClassifier(kernel="rbf", random_state=0).fit(2 * X, Y)
    model = RankSVMClassifier(kernel="rbf", gamma=plain._kernel.gamma, random_state=0).fit(twice, Y)
    np.testing.assert_allclose(model.decision_function(2 * X), plain.decision_function(2 * X), rtol=1e-9)


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
