"""One SVM a label: scikit-learn's SVC is the reference for every column."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from gbdtmo_core import BinarySVMClassifier
from tests.oracle.binning import FloatArray

X, Y = make_multilabel_classification(n_samples=80, n_features=6, n_classes=4, n_labels=2, random_state=0)
X = X / 10
TIGHT: dict[str, Any] = {"tol": 1e-9, "max_iter": 100_000}  # rounding may keep libsvm from ever getting there

# What weights of rows and repeated rows have in common shows at the optimum alone, and with a gamma that does not count
# rows.
CHECKED = [
    BinarySVMClassifier(**TIGHT),
    BinarySVMClassifier(kernel="rbf", gamma=0.5, cache_size=1e-3, **TIGHT),  # kernel rows on demand
    BinarySVMClassifier(kernel="rbf", gamma=0.5, label_set="size", **TIGHT),
    BinarySVMClassifier(kernel="precomputed", **TIGHT),
]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_compatibility(estimator: Any, check: Any) -> None:
    check(estimator)


KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 4, "gamma": 0.5, "coef0": 1.5},
    "poly, gamma by scale": {"kernel": "poly", "degree": 2},
    "rbf": {"kernel": "rbf", "gamma": "auto"},
    "rbf, gamma by scale": {"kernel": "rbf"},
}


@pytest.mark.parametrize("cache_size", [500, 1e-3])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_columns_are_svcs(name: str, is_sparse: bool, cache_size: float) -> None:
    rows, new = (sparse.csr_array(part) if is_sparse else part for part in (X[:50], X[50:]))
    model = BinarySVMClassifier(2.0, cache_size=cache_size, **KERNELS[name], **TIGHT).fit(rows, Y[:50])
    scores = model.decision_function(new)
    for k in range(4):
        svc = SVC(C=2.0, **KERNELS[name], **TIGHT).fit(rows, Y[:50, k])
        np.testing.assert_allclose(scores[:, k], svc.decision_function(new), atol=1e-6)


def test_weights_are_svcs() -> None:
    weight = np.random.default_rng(0).uniform(0.1, 3, 80)
    scores = BinarySVMClassifier(kernel="rbf", **TIGHT).fit(X, Y, weight).decision_function(X)
    for k in range(4):
        svc = SVC(**TIGHT).fit(X, Y[:, k], weight)
        np.testing.assert_allclose(scores[:, k], svc.decision_function(X), atol=1e-6)


def test_given_and_computed_kernels_agree() -> None:
    def kernel(a: Any, b: Any) -> FloatArray:
        return np.asarray(rbf_kernel(a, b, gamma=0.3))

    expected = BinarySVMClassifier(kernel="rbf", gamma=0.3, **TIGHT).fit(X, Y).decision_function(X[:9])
    given = BinarySVMClassifier(kernel="precomputed", **TIGHT).fit(kernel(X, X), Y)
    np.testing.assert_allclose(given.decision_function(kernel(X[:9], X)), expected, atol=1e-6)
    assert not hasattr(given, "support_vectors_")
    called = BinarySVMClassifier(kernel=kernel, **TIGHT).fit(X, Y)
    np.testing.assert_allclose(called.decision_function(X[:9]), expected, atol=1e-6)
    rows = sparse.csr_array(X)
    called = BinarySVMClassifier(kernel=kernel, **TIGHT).fit(rows, Y)
    np.testing.assert_allclose(called.decision_function(rows[:9]), expected, atol=1e-6)


def test_attributes_make_the_scores() -> None:
    model = BinarySVMClassifier(kernel="poly", degree=3, gamma=0.5, coef0=1).fit(X, Y)
    kernel = polynomial_kernel(X, model.support_vectors_, degree=3, gamma=0.5, coef0=1)
    np.testing.assert_allclose(model.decision_function(X), kernel @ model.dual_coef_.T + model.intercept_)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.dual_coef_.shape == (4, len(model.support_))
    assert (model.n_iter_ > 0).all()
    linear = BinarySVMClassifier().fit(X, Y)
    np.testing.assert_allclose(linear.coef_, linear.dual_coef_ @ X[linear.support_], atol=1e-12)
    np.testing.assert_allclose(linear.decision_function(X), X @ linear.coef_.T + linear.intercept_)


def test_two_classes_are_one_svm() -> None:
    y = np.where(Y[:, 0] == 1, "yes", "no")
    model = BinarySVMClassifier(kernel="rbf", **TIGHT).fit(X, y)
    svc = SVC(**TIGHT).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), 2 * svc.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), svc.predict(X))


def test_classes_go_to_the_largest_score() -> None:
    y = np.array(["a", "b", "c", "d"])[Y.argmax(axis=1)]
    model = BinarySVMClassifier(kernel="rbf").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])


def test_labels_that_are_always_or_never_there() -> None:
    y = np.column_stack([np.ones(80, int), Y[:, 0], np.zeros(80, int)])
    model = BinarySVMClassifier(kernel="rbf").fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores[:, 0], 1)
    np.testing.assert_array_equal(scores[:, 2], -1)
    assert model.n_iter_[0] == model.n_iter_[2] == 0 < model.n_iter_[1]
    nothing = BinarySVMClassifier().fit(X, y[:, [0, 2]])
    np.testing.assert_array_equal(nothing.predict(X[:3]), [[1, 0]] * 3)
    assert len(nothing.support_) == 0


def test_labels_that_go_together() -> None:
    y = np.column_stack([Y[:, 0], Y[:, 1], Y[:, 0], 1 - Y[:, 0]])
    scores = BinarySVMClassifier(kernel="rbf").fit(X, y).decision_function(X)
    np.testing.assert_array_equal(scores[:, 2], scores[:, 0])
    np.testing.assert_array_equal(scores[:, 3], -scores[:, 0])
    alone = BinarySVMClassifier(kernel="rbf").fit(X, y[:, :2]).decision_function(X)
    np.testing.assert_allclose(scores[:, :2], alone, rtol=1e-12)


def test_names_and_numbers_give_the_same() -> None:
    names = np.array(["amino", "blood", "cell", "death"])
    model = BinarySVMClassifier().fit(X, [set(names[row == 1]) for row in Y])
    np.testing.assert_array_equal(model.predict(X), BinarySVMClassifier().fit(X, Y).predict(X))
    assert model.classes_.tolist() == names.tolist()


def test_sizes_by_an_svm_of_the_same_kernel() -> None:
    model = BinarySVMClassifier(3.0, kernel="rbf", gamma=0.7, label_set="size").fit(X, Y)
    sizes = SVC(C=3.0, gamma=0.7).fit(X, Y.sum(axis=1)).predict(X)
    np.testing.assert_array_equal(model.predict(X).sum(axis=1), sizes)
    own = BinarySVMClassifier(label_set="size", size_estimator=LinearRegression()).fit(X, Y)
    expected = np.clip(np.rint(LinearRegression().fit(X, Y.sum(axis=1)).predict(X)), 0, 4)
    np.testing.assert_array_equal(own.predict(X).sum(axis=1), expected)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_hard_margin_at_any_scale(factor: float) -> None:
    """All rows are outside the margin, some on it, and no multiplier is at the finite C."""
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 2], [2, 1]]) + 0.1 * np.arange(6)[:, None]
    y = np.array([[0, 1], [1, 0], [0, 0], [1, 1], [1, 0], [0, 1]])
    model = BinarySVMClassifier(np.inf, kernel="poly", degree=3, gamma=1 / factor**2, coef0=1, tol=1e-6)
    margins = (2 * y - 1) * model.fit(factor * corners, y).decision_function(factor * corners)
    np.testing.assert_allclose(margins.min(axis=0), 1, atol=1e-5)
    assert np.abs(model.dual_coef_).max() < 0.9 * model._bound


def test_hard_margin_far_from_the_origin() -> None:
    """The bias absorbs a shift, so that the C which stands for infinity does not depend on it."""
    line, y = np.arange(4.0)[:, None], np.array([[0, 1], [0, 1], [1, 0], [1, 0]])
    near, far = (BinarySVMClassifier(np.inf, tol=1e-6).fit(line + shift, y) for shift in (0, 30))
    assert far._bound == pytest.approx(near._bound, rel=1e-9)
    np.testing.assert_allclose(far.decision_function(line + 30)[:, 0], [-3, -1, 1, 3], atol=1e-3)


def test_a_limit_on_steps_is_warned_of() -> None:
    y = np.column_stack([Y[:, 0], np.ones(80, int), Y[:, 1]])
    with pytest.warns(ConvergenceWarning, match=r"columns \[0, 2\] were stopped after max_iter=3") as found:
        BinarySVMClassifier(max_iter=3).fit(X, y)
    assert len(found) == 1
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BinarySVMClassifier().fit(X, y)


def test_indefinite_kernels_are_warned_of() -> None:
    kernel = X @ X.T - 2 * np.eye(80)
    with pytest.warns(UserWarning, match="not positive semi-definite") as found:
        model = BinarySVMClassifier(kernel="precomputed").fit(kernel, Y)
    assert found[0].filename == __file__
    assert np.isfinite(model.decision_function(kernel)).all()


def test_kernels_that_cannot_be_used() -> None:
    with pytest.raises(ValueError, match="symmetric"):
        BinarySVMClassifier(kernel="precomputed").fit(np.triu(X @ X.T), Y)
    with pytest.raises(ValueError, match="shape"):
        BinarySVMClassifier(kernel=lambda a, b: a @ a.T).fit(X, Y).predict(X[:5])
    with pytest.raises(ValueError, match="infinite"):
        BinarySVMClassifier(kernel="poly", degree=200, gamma=1.0).fit(100 * X, Y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [1e-8, 1e3, np.inf])
def test_rows_of_zeros_and_repeated_rows(C: float, kernel: str) -> None:
    rows = np.zeros((8, 3))
    rows[4:] = 1
    y = np.array([[1, 0], [1, 0], [1, 1], [0, 0], [0, 1], [0, 1], [0, 1], [1, 1]])
    model = BinarySVMClassifier(C, kernel=kernel, max_iter=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(model.fit(rows, y).decision_function(rows)).all()
        assert np.isfinite(model.fit(np.zeros((8, 3)), y).decision_function(rows)).all()


def test_empty_and_full_sets_are_rows_like_others() -> None:
    y = Y.copy()
    y[:5], y[5:9] = 0, 1
    scores = BinarySVMClassifier(kernel="rbf", **TIGHT).fit(X, y).decision_function(X)
    svc = SVC(**TIGHT).fit(X, y[:, 1])
    np.testing.assert_allclose(scores[:, 1], svc.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    "params",
    [
        {"C": 0},
        {"C": -1.0},
        {"C": np.nan},
        {"C": "1"},
        {"kernel": "cosine"},
        {"kernel": 1},
        {"degree": -1},
        {"degree": 2.5},
        {"gamma": 0},
        {"gamma": "best"},
        {"coef0": np.inf},
        {"tol": 0},
        {"max_iter": 0},
        {"cache_size": 0},
        {"n_jobs": 0},
    ],
)
def test_bad_parameters(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(params))} must be"):
        BinarySVMClassifier(**params).fit(X, Y)


def test_number_of_threads_changes_nothing() -> None:
    one, three = (BinarySVMClassifier(kernel="rbf", n_jobs=n).fit(X, Y).decision_function(X) for n in (1, 3))
    np.testing.assert_array_equal(one, three)


def test_pickle_clone_and_search() -> None:
    model = BinarySVMClassifier(np.inf, kernel="rbf", label_set="size").fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()
    assert clone(model).get_params()["C"] == np.inf
    search = GridSearchCV(BinarySVMClassifier(kernel="rbf"), {"C": [1e-6, 10.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"C": 10.0}


def _genes(path: Path) -> tuple[FloatArray, FloatArray]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] not in "@%"]
    values = np.loadtxt(lines, delimiter=",")
    return values[:, :103], values[:, 103:]


def test_published_numbers_of_the_yeast_genes(shared: Path) -> None:
    """Table of Elisseeff & Weston, degree 8: precision, ranking loss, Hamming loss, one-error."""
    folder = shared / "data/yeast_ml"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}")
    (rows, sets), (new, truth) = _genes(folder / "yeast-train.arff"), _genes(folder / "yeast-test.arff")
    model = BinarySVMClassifier(np.inf, kernel="poly", degree=8, gamma=1.0, coef0=1.0, n_jobs=-1).fit(rows, sets)
    scores = model.decision_function(new)
    found = [
        label_ranking_average_precision_score(truth, scores),
        label_ranking_loss(truth, scores),
        np.mean(model.predict(new) != truth),
        np.mean(truth[np.arange(len(truth)), scores.argmax(axis=1)] == 0),
    ]
    np.testing.assert_allclose(found, [0.770, 0.165, 0.195, 0.218], atol=0.01)
