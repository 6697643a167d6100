"""Input of every accepted kind gives the model it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor

RNG = np.random.default_rng(3)
X = RNG.integers(-4, 5, size=(80, 4)).astype(np.float64)
Y = X @ RNG.normal(size=(4, 3)) + RNG.normal(size=(80, 3))
LABELS = RNG.integers(0, 3, size=80)
INDICATOR = RNG.integers(0, 2, size=(80, 3))
FAST: dict[str, Any] = {"n_estimators": 3, "min_samples_leaf": 2}


def _read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def _every_other(a: np.ndarray) -> np.ndarray:
    """A view that is contiguous in neither order."""
    wide = np.zeros((2 * a.shape[0], 3 * a.shape[1]), dtype=a.dtype)
    wide[::2, ::3] = a
    return wide[::2, ::3]


LAYOUTS = {
    "fortran": np.asfortranarray,
    "view": _every_other,
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "read_only": _read_only,
    "frame": lambda a: pd.DataFrame(a, columns=[f"c{j}" for j in range(a.shape[1])]),
    "list": lambda a: a.tolist(),
    "float32": lambda a: a.astype(np.float32),
    "int64": lambda a: a.astype(np.int64),
    "int8": lambda a: a.astype(np.int8),
    "object_of_numbers": lambda a: a.astype(object),
    "big_endian": lambda a: a.astype(">f8"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_and_type_of_x_do_not_matter(layout: str) -> None:
    expected = GBDTMORegressor(**FAST).fit(X, Y).predict(X)
    other = LAYOUTS[layout](X)
    np.testing.assert_array_equal(GBDTMORegressor(**FAST).fit(other, Y).predict(other), expected)


@pytest.mark.parametrize("layout", ["fortran", "view", "reversed", "read_only", "frame", "list"])
def test_layout_of_y_does_not_matter(layout: str) -> None:
    expected = GBDTMORegressor(**FAST).fit(X, Y).predict(X)
    np.testing.assert_array_equal(GBDTMORegressor(**FAST).fit(X, LAYOUTS[layout](Y)).predict(X), expected)
    indicator = GBDTMOClassifier(**FAST).fit(X, INDICATOR).predict_proba(X)
    other = GBDTMOClassifier(**FAST).fit(X, LAYOUTS[layout](INDICATOR)).predict_proba(X)
    np.testing.assert_array_equal(other, indicator)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.uint8])
def test_type_of_regression_targets(dtype: type) -> None:
    y = RNG.integers(0, 9, size=(80, 2))
    expected = GBDTMORegressor(**FAST).fit(X, y.astype(np.float64)).predict(X)
    np.testing.assert_array_equal(GBDTMORegressor(**FAST).fit(X, y.astype(dtype)).predict(X), expected)


def test_boolean_x_and_indicator() -> None:
    flags = X > 0
    expected = GBDTMOClassifier(**FAST).fit(flags.astype(float), INDICATOR).predict_proba(flags.astype(float))
    actual = GBDTMOClassifier(**FAST).fit(flags, INDICATOR.astype(bool)).predict_proba(flags)
    np.testing.assert_array_equal(actual, expected)


def test_the_callers_arrays_are_left_alone() -> None:
    x, y = X.copy(), Y.copy()
    GBDTMORegressor(**FAST).fit(x, y, eval_set=(x, y)).predict(x)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)


def test_missing_values_go_to_the_side_of_larger_gain() -> None:
    x = np.array([[0.0], [0.0], [1.0], [1.0], [np.nan], [np.nan]])
    one = {"n_estimators": 1, "learning_rate": 1.0, "min_samples_leaf": 1, "reg_lambda": 0.0, "max_depth": 1}
    for y, like in [([0, 0, 5, 5, 5, 5], 1.0), ([0, 0, 5, 5, 0, 0], 0.0)]:
        model = GBDTMORegressor(**one).fit(x, y)
        np.testing.assert_allclose(model.predict(x), y, atol=1e-12)
        assert model.predict([[np.nan]]) == model.predict([[like]])


def test_missing_values_alone_can_be_split_off() -> None:
    x = np.array([[2.0], [2.0], [np.nan], [np.nan]])
    model = GBDTMORegressor(n_estimators=1, learning_rate=1.0, min_samples_leaf=1, reg_lambda=0.0).fit(x, [1, 1, 3, 3])
    np.testing.assert_allclose(model.predict(x), [1, 1, 3, 3], atol=1e-12)


def test_missing_values_unseen_in_training_follow_the_larger_child() -> None:
    x = np.array([[0.0], [0.0], [0.0], [1.0]])
    model = GBDTMORegressor(n_estimators=1, learning_rate=1.0, min_samples_leaf=1, reg_lambda=0.0).fit(x, [1, 1, 1, 9])
    np.testing.assert_allclose(model.predict([[np.nan]]), [1], atol=1e-12)


def test_a_constant_or_wholly_missing_column_changes_nothing() -> None:
    expected = GBDTMORegressor(**FAST).fit(X, Y).predict(X)
    for column in (np.full(80, 7.0), np.full(80, np.nan)):
        wide = np.column_stack([column, X])
        np.testing.assert_array_equal(GBDTMORegressor(**FAST).fit(wide, Y).predict(wide), expected)


@pytest.mark.parametrize("value", [3.0, np.nan])
def test_all_columns_constant_predicts_the_best_constant(value: float) -> None:
    x = np.full((80, 4), value)
    np.testing.assert_allclose(
        GBDTMORegressor(**FAST).fit(x, Y).predict(x), np.tile(Y.mean(axis=0), (80, 1)), atol=1e-12
    )
    shares = np.bincount(LABELS) / 80
    np.testing.assert_allclose(GBDTMOClassifier(**FAST).fit(x, LABELS).predict_proba(x)[0], shares, atol=1e-12)


def test_one_row() -> None:
    np.testing.assert_allclose(GBDTMORegressor(**FAST).fit(X[:1], Y[:1]).predict(X[:1]), Y[:1], atol=1e-12)
    assert GBDTMOClassifier(**FAST).fit(X[:1], INDICATOR[:1]).predict(X[:1]).shape == (1, 3)
    assert GBDTMOClassifier(**FAST).fit(X, LABELS).predict(X[:1]).shape == (1,)


def test_neighbouring_floats_and_huge_values_are_told_apart() -> None:
    one = np.nextafter(1.0, 2.0)
    huge = np.finfo(np.float64).max
    settings = {"n_estimators": 1, "learning_rate": 1.0, "min_samples_leaf": 1, "reg_lambda": 0.0}
    for low, high in [(1.0, one), (np.nextafter(one, 2.0), np.nextafter(np.nextafter(one, 2.0), 2.0)), (-huge, huge)]:
        x = np.array([[low], [high]])
        np.testing.assert_allclose(GBDTMORegressor(**settings).fit(x, [1.0, 2.0]).predict(x), [1.0, 2.0], atol=1e-12)
    x = np.array([[0.5 * huge], [huge]])
    np.testing.assert_allclose(GBDTMORegressor(**settings).fit(x, [1.0, 2.0]).predict(x), [1.0, 2.0], atol=1e-12)


def test_a_class_missing_from_the_training_part() -> None:
    present = LABELS != 1
    model = GBDTMOClassifier(**FAST).fit(X[present], LABELS[present], classes=[0, 1, 2])
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (80, 3)
    assert np.all(probabilities[:, 1] > 0)
    assert np.all(probabilities[:, 1] < 0.1)
    assert not np.any(model.predict(X) == 1)


def test_a_list_of_many_classes_is_not_taken_for_numbers(recwarn: pytest.WarningsRecorder) -> None:
    """scikit-learn warns of a column whose values nearly all differ, as those of a list of classes do."""
    model = GBDTMOClassifier(**FAST).fit(X, LABELS, classes=range(30))
    assert len(model.classes_) == 30
    assert not recwarn.list


def test_a_class_seen_only_in_the_validation_rows_joins_the_classes() -> None:
    present = LABELS != 1
    model = GBDTMOClassifier(**FAST).fit(X[present], LABELS[present], eval_set=(X, LABELS))
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert np.all(np.isfinite(model.evals_result_["validation"]["log_loss"]))


def test_string_labels() -> None:
    names = np.array(["virginica", "alba", "nigra"])
    model = GBDTMOClassifier(**FAST).fit(X, names[LABELS])
    np.testing.assert_array_equal(model.classes_, sorted(names))
    expected = GBDTMOClassifier(**FAST).fit(X, np.argsort(np.argsort(names))[LABELS])
    np.testing.assert_array_equal(model.predict(X), np.sort(names)[expected.predict(X)])
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_labels_may_be_any_integers() -> None:
    values = np.array([-5, 10**12, 7])
    model = GBDTMOClassifier(**FAST).fit(X, values[LABELS])
    np.testing.assert_array_equal(model.classes_, [-5, 7, 10**12])
    assert set(model.predict(X)) <= set(values)


@pytest.mark.parametrize("mode", ["restricted", "unrestricted"])
def test_top_k_of_all_outputs_is_the_full_split(mode: str) -> None:
    expected = GBDTMORegressor(**FAST).fit(X, Y).predict(X)
    np.testing.assert_array_equal(GBDTMORegressor(**FAST, top_k=3, top_k_mode=mode).fit(X, Y).predict(X), expected)


@pytest.mark.parametrize(("estimator", "y"), [(GBDTMORegressor, Y), (GBDTMOClassifier, LABELS)])
def test_top_k_that_means_nothing_is_refused(estimator: type, y: np.ndarray) -> None:
    for k in (4, 1000):
        with pytest.raises(ValueError, match=rf"top_k={k} is more than the 3 outputs; give at most 3, or None"):
            estimator(**FAST, top_k=k).fit(X, y)
    with pytest.raises(ValueError, match='top_k=2 means nothing with tree_output="single"'):
        estimator(**FAST, top_k=2, tree_output="single").fit(X, y)


@pytest.mark.filterwarnings("ignore:.*column-vector")
def test_one_target_as_a_vector_or_a_column() -> None:
    vector = GBDTMORegressor(**FAST).fit(X, Y[:, 0])
    assert vector.predict(X).shape == (80,)
    assert next(vector.staged_predict(X)).shape == (80,)
    column = GBDTMORegressor(**FAST).fit(X, Y[:, :1])
    assert column.predict(X).shape == (80, 1)
    np.testing.assert_array_equal(column.predict(X)[:, 0], vector.predict(X))
    labels = GBDTMOClassifier(**FAST).fit(X, LABELS[:, np.newaxis])
    np.testing.assert_array_equal(labels.predict(X), GBDTMOClassifier(**FAST).fit(X, LABELS).predict(X))


@pytest.mark.parametrize(
    "sets", [[{0, 2}, {1}] * 40, [(0, 2), (1,)] * 40, [[], [1, 2]] * 40], ids=["sets", "tuples", "lists"]
)
def test_label_sets_get_the_way_to_make_them_a_matrix(sets: list[object]) -> None:
    as_array = np.empty(80, dtype=object)
    as_array[:] = sets
    for y in (sets, as_array):
        with pytest.raises(ValueError, match=r"y holds label sets; make them an indicator.*MultiLabelBinarizer"):
            GBDTMOClassifier(**FAST).fit(X, y)


def test_rows_of_a_matrix_as_lists_are_no_label_sets() -> None:
    indicator = np.eye(3, dtype=int)[LABELS]
    expected = GBDTMOClassifier(**FAST).fit(X, indicator).predict(X)
    np.testing.assert_array_equal(GBDTMOClassifier(**FAST).fit(X, indicator.tolist()).predict(X), expected)
