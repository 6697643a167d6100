"""Targets: from what users pass to what the C core reads, and each loss's best constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d


def check_values(y: Any, name: str = "y") -> NDArray[np.float64]:
    """Regression targets as float64 of shape (n,) or (n, d); NaN, infinity and text are refused."""
    values = check_array(y, dtype=np.float64, ensure_2d=False, ensure_min_features=0, input_name=name)
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(f"{name} must have shape (n,) or (n, n_outputs) with at least one output; got {values.shape}.")
    return np.asarray(values, np.float64)


def check_labels(y: Any, name: str = "y") -> NDArray[Any]:
    """Class labels (n,) of any kind, or a 0/1 indicator matrix (n, q), q >= 2."""
    labels = check_array(y, dtype=None, ensure_2d=False, ensure_min_features=0, input_name=name)
    if labels.ndim == 1 or labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        return np.asarray(labels)
    if labels.ndim != 2 or labels.shape[1] == 0 or not np.isin(labels, (0, 1)).all():
        raise ValueError(
            f"{name} with several columns must be an indicator matrix of 0 and 1, (n, n_labels); got shape "
            f"{labels.shape} with other values. For class labels pass a 1-D array; for numbers use GBDTMORegressor."
        )
    return np.asarray(labels)


def collect_classes(labels: NDArray[Any], extra: NDArray[Any] | None, classes: Any) -> NDArray[Any]:
    """Sorted classes of a training part: ``classes`` if given, else those of its own and the validation labels."""
    found = np.unique(labels)
    if classes is None:
        if len(found) < 2:
            raise ValueError(
                f"y has one class only ({found[0]!r}); a classifier needs at least two. If the training part lacks "
                "classes that exist, pass all of them as fit(..., classes=[...])."
            )
        return found if extra is None else np.union1d(found, extra)
    every = np.unique(np.asarray(column_or_1d(classes)))
    unknown = np.setdiff1d(found if extra is None else np.union1d(found, extra), every)
    if len(every) < 2 or len(unknown):
        raise ValueError(
            f"classes must list at least two classes and every label of y; got {every.tolist()}, "
            f"missing {unknown.tolist()}."
        )
    return every


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
