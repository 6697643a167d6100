"""Scores after each round, of all metrics of a task: what the early-stopping metric alone does not show."""

from datasets.base import Dataset, Split
from repro.metrics import score_all
from repro.models.base import Model
from repro.protocol import Protocol, rows


def staged_curves(model: Model, data: Dataset, split: Split, protocol: Protocol) -> dict[str, list[float]]:
    """Score a fitted model on its training and test rows after each round up to the best.

    Returns
    -------
    dict of str to list of float
        ``train.<metric>`` and ``test.<metric>`` for every metric of the task; see `repro.metrics.score_all`. Where each
        output stops on its own, outputs that have stopped stay as they are.
    """
    curves: dict[str, list[float]] = {}
    for part, numbers in (("train", rows(split, protocol.fit_rows)), ("test", rows(split, "test"))):
        truth = data.y[numbers]
        for scores in model.staged_scores(data.X[numbers]):
            for metric, value in score_all(data.task, truth, scores).items():
                curves.setdefault(f"{part}.{metric}", []).append(value)
    return curves
