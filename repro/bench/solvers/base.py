"""What every solver offers to a measurement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SolverReport:
    """Where a solver ended; None where it cannot tell.

    Attributes
    ----------
    primal, dual : float or None
        Values that enclose the optimum of Rank-SVM.
    n_iter : int or None
        Epochs or steps.
    converged : bool or None
    """

    primal: float | None = None
    dual: float | None = None
    n_iter: int | None = None
    converged: bool | None = None

    @property
    def relative_gap(self) -> float | None:
        """Primal less dual, over the primal."""
        if self.primal is None or self.dual is None:
            return None
        return (self.primal - self.dual) / self.primal if self.primal > 0 else 0.0


class Solver(ABC):
    """A solver with its settings; ``C`` is in the paper's scaling where the problem is Rank-SVM, None a hard margin."""

    @abstractmethod
    def fit(self, X: Any, indicator: NDArray[Any], n_jobs: int) -> SolverReport:
        """Train on rows (n, n_features), dense or CSR, with 0/1 labels (n, n_labels)."""


def bound_of(C: float | None) -> float:
    """Return C as estimators take it: configurations, which are JSON, have no infinity."""
    return np.inf if C is None else float(C)
