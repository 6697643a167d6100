"""Rank-SVM against its equations done slowly, and its certificate against optima of a general solver."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from gbdtmo_core import RankSVMClassifier
from tests.oracle.binning import FloatArray, IntArray
from tests.oracle.ranksvm_objective import can_be_made, dual, pairs_of, primal

TIGHT: dict[str, Any] = {"tol": 1e-7, "max_iter": 20_000}

# What weights of rows and repeated rows have in common shows at the optimum alone, and with a gamma that does not count
# rows.
FINEST: dict[str, Any] = {"tol": 1e-14, "max_iter": 5000}
CHECKED = [
    RankSVMClassifier(**FINEST),
    RankSVMClassifier(kernel="rbf", gamma=0.5, cache_size=1e-3, **FINEST),  # kernel rows on demand
    RankSVMClassifier(kernel="rbf", gamma=0.5, label_set="size", **FINEST),
    RankSVMClassifier(kernel="precomputed", **FINEST),
]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_compatibility(estimator: Any, check: Any) -> None:
    check(estimator)


KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 3, "gamma": 0.5, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 0.5},
}


def gram_of(name: str, X: FloatArray, Y: FloatArray) -> FloatArray:
    if name == "linear":
        return np.asarray(X @ Y.T)
    if name == "poly":
        return np.asarray(polynomial_kernel(X, Y, degree=3, gamma=0.5, coef0=1.0))
    return np.asarray(rbf_kernel(X, Y, gamma=0.5))


def problem(seed: int, n: int = 14, q: int = 4, separable: bool = False) -> tuple[FloatArray, IntArray]:
    """Rows and label sets that a linear ranking explains, but for noise; one empty set, one full."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    scores = X @ rng.normal(size=(3, q)) + (0 if separable else 0.7 * rng.normal(size=(n, q)))
    Y = (scores > np.median(scores, axis=1, keepdims=True)).astype(np.int64)
    Y[0], Y[1] = 0, 1
    return X, Y


def costs_of(Y: IntArray, C: float) -> list[float]:
    return [C / len(pairs_of(row)) if pairs_of(row) else 0.0 for row in Y]


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, np.inf])
@pytest.mark.parametrize("name", KERNELS)
def test_certificate_is_that_of_feasible_points(name: str, C: float) -> None:
    X, Y = problem(3, separable=np.isinf(C))
    gram = gram_of(name, X, X)
    model = RankSVMClassifier(C, random_state=0, **KERNELS[name], **TIGHT).fit(X, Y)
    assert model.converged_
    assert 0 <= model.duality_gap_ <= 1e-7
    A, b = model.dual_coef_, model.intercept_
    assert np.isclose(primal(A, b, gram, Y, C), model.primal_objective_, rtol=1e-9)
    assert np.abs(A.sum(axis=1)).max() <= 1e-9 * np.abs(A).max()
    for a, relevant, cost in zip(A.T, Y, costs_of(Y, C), strict=True):
        assert can_be_made(a, relevant, cost)
    # A feasible point's dual value is a lower bound; the best one seen may be of another point.
    assert dual(A, gram, Y) <= model.dual_objective_ * (1 + 1e-9)
    assert np.isclose(dual(A, gram, Y), model.primal_objective_, rtol=1e-6)


