"""From scores to label sets, one row and one candidate at a time (Elisseeff & Weston 2001, section 4)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tests.oracle.binning import FloatArray, IntArray


def count_errors(scores: FloatArray, relevant: IntArray, t: float) -> int:
    """|{k in Y: r_k <= t}| + |{k not in Y: r_k >= t}|."""
    wrong = 0
    for score, is_relevant in zip(scores, relevant, strict=True):
        wrong += score <= t if is_relevant else score >= t
    return int(wrong)


def best_threshold(scores: FloatArray, relevant: IntArray) -> float:
    """Middle of the first segment where `count_errors` is least.

    Its values change at the scores alone: a point inside each segment stands for it. Beyond an end t is half the mean
    gap between neighbouring scores away, 1/2 where all are equal.
    """
    distinct = sorted(set(scores.tolist()))
    spread = distinct[-1] - distinct[0]
    outside = spread / (len(scores) - 1) / 2 if spread > 0 else 0.5
    candidates = [distinct[0] - outside]
    candidates += [(low + high) / 2 for low, high in pairwise(distinct)]
    candidates += [distinct[-1] + outside]
    errors = [count_errors(scores, relevant, t) for t in candidates]
    assert min(errors) <= min(count_errors(scores, relevant, t) for t in distinct), "a score itself is never better"
    return candidates[errors.index(min(errors))]


def fit_threshold(scores: FloatArray, indicator: IntArray, weight: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients and intercept of weighted least squares, by the pseudo-inverse of the normal equations."""
    targets = np.array([best_threshold(row, relevant) for row, relevant in zip(scores, indicator, strict=True)])
    design = np.column_stack([scores, np.ones(len(scores))])
    solution = np.linalg.pinv(design.T @ (weight[:, None] * design)) @ design.T @ (weight * targets)
    return solution[:-1], float(solution[-1])


def best_labels(scores: FloatArray, size: int) -> IntArray:
    """The ``size`` best labels of one row; of equal scores the lower column."""
    chosen = np.zeros(len(scores), np.int64)
    for _ in range(size):
        left = [column for column in range(len(scores)) if not chosen[column]]
        chosen[max(left, key=lambda column: (scores[column], -column))] = 1
    return chosen
