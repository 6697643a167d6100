"""The pairs of Rank-SVM and the values of its primal and dual (Elisseeff & Weston 2001, Knowl 1), nothing exploited.

A pair is (i, k, j): sample, relevant label, irrelevant label; its bound is C_i = s_i C / (|Y_i| |Ȳ_i|) with the
sample's weight s_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """All pairs of a 0/1 indicator, one a row: sample, relevant label, irrelevant label, and the bound of its alpha."""

    sample: IntArray
    relevant: IntArray
    irrelevant: IntArray
    bound: FloatArray
    shape: tuple[int, int]

    def __len__(self) -> int:
        return len(self.sample)

    def coefficients(self, alpha: FloatArray) -> FloatArray:
        """A (n, Q): a sample's alphas added where its label is relevant, subtracted where it is irrelevant."""
        A = np.zeros(self.shape)
        np.add.at(A, (self.sample, self.relevant), alpha)
        np.add.at(A, (self.sample, self.irrelevant), -alpha)
        return A

    def differences(self, scores: FloatArray) -> FloatArray:
        """Score of the relevant label less that of the irrelevant one."""
        return np.asarray(scores[self.sample, self.relevant] - scores[self.sample, self.irrelevant])


def all_pairs(indicator: NDArray[np.integer], C: float, weight: FloatArray | None = None) -> Pairs:
    """List the pairs; a sample of weight 0 has none, nor has one with an empty or full label set."""
    n, q = indicator.shape
    weight = np.ones(n) if weight is None else weight
    rows = [
        (i, k, j, weight[i] * C / (indicator[i].sum() * (q - indicator[i].sum())))
        for i in range(n)
        if weight[i] > 0
        for k in range(q)
        for j in range(q)
        if indicator[i, k] and not indicator[i, j]
    ]
    if not rows:
        empty = np.zeros(0, dtype=np.int64)
        return Pairs(empty, empty, empty, np.zeros(0), (n, q))
    i, k, j, bound = zip(*rows, strict=True)
    return Pairs(np.array(i), np.array(k), np.array(j), np.array(bound), (n, q))


def dual_value(K: FloatArray, pairs: Pairs, alpha: FloatArray) -> float:
    """Sum of alpha less a quarter of the sum over labels of A_k' K A_k."""
    A = pairs.coefficients(alpha)
    return float(alpha.sum() - 0.25 * np.einsum("ik,ij,jk->", A, K, A))


def primal_value(squared_norm: float, scores: FloatArray, pairs: Pairs) -> float:
    """Sum of |w_k|² plus the weighted hinge losses; without bounds, of the scores divided by their least margin."""
    margins = pairs.differences(scores)
    if np.isinf(pairs.bound).any():
        least = float(np.min(margins))
        return squared_norm / least**2 if least > 0 else np.inf
    return squared_norm + float(pairs.bound @ np.maximum(0.0, 1.0 - margins))
