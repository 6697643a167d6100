"""What all classifiers of label sets share, with least squares in place of their solvers."""

from __future__ import annotations

import pickle
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from gbdtmo_core._multilabel import MultiLabelClassifier

X, Y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=4, n_labels=2, random_state=0)
NAMES = np.array(["amino", "blood", "cell", "death"])


class LeastSquares(MultiLabelClassifier):
    """Scores by ridge regression on +-1; the kernel is linear, or given."""

    _accepts_sparse: ClassVar[bool] = True

    def __init__(self, *, kernel: str = "linear", label_set: str = "threshold", size_estimator: Any = None) -> None:
        self.kernel = kernel
        self.label_set = label_set
        self.size_estimator = size_estimator

    @staticmethod
    def _design(rows: Any) -> NDArray[np.float64]:
        dense = rows.toarray() if sparse.issparse(rows) else rows
        return np.column_stack([dense, np.ones(len(dense))])

    def _fit_scores(self, X: Any, indicator: NDArray[np.uint8], sample_weight: Any) -> None:
        assert indicator.dtype == np.uint8
        assert indicator.flags.c_contiguous
        design = self._design(X)
        weighted = design.T if sample_weight is None else design.T * sample_weight
        self.weights_ = np.linalg.solve(
            weighted @ design + 1e-3 * np.eye(design.shape[1]), weighted @ (2.0 * indicator - 1)
        )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self._design(X) @ self.weights_)

    def _default_size_estimator(self) -> Any:
        return LinearRegression()


CHECKED = [LeastSquares(), LeastSquares(label_set="size"), LeastSquares(kernel="precomputed")]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_compatibility(estimator: Any, check: Any) -> None:
    check(estimator)


def _sets(names: Any, collection: Any = set) -> list[Any]:
    return [collection(names[np.flatnonzero(row)].tolist()) for row in Y]


MATRICES = {
    "int64": Y,
    "bool": Y.astype(bool),
    "float": Y.astype(np.float32),
    "Fortran": np.asfortranarray(Y),
    "object": Y.astype(object),
    "CSR": sparse.csr_matrix(Y),
    "CSC array": sparse.csc_array(Y),
    "COO": sparse.coo_array(Y.astype(bool)),
    "frame": pd.DataFrame(Y, columns=NAMES),
    "lists": Y.tolist(),
    "list of arrays": list(Y),
}
SETS = {
    "sets": _sets(NAMES),
    "frozensets": tuple(_sets(NAMES, frozenset)),
    "lists": _sets(NAMES, list),
    "tuples": _sets(NAMES, tuple),
    "series": pd.Series(_sets(NAMES)),
    "numbers": _sets(np.arange(4) * 10),
    "whole floats": _sets(np.arange(4.0)),
    "pairs": _sets(np.array([("a", 1), ("a", 2), ("b", 1), ("b", 2)], dtype="U1,i8")),
}


@pytest.mark.parametrize("form", MATRICES)
def test_matrices_are_one(form: str) -> None:
    expected = LeastSquares().fit(X, Y)
    model = LeastSquares().fit(X, MATRICES[form])
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    np.testing.assert_array_equal(model.classes_, NAMES if form == "frame" else np.arange(4))
    assert model.score(X, MATRICES[form]) == accuracy_score(Y, expected.predict(X))


def test_columns_of_frames_go_by_their_names() -> None:
    frame = pd.DataFrame(Y, columns=NAMES)
    model = LeastSquares().fit(X, frame)
    shuffled = frame[[NAMES[2], NAMES[0], NAMES[3], NAMES[1]]]
    assert model.score(X, shuffled) == model.score(X, frame) == model.score(X, Y)
    assert LeastSquares().fit(X, Y).score(X, frame) == model.score(X, Y)
    with pytest.raises(ValueError, match="labels that training had not: \\['wrong'\\]"):
        model.score(X, frame.rename(columns={NAMES[1]: "wrong"}))
    with pytest.raises(ValueError, match="several columns of one name"):
        LeastSquares().fit(X, frame.rename(columns={NAMES[1]: NAMES[0]}))


