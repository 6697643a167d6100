"""Kernels between rows: those that the C core computes, callables, and kernel values that are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from gbdtmo_core._checks import Check, integer, is_real
from gbdtmo_core._lib_ranksvm import NativeKernel

FloatArray = NDArray[np.float64]

KERNELS = ("linear", "poly", "rbf", "precomputed")
_LARGEST = 1e100  # a cost or kernel value; the largest is 1 / _LARGEST at least
BLOCK_BYTES = 2**26  # of a block of kernel values
_SYMMETRY = 1e-8  # largest difference of K and its transpose, relative to the largest value
_CHOLESKY_ROWS = 2000  # up to so many rows a factorisation tells whether a matrix is positive semi-definite
_ROUNDING = 1e-8  # of its eigenvalues, relative to their sum

MACHINE_CHECKS: dict[str, Check] = {
    "C": ("a number above 0, or numpy.inf", lambda value: bool((is_real(value) or value == np.inf) and value > 0)),
    "kernel": (
        f"one of {KERNELS} or a callable",
        lambda value: value in KERNELS if isinstance(value, str) else callable(value),
    ),
    "degree": integer(0, 2**31 - 1),
    "gamma": (
        'a number above 0, "scale" or "auto"',
        lambda value: value in ("scale", "auto") if isinstance(value, str) else is_real(value) and value > 0,
    ),
    "coef0": ("a finite number", is_real),
}
"""Ranges of the parameters that all kernel machines have."""


class Kernel(Protocol):
    """Kernel values of rows as `MultiLabelClassifier` passes them."""

    def block(self, X: Any, Y: Any, *, threads: int) -> FloatArray:
        """K(x, y), (len(X), len(Y)), C-contiguous."""

    def diagonal(self, X: Any) -> FloatArray:
        """K(x, x), (len(X),)."""


@dataclass(frozen=True)
class CallableKernel:
    """A function of two sets of rows that returns their kernel matrix."""

    function: Callable[[Any, Any], Any]

    def block(self, X: Any, Y: Any, *, threads: int) -> FloatArray:
        answer = self.function(X.copy(), Y.copy())  # they may be the user's own array, and functions may change them
        is_dense = not sparse.issparse(answer) and not isinstance(answer, np.ma.MaskedArray)
        if not is_dense or np.asarray(answer).dtype.kind not in "biuf":
            kind = f"{type(answer).__name__} of {getattr(answer, 'dtype', 'other values')}"
            raise TypeError(f"the kernel function must return a dense array of real numbers; it returned {kind}.")
        values = np.ascontiguousarray(answer, np.float64)
        if values.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"the kernel function must return shape {(X.shape[0], Y.shape[0])}, one value for each row of its "
                f"first and second argument; it returned {values.shape}."
            )
        if not np.isfinite(values).all():
            raise ValueError("the kernel function returned NaN or infinite values; scale X, or mend the function.")
        return values

    def diagonal(self, X: Any) -> FloatArray:
        # Blocks of a few rows: fewer calls than rows, little that is computed for nothing.
        blocks = [self.block(part, part, threads=1).diagonal() for part in row_blocks(X, 32)]
        return np.concatenate(blocks)


def make_kernel(kernel: Any, X: Any, *, degree: int, gamma: Any, coef0: float) -> Kernel:
    """The kernel of an estimator's parameters; ``gamma`` may be "scale" or "auto", as in scikit-learn's SVC."""
    if callable(kernel):
        return CallableKernel(kernel)
    if kernel == "linear":
        return NativeKernel(kernel, 1, 1.0, 0.0)
    return NativeKernel(kernel, int(degree), _gamma_value(gamma, X), float(coef0))


def _gamma_value(gamma: Any, X: Any) -> float:
    if gamma == "auto":
        return 1 / int(X.shape[1])
    if gamma != "scale":
        return float(gamma)
    variance = _variance(X) if sparse.issparse(X) else float(X.var())
    return 1 / (int(X.shape[1]) * variance) if variance > 0 else 1.0


def _variance(X: Any) -> float:
    """The variance of all entries of a CSR matrix, those that are not stored too."""
    size = X.shape[0] * X.shape[1]
    mean = X.data.sum() / size
    return float((np.square(X.data - mean).sum() + (size - X.data.size) * mean**2) / size)


def is_linear(kernel: Kernel | None) -> bool:
    """Whether scores are products with vectors of the features' space."""
    return isinstance(kernel, NativeKernel) and kernel.kind == "linear"


def check_range(what: str, values: FloatArray) -> None:
    """Refuses values whose products with one another would leave the range of float64."""
    largest = float(np.max(values))
    if largest != 0 and not 1 / _LARGEST <= largest <= _LARGEST:  # NaN too
        raise ValueError(
            f"the largest {what} is {largest:g}; expected 0, or {1 / _LARGEST:g} to {_LARGEST:g}. "
            "Scale X, C, or the kernel's parameters."
        )


def row_blocks(X: Any, size: int) -> list[Any]:
    """Rows of X in parts of ``size``."""
    return [X[first : first + size] for first in range(0, X.shape[0], size)]


def gram_matrix(kernel: Kernel, X: Any, *, threads: int) -> FloatArray:
    """K of all rows with all rows, (n, n), without another matrix of that size."""
    if isinstance(kernel, NativeKernel):
        return kernel.block(X, X, threads=threads)
    n = X.shape[0]
    gram = np.empty((n, n))
    size = max(1, BLOCK_BYTES // (8 * n))
    for i, part in enumerate(row_blocks(X, size)):
        gram[i * size : (i + 1) * size] = kernel.block(part, X, threads=threads)
    return gram


def check_symmetric(gram: FloatArray) -> None:
    """Raises ValueError if a given kernel matrix is not symmetric."""
    largest = max(float(np.abs(part).max()) for part in row_blocks(gram, 512))
    for first in range(0, len(gram), 512):
        part = slice(first, first + 512)
        if np.abs(gram[part] - gram[:, part].T).max() > _SYMMETRY * largest:
            raise ValueError("the kernel matrix is not symmetric: K(x, y) and K(y, x) must be equal.")


def is_indefinite(gram: FloatArray) -> bool:
    """Whether the matrix is found not to be positive semi-definite, beyond rounding.

    Up to 2,000 rows a Cholesky factorisation decides. Of larger matrices the 2 x 2 minors are looked at; a matrix that
    is not positive semi-definite may pass.
    """
    diagonal = gram.diagonal()
    if (diagonal < 0).any():
        return True
    if len(gram) <= _CHOLESKY_ROWS:
        shift = max(_ROUNDING * float(diagonal.sum()), np.finfo(np.float64).tiny)
        try:
            linalg.cholesky(gram + shift * np.eye(len(gram)), overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return True
        return False
    root = np.sqrt(diagonal)
    size = max(1, BLOCK_BYTES // (8 * len(gram)))
    limit = 1 + 1e-8
    return any(
        bool((np.abs(gram[i : i + size]) > limit * np.outer(root[i : i + size], root)).any())
        for i in range(0, len(gram), size)
    )
