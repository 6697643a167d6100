"""Rank-SVM's primal and dual, one pair at a time (Elisseeff & Weston 2001, section 3)."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import LinearConstraint, linprog, minimize

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
        [max(0.0, 1 - (row[k] - row[l])) for k, l in pairs_of(relevant)]
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
    for p, (k, l) in enumerate(pairs):
        signs[k, p], signs[l, p] = 1, -1
    # The least largest error of a sum.
    n = len(pairs)
    constraints = np.block([[signs, -np.ones((len(a), 1))], [-signs, -np.ones((len(a), 1))]])
    limits = np.concatenate([a, -a])
    bounds = [(0, None if np.isinf(cost) else cost)] * n + [(0, None)]
    found = linprog(np.r_[np.zeros(n), 1.0], A_ub=constraints, b_ub=limits, bounds=bounds)
    return bool(found.fun <= tolerance * max(1.0, float(np.abs(a).max())))


def nearest_step(t: FloatArray, relevant: IntArray, cost: float, kappa: float) -> FloatArray:
    """The a of one sample that minimises sum_k kappa / 2 a_k^2 + t_k a_k, over its multipliers, by a general solver."""
    pairs = pairs_of(relevant)
    signs = np.zeros((len(t), len(pairs)))
    for p, (k, l) in enumerate(pairs):
        signs[k, p], signs[l, p] = 1, -1

    def value(alpha: FloatArray) -> float:
        a = signs @ alpha
        return float(0.5 * kappa * a @ a + t @ a)

    def slope(alpha: FloatArray) -> FloatArray:
        return np.asarray(signs.T @ (kappa * (signs @ alpha) + t))

    bounds = [(0, None if np.isinf(cost) else cost)] * len(pairs)
    options = {"maxiter": 20_000, "ftol": 0.0, "gtol": 1e-12, "maxfun": 100_000}
    found = minimize(value, np.zeros(len(pairs)), jac=slope, bounds=bounds, method="L-BFGS-B", options=options)
    return np.asarray(signs @ found.x)


def optimum(gram: FloatArray, indicator: IntArray, C: float) -> float:
    """The optimum by a general solver of the dual with one multiplier a pair, for a few samples."""
    n, q = indicator.shape
    pairs = [(i, k, l) for i in range(n) for k, l in pairs_of(indicator[i])]
    sums = np.zeros((n, q, len(pairs)))
    cost = np.empty(len(pairs))
    for p, (i, k, l) in enumerate(pairs):
        sums[i, k, p], sums[i, l, p] = 1, -1
        cost[p] = C / len(pairs_of(indicator[i]))
    hessian = 0.5 * np.einsum("ikp,ij,jkr->pr", sums, gram, sums, optimize=True)
    balance = LinearConstraint(sums.sum(axis=0), 0, 0)
    found = minimize(
        lambda alpha: 0.5 * alpha @ hessian @ alpha - alpha.sum(),
        np.zeros(len(pairs)),
        jac=lambda alpha: hessian @ alpha - 1,
        hess=lambda alpha: hessian,
        bounds=[(0, None if np.isinf(c) else c) for c in cost],
        constraints=[balance],
        method="trust-constr",
        options={"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-12, "maxiter": 5000},
    )
    return float(-found.fun)
