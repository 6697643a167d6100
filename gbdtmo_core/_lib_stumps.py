"""AdaBoost.MH's part of the compiled module: NumPy arrays in, NumPy arrays out, status codes turned into exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gbdtmo_core._lib import _pointer
from gbdtmo_core._native import ffi, lib


def _raise_for(status: int) -> None:
    if status == lib.GMO_OK:
        return
    if status == lib.GMO_ERR_MEMORY:
        raise MemoryError(
            "The C core could not allocate memory. Boosting stumps needs 4 bytes a value of X and 16 a row and label "
            "(labels counted in eights): use fewer rows, features or labels, or a machine with more memory."
        )
    if status == lib.GMO_ERR_SIZE:
        raise OverflowError(
            "The problem is too large for the C core: at most 2**30 rows, 2**31 - 1 features, and products of rows, "
            "features and labels below 2**60."
        )
    raise RuntimeError(f"The C core refused a parameter (status {status}). This is a fault of gbdtmo_core: report it.")


@dataclass(frozen=True)
class Stumps:
    """Stumps in the order of their rounds.

    Attributes
    ----------
    feature : int32 array of shape (n_stumps,)
        The column tested; -1 where none could be split.
    threshold : float64 array of shape (n_stumps,)
        Rows whose value is larger are on side 1, others on side 0; where the feature is -1, all are on side 0.
    leaf_scores : float64 array of shape (n_stumps, 2, n_labels)
        What a row of each side gets.
    normalizer : float64 array of shape (n_stumps,)
        Factor by which each stump reduced the exponential loss.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    leaf_scores: NDArray[np.float64]
    normalizer: NDArray[np.float64]

    @classmethod
    def empty(cls, n_stumps: int, n_labels: int) -> Self:
        """Room for so many stumps, for a booster to fill."""
        return cls(
            np.empty(n_stumps, np.int32),
            np.empty(n_stumps),
            np.empty((n_stumps, 2, n_labels)),
            np.empty(n_stumps),
        )

    def _struct(self) -> Any:
        fields = {
            "n_stumps": len(self.feature),
            "n_labels": self.leaf_scores.shape[2],
            "feature": _pointer("int32_t *", self.feature),
            "threshold": _pointer("double *", self.threshold),
            "leaf_scores": _pointer("double *", self.leaf_scores),
            "normalizer": _pointer("double *", self.normalizer),
        }
        return ffi.new("gmo_stumps *", fields)

    def add(self, X: NDArray[np.float64], scores: NDArray[np.float64], first: int, last: int, *, threads: int) -> None:
        """Adds the scores of stumps ``first`` to ``last`` to ``scores`` (n, n_labels) in place; ``X`` is (n, m)."""
        rows, out = _pointer("double *", X), _pointer("double *", scores)
        _raise_for(lib.gmo_stumps_add(self._struct(), first, last, rows, *X.shape, threads, out))


class StumpBooster:
    """A training run; a context manager that frees the C object at its end.

    Parameters
    ----------
    X : C-contiguous float64 array of shape (n, m), finite
    indicator : C-contiguous uint8 array of shape (n, n_labels)
        1 where a label is relevant, else 0.
    weight : float64 array of shape (n,), positive, or None
    smoothing : float
        Added to both weights of a side's label, where all weights sum to 1.
    """

    def __init__(
        self,
        X: NDArray[np.float64],
        indicator: NDArray[np.uint8],
        weight: NDArray[np.float64] | None,
        *,
        smoothing: float,
        threads: int,
    ) -> None:
        self._borrowed = X, indicator, weight
        rows = {
            "x": _pointer("double *", X),
            "indicator": _pointer("uint8_t *", indicator),
            "weight": ffi.NULL if weight is None else _pointer("double *", weight),
            "n_rows": X.shape[0],
            "n_features": X.shape[1],
            "n_labels": indicator.shape[1],
        }
        handle = ffi.new("gmo_stump_booster **")
        _raise_for(lib.gmo_stump_booster_create(ffi.new("gmo_stump_rows *", rows), smoothing, threads, handle))
        self._handle = handle[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        lib.gmo_stump_booster_free(self._handle)
        self._handle = ffi.NULL

    def boost(self, stumps: Stumps, first: int, last: int) -> None:
        """Runs the next ``last - first`` rounds and writes them to ``stumps``."""
        _raise_for(lib.gmo_stump_booster_boost(self._handle, stumps._struct(), first, last))
