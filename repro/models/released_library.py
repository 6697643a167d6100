"""Driver of the authors' released program, as a shared library that somebody compiled from its sources.

`GBDTMO_RELEASED_LIB` names it. Its C interface is that of GBDTMO, commit 639615f (src/api.cpp, gbdtmo/lib_utils.py).
"""

import ctypes
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from repro.models.base import Array, RoundTimes, TimedModel

VARIABLE = "GBDTMO_RELEASED_LIB"


class ReleasedLibrary(TimedModel):
    """GBDT-MO by the released program: one tree a round for all outputs, truncated as that program truncates it.

    It is trained a round a call. Its own binning is Python code outside the library, so that construction is not
    measured; its rule is followed here. It never frees a booster, so a process should train one.

    Parameters
    ----------
    node_cache : int
        Nodes that wait to be split at most.
    n_estimators, early_stopping_rounds, base_score
        Taken as all models take them; without effect on timed rounds.
    **parameters
        ``learning_rate``, ``max_depth``, ``max_leaves``, ``max_bins``, ``min_samples_leaf``, ``min_split_gain`` and
        ``reg_lambda``, as our estimators know them.
    """

    row_dtype = np.float64

    def __init__(
        self,
        *,
        learning_rate: float,
        max_depth: int,
        max_leaves: int,
        max_bins: int,
        min_samples_leaf: int,
        min_split_gain: float,
        reg_lambda: float,
        node_cache: int,
        n_estimators: int = 0,
        early_stopping_rounds: int = 0,
    ) -> None:
        self._learning_rate = learning_rate
        self._max_depth = max_depth
        self._max_leaves = max_leaves
        self._max_bins = max_bins
        self._min_samples_leaf = min_samples_leaf
        self._min_split_gain = min_split_gain
        self._reg_lambda = reg_lambda
        self._node_cache = node_cache
        self._library: Any = None
        self._booster: Any = None
        self._kept: list[Array] = []  # what the library points to and does not copy
        self._n_outputs = 0

    def train_rounds(
        self, X: Array, y: Array, *, task: str, n_outputs: int, n_rounds: int, seed: int, n_jobs: int
    ) -> RoundTimes:
        self._library, self._n_outputs = _load(), n_outputs
        self._booster = self._new_booster(b"ce" if task == "multiclass" else b"mse", X.shape[1], seed, n_jobs)
        self._hand_over(X, y, task)
        seconds = []
        for _ in range(n_rounds):
            start = time.perf_counter()
            self._library.Train(self._booster, 1)
            seconds.append(time.perf_counter() - start)
        return RoundTimes(construct_seconds=None, round_seconds=seconds)

    def _new_booster(self, loss: bytes, n_features: int, seed: int, n_jobs: int) -> ctypes.c_void_p:
        # Features, outputs, top-k (0: all), loss, depth, leaves, seed, minimum of samples, threads, learning rate,
        # L1, L2, gain threshold, base score, early stopping (0: none), restricted top-k, verbose, node cache.
        handle = self._library.MultiNew(
            n_features,
            self._n_outputs,
            0,
            loss,
            self._max_depth,
            self._max_leaves,
            seed,
            self._min_samples_leaf,
            n_jobs,
            self._learning_rate,
            0.0,
            self._reg_lambda,
            self._min_split_gain,
            0.0,
            0,
            True,
            False,
            self._node_cache,
        )
        return ctypes.c_void_p(handle)

    def _hand_over(self, X: Array, y: Array, task: str) -> None:
        edges = [released_edges(column, self._max_bins) for column in X.T]
        counts = np.array([len(own) for own in edges], np.uint16)
        values = np.concatenate([*edges, np.empty(0)])
        columns = [np.searchsorted(own, column, side="left") for own, column in zip(edges, X.T, strict=True)]
        bins = np.ascontiguousarray(columns, np.uint16)
        rows = np.ascontiguousarray(X, np.float64)
        scores = np.zeros((len(X), self._n_outputs))
        integers = task == "multiclass"
        labels = np.ascontiguousarray(y, np.int32 if integers else np.float64)
        self._library.SetBin(self._booster, _pointer(counts), _pointer(values))
        self._library.SetData(self._booster, _pointer(bins), _pointer(rows), _pointer(scores), len(X), True)
        setter = self._library.SetLabelInt if integers else self._library.SetLabelDouble
        setter(self._booster, _pointer(labels), True)
        self._kept = [bins, rows, scores, labels]

    def raw_scores(self, X: Array, n_jobs: int) -> Array:
        """See `TimedModel.raw_scores`; the program keeps the threads of training, whatever is asked."""
        return self.predict_scores(X)

    def predict_scores(self, X: Array) -> Array:
        if self._booster is None:
            raise RuntimeError("the model is not fitted; call train_rounds first")
        rows = np.ascontiguousarray(X, np.float64)
        scores = np.zeros((len(X), self._n_outputs))
        self._library.Predict(self._booster, _pointer(rows), _pointer(scores), len(X), 0)
        return scores


def _load() -> ctypes.CDLL:
    path = os.environ.get(VARIABLE)
    if not path or not Path(path).is_file():
        raise FileNotFoundError(
            f"{VARIABLE} must name the authors' program, compiled as a shared library; {path or 'nothing'} is no file"
        )
    library = ctypes.CDLL(path)
    pointer, integer, real, flag = ctypes.c_void_p, ctypes.c_int, ctypes.c_double, ctypes.c_bool
    library.MultiNew.argtypes = [
        *(integer, integer, integer, ctypes.c_char_p),
        *(integer,) * 5,
        *(real,) * 5,
        *(integer, flag, flag, integer),
    ]
    library.MultiNew.restype = pointer
    library.SetBin.argtypes = [pointer, pointer, pointer]
    library.SetData.argtypes = [pointer, pointer, pointer, pointer, integer, flag]
    library.SetLabelInt.argtypes = library.SetLabelDouble.argtypes = [pointer, pointer, flag]
    library.Train.argtypes = [pointer, integer]
    library.Predict.argtypes = [pointer, pointer, pointer, integer, integer]
    return library


def _pointer(array: Array) -> int:
    return int(array.ctypes.data)


def released_edges(column: Array, max_bins: int) -> Array:
    """Bin edges of one column by the released program's rule; a value equal to an edge belongs to its left.

    Parameters
    ----------
    column : ndarray, shape (n,)
    max_bins : int

    Returns
    -------
    ndarray of float64
        At most ``max_bins - 1`` edges, ascending.
    """
    values, counts = np.unique(np.asarray(column, np.float64), return_counts=True)
    if len(values) == 1:
        return np.empty(0)
    if len(values) == 2:
        return np.array([np.average(values, weights=counts)])
    if len(values) <= max_bins:
        return np.asarray((values[:-1] + values[1:]) / 2)
    cumulative = np.cumsum(counts)
    target, place = len(values) / max_bins, 0
    edges: list[float] = []
    while len(edges) < max_bins - 1 and place < len(values):
        place += int(np.searchsorted(cumulative[place:], target))
        if place == len(values):
            break
        edges.append(values[place])
        target = cumulative[place] + (cumulative[-1] - cumulative[place]) / (max_bins - len(edges))
        place += 1
    return np.array(edges)