@pytest.mark.parametrize("C", [0.1, np.inf])
@pytest.mark.parametrize("max_iter", [0, 1, 2, 3, 5, 8, 13])
def test_bounds_hold_at_an_early_end(C: float, max_iter: int) -> None:
    X, Y = problem(5, n=40, separable=True)
    best = RankSVMClassifier(C, random_state=0, **TIGHT).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early = RankSVMClassifier(C, random_state=0, tol=0, max_iter=max_iter).fit(X, Y)
    assert early.n_iter_ == max_iter
    assert early.duality_gap_ >= 0
    assert early.dual_objective_ <= best.primal_objective_
    assert early.primal_objective_ >= best.dual_objective_
    gram = X @ X.T
    assert np.isclose(primal(early.dual_coef_, early.intercept_, gram, Y, C), early.primal_objective_, rtol=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_solutions_satisfy_the_optimality_conditions(name: str) -> None:
    """A pair's multiplier is at its bound where its margin is below 1, and 0 where above."""
    X, Y = problem(7, n=30)
    model = RankSVMClassifier(5.0, tol=1e-10, max_iter=50_000, random_state=0, **KERNELS[name]).fit(X, Y)
    scores = 0.5 * gram_of(name, X, X) @ model.dual_coef_.T + model.intercept_
    for a, s, relevant, cost in zip(model.dual_coef_.T, scores, Y, costs_of(Y, 5.0), strict=True):
        # The least and the most that the multipliers of these margins can add up to.
        least, most = np.zeros(len(a)), np.zeros(len(a))
        for k, j in pairs_of(relevant):
            low = cost if s[k] - s[j] < 1 - 1e-3 else 0
            high = 0 if s[k] - s[j] > 1 + 1e-3 else cost
            least += np.eye(len(a))[k] * low - np.eye(len(a))[j] * high
            most += np.eye(len(a))[k] * high - np.eye(len(a))[j] * low
        assert (a >= least - 1e-6 * cost).all()
        assert (a <= most + 1e-6 * cost).all()


@pytest.mark.parametrize("name", KERNELS)
def test_every_way_to_the_kernel_gives_one_solution(name: str) -> None:
    X, Y = problem(11, n=40)
    settings = {"random_state": 0, "tol": 1e-8, "max_iter": 20_000}
    gram = gram_of(name, X, X)
    plain = RankSVMClassifier(2.0, **KERNELS[name], **settings).fit(X, Y)
    others = {
        "sparse": RankSVMClassifier(2.0, **KERNELS[name], **settings).fit(sparse.csr_array(X), Y),
        "precomputed": RankSVMClassifier(2.0, kernel="precomputed", **settings).fit(gram, Y),
        "callable": RankSVMClassifier(2.0, kernel=lambda a, b: gram_of(name, a, b), **settings).fit(X, Y),
        "callable by rows": RankSVMClassifier(
            2.0, kernel=lambda a, b: gram_of(name, a, b), cache_size=1e-3, **settings
        ).fit(X, Y),
        "one row": RankSVMClassifier(2.0, **KERNELS[name], cache_size=1e-9, **settings).fit(X, Y),
        "some rows": RankSVMClassifier(2.0, **KERNELS[name], cache_size=7 * 8 * 40 / 2**20, **settings).fit(X, Y),
    }
    new = np.random.default_rng(0).normal(size=(9, 3))
    expected = 0.5 * gram_of(name, new, X) @ plain.dual_coef_.T + plain.intercept_
    assert np.allclose(plain.decision_function(new), expected, rtol=1e-10, atol=1e-12)
    for way, model in others.items():
        rows = gram_of(name, new, X) if way == "precomputed" else new
        rows = sparse.csr_array(rows) if way == "sparse" else rows
        assert np.isclose(model.primal_objective_, plain.primal_objective_, rtol=2e-8), way
        assert np.allclose(model.decision_function(rows), expected, atol=1e-3), way


def test_coef_holds_the_vectors_of_the_linear_kernel() -> None:
    X, Y = problem(2, n=30)
    model = RankSVMClassifier(random_state=0).fit(X, Y)
    assert np.allclose(model.coef_, 0.5 * model.dual_coef_ @ X, atol=1e-12)
    assert np.allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_, atol=1e-12)
    assert not hasattr(RankSVMClassifier(kernel="rbf", random_state=0).fit(X, Y), "coef_")


def test_wide_rows_of_the_linear_kernel_go_by_their_products() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 300))
    Y = rng.integers(0, 2, (12, 4))
    wide = RankSVMClassifier(random_state=0, **TIGHT).fit(X, Y)
    given = RankSVMClassifier(kernel="precomputed", random_state=0, **TIGHT).fit(X @ X.T, Y)
    assert np.isclose(wide.primal_objective_, given.primal_objective_, rtol=1e-6)
    assert np.allclose(wide.coef_, 0.5 * wide.dual_coef_ @ X, atol=1e-12)


