"""Models on disk and in copies: the same bits come back, and what is no whole model is refused."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor, load_model
from tests.core.support import staged_raw

RNG = np.random.default_rng(8)
X = RNG.normal(size=(150, 4))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = RNG.normal(size=(150, 3))
LABELS = RNG.integers(0, 3, size=150)
FAST: dict[str, Any] = {"n_estimators": 4, "min_samples_leaf": 3, "max_depth": 4}

MODELS: dict[str, Any] = {
    "regression": lambda: GBDTMORegressor(**FAST).fit(X, Y),
    "one_target": lambda: GBDTMORegressor(**FAST).fit(X, Y[:, 0]),
    "single_stopped": lambda: GBDTMORegressor(
        **{**FAST, "n_estimators": 20}, tree_output="single", early_stopping_rounds=2
    ).fit(X[:100], Y[:100], eval_set=(X[100:], Y[100:])),
    "released": lambda: GBDTMORegressor(**FAST, growth="released", node_cache=2).fit(np.nan_to_num(X), Y),
    "top_k": lambda: GBDTMORegressor(**FAST, top_k=1).fit(X, Y),
    "classes": lambda: GBDTMOClassifier(**FAST).fit(X, LABELS),
    "single_classes": lambda: GBDTMOClassifier(**FAST, tree_output="single").fit(X, LABELS),
    "two_classes": lambda: GBDTMOClassifier(**FAST).fit(X, LABELS > 0),
    "strings": lambda: GBDTMOClassifier(**FAST).fit(X, np.array(["b", "ä", "c"])[LABELS]),
    "objects": lambda: GBDTMOClassifier(**FAST).fit(X, np.array(["b", "ä", "c"], dtype=object)[LABELS]),
    "label_sets": lambda: GBDTMOClassifier(**FAST).fit(X, (Y > 0).astype(int)),
    "frame": lambda: GBDTMORegressor(**FAST).fit(pd.DataFrame(X, columns=list("abcd")), Y),
    "stumps_without_split": lambda: GBDTMORegressor(**FAST).fit(np.zeros((150, 4)), Y),
    "numpy_parameters": lambda: GBDTMORegressor(n_estimators=np.int64(2), learning_rate=np.float32(0.1)).fit(X, Y),
}


def _assert_same(model: Any, other: Any) -> None:
    rows = np.nan_to_num(X) if model.get_params()["growth"] == "released" else X
    if hasattr(model, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
    assert type(other) is type(model)
    assert other.get_params() == model.get_params()
    np.testing.assert_array_equal(other.predict(rows), model.predict(rows))
    assert other.predict(rows).dtype == model.predict(rows).dtype
    actual, expected = staged_raw(other, rows), staged_raw(model, rows)
    assert len(actual) == len(expected)  # the released program loses the last tree of a saved model
    np.testing.assert_array_equal(np.array(actual).view(np.int64), np.array(expected).view(np.int64))
    public, others = ({name for name in vars(each) if name.endswith("_")} for each in (model, other))
    assert public - others <= {"training_profile_"}  # which tells of a run, not of the model
    assert others <= public
    for name in others:
        np.testing.assert_equal(getattr(other, name), getattr(model, name), err_msg=name)


@pytest.mark.parametrize("kind", MODELS)
def test_save_and_load(kind: str, tmp_path: Path) -> None:
    model = MODELS[kind]()
    path = tmp_path / "some model.gbdtmo"
    model.save_model(path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    _assert_same(model, load_model(path))
    _assert_same(model, type(model).load_model(str(path)))


@pytest.mark.parametrize("kind", MODELS)
def test_pickle_copy_and_joblib(kind: str, tmp_path: Path) -> None:
    model = MODELS[kind]()
    _assert_same(model, pickle.loads(pickle.dumps(model)))
    _assert_same(model, copy.deepcopy(model))
    joblib.dump(model, tmp_path / "model.joblib")
    _assert_same(model, joblib.load(tmp_path / "model.joblib"))


def test_clone_is_unfitted() -> None:
    model = MODELS["top_k"]()
    other = clone(model)
    assert other.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        other.predict(X)


def test_the_file_needs_no_pickle(tmp_path: Path) -> None:
    for kind, make in MODELS.items():
        make().save_model(tmp_path / kind)
        with np.load(tmp_path / kind, allow_pickle=False) as archive:
            assert all(archive[name].dtype != object for name in archive.files)


def test_saving_replaces_an_older_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    MODELS["classes"]().save_model(path)
    model = MODELS["regression"]()
    model.save_model(path)
    _assert_same(model, load_model(path))


def test_a_failed_save_keeps_the_older_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "model"
    model = MODELS["regression"]()
    model.save_model(path)
    monkeypatch.setattr(np, "savez", full_disk)
    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="No space"):
        MODELS["classes"]().save_model(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    _assert_same(model, load_model(path))


def _whole_file(tmp_path: Path) -> bytes:
    MODELS["classes"]().save_model(tmp_path / "whole")
    return (tmp_path / "whole").read_bytes()


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    whole, path = _whole_file(tmp_path), tmp_path / "part"
    for length in [0, 1, 10, 100, *range(200, len(whole), 511), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="part is not a whole model file"):
            load_model(path)


def test_flipped_bits_are_refused_or_harmless(tmp_path: Path) -> None:
    """Wherever a bit of the file turns, loading either refuses it or gives a model that predicts without a crash."""
    whole, path = _whole_file(tmp_path), tmp_path / "damaged"
    expected = load_model(tmp_path / "whole").predict_proba(X)
    refused = 0
    for position in range(0, len(whole), 37):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        try:
            model = load_model(path)
        except ValueError:
            refused += 1
            continue
        np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert refused > 100


def _write(path: Path, **arrays: Any) -> None:
    with path.open("wb") as file:
        np.savez(file, **arrays)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    for content in (b"hello", pickle.dumps({"a": 1}), b"\x93NUMPY garbage"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="foreign is not a whole model file"):
            load_model(path)
    _write(path, a=np.arange(3))
    with pytest.raises(ValueError, match="foreign is not a whole model file"):
        load_model(path)
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(ValueError, match="foreign is not a whole model file"):
        load_model(path)


class _Trap:
    """Unpickling it would show."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (pytest.fail, ("a pickle was executed",))


