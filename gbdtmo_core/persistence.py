"""Models on disk: one NumPy .npz of arrays and a JSON header, no pickle."""

from __future__ import annotations

import json
import os
import secrets
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbdtmo_core._lib import FOREST_DTYPES, BinMapper, Forest
from gbdtmo_core._model import Model
from gbdtmo_core._model_checks import check_model

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
    path = path.resolve()  # through a link, its target is written
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist; make it first.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file; name a file to write the model to.")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # NumPy's stubs take its own options for array names
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_model(path: str | PathLike[str]) -> tuple[str, dict[str, Any], Model, NDArray[Any] | None]:
    """Estimator name, parameters, model and feature names of a file that `write_model` made.

    Raises
    ------
    ValueError
        If the file is no model or damaged.
    """
    try:
        header, arrays = _read_arrays(path)
        model = _model_of(header, arrays)
        names = header["feature_names"]
        if names is not None and len(names) != len(model.mapper.has_missing):
            raise ValueError("its feature names do not fit its features")
        return (
            str(header["estimator"]),
            dict(header["params"]),
            model,
            None if names is None else np.array(names, dtype=object),
        )
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise  # the file could not be read: nothing is known of what it holds
    except Exception as error:  # damaged bytes come out of zipfile and NumPy as errors of many kinds
        raise ValueError(
            f"{os.fspath(path)} is not a whole model file of gbdtmo_core (version {VERSION}): "
            f"{str(error).rstrip('.')}. Save the model again with save_model."
        ) from error


def _read_arrays(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is no archive of arrays")
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays["header"].tobytes())
    if header["format"] != FORMAT or header["version"] != VERSION:
        raise ValueError(f"it has format {header['format']!r} {header['version']!r}")
    return header, arrays


def _model_of(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
    def typed(names: dict[str, type[np.generic]]) -> dict[str, Any]:
        for name, dtype in names.items():
            if arrays[name].dtype != dtype:
                raise ValueError(f"array {name!r} has dtype {arrays[name].dtype}")
        return {name: np.ascontiguousarray(arrays[name]) for name in names}

    classes = arrays.get("classes")
    if classes is not None and header["classes_are_objects"]:
        classes = classes.astype(object)
    model = Model(
        mapper=BinMapper(**typed(_MAPPER_DTYPES)),
        forest=Forest(n_outputs=arrays["base_score"].size, **typed(FOREST_DTYPES)),
        classes=classes,
        **typed(_MODEL_DTYPES),
        **{name: header[name] for name in _HEADER_FIELDS},
    )
    check_model(model)
    return model


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
