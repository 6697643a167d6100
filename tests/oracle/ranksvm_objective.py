"""Rank-SVM's primal and dual, one pair at a time (Elisseeff & Weston 2001, section 3)."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import linprog

from tests.oracle.binning import FloatArray, IntArray


def pairs_of(relevant: IntArray) -> list[tuple[int, int]]:
    """Relevant against irrelevant labels of a sample."""
    return list(product(np.flatnonzero(relevant == 1), np.flatnonzero(relevant == 0)))


def norm(A: FloatArray, gram: FloatArray) -> float:
    """sum_k |w_k|^2 for w_k = 1/2 sum_i A_ki phi(x_i)."""
    return float(sum(0.25 * row @ gram @ row for row in A))


def slacks(scores: FloatArray, indicator: IntArray) -> list[list[float]]:
    """The slacks of every sample's pairs."""
    return [
        [max(0.0, 1 - (row[k] - row[j])) for k, j in pairs_of(relevant)]
        for row, relevant in zip(scores, indicator, strict=True)
    ]


def primal(A: FloatArray, b: FloatArray, gram: FloatArray, indicator: IntArray, C: float) -> float:
    """The objective of the scores that A and b make; with C = inf infinite unless all slacks are 0."""
    scores = 0.5 * gram @ A.T + b
    loss = sum(float(np.mean(xi)) for xi in slacks(scores, indicator) if xi)
    if np.isinf(C):
        return norm(A, gram) if loss <= 1e-12 else np.inf
    return norm(A, gram) + C * loss


def dual(A: FloatArray, gram: FloatArray, indicator: IntArray) -> float:
    """The dual objective of sums of multipliers that can be made: sum of alpha - sum_k |w_k|^2."""
    return float((A.T * indicator).sum()) - norm(A, gram)


def can_be_made(a: FloatArray, relevant: IntArray, cost: float, tolerance: float = 1e-9) -> bool:
    """Whether multipliers 0 <= alpha_kl <= cost have the sums a: a linear program."""
    pairs = pairs_of(relevant)
    if not pairs:
        return bool(np.abs(a).max() <= tolerance)
    signs = np.zeros((len(a), len(pairs)))
    for p, (k, j) in enumerate(pairs):
        signs[k, p], signs[j, p] = 1, -1
    # The least largest error of a sum.
    n = len(pairs)
    constraints = np.block([[signs, -np.ones((len(a), 1))], [-signs, -np.ones((len(a), 1))]])
    limits = np.concatenate([a, -a])
    bounds = [(0, None if np.isinf(cost) else cost)] * n + [(0, None)]
    found = linprog(np.r_[np.zeros(n), 1.0], A_ub=constraints, b_ub=limits, bounds=bounds)
    return bool(found.fun <= tolerance * max(1.0, float(np.abs(a).max())))
