"""Frank-Wolfe with a linear program a step: the plain one that tests check and use (tests/oracle)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels

from repro.bench.solvers.base import Solver, SolverReport, bound_of
from tests.oracle.frank_wolfe import ascend
from tests.oracle.label_pairs import all_pairs


class FrankWolfe(Solver):
    """Frank-Wolfe until the relative gap, at most for so many seconds; its primal bound is its dual plus its gap."""

    def __init__(self, C: float | None, tol: float, max_seconds: float, kernel: str, **kernel_parameters: Any) -> None:
        self._C = bound_of(C)
        self._tol = tol
        self._max_seconds = max_seconds
        self._kernel = kernel
        self._kernel_parameters = kernel_parameters

    def fit(self, X: Any, indicator: NDArray[Any], n_jobs: int) -> SolverReport:
        """See `Solver.fit`; HiGHS and the products of matrices take what threads the process has."""
        rows = np.asarray(X, dtype=np.float64)
        K = pairwise_kernels(rows, metric=self._kernel, filter_params=True, **self._kernel_parameters)
        pairs = all_pairs(indicator.astype(np.int64), self._C)
        end = ascend(K, pairs, tol=self._tol, max_iter=10**9, max_seconds=self._max_seconds)
        return SolverReport(
            primal=end.dual + end.gap,
            dual=end.dual,
            n_iter=len(end.gaps) - 1,
            converged=end.relative_gap <= self._tol,
        )
