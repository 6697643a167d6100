"""Scores of raw predictions; every function takes the truth and raw scores of shape (n, n_outputs)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

Array = NDArray[Any]


def accuracy(labels: Array, scores: Array) -> float:
    """Share of rows whose highest-scored class (ties: the lowest) is `labels`, an integer array (n,)."""
    return float(np.mean(np.argmax(scores, axis=1) == labels))


def log_loss(labels: Array, scores: Array) -> float:
    """Mean softmax cross-entropy in nats of the integer `labels` (n,)."""
    log_probabilities = log_softmax(np.asarray(scores, dtype=np.float64), axis=1)
    return float(-np.mean(log_probabilities[np.arange(len(labels)), labels]))


def rmse(targets: Array, scores: Array) -> float:
    """Root of the squared error averaged over all cells of `targets` (n, n_outputs), not output by output."""
    return float(np.sqrt(np.mean(np.square(np.asarray(scores, dtype=np.float64) - targets))))


def mae(targets: Array, scores: Array) -> float:
    """Absolute error averaged over all cells of `targets` (n, n_outputs)."""
    return float(np.mean(np.abs(np.asarray(scores, dtype=np.float64) - targets)))


def top1_accuracy(indicator: Array, scores: Array) -> float:
    """Share of rows whose highest-scored label is one of theirs; a row without labels is a miss."""
    return float(np.mean(indicator[np.arange(len(indicator)), np.argmax(scores, axis=1)] != 0))


@dataclass(frozen=True)
class Metric:
    """A score function and its direction."""

    function: Callable[[Array, Array], float]
    greater_is_better: bool

    def is_better(self, score: float, than: float) -> bool:
        """Whether `score` strictly beats `than`."""
        return score > than if self.greater_is_better else score < than


METRICS = {
    "accuracy": Metric(accuracy, greater_is_better=True),
    "log_loss": Metric(log_loss, greater_is_better=False),
    "rmse": Metric(rmse, greater_is_better=False),
    "mae": Metric(mae, greater_is_better=False),
    "top1_accuracy": Metric(top1_accuracy, greater_is_better=True),
}

TASK_METRICS = {
    "multiclass": ("accuracy", "log_loss"),
    "multilabel": ("top1_accuracy", "rmse"),
    "regression": ("rmse", "mae"),
}
"""What is recorded for each task; the first is the score that tables report."""


def reported_metric(task: str) -> str:
    """Name of the score that tables report for `task`."""
    return TASK_METRICS[task][0]


def score_all(task: str, truth: Array, scores: Array) -> dict[str, float]:
    """All scores recorded for `task`.

    Raises
    ------
    ValueError
        If a score is not finite: the model diverged, or predicted NaN.
    """
    result = {}
    if np.all(np.isfinite(scores)):
        result = {name: METRICS[name].function(truth, scores) for name in TASK_METRICS[task]}
    if not result or not np.all(np.isfinite(list(result.values()))):
        raise ValueError(
            f"predictions or scores are not finite {result or ''}; expected finite raw scores. "
            "The model diverged: check its learning rate and the data."
        )
    return result
