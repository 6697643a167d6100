"""Input of a refused kind gets an exception that names the trouble, before any C loop runs; nothing is half fitted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor, _lib

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
Y = RNG.normal(size=(40, 2))
LABELS = RNG.integers(0, 3, size=40)
INDICATOR = RNG.integers(0, 2, size=(40, 3))


class _NoCore:
    """Stands where the compiled module was: whoever calls it fails the test."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("GMO_"):
            return 0
        raise AssertionError(f"{name} was called with input that should have been refused before")


@contextlib.contextmanager
def _refused(match: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lib, "lib", _NoCore())
        with pytest.raises((ValueError, TypeError), match=f"(?i){match}"):
            yield


def _with(a: np.ndarray, value: Any) -> np.ndarray:
    a = a.astype(np.float64)
    a[(1,) * a.ndim] = value
    return a


def _fitted_attributes(model: Any) -> list[str]:
    return [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]


BAD_DATA: dict[str, tuple[type, Any, Any, str]] = {
    "nan_in_y": (GBDTMORegressor, X, _with(Y, np.nan), "nan"),
    "inf_in_y": (GBDTMORegressor, X, _with(Y, np.inf), "inf"),
    "nan_in_1d_y": (GBDTMORegressor, X, _with(Y[:, 0], np.nan), "nan"),
    "nan_in_labels": (GBDTMOClassifier, X, _with(LABELS, np.nan), "nan"),
    "nan_in_indicator": (GBDTMOClassifier, X, _with(INDICATOR, np.nan), "nan"),
    "inf_in_x": (GBDTMORegressor, _with(X, np.inf), Y, "inf"),
    "minus_inf_in_x": (GBDTMOClassifier, _with(X, -np.inf), LABELS, "inf"),
    "no_rows": (GBDTMORegressor, X[:0], Y[:0], "0 sample|empty|no rows"),
    "no_columns": (GBDTMORegressor, X[:, :0], Y, "0 feature|empty|no columns"),
    "no_targets": (GBDTMORegressor, X, Y[:, :0], r"\by\b|output|target"),
    "y_shorter_than_x": (GBDTMORegressor, X, Y[:-1], "inconsistent|rows|samples|length"),
    "y_longer_than_x": (GBDTMOClassifier, X[:-1], LABELS, "inconsistent|rows|samples|length"),
    "text_in_x": (GBDTMORegressor, np.array([["a", "b"]] * 40, dtype=object), Y, "could not convert|numeric|number"),
    "strings_in_x": (GBDTMORegressor, np.array([["a", "b"]] * 40), Y, "could not convert|numeric|number|string"),
    "text_in_y": (GBDTMORegressor, X, np.array(["a"] * 40, dtype=object), "could not convert|numeric|number|string"),
    "numbers_as_text_in_x": (GBDTMORegressor, X.astype(str), Y, "must hold numbers"),
    "numbers_as_text_in_y": (GBDTMORegressor, X, Y.astype(str), "must hold numbers"),
    "dates_in_x": (GBDTMORegressor, X.astype("datetime64[s]"), Y, "must hold numbers"),
    "dates_in_y": (GBDTMORegressor, X, Y.astype("timedelta64[s]"), "must hold numbers"),
    "dates_in_a_frame": (
        GBDTMORegressor,
        pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2020-01-01", periods=40)}),
        Y,
        "column 'day' must hold numbers",
    ),
    "text_in_a_frame": (
        GBDTMORegressor,
        pd.DataFrame({"a": X[:, 0], "b": ["1"] * 40}),
        Y,
        "column 'b' must hold numbers",
    ),
    "masked_x": (GBDTMORegressor, np.ma.masked_greater(X, 0), Y, "masked"),
    "masked_y": (GBDTMORegressor, X, np.ma.masked_greater(Y, 0), "masked"),
    "missing_text_labels": (GBDTMOClassifier, X, pd.Series(["a", None] * 20, dtype="string"), "missing"),
    "missing_date_labels": (
        GBDTMOClassifier,
        X,
        np.array(["2020-01-01", "NaT"] * 20, dtype="datetime64[D]"),
        "missing",
    ),
    "complex_x": (GBDTMORegressor, X + 1j, Y, "complex"),
    "sparse_x": (GBDTMORegressor, scipy.sparse.csr_matrix(X), Y, "sparse"),
    "sparse_x_classifier": (GBDTMOClassifier, scipy.sparse.csr_matrix(X), LABELS, "sparse"),
    "x_of_one_dimension": (GBDTMORegressor, X[:, 0], Y, "2D|2-D|dimension|reshape"),
    "x_of_three_dimensions": (GBDTMORegressor, X[:, :, np.newaxis], Y, "dim|2D|2-D"),
    "y_of_three_dimensions": (GBDTMORegressor, X, Y[:, :, np.newaxis], "dim|2D|2-D"),
    "one_class": (GBDTMOClassifier, X, np.zeros(40, dtype=int), "class"),
    "real_labels": (GBDTMOClassifier, X, Y[:, 0], "label|class|continuous"),
    "indicator_of_other_numbers": (GBDTMOClassifier, X, INDICATOR + 1, "0/1|0 and 1|0 or 1|indicator|multioutput"),
    "no_y": (GBDTMORegressor, X, None, "y"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_refused(case: str) -> None:
    estimator, x, y, words = BAD_DATA[case]
    model = estimator()
    with _refused(words):
        model.fit(x, y)
    assert _fitted_attributes(model) == []


BAD_PARAMETERS: list[tuple[str, Any]] = [
    *[("n_estimators", v) for v in (0, -1, 2.5, "10", None, True)],
    *[("learning_rate", v) for v in (0, 0.0, -0.1, np.nan, np.inf, "fast", None)],
    *[("max_depth", v) for v in (0, -1, 1.5, True)],
    *[("max_leaves", v) for v in (0, -3, 2.5, "all", True)],
    *[("max_bins", v) for v in (1, 0, 256, 300, 16.0, None, True)],
    *[("min_samples_leaf", v) for v in (0, -1, 0.1, None, True)],
    *[("reg_lambda", v) for v in (-1, -1e-9, np.nan, np.inf, 10**400, None)],
    *[("reg_alpha", v) for v in (-1, np.nan, np.inf, None)],
    *[("min_split_gain", v) for v in (-1, np.nan, None)],
    *[("top_k", v) for v in (0, -1, 1.5, True)],
    *[("top_k_mode", v) for v in ("both", "", None, 1)],
    *[("hessian", v) for v in ("full", "", None, 1)],
    *[("tree_output", v) for v in ("many", "", None)],
    *[("growth", v) for v in ("leafwise", "", None)],
    *[("node_cache", v) for v in (0, -1, 1.5, True)],
    *[("binning", v) for v in ("uniform", "", None)],
    *[("base_score", v) for v in (np.nan, np.inf, "mean")],
    *[("early_stopping_rounds", v) for v in (0, -1, 1.5, True)],
    *[("eval_metric", v) for v in ("auc", "", 1)],
    *[("n_jobs", v) for v in (0, 1.5, "all")],
]


@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS, ids=lambda v: repr(v))
@pytest.mark.parametrize("estimator", [GBDTMORegressor, GBDTMOClassifier])
def test_bad_parameters_are_refused_by_name(estimator: type, name: str, value: Any) -> None:
    model = estimator(**{name: value})
    eval_set = (X, LABELS) if name == "early_stopping_rounds" else None
    with _refused(name):
        model.fit(X, LABELS, eval_set=eval_set)
    assert _fitted_attributes(model) == []


@pytest.mark.parametrize("name", ["top_k_mode", "hessian", "tree_output", "growth", "binning", "eval_metric"])
def test_an_unknown_word_is_answered_with_the_known_ones(name: str) -> None:
    known = {
        "top_k_mode": "unrestricted",
        "hessian": "constant",
        "tree_output": "single",
        "growth": "released",
        "binning": "released",
        "eval_metric": "log_loss",
    }
    with _refused(known[name]):
        GBDTMOClassifier(**{name: "nonsense"}).fit(X, LABELS)


def test_metrics_that_do_not_fit_the_task_are_refused() -> None:
    for metric in ("accuracy", "log_loss"):
        with _refused("eval_metric"):
            GBDTMORegressor(eval_metric=metric).fit(X, Y, eval_set=(X, Y))


def test_numpy_numbers_are_welcome_as_parameters() -> None:
    model = GBDTMORegressor(
        n_estimators=np.int64(2),
        max_depth=np.int32(3),
        learning_rate=np.float32(0.5),
        max_bins=np.uint8(9),
        reg_lambda=0,
    )
    assert model.fit(X, Y).n_iter_ == 2


BAD_EVAL_SETS: dict[str, tuple[Any, str]] = {
    "not_a_pair": (X, "eval_set"),
    "only_x": ((X,), "eval_set"),
    "a_list_of_pairs": ([(X, Y), (X, Y)], "eval_set must be a pair .* not a list of pairs"),
    "three": ((X, Y, Y), "eval_set"),
    "fewer_features": ((X[:, :2], Y), "feature"),
    "fewer_targets": ((X, Y[:, :1]), "output|target|column"),
    "other_length": ((X, Y[:-1]), "inconsistent|rows|samples|length"),
    "nan_in_y": ((X, _with(Y, np.nan)), "nan"),
    "inf_in_x": ((_with(X, np.inf), Y), "inf"),
    "empty": ((X[:0], Y[:0]), "0 sample|empty|no rows"),
    "sparse": ((scipy.sparse.csr_matrix(X), Y), "sparse"),
}


@pytest.mark.parametrize("case", BAD_EVAL_SETS)
def test_bad_validation_data_is_refused(case: str) -> None:
    eval_set, words = BAD_EVAL_SETS[case]
    model = GBDTMORegressor()
    with _refused(words):
        model.fit(X, Y, eval_set=eval_set)
    assert _fitted_attributes(model) == []


def test_early_stopping_without_validation_rows_is_refused() -> None:
    with _refused("eval_set"):
        GBDTMORegressor(early_stopping_rounds=5).fit(X, Y)


def test_labels_outside_the_given_classes_are_refused() -> None:
    with _refused("classes|label"):
        GBDTMOClassifier().fit(X, LABELS, classes=[0, 1])


@pytest.mark.parametrize("classes", [[0.0, 1.0, 2.0, np.nan], ["0", "1", "2"], [[0, 1, 2, 3]], [0]], ids=str)
def test_odd_lists_of_classes_are_refused(classes: Any) -> None:
    with _refused("classes"):
        GBDTMOClassifier().fit(X, LABELS, classes=classes)


def test_validation_labels_of_another_kind_are_refused() -> None:
    with _refused("y of eval_set has labels of dtype"):
        GBDTMOClassifier().fit(X, LABELS, eval_set=(X, LABELS.astype(str)))


def test_validation_columns_in_another_order_are_refused() -> None:
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    model = GBDTMORegressor()
    with _refused("feature names"):
        model.fit(frame, Y, eval_set=(frame[frame.columns[::-1]], Y))
    assert _fitted_attributes(model) == []


@pytest.mark.parametrize("n_estimators", [1, 2])
@pytest.mark.parametrize("learning_rate", [1e300, 1.7e308])
def test_overflow_is_an_error_in_every_round(n_estimators: int, learning_rate: float) -> None:
    model = GBDTMORegressor(n_estimators=n_estimators, learning_rate=learning_rate, min_samples_leaf=2)
    with pytest.raises(FloatingPointError, match="learning_rate"):
        model.fit(X, Y * 1e10)


@pytest.mark.parametrize("n_jobs", [100_000, 2**31, 10**30])
def test_no_number_of_jobs_ends_the_process(n_jobs: int) -> None:
    expected = GBDTMORegressor(n_estimators=2).fit(X, Y).predict(X)
    np.testing.assert_array_equal(GBDTMORegressor(n_estimators=2, n_jobs=n_jobs).fit(X, Y).predict(X), expected)


def test_classes_with_an_indicator_are_refused_or_fit_its_columns() -> None:
    with _refused("classes"):
        GBDTMOClassifier().fit(X, INDICATOR, classes=[0, 1])


def test_an_indicator_for_validation_needs_an_indicator_for_training() -> None:
    with _refused("eval_set|y|label|indicator"):
        GBDTMOClassifier().fit(X, LABELS, eval_set=(X, INDICATOR))


def test_released_growth_refuses_missing_values() -> None:
    with _refused(r"X has missing values \(NaN\), which growth='released' does not take"):
        GBDTMORegressor(growth="released").fit(_with(X, np.nan), Y)
    with _refused("X of eval_set has missing values"):
        GBDTMORegressor(growth="released").fit(X, Y, eval_set=(_with(X, np.nan), Y))


@pytest.mark.parametrize(("estimator", "y"), [(GBDTMORegressor, Y), (GBDTMOClassifier, INDICATOR)])
def test_named_outputs_of_validation_rows_must_be_those_of_training(estimator, y) -> None:
    names = [f"output{column}" for column in range(y.shape[1])]
    frame = pd.DataFrame(y, columns=names)
    model = estimator(n_estimators=2).fit(X, frame, eval_set=(X, frame))
    assert model.n_iter_ == 2
    for other in (frame[names[::-1]], frame.rename(columns={names[0]: "another"})):
        with _refused(
            "y of eval_set has the columns .*, y has output0, .*: outputs must be the same, in the same order"
        ):
            estimator(n_estimators=2).fit(X, frame, eval_set=(X, other))
    estimator(n_estimators=2).fit(X, frame, eval_set=(X, y))  # without names, by position


@pytest.mark.parametrize("method", ["predict", "staged_predict", "predict_proba", "decision_function", "save_model"])
def test_use_before_fit(method: str) -> None:
    call = getattr(GBDTMOClassifier(), method)
    with pytest.raises(NotFittedError):
        list(call("model.npz" if method == "save_model" else X))  # list: a generator starts at its first item


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "staged_predict"])
def test_prediction_input_is_checked(method: str) -> None:
    model = GBDTMOClassifier(n_estimators=2).fit(X, LABELS)
    for bad, words in [
        (X[:, :2], "feature"),
        (np.column_stack([X, X]), "feature"),
        (_with(X, np.inf), "inf"),
        (X[0], "2D|2-D|dimension|reshape"),
        (X[:0], "0 sample|empty|no rows"),
        (scipy.sparse.csr_matrix(X), "sparse"),
    ]:
        with _refused(words):
            list(getattr(model, method)(bad))


@pytest.mark.parametrize(
    ("bad_y", "error"), [(_with(Y, np.nan), ValueError), (np.full((40, 2), 1e300), FloatingPointError)]
)
def test_a_failed_refit_leaves_the_old_model(bad_y: Any, error: type[Exception]) -> None:
    """Also one that fails inside the core, after all that can be checked before."""
    model = GBDTMORegressor(n_estimators=2, min_samples_leaf=2, base_score=0.0).fit(X, Y)
    expected, attributes = model.predict(X), {name: getattr(model, name) for name in _fitted_attributes(model)}
    with pytest.raises(error):
        model.fit(np.column_stack([X, X]), bad_y)
    np.testing.assert_equal({name: getattr(model, name) for name in _fitted_attributes(model)}, attributes)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_a_fit_that_fails_inside_the_core_leaves_the_estimator_unfitted() -> None:
    model = GBDTMORegressor(base_score=0.0)
    with pytest.raises(FloatingPointError, match="y"):
        model.fit(X, np.full((40, 2), 1e300))
    assert _fitted_attributes(model) == []
    with pytest.raises(NotFittedError):
        model.predict(X)
