"""Rank-SVM (Elisseeff & Weston 2001, Knowl 1) as a plain quadratic program, solved by Clarabel's interior points.

Values are evaluated anew at the point that the solver returns.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tests.oracle.label_pairs import FloatArray, all_pairs, dual_value, primal_value


@dataclass(frozen=True)
class Solution:
    """An optimal point.

    ``primal`` and ``dual`` enclose the optimum.  ``alpha`` is one a pair, ``A`` (n, Q) its sums, ``b`` (Q,) has mean
    zero, ``scores`` (n, Q) are those of the training samples.
    """

    primal: float
    dual: float
    alpha: FloatArray
    A: FloatArray
    b: FloatArray
    scores: FloatArray


def solve_dual(
    K: FloatArray, indicator: NDArray[np.integer], C: float, weight: FloatArray | None = None, scale: float = 1.0
) -> Solution:
    """Solve the dual through a positive semi-definite kernel matrix (n, n); C may be infinite.

    Variables are alpha, then A label by label, tied to alpha by equations: a quadratic form with one block a label.
    Clarabel sees ``K / scale`` and, so that the problem is the same, ``C * scale``.
    """
    pairs = all_pairs(indicator, C * scale, weight)
    n, q = indicator.shape
    m = len(pairs)
    form = sparse.coo_array(K / (2 * scale))
    P = sparse.block_diag([sparse.coo_array((m, m)), *[form] * q])
    cost = np.concatenate([-np.ones(m), np.zeros(n * q)])
    sums = sparse.coo_array(
        (
            np.concatenate([np.ones(m), -np.ones(m)]),
            (
                np.concatenate([pairs.relevant * n + pairs.sample, pairs.irrelevant * n + pairs.sample]),
                np.concatenate([np.arange(m), np.arange(m)]),
            ),
        ),
        shape=(n * q, m),
    )
    tied = sparse.hstack([-sums, sparse.eye_array(n * q)])
    balanced = sparse.hstack([sparse.coo_array((q, m)), sparse.kron(sparse.eye_array(q), np.ones((1, n)))])
    lower = sparse.hstack([-sparse.eye_array(m), sparse.coo_array((m, n * q))])
    rows, limits = [tied, balanced, lower], [np.zeros(n * q + q), np.zeros(m)]
    if np.isfinite(C):
        rows, limits = [*rows, -lower], [*limits, pairs.bound]
    x, z = _clarabel(P, cost, sparse.vstack(rows), np.concatenate(limits), n_equal=n * q + q)
    alpha = np.clip(x[:m], 0.0, pairs.bound)
    b = z[n * q : n * q + q]  # multipliers of the balance are the biases
    A = pairs.coefficients(alpha)
    scores = K @ A / (2 * scale) + b
    norm = 0.25 * float(np.einsum("ik,ij,jk->", A, K / scale, A))
    # Scaling K by 1/scale and C by scale scales the objective, alpha and A; scores stay.
    return Solution(
        primal=primal_value(norm, scores, pairs) / scale,
        dual=dual_value(K / scale, pairs, alpha) / scale,
        alpha=alpha / scale,
        A=A / scale,
        b=b - b.mean(),
        scores=scores - b.mean(),
    )


def solve_primal(X: FloatArray, indicator: NDArray[np.integer], C: float, weight: FloatArray | None = None) -> Solution:
    """Solve the primal for explicit features (n, d): variables are w label by label, b, and a slack a pair."""
    pairs = all_pairs(indicator, C, weight)
    d, q = X.shape[1], indicator.shape[1]
    m = len(pairs)
    differences = np.zeros((m, q))
    differences[np.arange(m), pairs.relevant] = 1.0
    differences[np.arange(m), pairs.irrelevant] = -1.0
    features = (differences[:, :, np.newaxis] * X[pairs.sample][:, np.newaxis, :]).reshape(m, q * d)
    ranked = sparse.coo_array(-np.hstack([features, differences]))
    quadratic = np.concatenate([np.full(q * d, 2.0), np.zeros(q)])
    cost, constraints, limits = np.zeros(q * d + q), ranked, -np.ones(m)
    if np.isfinite(C):
        slack = -sparse.eye_array(m)
        quadratic, cost = np.concatenate([quadratic, np.zeros(m)]), np.concatenate([cost, pairs.bound])
        constraints = sparse.block_array([[ranked, slack], [None, slack]])
        limits = np.concatenate([limits, np.zeros(m)])
    P = sparse.diags_array(quadratic)
    x, z = _clarabel(P, cost, constraints, limits, n_equal=0)
    W, b = x[: q * d].reshape(q, d), x[q * d : q * d + q]
    alpha = np.clip(z[:m], 0.0, pairs.bound)
    scores = X @ W.T + b
    return Solution(
        primal=primal_value(float((W**2).sum()), scores, pairs),
        dual=dual_value(X @ X.T, pairs, alpha),
        alpha=alpha,
        A=pairs.coefficients(alpha),
        b=b - b.mean(),
        scores=scores - b.mean(),
    )


class NoSolution(ArithmeticError):
    """Clarabel found no optimum: the hard margin's problem may have none."""


def _clarabel(
    P: sparse.sparray, cost: FloatArray, constraints: sparse.sparray, limits: FloatArray, n_equal: int
) -> tuple[FloatArray, FloatArray]:
    """Minimise ½ x'Px + cost'x where the first rows of ``constraints x`` equal their limits, the others stay below."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    settings.max_iter = 500
    cones = [clarabel.ZeroConeT(n_equal), clarabel.NonnegativeConeT(len(limits) - n_equal)]
    upper, rows = sparse.csc_matrix(sparse.triu(P)), sparse.csc_matrix(constraints)  # it takes no arrays
    found = clarabel.DefaultSolver(upper, cost, rows, limits, cones, settings).solve()
    if str(found.status) != "Solved":
        raise NoSolution(f"Clarabel says {found.status}")
    return np.array(found.x), np.array(found.z)
