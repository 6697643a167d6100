"""Read a pickle that may hold plain NumPy arrays and containers, and nothing that runs code."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from .base import FormatError

# NumPy's own rebuilding function, wherever this version of NumPy keeps it.
_RECONSTRUCT = np.empty(0).__reduce__()[0]

_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise FormatError(f"the pickle asks for '{module}.{name}'; only NumPy arrays are allowed, nothing was run")
        return _ALLOWED[module, name]


def load_arrays(content: bytes) -> Any:
    """Unpickle tuples, lists and numbers with NumPy arrays in them; also pickles written by Python 2.

    Raises
    ------
    FormatError
        The pickle names anything but NumPy's array types, or is damaged.
    """
    try:
        return _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise FormatError(f"not a readable pickle of arrays: {error}") from error