def test_margin_is_the_least_distance_of_a_pair() -> None:
    X, Y = problem(4, n=30, separable=True)
    model = RankSVMClassifier(np.inf, random_state=0).fit(X, Y)
    scores = model.decision_function(X)
    distances = [
        (s[k] - s[j]) / np.linalg.norm(model.coef_[k] - model.coef_[j])
        for s, relevant in zip(scores, Y, strict=True)
        for k, j in pairs_of(relevant)
    ]
    assert model.margin_ > 0
    assert np.isclose(model.margin_, min(distances), rtol=1e-9)
    assert np.isnan(RankSVMClassifier(0.01, random_state=0).fit(*problem(4, n=30)).margin_)


def test_weights_multiply_costs() -> None:
    X, Y = problem(9, n=20)
    weight = np.random.default_rng(2).integers(0, 3, 20)
    weighted = RankSVMClassifier(2.0, random_state=0, **TIGHT).fit(X, Y, sample_weight=weight)
    repeated = RankSVMClassifier(2.0, random_state=0, **TIGHT).fit(
        np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)
    )
    assert np.isclose(weighted.primal_objective_, repeated.primal_objective_, rtol=2e-7)
    assert np.allclose(weighted.coef_, repeated.coef_, atol=2e-3)


def test_one_label_a_sample_is_the_machine_of_weston_and_watkins() -> None:
    """With two classes and one label a sample it is the usual SVM: w_1 = -w_2 = w / 2, C times 4."""
    from sklearn.svm import SVC

    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0).astype(int)
    # |w|^2 / 2 + C xi for w = w_1 - w_2 against the usual |w|^2 / 2 + C xi.
    ours = RankSVMClassifier(1.5, random_state=0, tol=1e-9, max_iter=20_000).fit(X, y)
    usual = SVC(C=1.5, kernel="linear", tol=1e-9).fit(X, y)
    assert np.allclose(ours.coef_[1] - ours.coef_[0], usual.coef_[0], atol=1e-4)
    assert np.allclose(ours.decision_function(X), usual.decision_function(X), atol=1e-3)


def test_results_depend_on_the_seed_alone() -> None:
    X, Y = problem(6, n=60)
    for name in KERNELS:
        one, two, more = (
            RankSVMClassifier(random_state=1, n_jobs=jobs, **KERNELS[name]).fit(X, Y) for jobs in (None, None, 3)
        )
        assert np.array_equal(one.dual_coef_, two.dual_coef_)
        assert np.array_equal(one.dual_coef_, more.dual_coef_)
        assert np.array_equal(one.decision_function(X), more.decision_function(X))
    other = RankSVMClassifier(random_state=2, **KERNELS["rbf"]).fit(X, Y)
    assert not np.array_equal(other.dual_coef_, more.dual_coef_)


def test_copies_predict_alike() -> None:
    X, Y = problem(6, n=60)
    for label_set in ("threshold", "size"):
        model = RankSVMClassifier(kernel="rbf", label_set=label_set, random_state=0).fit(X, Y)
        copied = pickle.loads(pickle.dumps(model))
        assert np.array_equal(copied.predict(X), model.predict(X))
        assert np.array_equal(clone(model).fit(X, Y).predict(X), model.predict(X))


def test_bounds_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = problem(6, n=60)
    model = RankSVMClassifier(random_state=0, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    epochs = [int(line[1 : line.index("]")]) for line in lines]
    assert len(epochs) > 2
    assert epochs == sorted(set(epochs))
    quiet = RankSVMClassifier(random_state=0).fit(X, Y)
    assert np.array_equal(model.dual_coef_, quiet.dual_coef_)
    last = lines[-1]
    assert last == (
        f"[{model.n_iter_}] primal {model.primal_objective_:.6g} dual {model.dual_objective_:.6g} "
        f"gap {model.duality_gap_:.3g}"
    )