def test_a_pickle_inside_is_not_executed(tmp_path: Path) -> None:
    with np.load(_saved(tmp_path)) as archive:
        arrays = dict(archive)
    _write(tmp_path / "trap", **{**arrays, "base_score": np.array([_Trap()], dtype=object)})
    with pytest.raises(ValueError, match="trap is not a whole model file"):
        load_model(tmp_path / "trap")


def _saved(tmp_path: Path) -> Path:
    MODELS["classes"]().save_model(tmp_path / "saved")
    return tmp_path / "saved"


CHANGES: dict[str, Callable[[Any], Any]] = {
    "left": np.zeros_like,  # a circle
    "right": lambda a: a + 10_000,
    "feature": lambda a: a + 4,
    "node_start": lambda a: a + 1,
    "value_start": lambda a: a[:-1],
    "leaf_values": lambda a: a[:-3],
    "tree_output": lambda a: np.full_like(a, 7),
    "tree_round": lambda a: a[::-1],
    "edge_start": lambda a: a[::-1],
    "edges": lambda a: a[:-1],
    "has_missing": lambda a: a[:-1],
    "base_score": lambda a: a[:-1],
    "n_leaves": lambda a: a + 1,
    "bin": lambda a: a.astype(np.int64),
    "best_rounds": lambda a: a[:0],
    "classes": lambda a: a[:-1],
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("how", ["changed", "missing"])
def test_inconsistent_arrays_are_refused(name: str, how: str, tmp_path: Path) -> None:
    """Indices that would lead the C core out of its arrays, or in circles, do not get that far."""
    with np.load(_saved(tmp_path)) as archive:
        arrays = dict(archive)
    original = arrays.pop(name)
    if how == "changed":
        arrays[name] = CHANGES[name](original)
    _write(tmp_path / "odd", **arrays)
    with pytest.raises(ValueError, match="odd is not a whole model file"):
        load_model(tmp_path / "odd")


def _moved_leaves(counts: Any) -> Any:
    """A negative number of leaves, made good by the next tree."""
    counts = counts.copy()
    counts[:2] += np.array([-1000, 1000], counts.dtype)
    return counts


HOSTILE: dict[str, dict[str, Callable[[Any], Any]]] = {
    "base_score_without_columns": {"base_score": lambda a: np.empty((len(a), 0))},
    "base_score_of_two_columns": {"base_score": lambda a: np.zeros((len(a), 2))},
    "base_score_nan": {"base_score": lambda a: a * np.nan},
    "feature_without_columns": {"feature": lambda a: np.empty((len(a), 0), a.dtype)},
    "leaf_values_without_columns": {"leaf_values": lambda a: np.empty((len(a), 0))},
    "leaf_values_infinite": {"leaf_values": lambda a: a * np.inf},
    "edges_without_columns": {"edges": lambda a: np.empty((len(a), 0))},
    "edges_descending": {"edges": lambda a: a[::-1]},
    "has_missing_of_two_dimensions": {"has_missing": lambda a: np.zeros((len(a), 7), a.dtype)},
    "negative_leaves": {
        "n_leaves": _moved_leaves,
        "value_start": lambda a: a + np.where(np.arange(len(a)) == 1, -1000 * 3, 0),
    },
    "endless_rounds": {"best_rounds": lambda a: np.full_like(a, 2**62)},
    "rounds_of_two_dimensions": {"best_rounds": lambda a: a[np.newaxis]},
    "negative_rounds": {"tree_round": lambda a: a - 1},
    "history_without_columns": {"history": lambda a: np.empty((len(a) + 3, 0))},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_arrays_made_to_lead_astray_are_refused(case: str, tmp_path: Path) -> None:
    with np.load(_saved(tmp_path)) as archive:
        arrays = dict(archive)
    for name, change in HOSTILE[case].items():
        arrays[name] = change(arrays[name])
    _write(tmp_path / "odd", **arrays)
    with pytest.raises(ValueError, match="odd is not a whole model file"):
        load_model(tmp_path / "odd")


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "weird"},
        {"loss": "squared_error"},
        {"metric": ["x"]},
        {"target_ndim": 7},
        {"n_train": 0},
        {"n_train": "a"},
        {"n_rounds": 0},
        {"feature_names": ["one"]},
        {"params": {"foo": 1}},
        {"params": {"n_jobs": "x"}},
        {"estimator": "GBDTMORegressor"},
    ],
    ids=str,
)
def test_an_odd_header_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    with np.load(_saved(tmp_path)) as archive:
        arrays = dict(archive)
    header = json.loads(arrays["header"].tobytes())
    if "params" in change:
        change = {"params": {**header["params"], **change["params"]}}
    arrays["header"] = np.frombuffer(json.dumps({**header, **change}).encode(), np.uint8)
    _write(tmp_path / "odd", **arrays)
    with pytest.raises(ValueError, match="odd"):
        load_model(tmp_path / "odd")


def test_a_parameter_that_the_file_lacks_has_its_default(tmp_path: Path) -> None:
    """As one that was added after the file was written."""
    with np.load(_saved(tmp_path)) as archive:
        arrays = dict(archive)
    header = json.loads(arrays["header"].tobytes())
    del header["params"]["histogram_pool_mb"]
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    _write(tmp_path / "older", **arrays)
    loaded = load_model(tmp_path / "older")
    assert loaded.histogram_pool_mb == type(loaded)().histogram_pool_mb
    assert np.array_equal(loaded.predict(X), load_model(_saved(tmp_path)).predict(X))


def test_a_model_is_not_written_over_something_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="regular file"):
        MODELS["regression"]().save_model(tmp_path)


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_model(tmp_path / "nowhere")


def test_the_other_estimator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="GBDTMOClassifier"):
        GBDTMORegressor.load_model(_saved(tmp_path))


def test_saving_into_a_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder"):
        MODELS["regression"]().save_model(tmp_path / "no folder" / "model")
