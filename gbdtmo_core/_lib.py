"""The only importer of the compiled module: NumPy arrays in, NumPy arrays out, status codes turned into exceptions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray

from gbdtmo_core._native import ffi, lib

LOSSES = {
    "squared_error": lib.GMO_LOSS_SQUARED,
    "softmax": lib.GMO_LOSS_SOFTMAX,
    "sigmoid": lib.GMO_LOSS_SIGMOID,
}
METRICS = {
    "mse": lib.GMO_METRIC_MSE,
    "rmse": lib.GMO_METRIC_RMSE,
    "mae": lib.GMO_METRIC_MAE,
    "accuracy": lib.GMO_METRIC_ACCURACY,
    "log_loss": lib.GMO_METRIC_LOG_LOSS,
}
GROWTHS = {"complete": lib.GMO_GROWTH_COMPLETE, "released": lib.GMO_GROWTH_RELEASED}
BINNINGS = {"quantile": lib.GMO_BINNING_QUANTILE, "released": lib.GMO_BINNING_RELEASED}
EXACT_MAX_OUTPUTS: int = lib.GMO_EXACT_MAX_OUTPUTS

PROFILE_COLUMNS = {
    "gradient": lib.GMO_PROFILE_GRADIENT,
    "rounding": lib.GMO_PROFILE_ROUNDING,
    "histogram": lib.GMO_PROFILE_HISTOGRAM,
    "split": lib.GMO_PROFILE_SPLIT,
    "partition": lib.GMO_PROFILE_PARTITION,
    "leaf": lib.GMO_PROFILE_LEAF,
    "evaluation": lib.GMO_PROFILE_EVALUATION,
    "total": lib.GMO_PROFILE_TOTAL,
    "entries": lib.GMO_PROFILE_ENTRIES,
}


def _raise_for(status: int) -> None:
    if status == lib.GMO_OK:
        return
    if status == lib.GMO_ERR_MEMORY:
        raise MemoryError(
            "The C core could not allocate memory. Use fewer rows or outputs, a smaller max_bins, max_depth or "
            "histogram_pool_mb, or a machine with more memory."
        )
    if status == lib.GMO_ERR_NUMERIC:
        raise FloatingPointError(
            "Gradients, leaf values or scores became infinite or larger than 2**500 in magnitude. Rescale y (to a "
            "standard deviation near 1, say), lower learning_rate, or raise reg_lambda."
        )
    if status == lib.GMO_ERR_SIZE:
        raise OverflowError(
            "The problem is too large for the C core: at most 2**30 rows, 2**31 - 1 features and rounds, and products "
            "of rows, features, bins and outputs below 2**60."
        )
    raise RuntimeError(f"The C core refused a parameter (status {status}). This is a fault of gbdtmo_core: report it.")


# OpenMP's threads do not survive a fork, and waiting for them would never end: a forked process works on one thread.
_is_forked = False


def _mark_forked() -> None:
    global _is_forked
    _is_forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_forked)


# Beyond this, more threads than cores only cost memory, and OpenMP ends the process when it cannot have them.
_MOST_THREADS = 64


def n_threads(n_jobs: int | None) -> int:
    """Threads for scikit-learn's ``n_jobs``: None is 1 (or joblib's context), -1 all that OpenMP would use."""
    if _is_forked:
        return 1
    wanted, offered = int(joblib.effective_n_jobs(n_jobs)), int(lib.gmo_threads_max())
    if n_jobs is not None and n_jobs > 0:
        return min(wanted, max(_MOST_THREADS, offered))
    return max(1, min(wanted, offered))


def _pointer(ctype: str, array: NDArray[Any]) -> Any:
    """A pointer to a C-contiguous array; the array must outlive its use."""
    if not array.flags.c_contiguous:
        raise AssertionError(f"{ctype} needs a C-contiguous array")
    return ffi.cast(ctype, array.ctypes.data)


def _matrix(X: NDArray[Any]) -> Any:
    """A strided view of a float32 or float64 matrix, without a copy: an argument for ``const gmo_matrix *``."""
    # from_buffer and a list, from which cffi makes the struct for the call: predicting a row takes microseconds in all.
    data = ffi.from_buffer(X) if X.flags.c_contiguous else ffi.cast("char *", X.ctypes.data)
    return [(data, *X.shape, *X.strides, X.itemsize == 8)]


@dataclass(frozen=True)
class BinMapper:
    """Bin edges of every feature.

    Attributes
    ----------
    edges : float64 array of shape (edge_start[-1],)
        Ascending edges of all features, one feature after the other.
    edge_start : int64 array of shape (n_features + 1,)
        Where the edges of each feature start.
    has_missing : uint8 array of shape (n_features,)
        1 where the training rows had missing values.
    """

    edges: NDArray[np.float64]
    edge_start: NDArray[np.int64]
    has_missing: NDArray[np.uint8]

    @classmethod
    def fit(cls, X: NDArray[Any], *, binning: str, max_bins: int, threads: int) -> Self:
        """Edges from the training rows ``X``, (n, m) of float32 or float64, any strides, NaN where missing."""
        n_features = X.shape[1]
        edges = np.empty((n_features, max_bins - 1))
        n_edges = np.empty(n_features, np.int32)
        has_missing = np.empty(n_features, np.uint8)
        _raise_for(
            lib.gmo_bins_fit(
                _matrix(X),
                BINNINGS[binning],
                max_bins,
                threads,
                _pointer("double *", edges),
                _pointer("int32_t *", n_edges),
                _pointer("uint8_t *", has_missing),
            )
        )
        used = np.arange(max_bins - 1) < n_edges[:, np.newaxis]
        edge_start = np.concatenate([[0], np.cumsum(n_edges, dtype=np.int64)])
        return cls(edges[used], edge_start, has_missing)

    def apply(self, X: NDArray[Any], *, threads: int) -> NDArray[np.uint8]:
        """Bin numbers (n, m) of ``X``, (n, m) of float32 or float64, any strides."""
        bins = np.empty(X.shape, np.uint8)
        _raise_for(
            lib.gmo_bins_apply(
                _matrix(X),
                _pointer("double *", self.edges),
                _pointer("int64_t *", self.edge_start),
                threads,
                _pointer("uint8_t *", bins),
            )
        )
        return bins


@dataclass(frozen=True)
class Forest:
    """Trees as arrays; ``gmo_forest`` in csrc/gbdtmo.h says what each holds."""

    n_outputs: int
    node_start: NDArray[np.int64]
    value_start: NDArray[np.int64]
    n_leaves: NDArray[np.int32]
    tree_output: NDArray[np.int32]
    tree_round: NDArray[np.int32]
    n_unassigned: NDArray[np.int64]
    feature: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    bin: NDArray[np.uint8]
    missing_left: NDArray[np.uint8]
    leaf_values: NDArray[np.float64]


class Predictor:
    """Trees packed for prediction from values; holds no state of a call, so that threads may share it.

    Parameters
    ----------
    forest, mapper : Forest, BinMapper
        Trees and the bins that they were trained on.
    base_score : float64 array of shape (n_outputs,)
    trees : int64 array of shape (n_trees,)
        The trees that count, in the order of adding.
    """

    def __init__(
        self, forest: Forest, mapper: BinMapper, base_score: NDArray[np.float64], trees: NDArray[np.int64]
    ) -> None:
        self.n_trees = len(trees)
        n_nodes = 2 * len(forest.feature) + len(forest.n_leaves)
        nodes = np.empty((n_nodes, 2))  # of 16 bytes each
        pointers = {name: _pointer(ctype, getattr(forest, name)) for name, ctype in _FOREST_CTYPES.items()}
        view = ffi.new("gmo_forest *", {"n_trees": len(forest.n_leaves), "n_outputs": forest.n_outputs, **pointers})
        fields = {
            "forest": view,
            "base_score": _pointer("double *", base_score),
            "trees": _pointer("int64_t *", trees),
            "nodes": _pointer("gmo_packed_node *", nodes),
            "n_trees": len(trees),
        }
        self._struct = ffi.new("gmo_predictor *", fields)
        self._borrowed = forest, view, base_score, trees, nodes
        edges, edge_start = _pointer("double *", mapper.edges), _pointer("int64_t *", mapper.edge_start)
        _raise_for(lib.gmo_forest_pack(view, edges, edge_start, fields["nodes"]))

    def add(self, X: NDArray[Any], scores: NDArray[np.float64], first: int, last: int, *, threads: int) -> None:
        """Adds ``trees[first:last]`` to ``scores`` in place; if ``first`` is 0, they start anew at the base score.

        Parameters
        ----------
        X : float32 or float64 array of shape (n, m), any strides
            NaN where missing.
        scores : C-contiguous float64 array of shape (n, n_outputs)
        """
        out = ffi.from_buffer(_DOUBLES, scores)
        status = lib.gmo_predictor_add(self._struct, first, last, _matrix(X), threads, out)
        if status:
            _raise_for(status)


_DOUBLES = ffi.typeof("double[]")
FOREST_DTYPES: dict[str, type[np.generic]] = {
    "node_start": np.int64,
    "value_start": np.int64,
    "n_leaves": np.int32,
    "tree_output": np.int32,
    "tree_round": np.int32,
    "n_unassigned": np.int64,
    "feature": np.int32,
    "left": np.int32,
    "right": np.int32,
    "bin": np.uint8,
    "missing_left": np.uint8,
    "leaf_values": np.float64,
}
_FOREST_CTYPES = {
    name: "double *" if dtype is np.float64 else f"{np.dtype(dtype).name}_t *" for name, dtype in FOREST_DTYPES.items()
}


def _binned(bins: NDArray[np.uint8], mapper: BinMapper) -> Any:
    return ffi.new(
        "gmo_binned *",
        {
            "bins": _pointer("uint8_t *", bins),
            "edge_start": _pointer("int64_t *", mapper.edge_start),
            "n_rows": bins.shape[0],
            "n_features": bins.shape[1],
        },
    )


def _target(y: NDArray[Any]) -> Any:
    """Labels are int32 (n,), values float64 (n, d)."""
    if y.dtype == np.int32:
        return ffi.new("gmo_target *", {"labels": _pointer("int32_t *", y), "values": ffi.NULL})
    return ffi.new("gmo_target *", {"labels": ffi.NULL, "values": _pointer("double *", y)})


def _copy(pointer: Any, dtype: type[np.generic], size: int) -> NDArray[Any]:
    if size == 0:
        return np.empty(0, dtype)
    return np.frombuffer(ffi.buffer(pointer, size * np.dtype(dtype).itemsize), dtype).copy()


class Booster:
    """A training run; a context manager that frees the C object at its end.

    Parameters
    ----------
    params : dict
        Fields of ``gmo_params``.
    mapper, bins : BinMapper, uint8 array of shape (n, m)
        Binned training rows.
    y : int32 array of shape (n,) or float64 array of shape (n, d)
        Labels (softmax) or values.
    base_score : float64 array of shape (d,)
    """

    def __init__(
        self,
        params: dict[str, Any],
        mapper: BinMapper,
        bins: NDArray[np.uint8],
        y: NDArray[Any],
        base_score: NDArray[np.float64],
    ) -> None:
        self._mapper = mapper
        self._borrowed: list[Any] = [bins, y]
        self._n_outputs = len(base_score)
        handle = ffi.new("gmo_booster **")
        _raise_for(
            lib.gmo_booster_create(
                ffi.new("gmo_params *", params),
                _binned(bins, mapper),
                _pointer("uint8_t *", mapper.has_missing),
                _target(y),
                _pointer("double *", base_score),
                self._n_outputs,
                handle,
            )
        )
        self._handle = handle[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        lib.gmo_booster_free(self._handle)
        self._handle = ffi.NULL

    def validate(self, bins: NDArray[np.uint8], y: NDArray[Any]) -> None:
        """Evaluates these rows after every round."""
        self._borrowed += [bins, y]
        _raise_for(lib.gmo_booster_validate(self._handle, _binned(bins, self._mapper), _target(y)))

    def boost(self, n_rounds: int) -> bool:
        """Runs up to ``n_rounds`` rounds; True once early stopping has ended training."""
        finished = ffi.new("int32_t *")
        _raise_for(lib.gmo_booster_boost(self._handle, n_rounds, finished))
        return bool(finished[0])

    def forest(self) -> Forest:
        """A copy of the trees so far."""
        view = ffi.new("gmo_forest *")
        lib.gmo_booster_forest(self._handle, view)
        n_trees = view.n_trees
        n_nodes = view.node_start[n_trees] if n_trees else 0
        n_values = view.value_start[n_trees] if n_trees else 0
        sizes = {
            "node_start": n_trees + 1,
            "value_start": n_trees + 1,
            "leaf_values": n_values,
            **dict.fromkeys(("feature", "left", "right", "bin", "missing_left"), n_nodes),
        }
        arrays = {
            name: _copy(getattr(view, name), dtype, sizes.get(name, n_trees)) for name, dtype in FOREST_DTYPES.items()
        }
        return Forest(n_outputs=self._n_outputs, **arrays)

    def best_rounds(self) -> NDArray[np.int64]:
        """Number of rounds of the best model, (n_tracks,)."""
        progress = self._progress()
        return _copy(progress.best_round, np.int64, progress.n_tracks)

    def history(self) -> NDArray[np.float64]:
        """The validation metric, (n_rounds, n_tracks); NaN after a track stopped."""
        progress = self._progress()
        shape = (progress.n_rounds, progress.n_tracks)
        return _copy(progress.history, np.float64, shape[0] * shape[1]).reshape(shape)

    def profile(self) -> dict[str, NDArray[np.float64]]:
        """Seconds of every round by part, and the entries its histograms added: ``gmo_progress.profile`` by column."""
        progress = self._progress()
        shape = (progress.n_rounds, lib.GMO_PROFILE_COLUMNS)
        table = _copy(progress.profile, np.float64, shape[0] * shape[1]).reshape(shape)
        return {name: table[:, column] for name, column in PROFILE_COLUMNS.items()}

    def last_metric(self) -> float:
        """Mean over the tracks that go on of the validation metric after the last round."""
        return float(np.nanmean(self.history()[-1]))

    def _progress(self) -> Any:
        progress = ffi.new("gmo_progress *")
        lib.gmo_booster_progress(self._handle, progress)
        return progress
