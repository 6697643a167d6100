"""The ranking machine's part of the compiled module: NumPy arrays in, NumPy arrays out, status codes as exceptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gbdtmo_core._lib import _pointer
from gbdtmo_core._native import ffi, lib

FloatArray = NDArray[np.float64]
KERNELS = {"linear": lib.GMO_KERNEL_LINEAR, "poly": lib.GMO_KERNEL_POLY, "rbf": lib.GMO_KERNEL_RBF}


def _raise_for(status: int) -> None:
    if status == lib.GMO_OK:
        return
    if status == lib.GMO_ERR_MEMORY:
        raise MemoryError(
            "The C core could not allocate memory for Rank-SVM. Use a smaller cache_size, fewer rows, or a machine "
            "with more memory."
        )
    if status == lib.GMO_ERR_NUMERIC:
        raise FloatingPointError(
            "The scores of Rank-SVM became infinite: the kernel's values or C are too large, or the kernel is not "
            "positive semi-definite. Scale X, or take a smaller C."
        )
    if status == lib.GMO_ERR_SIZE:
        raise OverflowError("The problem is too large for the C core: at most 2**30 rows and labels.")
    raise RuntimeError(f"The C core refused a parameter (status {status}). This is a fault of gbdtmo_core: report it.")


@dataclass(frozen=True)
class NativeKernel:
    """A kernel that the C core computes: ``gmo_kernel`` in csrc/gbdtmo.h."""

    kind: str
    degree: int
    gamma: float
    coef0: float

    def _struct(self) -> Any:
        return ffi.new("gmo_kernel *", (KERNELS[self.kind], self.degree, self.gamma, self.coef0))

    def block(self, X: Any, Y: Any, *, threads: int) -> FloatArray:
        """Kernel values (len(X), len(Y)) of C-contiguous float64 or canonical int32 CSR rows, both of one kind.

        Raises
        ------
        RuntimeError
            If one is dense and the other sparse.
        """
        values = np.empty((X.shape[0], Y.shape[0]))
        pointer = _pointer("double *", values)
        x, y = Features(X), Features(Y)
        _raise_for(lib.gmo_kernel_block(self._struct(), x.struct, 0, X.shape[0], y.struct, threads, pointer))
        return values

    def diagonal(self, X: Any) -> FloatArray:
        """K(x, x) of every row, (len(X),)."""
        values = np.empty(X.shape[0])
        x = Features(X)
        _raise_for(lib.gmo_kernel_diagonal(self._struct(), x.struct, _pointer("double *", values)))
        return values


class Features:
    """A ``gmo_features`` view of C-contiguous float64 rows or a canonical CSR matrix; it keeps them alive."""

    def __init__(self, X: Any) -> None:
        fields = {"n_rows": X.shape[0], "n_features": X.shape[1]}
        if sparse.issparse(X):
            self._arrays: tuple[NDArray[Any], ...] = X.data, X.indptr.astype(np.int64), X.indices
            fields["row_start"] = _pointer("int64_t *", self._arrays[1])
            fields["columns"] = _pointer("int32_t *", self._arrays[2])
        else:
            self._arrays = (X,)
        fields["values"] = _pointer("double *", self._arrays[0])
        self.struct = ffi.new("gmo_features *", fields)


@dataclass(frozen=True)
class State:
    """How far the solver is: ``gmo_ranksvm_state`` in csrc/gbdtmo.h."""

    primal: float
    dual: float
    gap: float
    n_epochs: int
    finished: bool
    indefinite: bool
    unbounded: bool


@dataclass(frozen=True)
class Origin:
    """A point o of feature space amid the training rows.

    Attributes
    ----------
    share : float64 array of shape (n,)
        o = sum_i share_i phi(x_i).
    values : float64 array of shape (n,)
        K(x_i, o).
    norm : float
        K(o, o).
    """

    share: FloatArray
    values: FloatArray
    norm: float


class Machine:
    """A training run of Rank-SVM; a context manager that frees the C object at its end.

    Parameters
    ----------
    relevant : uint8 array of shape (n, q), C-contiguous
    group_start : int32 array of shape (n_groups + 1,)
    cost : float64 array of shape (n,)
        Bound of the multiplier of a pair: numpy.inf for the hard margin, 0 for a sample without pairs.
    diagonal : float64 array of shape (n,)
        K(x_i, x_i).
    origin : Origin or None
    gram : float64 array of shape (n, n), C-contiguous, or None
    features : rows of the linear kernel, or None
    rows : function
        Kernel rows (len(indices), n) of training rows, for a machine with neither.
    cache_bytes, tol, max_epochs, seed : int, float, int, int
    """

    def __init__(
        self,
        relevant: NDArray[np.uint8],
        group_start: NDArray[np.int32],
        cost: FloatArray,
        diagonal: FloatArray,
        *,
        origin: Origin | None = None,
        gram: FloatArray | None = None,
        features: Any = None,
        rows: Callable[[NDArray[np.int64]], FloatArray] | None = None,
        cache_bytes: int = 0,
        tol: float,
        max_epochs: int,
        seed: int,
    ) -> None:
        view = None if features is None else Features(features)
        self._rows = rows
        self._shape = relevant.shape
        fields = {
            "n_samples": relevant.shape[0],
            "n_labels": relevant.shape[1],
            "n_groups": len(group_start) - 1,
            "relevant": _pointer("uint8_t *", relevant),
            "group_start": _pointer("int32_t *", group_start),
            "cost": _pointer("double *", cost),
            "diagonal": _pointer("double *", diagonal),
            "share": ffi.NULL if origin is None else _pointer("double *", origin.share),
            "with_origin": ffi.NULL if origin is None else _pointer("double *", origin.values),
            "origin": 0.0 if origin is None else origin.norm,
            "gram": ffi.NULL if gram is None else _pointer("double *", gram),
            "features": ffi.NULL if view is None else view.struct,
            "cache_bytes": cache_bytes,
            "tolerance": tol,
            "max_epochs": max_epochs,
            "seed": seed,
        }
        self._borrowed = relevant, group_start, cost, diagonal, origin, gram, view
        handle = ffi.new("gmo_ranksvm **")
        _raise_for(lib.gmo_ranksvm_create(ffi.new("gmo_ranksvm_problem *", fields), handle))
        self._handle = handle[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        lib.gmo_ranksvm_free(self._handle)
        self._handle = ffi.NULL

    def run(self, n_visits: int) -> State:
        """Goes on for about ``n_visits`` visits of a sample, or to the end; rows that are wanted are handed over."""
        _raise_for(lib.gmo_ranksvm_run(self._handle, n_visits))
        view = ffi.new("gmo_ranksvm_state *")
        lib.gmo_ranksvm_look(self._handle, view)
        if view.n_wanted:
            wanted = np.frombuffer(ffi.buffer(view.wanted, 8 * view.n_wanted), np.int64).copy()
            assert self._rows is not None
            block = np.ascontiguousarray(self._rows(wanted))
            lib.gmo_ranksvm_put(self._handle, _pointer("double *", block))
        return State(
            view.primal,
            view.dual,
            view.gap,
            view.n_epochs,
            bool(view.finished),
            bool(view.indefinite),
            bool(view.unbounded),
        )

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """The best primal point so far: sums of multipliers (n, q) and biases (q,)."""
        dual_coef, bias = np.empty(self._shape), np.empty(self._shape[1])
        lib.gmo_ranksvm_solution(self._handle, _pointer("double *", dual_coef), _pointer("double *", bias))
        return dual_coef, bias