@pytest.mark.parametrize("form", SETS)
def test_sets_are_their_matrix(form: str) -> None:
    expected = LeastSquares().fit(X, Y)
    model = LeastSquares().fit(X, SETS[form])
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.classes_.tolist() == MultiLabelBinarizer().fit(SETS[form]).classes_.tolist()
    assert model.score(X, SETS[form]) == model.score(X, Y) == accuracy_score(Y, expected.predict(X))


def test_columns_follow_the_sorted_labels() -> None:
    model = LeastSquares().fit(X, _sets(NAMES[::-1]))
    assert model.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(model.predict(X), LeastSquares().fit(X, Y[:, ::-1]).predict(X))


def test_predict_gives_an_indicator() -> None:
    predicted = LeastSquares().fit(X, Y).predict(X)
    assert predicted.shape == Y.shape
    assert predicted.dtype == Y.dtype
    assert set(np.unique(predicted)) == {0, 1}


def test_threshold_uses_training_scores() -> None:
    model = LeastSquares().fit(X, Y)
    scores = model.decision_function(X)
    assert model.label_set_ is not None
    thresholds = scores @ model.label_set_.coef + model.label_set_.intercept
    np.testing.assert_array_equal(model.predict(X), scores > thresholds[:, None])


def test_size_takes_the_best_labels() -> None:
    model = LeastSquares(label_set="size").fit(X, Y)
    predicted = model.predict(X)
    sizes = np.clip(np.rint(LinearRegression().fit(X, Y.sum(axis=1)).predict(X)), 0, 4)
    np.testing.assert_array_equal(predicted.sum(axis=1), sizes)
    scores = model.decision_function(X)
    worst = np.where(predicted == 1, scores, np.inf).min(axis=1)
    assert (np.where(predicted == 0, scores, -np.inf).max(axis=1) <= worst).all()


def test_own_size_estimator() -> None:
    model = LeastSquares(label_set="size", size_estimator=LinearRegression(fit_intercept=False)).fit(X, Y)
    np.testing.assert_allclose(model.label_set_.estimator.intercept_, 0)


def test_no_label_sets() -> None:
    model = LeastSquares(label_set="none").fit(X, Y)
    assert model.decision_function(X).shape == (60, 4)
    assert model.label_set_ is None
    with pytest.raises(ValueError, match='label_set="none"'):
        model.predict(X)


@pytest.mark.parametrize("label_set", ["threshold", "size", "none"])
def test_classes_need_no_label_sets(label_set: str) -> None:
    y = np.array(["b", "a", "c"])[Y.argmax(axis=1) % 3]
    model = LeastSquares(label_set=label_set).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    assert model.score(X, y) == accuracy_score(y, model.predict(X))


def test_two_classes() -> None:
    model = LeastSquares().fit(X, NAMES[Y[:, 0]])
    decision = model.decision_function(X)
    assert decision.shape == (60,)
    np.testing.assert_array_equal(model.predict(X), NAMES[(decision > 0).astype(int)])


def test_empty_and_full_sets_count() -> None:
    sets = _sets(NAMES)
    sets[0], sets[1] = set(), set(NAMES)
    indicator = Y.copy()
    indicator[0], indicator[1] = 0, 1
    model = LeastSquares().fit(X, sets)
    np.testing.assert_array_equal(model.predict(X), LeastSquares().fit(X, indicator).predict(X))
    without = LeastSquares().fit(X[2:], indicator[2:])
    assert model.label_set_.intercept != without.label_set_.intercept


@pytest.mark.parametrize("form", ["matrix", "sets", "classes"])
@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_weight_zero_removes_rows(kernel: str, form: str) -> None:
    y = {"matrix": Y, "sets": np.array(_sets(NAMES)), "classes": Y.argmax(axis=1)}[form]
    weight = np.random.default_rng(0).integers(0, 3, 60)
    kept = weight > 0
    rows, part = (X, X[kept]) if kernel == "linear" else (X @ X.T, X[kept] @ X[kept].T)
    new = X[:9] if kernel == "linear" else X[:9] @ X.T
    model = LeastSquares(kernel=kernel).fit(rows, y, sample_weight=weight)
    removed = LeastSquares(kernel=kernel).fit(part, y[kept], sample_weight=weight[kept])
    expected = removed.decision_function(new if kernel == "linear" else new[:, kept])
    np.testing.assert_allclose(model.decision_function(new), expected, rtol=1e-9)
    assert model.classes_.tolist() == removed.classes_.tolist()


