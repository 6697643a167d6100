"""Time to a score: when a model first reaches the best test score of another one's run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.bench.cell import was_busy
from repro.bench.plan import Measured
from repro.metrics import METRICS

PATIENCE = 25
REFERENCE = "lightgbm"


def stopped(curve: Sequence[float], metric: str, patience: int = PATIENCE) -> int:
    """Give the best round (from 1) of a run that stops when `patience` rounds have brought nothing better."""
    better = METRICS[metric].is_better
    best = 0
    for round_, value in enumerate(curve):
        if round_ - best >= patience:
            break
        if better(value, curve[best]):
            best = round_
    return best + 1


def first_reached(curve: Sequence[float], metric: str, goal: float) -> int | None:
    """Give the first round (from 1) whose score is at least as good as `goal`; None if there is none."""
    better = METRICS[metric].is_better
    return next((round_ for round_, value in enumerate(curve, 1) if not better(goal, value)), None)


def score_frame(measured: Measured) -> pd.DataFrame:
    """Compare times to the best test score of LightGBM's run.

    Of several variants a model's is the one with the best validation score within its rounds.

    Returns
    -------
    DataFrame
        One row a group and model: ``group``, ``model``, ``variant``, ``rounds`` trained, ``best_round`` and ``best`` of
        the early-stopped run, ``best_seconds``; ``goal``, and ``round`` and ``seconds`` in which it is first reached
        (NaN if it is not); ``metric``; ``busy``.
    """
    runs: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    for cell, record in measured:
        if cell.work == "score":
            runs.setdefault((cell.group, cell.model), []).append((cell.variant, record))
    chosen = {key: _chosen(variants) for key, variants in runs.items()}
    rows = []
    for (group, model), (variant, record) in chosen.items():
        row = {"group": group, "model": model, "variant": variant, "busy": was_busy(record)}
        row |= _own_best(record["measured"])
        reference = chosen.get((group, REFERENCE))
        goal = _own_best(reference[1]["measured"])["best"] if reference else math.nan
        rows.append(row | {"goal": goal} | _reached(record["measured"], goal))
    return pd.DataFrame(rows)


def _chosen(variants: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[str, Mapping[str, Any]]:
    """Take the variant with the best validation score; the first where nothing can be chosen."""
    if len(variants) == 1:
        return variants[0]
    metric = variants[0][1]["measured"]["metric"]
    best = variants[0]
    for one in variants[1:]:
        if METRICS[metric].is_better(_best_validation(one[1], metric), _best_validation(best[1], metric)):
            best = one
    return best


def _best_validation(record: Mapping[str, Any], metric: str) -> float:
    curve = record["measured"]["validation"]
    return float(curve[stopped(curve, metric) - 1])


def _own_best(measured: Mapping[str, Any]) -> dict[str, Any]:
    best_round = stopped(measured["test"], measured["metric"])
    return {
        "metric": measured["metric"],
        "rounds": len(measured["test"]),
        "best_round": best_round,
        "best": measured["test"][best_round - 1],
        "best_seconds": measured["seconds"][best_round - 1],
    }


def _reached(measured: Mapping[str, Any], goal: float) -> dict[str, Any]:
    round_ = None if np.isnan(goal) else first_reached(measured["test"], measured["metric"], goal)
    return {
        "round": math.nan if round_ is None else round_,
        "seconds": math.nan if round_ is None else measured["seconds"][round_ - 1],
    }


def row_frame(measured: Measured) -> pd.DataFrame:
    """Give the cost of one row through ``predict``: medians over repeats, in microseconds."""
    found = [(record["measured"], was_busy(record)) for cell, record in measured if cell.work == "row"]
    if not found:
        return pd.DataFrame()
    predict = float(np.median([one["predict_microseconds"] for one, _ in found]))
    validation = float(np.median([one["validation_microseconds"] for one, _ in found]))
    return pd.DataFrame(
        [
            {
                "n_trees": found[0][0]["n_trees"],
                "predict": predict,
                "validation": validation,
                "beyond": predict - validation,
                "busy": any(busy for _, busy in found),
            }
        ]
    )
