"""A trained model: trees, bins and what is known of their training. Estimators hold one; persistence stores it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbdtmo_core._lib import BinMapper, Forest, Predictor


@dataclass(frozen=True)
class Model:
    """What training leaves.

    Attributes
    ----------
    loss : {"squared_error", "softmax", "sigmoid"}
    target_ndim : int
        1 or 2, as the training targets were.
    n_train, n_rounds : int
        Training rows, boosting rounds.
    base_score : float64 array of shape (n_outputs,)
    best_rounds : int64 array of shape (n_tracks,)
        Rounds that prediction uses; one for all outputs, or one an output where each stops on its own.
    history : float64 array of shape (n_rounds, n_tracks)
        Validation metric; (0, n_tracks) without validation rows.
    metric : str
    seconds : dict of str to float
        Time of "binning" and "training".
    classes : array or None
        Class labels of a softmax model.
    """

    loss: str
    target_ndim: int
    n_train: int
    n_rounds: int
    mapper: BinMapper
    forest: Forest
    base_score: NDArray[np.float64]
    best_rounds: NDArray[np.int64]
    history: NDArray[np.float64]
    metric: str
    seconds: dict[str, float]
    classes: NDArray[Any] | None = None

    def _rounds_per_tree(self) -> NDArray[np.int64]:
        """How many rounds count for each tree, (n_trees,)."""
        if len(self.best_rounds) == 1:
            return np.broadcast_to(self.best_rounds, self.forest.tree_round.shape)
        return self.best_rounds[self.forest.tree_output]

    @cached_property
    def used_trees(self) -> NDArray[np.int64]:
        """The trees that prediction adds, in order."""
        return np.flatnonzero(self.forest.tree_round < self._rounds_per_tree())

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.forest, self.mapper, self.base_score, self.used_trees)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: the cached predictor holds addresses, and is made again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def scores(self, X: NDArray[Any], *, threads: int) -> NDArray[np.float64]:
        """Raw scores (n, n_outputs) of ``X`` (n, m) at the best round."""
        scores = np.empty((len(X), len(self.base_score)))
        predictor = self._predictor
        predictor.add(X, scores, 0, predictor.n_trees, threads=threads)
        return scores

    def staged_scores(self, X: NDArray[Any], *, threads: int) -> Iterator[NDArray[np.float64]]:
        """Raw scores after each round up to the (latest) best one; each item is an array of its own."""
        X = np.ascontiguousarray(X)  # once, instead of a block at a time in every stage
        scores = np.empty((len(X), len(self.base_score)))
        rounds = np.arange(int(np.max(self.best_rounds)))
        ends = np.searchsorted(self.forest.tree_round[self.used_trees], rounds, side="right").tolist()
        for first, last in itertools.pairwise([0, *ends]):
            self._predictor.add(X, scores, first, last, threads=threads)
            yield scores.copy()
