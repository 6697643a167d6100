"""Our own solver of Rank-SVM."""

from __future__ import annotations

import warnings
from typing import Any

from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from gbdtmo_core import RankSVMClassifier
from repro.bench.solvers.base import Solver, SolverReport, bound_of


class RankSVM(Solver):
    """`RankSVMClassifier` with these parameters; a fit is all that it does, the threshold of label sets included."""

    def __init__(self, C: float | None, **parameters: Any) -> None:
        self._parameters = {"C": bound_of(C), **parameters}

    def fit(self, X: Any, indicator: NDArray[Any], n_jobs: int) -> SolverReport:
        """See `Solver.fit`."""
        model = RankSVMClassifier(**self._parameters, n_jobs=n_jobs, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the report says so
            model.fit(X, indicator)
        return SolverReport(
            primal=float(model.primal_objective_),
            dual=float(model.dual_objective_),
            n_iter=int(model.n_iter_),
            converged=bool(model.converged_),
        )