def test_weight_zero_removes_labels_but_no_columns() -> None:
    weight = (Y[:, 0] == 0).astype(float)
    assert LeastSquares().fit(X, Y, weight).decision_function(X).shape == (60, 4)
    assert LeastSquares().fit(X, _sets(NAMES), weight).classes_.tolist() == NAMES[1:].tolist()


def test_sparse_rows_are_dense_rows() -> None:
    expected = LeastSquares().fit(X, Y).decision_function(X)
    for rows in (sparse.csr_matrix(X), sparse.csc_array(X), sparse.coo_array(X)):
        np.testing.assert_allclose(LeastSquares().fit(rows, Y).decision_function(rows), expected, rtol=1e-9)


def test_strange_sparse_rows_are_made_plain_in_a_copy() -> None:
    rows = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3, 3])), shape=(2, 6))
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    before = rows.copy()
    plain = LeastSquares()._check_rows(rows, reset=True)
    assert plain.indices.dtype == plain.indptr.dtype == np.int32
    assert plain.has_sorted_indices
    np.testing.assert_array_equal(plain.toarray(), [[2, 0, 4, 0, 0, 0], [0] * 6])
    np.testing.assert_array_equal(rows.data, before.data)
    np.testing.assert_array_equal(rows.indices, before.indices)


NAN = np.where(Y == 1, np.nan, 0)
BAD_TARGETS = {
    "one column": (Y[:, :1], "one column"),
    "one column, sparse": (sparse.csr_array(Y[:, :1]), "one column"),
    "one column, frame": (pd.DataFrame(Y[:, :1]), "one column"),
    "one column, lists": (Y[:, :1].tolist(), "one column"),
    "twos": (2 * Y, "0 and 1 alone, but has"),
    "twos, sparse": (sparse.csr_array(2 * Y), "0 and 1 alone, but has"),
    "repeated sparse entries": (sparse.coo_array((np.ones(2), ([0, 0], [1, 1])), shape=(60, 4)), "but has"),
    "twos, lists": ((2 * Y).tolist(), "pass a list of Python sets"),
    "negative": (2 * Y - 1, "0 and 1 alone, but has"),
    "fractions": (0.5 * Y, "0 and 1 alone, but has"),
    "text matrix": (Y.astype(str), "0 and 1 alone, but has"),
    "missing": (NAN, "nan"),
    "missing, frame": (pd.DataFrame(NAN), "missing values"),
    "three axes": (Y[:, :, None], "3 dimensions"),
    "no columns": (Y[:, :0], "empty"),
    "continuous": (X[:, 0] / 7, "(?i)continuous"),
    "missing class": (np.where(Y[:, 0] == 1, np.nan, 0.0), "NaN"),
    "one class": (Y[:, 0] * 0, "one class only"),
    "too short": (Y[:-1], "inconsistent numbers"),
    "too few sets": (_sets(NAMES)[:-1], "inconsistent numbers"),
    "none": (None, "requires y to be passed"),
    "unhashable": ([[[1], [2]]] * 60, "cannot be hashed"),
    "a set and a label": ([{1}, 2] * 30, "mixes label sets with other things: row 1 is 2"),
    "kinds": ([{1}, {"a"}] * 30, "different kinds: numbers, text"),
    "fractional labels": ([{0.5}, {1, 2}] * 30, "label 0.5"),
    "missing labels": ([{float("nan")}, {1, 2}] * 30, "label nan"),
    "no label": ([{None}, {1, 2}] * 30, "label None"),
    "unsorted labels": ([{1j}, {2j}] * 30, "cannot be sorted"),
    "one label": ([{"a"}, set()] * 30, "two labels at least"),
    "empty sets": ([set()] * 60, "two labels at least"),
    "empty lists": ([[]] * 60, "two labels at least"),
}


