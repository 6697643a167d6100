"""The multi-class SVM of Weston & Watkins (1998) in the form of their paper, solved by Clarabel's interior points.

Minimise ½ Σ_m |w_m|² + C Σ_i Σ_{m ≠ y_i} ξ_im with w_{y_i}·x_i + b_{y_i} ≥ w_m·x_i + b_m + 2 - ξ_im and ξ ≥ 0.
"""

from __future__ import annotations

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray = NDArray[np.float64]


def solve(X: FloatArray, y: NDArray[np.int64], C: float) -> tuple[float, FloatArray, FloatArray]:
    """Objective, W (n_classes, n_features) and b with mean zero; C is finite."""
    (n, d), q = X.shape, int(y.max()) + 1
    others = [(i, m) for i in range(n) for m in range(q) if m != y[i]]
    rows = []
    for i, m in others:
        w, b = np.zeros((q, d)), np.zeros(q)
        w[y[i]], w[m] = X[i], -X[i]
        b[y[i]], b[m] = 1.0, -1.0
        rows.append(np.concatenate([w.ravel(), b]))
    slack = np.eye(len(others))
    above = np.hstack([np.array(rows), slack])  # ≥ 2
    positive = np.hstack([np.zeros((len(others), q * d + q)), slack])  # ≥ 0
    constraints = sparse.csc_matrix(-np.vstack([above, positive]))
    limits = np.concatenate([np.full(len(others), -2.0), np.zeros(len(others))])
    P = sparse.csc_matrix(np.diag(np.concatenate([np.ones(q * d), np.zeros(q + len(others))])))
    cost = np.concatenate([np.zeros(q * d + q), np.full(len(others), C)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.NonnegativeConeT(len(limits))]
    x = np.array(clarabel.DefaultSolver(P, cost, constraints, limits, cones, settings).solve().x)
    W, b = x[: q * d].reshape(q, d), x[q * d : q * d + q]
    return float(0.5 * x @ (P @ x) + cost @ x), W, b - b.mean()
