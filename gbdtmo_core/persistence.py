"""Models on disk: one NumPy .npz of arrays and a JSON header, no pickle."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbdtmo_core._lib import FOREST_DTYPES, BinMapper, Forest
from gbdtmo_core._model import Model

FORMAT = "gbdtmo-model"
VERSION = 1
_MAPPER_DTYPES: dict[str, type[np.generic]] = {"edges": np.float64, "edge_start": np.int64, "has_missing": np.uint8}
_MODEL_DTYPES: dict[str, type[np.generic]] = {
    "base_score": np.float64,
    "best_rounds": np.int64,
    "history": np.float64,
}
_HEADER_FIELDS = ("loss", "target_ndim", "n_train", "n_rounds", "metric", "seconds")


def _plain(value: Any) -> Any:
    """NumPy scalars as Python numbers, for JSON."""
    return value.item() if isinstance(value, np.generic) else value


def _storable_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """Class labels as an array that needs no pickle."""
    if classes.dtype != object:
        return classes
    if all(isinstance(label, str) for label in classes):
        return classes.astype(np.str_)
    raise TypeError(
        f"Class labels must be numbers or strings to be saved; got {sorted({type(c).__name__ for c in classes})}."
    )


def write_model(
    path: str | PathLike[str],
    estimator: str,
    params: dict[str, Any],
    model: Model,
    feature_names: NDArray[Any] | None,
) -> None:
    """Writes a model of the estimator class named ``estimator``; the file appears whole or not at all."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": estimator,
        "params": {name: _plain(value) for name, value in params.items()},
        "classes_are_objects": model.classes is not None and model.classes.dtype == object,
        "feature_names": None if feature_names is None else [str(name) for name in feature_names],
        **{name: _plain(getattr(model, name)) for name in _HEADER_FIELDS},
    }
    arrays = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        **{name: getattr(model.forest, name) for name in FOREST_DTYPES},
        **{name: getattr(model.mapper, name) for name in _MAPPER_DTYPES},
        **{name: getattr(model, name) for name in _MODEL_DTYPES},
    }
    if model.classes is not None:
        arrays["classes"] = _storable_classes(model.classes)
    _write_whole(Path(path), arrays)


def _write_whole(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # NumPy's stubs take its own options for array names
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read_model(path: str | PathLike[str]) -> tuple[str, dict[str, Any], Model, NDArray[Any] | None]:
    """Estimator name, parameters, model and feature names of a file that `write_model` made.

    Raises
    ------
    ValueError
        If the file is no model or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays["header"].tobytes())
        if header["format"] != FORMAT or header["version"] != VERSION:
            raise ValueError(f"it has format {header['format']!r} {header['version']!r}")
        model = _model_of(header, arrays)
        names = header["feature_names"]
        return (
            str(header["estimator"]),
            dict(header["params"]),
            model,
            None if names is None else np.array(names, dtype=object),
        )
    except OSError:
        raise  # the file could not be read: nothing is known of what it holds
    except Exception as error:  # damaged bytes come out of zipfile and NumPy as errors of many kinds
        raise ValueError(
            f"{os.fspath(path)} is not a whole model file of gbdtmo_core (version {VERSION}): {error}. "
            "Save the model again with save_model."
        ) from error


def _model_of(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
    def typed(name: str, dtype: type[np.generic]) -> NDArray[Any]:
        if arrays[name].dtype != dtype:
            raise ValueError(f"array {name!r} has dtype {arrays[name].dtype}")
        return np.ascontiguousarray(arrays[name])

    forest = Forest(
        n_outputs=len(arrays["base_score"]), **{name: typed(name, dtype) for name, dtype in FOREST_DTYPES.items()}
    )
    mapper = BinMapper(**{name: typed(name, dtype) for name, dtype in _MAPPER_DTYPES.items()})
    _check_structure(forest, mapper)
    classes = arrays.get("classes")
    if classes is not None and header["classes_are_objects"]:
        classes = classes.astype(object)
    plain: dict[str, Any] = {name: header[name] for name in _HEADER_FIELDS}
    plain |= {name: typed(name, dtype) for name, dtype in _MODEL_DTYPES.items()}
    model = Model(mapper=mapper, forest=forest, classes=classes, **plain)
    if model.loss == "softmax" and (classes is None or classes.shape != (forest.n_outputs,)):
        raise ValueError("its classes do not fit its outputs")
    if len(model.best_rounds) not in (1, forest.n_outputs) or model.history.ndim != 2:
        raise ValueError("its rounds do not fit its outputs")
    return model


def _require(condition: Any, what: str) -> None:
    if not np.all(condition):
        raise ValueError(f"its {what} do not fit together")


def _check_structure(forest: Forest, mapper: BinMapper) -> None:
    """What the C core takes for granted: every index in range, and children after their parents, so that walks end."""
    n_trees, n_nodes, n_features = len(forest.n_leaves), len(forest.feature), len(mapper.has_missing)
    for field in fields(forest):
        if field.name.startswith(("n_leaves", "tree_", "n_unassigned")):
            _require(getattr(forest, field.name).shape == (n_trees,), field.name)
        elif field.name in ("left", "right", "bin", "missing_left"):
            _require(getattr(forest, field.name).shape == (n_nodes,), field.name)
    width = np.where(forest.tree_output < 0, forest.n_outputs, 1)
    for start, sizes in ((forest.node_start, None), (forest.value_start, forest.n_leaves * width.astype(np.int64))):
        _require(start.shape == (n_trees + 1,) and start[0] == 0, "offsets")
        _require(np.diff(start) >= 0 if sizes is None else np.diff(start) == sizes, "offsets")
    _require(forest.node_start[-1] == n_nodes and forest.value_start[-1] == len(forest.leaf_values), "offsets")
    _require((forest.tree_output >= -1) & (forest.tree_output < forest.n_outputs), "outputs")
    _require((forest.feature >= 0) & (forest.feature < n_features), "features")
    _require(np.diff(forest.tree_round) >= 0, "rounds")
    tree = np.repeat(np.arange(n_trees), np.diff(forest.node_start))
    own = np.arange(n_nodes) - forest.node_start[tree]
    size = np.diff(forest.node_start)[tree]
    for child in (forest.left.astype(np.int64), forest.right.astype(np.int64)):
        is_leaf = (child < 0) & (-1 - child < forest.n_leaves[tree])
        none = child == np.iinfo(np.int32).min
        _require(is_leaf | none | ((child > own) & (child < size)), "children")
    edges = np.diff(mapper.edge_start)
    _require(mapper.edge_start.shape == (n_features + 1,) and mapper.edge_start[0] == 0, "bin edges")
    _require((edges >= 0) & (edges <= 254), "bin edges")
    _require(mapper.edge_start[-1] == len(mapper.edges), "bin edges")


def load_model(path: str | PathLike[str]) -> Any:
    """The fitted estimator in a file that `save_model` wrote.

    Raises
    ------
    ValueError
        If the file is no model or damaged.
    """
    from gbdtmo_core import boosting  # boosting imports this module

    name = read_model(path)[0]
    estimators = {cls.__name__: cls for cls in (boosting.GBDTMOClassifier, boosting.GBDTMORegressor)}
    if name not in estimators:
        raise ValueError(
            f"{os.fspath(path)} holds an unknown estimator {name!r}; this version knows {sorted(estimators)}."
        )
    return estimators[name].load_model(path)
