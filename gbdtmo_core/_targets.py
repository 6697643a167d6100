"""Targets: from what users pass to what the C core reads, and each loss's best constant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d


def refuse_non_numbers(data: Any, name: str) -> None:
    """Raises for what NumPy would silently turn into numbers: text, dates, masked values, and missing text.

    Raises
    ------
    TypeError
        For text or dates.
    ValueError
        For masked entries.
    """
    if type(data) is np.ndarray and data.dtype.kind in "fiub":
        return
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise ValueError(f"{name} has masked entries; fill them, or use NaN for missing values of X.")
    for column, dtype, values in _typed_parts(data):
        kind = getattr(dtype, "kind", "O")
        strange = kind in "mMSU" or (kind == "O" and any(isinstance(v, str | bytes) for v in np.ravel(values)))
        if strange:
            raise TypeError(
                f"{name}{column} must hold numbers, got dtype {dtype}; encode text and dates as numbers first."
            )


def _typed_parts(data: Any) -> Iterator[tuple[str, Any, Any]]:
    """Each part of ``data`` that has a dtype of its own: (which column, dtype, values)."""
    if hasattr(data, "columns") and hasattr(data, "dtypes"):
        for position, column in enumerate(data.columns):
            part = data.iloc[:, position]
            yield f" column {column!r}", part.dtype, part
    elif not hasattr(data, "tocsr"):  # sparse matrices are refused elsewhere
        array = data if hasattr(data, "dtype") else np.asarray(data, dtype=object)
        yield "", array.dtype, array


def require_same_columns(y: Any, y_valid: Any) -> None:
    """Raises where both are frames with named columns and these differ: they are matched by position."""
    names, others = (list(getattr(one, "columns", ())) for one in (y, y_valid))
    if names and others and names != others and all(isinstance(name, str) for name in names + others):
        raise ValueError(
            f"y of eval_set has the columns {_shortened(others)}, y has {_shortened(names)}: outputs must be the same, "
            "in the same order."
        )


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", …" if len(names) > 10 else "")


def _refuse_missing(y: Any, name: str) -> None:
    if hasattr(y, "isna") and np.any(y.isna()):
        raise ValueError(f"{name} has missing values; drop those rows.")


def _refuse_label_sets(y: Any, name: str) -> None:
    """Raises for a list of label sets, of which scikit-learn would say that it cannot tell what it is."""
    if not (isinstance(y, list | tuple) or (isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1)):
        return
    sizes = {len(one) for one in y if isinstance(one, list | tuple | set | frozenset)}
    if len(sizes) > 1 or any(isinstance(one, set | frozenset) for one in y):
        raise ValueError(
            f"{name} holds label sets; make them an indicator matrix of 0 and 1 by "
            "sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)."
        )


def check_values(y: Any, name: str = "y") -> NDArray[np.float64]:
    """Regression targets as float64 of shape (n,) or (n, d); NaN, infinity and text are refused."""
    _refuse_missing(y, name)
    refuse_non_numbers(y, name)
    values = check_array(y, dtype=np.float64, ensure_2d=False, ensure_min_features=0, input_name=name)
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(f"{name} must have shape (n,) or (n, n_outputs) with at least one output; got {values.shape}.")
    return np.asarray(values, np.float64)


def check_labels(y: Any, name: str = "y", *, listed_once: bool = False) -> NDArray[Any]:
    """Class labels (n,) of any kind, or a 0/1 indicator matrix (n, q), q >= 2; ``listed_once``: a list of classes."""
    _refuse_missing(y, name)
    _refuse_label_sets(y, name)
    labels = check_array(y, dtype=None, ensure_2d=False, ensure_min_features=0, input_name=name)
    if labels.ndim == 1 or labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
        # Labels that all differ make scikit-learn warn that they may be numbers to be regressed on.
        check_classification_targets(np.repeat(labels, 2) if listed_once else labels)
        if labels.dtype.kind in "mM" and np.isnat(labels).any():
            raise ValueError(f"{name} has missing values (NaT); drop those rows.")
        return np.asarray(labels)
    if labels.ndim != 2 or labels.shape[1] == 0 or not np.isin(labels, (0, 1)).all():
        raise ValueError(
            f"{name} with several columns must be an indicator matrix of 0 and 1, (n, n_labels); got shape "
            f"{labels.shape} with other values. For class labels pass a 1-D array; for numbers use GBDTMORegressor."
        )
    return np.asarray(labels)


def collect_classes(labels: NDArray[Any], extra: NDArray[Any] | None, classes: Any) -> NDArray[Any]:
    """Sorted classes of a training part: ``classes`` if given, else those of its own and the validation labels."""
    if extra is not None:
        _require_same_kind(labels, extra, "y of eval_set")
    found = np.unique(labels)
    seen = found if extra is None else np.union1d(found, extra)
    if classes is None:
        if len(found) < 2:
            raise ValueError(
                f"y has one class only ({found[0]!r}); a classifier needs at least two. If the training part lacks "
                "classes that exist, pass all of them as fit(..., classes=[...])."
            )
        return seen
    listed = check_labels(classes, "classes", listed_once=True)
    if listed.ndim != 1:
        raise ValueError(f"classes must be a list of labels; got shape {listed.shape}.")
    _require_same_kind(labels, listed, "classes")
    every = np.unique(listed)
    unknown = np.setdiff1d(seen, every)
    if len(every) < 2 or len(unknown):
        raise ValueError(
            f"classes must list at least two classes and every label of y; got {every.tolist()}, "
            f"missing {unknown.tolist()}."
        )
    return every


def _require_same_kind(labels: NDArray[Any], other: NDArray[Any], name: str) -> None:
    """Text beside numbers would be compared as text, and predicted as text."""

    def is_text(array: NDArray[Any]) -> bool:
        return array.dtype.kind in "US" or (array.dtype == object and isinstance(array[0], str))

    if is_text(labels) != is_text(other):
        raise ValueError(f"{name} has labels of dtype {other.dtype}, y of dtype {labels.dtype}: use one kind for both.")


def encode_labels(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int32]:
    """Positions of labels (n,) in the sorted ``classes``, which hold them all."""
    return np.searchsorted(classes, labels).astype(np.int32)


def best_constant(y: NDArray[Any], n_outputs: int, loss: str) -> NDArray[np.float64]:
    """The constant score per output that minimises the loss on ``y`` (n, d), or labels (n,) for softmax.

    Mean; log frequency; log odds. A class without rows (or a label that all or no rows have) counts as half a row,
    since its best constant is infinite.
    """
    n = len(y)
    if loss == "softmax":
        counts = np.bincount(y, minlength=n_outputs)
        return np.asarray(np.log(np.maximum(counts, 0.5) / n))
    if loss == "sigmoid":
        share = np.clip(y.mean(axis=0), 0.5 / n, 1 - 0.5 / n)
        return np.asarray(np.log(share / (1 - share)))
    return np.asarray(y.mean(axis=0))
