"""Scores of raw predictions; every function takes the truth and raw scores of shape (n, n_outputs).

But for `hamming_loss`, which takes label sets. The scores of labels are those of Elisseeff and Weston (2001), section
2, and of scikit-learn, each the mean over rows of what a row loses. A tie between a relevant and an irrelevant label is
a fault. A row without labels, or with all of them, has no pair of labels to order: where a formula would divide by zero
it is a row without fault.
"""

from collections.abc import Callable, Iterator
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


def label_ranking_loss(indicator: Array, scores: Array) -> float:
    """Share of the pairs of a relevant and an irrelevant label of which the relevant does not score higher.

    `indicator` is 0/1, shape (n, n_labels). A row without labels, or with all of them, has no pair and counts as 0.
    """
    total = 0.0
    for relevant, above, relevant_above in _ranks(indicator, scores):
        wrong = np.sum((above - relevant_above) * relevant, axis=1)
        n_relevant = relevant.sum(axis=1)
        pairs = n_relevant * (relevant.shape[1] - n_relevant)
        total += np.sum(wrong / np.maximum(pairs, 1))
    return float(total / len(indicator))


def average_precision(indicator: Array, scores: Array) -> float:
    """Share of relevant labels among those that score as high as a relevant label or higher, averaged over these.

    The precision of Elisseeff and Weston. `indicator` is 0/1, shape (n, n_labels). A row without labels counts as 1.
    """
    total = 0.0
    for relevant, above, relevant_above in _ranks(indicator, scores):
        n_relevant = relevant.sum(axis=1)
        precisions = np.sum(relevant_above / above * relevant, axis=1)
        total += np.sum(np.where(n_relevant > 0, precisions / np.maximum(n_relevant, 1), 1.0))
    return float(total / len(indicator))


def one_error(indicator: Array, scores: Array) -> float:
    """Share of rows of which not every highest-scored label is relevant, so that a tie at the top is no way out.

    `indicator` is 0/1, shape (n, n_labels). A row without labels is an error, one with all labels is none.
    """
    scores = np.asarray(scores)
    irrelevant_on_top = (scores == scores.max(axis=1, keepdims=True)) & (np.asarray(indicator) == 0)
    return float(np.mean(irrelevant_on_top.any(axis=1)))


def hamming_loss(indicator: Array, predicted: Array) -> float:
    """Share of the cells of two 0/1 arrays (n, n_labels) that differ: the true and the predicted label sets.

    Raises
    ------
    ValueError
        If `predicted` are no label sets, but scores for instance.
    """
    indicator, predicted = np.asarray(indicator), np.asarray(predicted)
    if predicted.shape != indicator.shape or not np.all((predicted == 0) | (predicted == 1)):
        raise ValueError(
            f"expected predicted label sets, 0/1 of shape {indicator.shape}; got {predicted.dtype} of shape "
            f"{predicted.shape} from {predicted.min(initial=0)} to {predicted.max(initial=0)}"
        )
    return float(np.mean(indicator != predicted))


_BLOCK_CELLS = 1 << 20
"""Cells ranked at once: what is needed beside the arrays stays under 100 MB whatever their length."""


def _ranks(indicator: Array, scores: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Count, for every label of a row, the labels that score as high or higher, and the relevant ones among these.

    Yields
    ------
    relevant, above, relevant_above : ndarray of int64, shape (rows of a block, n_labels)
        Columns are in rising order of each row's scores.
    """
    n, n_labels = scores.shape
    size = max(1, _BLOCK_CELLS // n_labels)
    for start in range(0, n, size):
        block = scores[start : start + size]
        order = np.argsort(block, axis=1)
        ordered = np.take_along_axis(block, order, axis=1)
        relevant = np.take_along_axis(indicator[start : start + size], order, axis=1).astype(np.int64)
        first = np.zeros_like(order)  # where the run of equal scores begins
        first[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], np.arange(1, n_labels), 0)
        np.maximum.accumulate(first, axis=1, out=first)
        from_here = np.cumsum(relevant[:, ::-1], axis=1)[:, ::-1]
        yield relevant, n_labels - first, np.take_along_axis(from_here, first, axis=1)


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
    "label_ranking_loss": Metric(label_ranking_loss, greater_is_better=False),
    "average_precision": Metric(average_precision, greater_is_better=True),
    "one_error": Metric(one_error, greater_is_better=False),
    "hamming_loss": Metric(hamming_loss, greater_is_better=False),
}

TASK_METRICS = {
    "multiclass": ("accuracy", "log_loss"),
    "multilabel": ("top1_accuracy", "rmse", "label_ranking_loss", "average_precision", "one_error"),
    "regression": ("rmse", "mae"),
}
"""What is recorded of raw scores for each task; the first is the score that tables report."""

SET_METRICS = {"multilabel": ("hamming_loss",)}
"""What is recorded besides of predicted label sets."""


def reported_metric(task: str) -> str:
    """Name of the score that tables report for `task`."""
    return TASK_METRICS[task][0]


def score_all(task: str, truth: Array, scores: Array, predicted: Array | None = None) -> dict[str, float]:
    """All scores recorded for `task`.

    Parameters
    ----------
    task : str
    truth : ndarray
        Class numbers (n,), 0/1 labels or targets (n, n_outputs).
    scores : ndarray of shape (n, n_outputs)
        Raw scores.
    predicted : ndarray of shape (n, n_outputs), optional
        Label sets, 0/1, of a model that predicts such; without them there is no `hamming_loss`.

    Raises
    ------
    ValueError
        If a score is not finite: the model diverged, or predicted NaN. If `predicted` are no label sets, or the task
        has none.
    """
    if predicted is not None and task not in SET_METRICS:
        raise ValueError(f"label sets were predicted for the task {task!r}; expected them for {', '.join(SET_METRICS)}")
    result = {}
    if np.all(np.isfinite(scores)):
        result = {name: METRICS[name].function(truth, scores) for name in TASK_METRICS[task]}
    if not result or not np.all(np.isfinite(list(result.values()))):
        raise ValueError(
            f"predictions or scores are not finite {result or ''}; expected finite raw scores. "
            "The model diverged: check its learning rate and the data."
        )
    if predicted is not None:
        result |= {name: METRICS[name].function(truth, predicted) for name in SET_METRICS[task]}
    return result
