"""From label scores to label sets: a threshold learned from the scores, or a predictor of the set's size.

Source: Elisseeff & Weston, A kernel method for multi-labelled classification (NeurIPS 2001), sections 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.validation import has_fit_parameter

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Scores are sums over training rows; directions in which they vary less than this, relative to the widest one, are
# rounding (those of Rank-SVM add up to a constant).
_RANK_TOLERANCE = 1e-9


class LabelSetRule(Protocol):
    """Chooses a set of labels."""

    def predict(self, scores: FloatArray, X: Any) -> BoolArray:
        """Which labels are in the set, (n, n_labels), by scores (n, n_labels) and rows X (n, m)."""


@dataclass(frozen=True)
class ThresholdRule:
    """Labels whose score is above t(x) = coef . r(x) + intercept.

    Attributes
    ----------
    coef : float64 array of shape (n_labels,)
    intercept : float
    """

    coef: FloatArray
    intercept: float

    def predict(self, scores: FloatArray, X: Any) -> BoolArray:
        thresholds = scores @ self.coef + self.intercept
        return np.asarray(scores > thresholds[:, None])


@dataclass(frozen=True)
class SizeRule:
    """As many of the best labels as the estimator predicts from X; of equal scores the lower column first.

    Attributes
    ----------
    estimator : fitted estimator
        A regressor's answer is rounded, and every answer is clipped to 0 .. n_labels.
    """

    estimator: Any

    def predict(self, scores: FloatArray, X: Any) -> BoolArray:
        sizes = np.asarray(self.estimator.predict(X))
        is_real = sizes.dtype.kind in "biuf"
        if not is_real or sizes.shape != (len(scores),) or not np.isfinite(sizes).all():
            raise ValueError(
                f"size_estimator must predict a finite number for each row, shape ({len(scores)},); its answer has "
                f"type {sizes.dtype}, shape {sizes.shape}" + (" and NaN or infinite values." if is_real else ".")
            )
        return best_labels(scores, np.clip(np.rint(sizes), 0, scores.shape[1]))


def best_labels(scores: FloatArray, sizes: NDArray[Any]) -> BoolArray:
    """The ``sizes[i]`` labels of the largest scores in row i; of equal scores the lower column first."""
    order = np.argsort(-scores, axis=1, kind="stable")
    chosen = np.empty(scores.shape, bool)
    np.put_along_axis(chosen, order, np.arange(scores.shape[1]) < np.asarray(sizes)[:, None], axis=1)
    return chosen


def best_thresholds(scores: FloatArray, indicator: NDArray[np.uint8]) -> FloatArray:
    """The threshold t of each row that minimises |{k in Y: r_k <= t}| + |{k not in Y: r_k >= t}|.

    The minimum is reached between two neighbouring distinct scores, or beyond one end. t is the middle of that segment;
    of several segments with the same count the first (lowest) is taken. Beyond an end (always so for empty and full
    sets whose scores are not all equal, for other sets where the ranking is poor) the segment has no middle: t then
    lies half the mean gap between neighbouring scores outside, or 1/2 where all scores are equal.

    Parameters
    ----------
    scores : float64 array of shape (n, n_labels)
    indicator : array of 0 and 1 of shape (n, n_labels)

    Returns
    -------
    thresholds : float64 array of shape (n,)
    """
    n, n_labels = scores.shape
    order = np.argsort(scores, axis=1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=1)
    relevant = np.take_along_axis(indicator, order, axis=1).astype(np.int64)
    # With j labels at or below t: the relevant of them, and the irrelevant of the others, are wrong.
    missed = np.pad(np.cumsum(relevant, axis=1), ((0, 0), (1, 0)))
    added = np.pad(np.cumsum((1 - relevant)[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    errors = missed + added
    errors[:, 1:-1][ordered[:, :-1] == ordered[:, 1:]] = n_labels + 1  # no t between equal scores
    first = errors.argmin(axis=1)

    margin = np.where(ordered[:, -1] > ordered[:, 0], (ordered[:, -1] - ordered[:, 0]) / (2 * (n_labels - 1)), 0.5)
    ends = np.column_stack([ordered[:, 0] - 2 * margin, ordered, ordered[:, -1] + 2 * margin])
    rows = np.arange(n)
    return np.asarray(0.5 * ends[rows, first] + 0.5 * ends[rows, first + 1])


def fit_threshold_rule(
    scores: FloatArray, indicator: NDArray[np.uint8], sample_weight: FloatArray | None
) -> ThresholdRule:
    """Linear least squares from the scores of the training rows to their best thresholds.

    Where scores depend on one another, the solution of least norm is taken.
    """
    targets = best_thresholds(scores, indicator)
    weight = np.ones(len(scores)) if sample_weight is None else sample_weight / float(np.max(sample_weight))
    center = np.average(scores, axis=0, weights=weight)
    middle = float(np.average(targets, weights=weight))
    root = np.sqrt(weight)
    coef = np.linalg.lstsq((scores - center) * root[:, None], (targets - middle) * root, rcond=_RANK_TOLERANCE)[0]
    return ThresholdRule(np.asarray(coef), middle - float(center @ coef))


def fit_size_rule(estimator: Any, X: Any, sizes: NDArray[np.int64], sample_weight: FloatArray | None) -> SizeRule:
    """A clone of ``estimator`` trained on the sizes (n,) of the label sets; where all are equal, that constant.

    Raises
    ------
    ValueError
        If there are weights that the estimator cannot take.
    """
    if (sizes == sizes[0]).all():
        return SizeRule(DummyClassifier(strategy="most_frequent").fit(X, sizes))
    fitted = clone(estimator)
    if sample_weight is None:
        return SizeRule(fitted.fit(X, sizes))
    if not has_fit_parameter(fitted, "sample_weight"):
        raise ValueError(f"size_estimator takes no sample_weight: {fitted!r}. Fit without weights, or choose another.")
    return SizeRule(fitted.fit(X, sizes, sample_weight=sample_weight))
