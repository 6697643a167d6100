"""Checks of a model that was read from a file: all that prediction, and the C core above all, takes for granted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbdtmo_core._lib import LOSSES, METRICS, BinMapper, Forest
from gbdtmo_core._model import Model

NO_LEAF = np.iinfo(np.int32).min  # GMO_NO_LEAF of gbdtmo.h


def _require(condition: Any, what: str) -> None:
    if not np.all(condition):
        raise ValueError(f"its {what} do not fit together")


def check_model(model: Model) -> None:
    """Raises ValueError unless every size, index and number of the model is one that training could have left."""
    n_outputs = model.base_score.size
    _require(model.base_score.shape == (n_outputs,) and n_outputs > 0, "base scores")
    _require(np.isfinite(model.base_score), "base scores")
    _check_bins(model.mapper)
    _check_trees(model.forest, n_outputs, model.n_rounds)
    _check_nodes(model.forest, len(model.mapper.has_missing))
    _check_header(model, n_outputs)
    _check_rounds(model, n_outputs)


def _check_bins(mapper: BinMapper) -> None:
    n_features = mapper.has_missing.size
    _require(mapper.has_missing.shape == (n_features,) and n_features > 0, "features")
    start = mapper.edge_start
    _require(start.shape == (n_features + 1,) and start[0] == 0 and start[-1] == mapper.edges.size, "bin edges")
    _require((np.diff(start) >= 0) & (np.diff(start) <= 254), "bin edges")
    _require(mapper.edges.shape == (start[-1],), "bin edges")
    _require(np.isfinite(mapper.edges), "bin edges")
    within = np.ones(max(mapper.edges.size - 1, 0), bool)
    within[start[1:-1][(start[1:-1] > 0) & (start[1:-1] < mapper.edges.size)] - 1] = False  # one feature to the next
    _require(np.diff(mapper.edges)[within] > 0, "bin edges")


def _check_trees(forest: Forest, n_outputs: int, n_rounds: int) -> None:
    n_trees = forest.n_leaves.size
    for name in ("n_leaves", "tree_output", "tree_round", "n_unassigned"):
        _require(getattr(forest, name).shape == (n_trees,), name)
    _require(forest.n_outputs == n_outputs, "outputs")
    _require((forest.tree_output >= -1) & (forest.tree_output < n_outputs), "outputs")
    _require((forest.tree_round >= 0) & (forest.tree_round < n_rounds), "rounds")
    _require(np.diff(forest.tree_round) >= 0, "rounds")
    _require(forest.n_leaves >= 0, "leaves")
    width = np.where(forest.tree_output < 0, n_outputs, 1).astype(np.int64)
    for start, last in ((forest.node_start, forest.feature.size), (forest.value_start, forest.leaf_values.size)):
        _require(start.shape == (n_trees + 1,) and start[0] == 0 and start[-1] == last, "offsets")
        _require(np.diff(start) >= 0, "offsets")
    _require(np.diff(forest.value_start) == forest.n_leaves * width, "offsets")
    _require(forest.leaf_values.shape == (forest.value_start[-1],), "leaf values")
    _require(np.isfinite(forest.leaf_values), "leaf values")


def _check_nodes(forest: Forest, n_features: int) -> None:
    """Every index in range, and children after their parents, so that walks end."""
    n_nodes = forest.feature.size
    for name in ("feature", "left", "right", "bin", "missing_left"):
        _require(getattr(forest, name).shape == (n_nodes,), "nodes")
    _require((forest.feature >= 0) & (forest.feature < n_features), "features")
    sizes = np.diff(forest.node_start)
    tree = np.repeat(np.arange(sizes.size), sizes)
    own, size = np.arange(n_nodes) - forest.node_start[tree], sizes[tree]
    for child in (forest.left.astype(np.int64), forest.right.astype(np.int64)):
        is_leaf = (child < 0) & (-1 - child < forest.n_leaves[tree])
        is_node = (child > own) & (child < size)
        _require(is_leaf | is_node | (child == NO_LEAF), "children")


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _check_header(model: Model, n_outputs: int) -> None:
    _require(model.loss in LOSSES and model.metric in METRICS, "loss and metric")
    _require(_is_count(model.n_train, 1) and _is_count(model.n_rounds, 1), "counts")
    one_dimensional = model.loss == "softmax" or (model.loss == "squared_error" and model.target_ndim == 1)
    _require(model.target_ndim == (1 if one_dimensional else 2), "targets")
    _require(model.loss == "softmax" or not one_dimensional or n_outputs == 1, "targets")
    _require(isinstance(model.seconds, dict), "seconds")
    if model.loss == "softmax":
        _require(model.classes is not None and model.classes.shape == (n_outputs,), "classes")


def _check_rounds(model: Model, n_outputs: int) -> None:
    best: NDArray[np.int64] = model.best_rounds
    _require(best.shape in ((1,), (n_outputs,)), "best rounds")
    _require((best >= 1) & (best <= model.n_rounds), "best rounds")
    _require(best.size == 1 or np.all(model.forest.tree_output >= 0), "best rounds")
    _require(model.history.ndim == 2 and model.history.shape[0] in (0, model.n_rounds), "curves")
    _require(model.history.shape[0] == 0 or model.history.shape[1] == best.size, "curves")