@pytest.mark.parametrize("case", BAD_TARGETS)
def test_bad_targets(case: str) -> None:
    y, message = BAD_TARGETS[case]
    with pytest.raises(ValueError, match=message):
        LeastSquares().fit(X, y)


def test_a_column_of_classes_is_read_with_a_warning() -> None:
    y = Y.argmax(axis=1)
    with pytest.warns(UserWarning, match="column-vector"):
        model = LeastSquares().fit(X, y[:, None])
    np.testing.assert_array_equal(model.predict(X), LeastSquares().fit(X, y).predict(X))


BAD_WEIGHTS = {
    "negative": (-np.ones(60), "must not be negative"),
    "zero": (np.zeros(60), "zero for every sample"),
    "short": (np.ones(59), "inconsistent numbers"),
    "matrix": (np.ones((60, 1)), r"shape \(60,\)"),
    "NaN": (np.full(60, np.nan), "sample_weight contains NaN"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights(case: str) -> None:
    weight, message = BAD_WEIGHTS[case]
    with pytest.raises(ValueError, match=message):
        LeastSquares().fit(X, Y, sample_weight=weight)


def test_bad_rows() -> None:
    hole = X.copy()
    hole[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LeastSquares().fit(hole, Y)
    with pytest.raises(TypeError, match="must hold numbers"):
        LeastSquares().fit(X.astype(str), Y)
    with pytest.raises(ValueError, match="square kernel matrix"):
        LeastSquares(kernel="precomputed").fit(X, Y)
    with pytest.raises(TypeError, match=r"(?i)sparse"):
        LeastSquares(kernel="precomputed").fit(sparse.csr_array(X @ X.T), Y)
    with pytest.raises(ValueError, match="5 features, but LeastSquares is expecting 6"):
        LeastSquares().fit(X, Y).predict(X[:, :5])


@pytest.mark.parametrize("params", [{"label_set": "best"}, {"label_set": None}, {"size_estimator": 3}])
def test_bad_parameters(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(params))} must be"):
        LeastSquares(**params).fit(X, Y)


def test_score_wants_the_labels_of_training() -> None:
    model = LeastSquares().fit(X, _sets(NAMES))
    with pytest.raises(ValueError, match="labels that training had not:"):
        model.score(X, [{"virus", "cell"}] * 60)
    with pytest.raises(ValueError, match="3 columns, but training had 4 labels"):
        model.score(X, Y[:, :3])
    assert 0 <= model.score(X[:2], [{"cell"}, {"cell", "blood"}]) <= 1  # labels may lack
    assert model.score(X, Y, sample_weight=Y[:, 0]) == accuracy_score(Y, model.predict(X), sample_weight=Y[:, 0])


def test_a_failed_fit_changes_nothing() -> None:
    model = LeastSquares().fit(X, Y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="one column"):
        model.fit(X[:, :2], Y[:, :1])
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.n_features_in_ == 6


def test_refitting_forgets() -> None:
    model = LeastSquares().fit(X, Y).fit(X, Y.argmax(axis=1))
    assert model.label_set_ is None
    assert model.predict(X).shape == (60,)


def test_frames_names_pickle_and_clone() -> None:
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(6)])
    model = LeastSquares(label_set="size").fit(frame, _sets(NAMES))
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "classes_")


def test_cross_validation() -> None:
    assert cross_val_score(LeastSquares(), X, Y, cv=3).min() > 0
    assert cross_val_score(LeastSquares(), X, Y, cv=3, scoring="f1_micro").min() > 0.5
    assert cross_val_score(LeastSquares(), X, Y, cv=3, scoring="average_precision").min() > 0.4


def test_sparse_rows_with_indices_out_of_range_are_refused() -> None:
    for index in (-1, X.shape[1]):
        rows = sparse.csr_array(X)
        rows.indices[-1] = index
        with pytest.raises(ValueError, match="indices must be"):
            LeastSquares().fit(rows, Y)
