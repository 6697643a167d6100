"""scikit-learn's one-vs-rest SVC: as many independent binary problems as labels."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from repro.bench.solvers.base import Solver, SolverReport, bound_of


class OneVsRest(Solver):
    """``OneVsRestClassifier(SVC(...))``; C is the SVC's own, and its tolerance is no duality gap."""

    def __init__(self, C: float | None, **parameters: Any) -> None:
        self._parameters = {"C": bound_of(C), **parameters}

    def fit(self, X: Any, indicator: NDArray[Any], n_jobs: int) -> SolverReport:
        """See `Solver.fit`."""
        OneVsRestClassifier(SVC(**self._parameters), n_jobs=n_jobs).fit(X, indicator)
        return SolverReport()
