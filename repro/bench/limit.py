"""Rates of adding and reading of this machine, by a small C program, and the least time that a histogram needs."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SOURCE = Path(__file__).with_name("limit.c")
_VECTOR = 8  # 32-bit numbers of an AVX2 vector
_L1_BYTES = 16 * 2**10
_L2_BYTES = 256 * 2**10
_ROWS = 1 << 16
_DISTINCT_ROWS_BYTES = 8 * 2**10
_LINE_BYTES = 64
_READ_BYTES = 256 * 2**20
_TRIES = 7


class LimitError(RuntimeError):
    """The C program cannot be compiled."""


@dataclass(frozen=True)
class Rates:
    """What one thread of this machine does in a second.

    Attributes
    ----------
    lanes : int
        Numbers in a gradient row, padded to whole vectors.
    adds_l1, adds_l2 : float
        32-bit integer adds, gradient rows going to random histogram cells that fit L1 or L2.
    adds_contiguous : float
        The same adds to consecutive numbers in L1.
    read_bytes : float
        Bytes read in order from memory.
    """

    lanes: int
    adds_l1: float
    adds_l2: float
    adds_contiguous: float
    read_bytes: float


def histogram_seconds(
    *, entries: float, rows: float, lanes: int, adds_per_second: float, read_bytes_per_second: float
) -> float:
    """Give the least time of adding gradient rows to histograms: all its adds, or all its bytes, whichever is longer.

    Parameters
    ----------
    entries : float
        Histogram entries: rows x features of all histograms, outside each feature's most frequent bin.
    rows : float
        Rows of these histograms; the gradient row of each is read once from memory.
    lanes : int
        Numbers in a gradient row: one an output, or two with a Hessian.
    adds_per_second, read_bytes_per_second : float
        Of the threads together.
    """
    adds = entries * lanes
    bytes_read = entries + rows * lanes * 4  # a bin is a byte
    return max(adds / adds_per_second, bytes_read / read_bytes_per_second)


def measure(lanes: int) -> Rates:
    """Measure one thread's rates for gradient rows of so many numbers; the fastest of several tries each.

    Raises
    ------
    LimitError
        If the C program cannot be compiled.
    """
    library = _compiled()
    padded = -(-lanes // _VECTOR) * _VECTOR
    return Rates(
        lanes=padded,
        adds_l1=_cell_rate(library, padded, _L1_BYTES),
        adds_l2=_cell_rate(library, padded, _L2_BYTES),
        adds_contiguous=_contiguous_rate(library),
        read_bytes=_read_rate(library),
    )


def _compiled() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "limit.so"
        command = ["gcc", "-O3", "-std=gnu11", "-shared", "-fPIC", "-o", str(path), str(SOURCE)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise LimitError(f"gcc cannot be started ({error}); the limits need a C compiler") from error
        if done.returncode:
            raise LimitError(f"{SOURCE.name} does not compile: {done.stderr.strip()[-500:]}")
        library = ctypes.CDLL(str(path))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.add_to_cells.argtypes = [pointer, pointer, pointer, size, size, size]
    library.add_contiguous.argtypes = [pointer, pointer, size, size]
    library.read_words.argtypes = [pointer, size]
    library.read_words.restype = ctypes.c_uint64
    return library


def _fastest(call: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls."""
    times = []
    for _ in range(_TRIES):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _cell_rate(library: ctypes.CDLL, lanes: int, histogram_bytes: int) -> float:
    rng = np.random.default_rng(0)
    n_cells = max(2, histogram_bytes // (4 * lanes))
    n_distinct = max(1, _DISTINCT_ROWS_BYTES // (4 * lanes))
    n_rows = _ROWS // n_distinct * n_distinct
    sums, rows = _aligned(n_cells * lanes), _aligned(n_distinct * lanes)
    rows[:] = rng.integers(-100, 100, size=len(rows))
    cells = rng.integers(n_cells, size=n_rows, dtype=np.uint32)
    arguments = (sums.ctypes.data, cells.ctypes.data, rows.ctypes.data, n_rows, n_distinct, lanes // _VECTOR)
    return n_rows * lanes / _fastest(lambda: library.add_to_cells(*arguments))


def _aligned(n: int) -> NDArray[np.int32]:
    """Return n zeros that start at a cache line."""
    buffer = np.zeros(n * 4 + _LINE_BYTES, np.uint8)
    start = -buffer.ctypes.data % _LINE_BYTES
    return buffer[start : start + n * 4].view(np.int32)


def _contiguous_rate(library: ctypes.CDLL) -> float:
    n, repeats = _L1_BYTES // 8, 4096
    sums, row = _aligned(n), _aligned(n)
    row[:] = 1
    return n * repeats / _fastest(lambda: library.add_contiguous(sums.ctypes.data, row.ctypes.data, n, repeats))


def _read_rate(library: ctypes.CDLL) -> float:
    words = np.ones(_READ_BYTES // 8, np.uint64)
    return _READ_BYTES / _fastest(lambda: library.read_words(words.ctypes.data, len(words)))
