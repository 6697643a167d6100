"""Frank-Wolfe for the dual of Rank-SVM with a linear program a step, as Rank-SVM is usually implemented.

The polytope is 0 ≤ α ≤ C_i with balanced labels.  Each step maximises the linearised dual over it (HiGHS) and goes
towards that vertex as far as pays (exact line search).  The linear program also tells the gap: no feasible point can be
better by more than the linearised gain.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from tests.oracle.label_pairs import FloatArray, Pairs, dual_value


@dataclass(frozen=True)
class Ascent:
    """Where Frank-Wolfe ended; ``gaps`` are the Frank-Wolfe gaps of the points before each step."""

    alpha: FloatArray
    A: FloatArray
    dual: float
    gap: float
    gaps: list[float]

    @property
    def relative_gap(self) -> float:
        """The gap over the largest value that the optimum can have."""
        return self.gap / (self.dual + self.gap) if self.dual + self.gap > 0 else 0.0


def ascend(
    K: FloatArray, pairs: Pairs, *, tol: float = 1e-3, max_iter: int = 1000, max_seconds: float = np.inf
) -> Ascent:
    """Maximise the dual of a finite C until the relative gap is at most ``tol``, or for so many steps or seconds."""
    if np.isinf(pairs.bound).any():
        raise ValueError("the polytope of the hard margin is unbounded: a linear program over it has no vertex")
    started = time.perf_counter()
    balance = _balance(pairs)
    alpha = np.zeros(len(pairs))
    gaps: list[float] = []
    while True:
        A = pairs.coefficients(alpha)
        gradient = 1.0 - pairs.differences(K @ A / 2)
        vertex = _best_vertex(gradient, balance, pairs.bound)
        direction = vertex - alpha
        gaps.append(max(0.0, float(gradient @ direction)))
        found = Ascent(alpha, A, dual_value(K, pairs, alpha), gaps[-1], gaps)
        done = found.relative_gap <= tol or len(gaps) > max_iter
        if done or time.perf_counter() - started > max_seconds:
            return found
        toward = pairs.coefficients(direction)
        curvature = 0.5 * float(np.einsum("ik,ij,jk->", toward, K, toward, optimize=True))
        alpha = alpha + min(1.0, gaps[-1] / curvature if curvature > 0 else 1.0) * direction


def _balance(pairs: Pairs) -> sparse.csr_array:
    """Rows: a label's sum of A over all samples; all are zero in the polytope."""
    m = len(pairs)
    values = np.concatenate([np.ones(m), -np.ones(m)])
    places = np.concatenate([pairs.relevant, pairs.irrelevant]), np.concatenate([np.arange(m), np.arange(m)])
    return sparse.csr_array((values, places), shape=(pairs.shape[1], m))


def _best_vertex(gradient: FloatArray, balance: sparse.csr_array, bound: FloatArray) -> FloatArray:
    boxes = np.column_stack([np.zeros(len(bound)), bound])
    found = linprog(-gradient, A_eq=balance, b_eq=np.zeros(balance.shape[0]), bounds=boxes, method="highs")
    if not found.success:
        raise ArithmeticError(f"HiGHS: {found.message}")
    return np.asarray(found.x)
