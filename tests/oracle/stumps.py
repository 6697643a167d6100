"""AdaBoost.MH with real-valued decision stumps, in plain NumPy.

Equations of Schapire & Singer, BoosTexter (2000), real AdaBoost.MH: every feature, threshold, side and label is
looked at on its own. Sums are correctly rounded (`math.fsum`), so that they do not depend on any order.
"""

import math
from dataclasses import dataclass

import numpy as np

from tests.oracle.binning import FloatArray

# Two stumps that rounding alone tells apart have the same Z: the first of them is taken.
TIE = 1e-13


@dataclass(frozen=True)
class Stump:
    """A stump; rows with x[feature] > threshold are on side 1. feature is -1 if none has two values."""

    feature: int
    threshold: float
    leaf_scores: FloatArray  # (2, n_labels)
    normalizer: float  # sum of the weights after the round, before it is divided out


def side_weights(D: FloatArray, Y: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """W+ and W- of every label over some rows."""
    plus = [math.fsum(D[rows & (Y[:, label] > 0), label]) for label in range(Y.shape[1])]
    minus = [math.fsum(D[rows & (Y[:, label] < 0), label]) for label in range(Y.shape[1])]
    return np.array(plus), np.array(minus)


def split_value(D: FloatArray, Y: FloatArray, right: FloatArray) -> float:
    """Z = 2 sum_j sum_l sqrt(W+ W-)."""
    sides = [side_weights(D, Y, side) for side in (~right, right)]
    return 2 * math.fsum(math.sqrt(p * m) for plus, minus in sides for p, m in zip(plus, minus, strict=True))


def thresholds(x: FloatArray) -> FloatArray:
    """Midpoints of neighbouring distinct values."""
    values = np.unique(x)
    return (values[:-1] + values[1:]) / 2


def best_split(X: FloatArray, D: FloatArray, Y: FloatArray) -> tuple[int, float]:
    """Feature and threshold of the least Z; of equal ones the lowest feature, then the lowest threshold."""
    feature, threshold, least = -1, math.inf, math.inf
    for f in range(X.shape[1]):
        for t in thresholds(X[:, f]):
            value = split_value(D, Y, X[:, f] > t)
            if value < least - TIE:
                feature, threshold, least = f, float(t), value
    return feature, threshold


def one_round(X: FloatArray, D: FloatArray, Y: FloatArray, smoothing: float) -> tuple[Stump, FloatArray]:
    """The stump of a round, and the weights after it."""
    feature, threshold = best_split(X, D, Y)
    right = X[:, feature] > threshold if feature >= 0 else np.zeros(len(X), bool)
    sides = [side_weights(D, Y, side) for side in (~right, right)]
    if feature < 0:
        sides[1] = sides[0]
    c = np.array([np.log((plus + smoothing) / (minus + smoothing)) / 2 for plus, minus in sides])
    after = D * np.exp(-Y * c[right.astype(int)])
    normalizer = math.fsum(after.ravel())
    return Stump(feature, threshold, c, normalizer), after / normalizer


def boost(
    X: FloatArray, indicator: FloatArray, n_rounds: int, smoothing: float, weight: FloatArray | None = None
) -> list[Stump]:
    """Stumps of all rounds."""
    Y = 2.0 * indicator - 1
    D = np.ones(Y.shape) if weight is None else np.repeat(np.asarray(weight, float)[:, None], Y.shape[1], axis=1)
    D = D / math.fsum(D.ravel())
    stumps = []
    for _ in range(n_rounds):
        stump, D = one_round(X, D, Y, smoothing)
        stumps.append(stump)
    return stumps
