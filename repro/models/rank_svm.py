"""Adapter of Rank-SVM, Elisseeff and Weston's large-margin ranking of labels."""

from collections.abc import Mapping
from typing import Any

from gbdtmo_core import RankSVMClassifier
from repro.models.base import FitReport
from repro.models.label_estimator import LabelEstimator, finite


class RankSVM(LabelEstimator):
    """`RankSVMClassifier`; keywords are its own, but for ``random_state`` and ``n_jobs``, which the run gives."""

    def _make(self, parameters: Mapping[str, Any], *, seed: int, n_jobs: int) -> RankSVMClassifier:
        return RankSVMClassifier(**parameters, random_state=seed, n_jobs=n_jobs)

    def _describe(self, estimator: RankSVMClassifier) -> FitReport:
        facts = {
            "primal_objective": float(estimator.primal_objective_),
            "dual_objective": float(estimator.dual_objective_),
            "duality_gap": float(estimator.duality_gap_),
            "epochs": int(estimator.n_iter_),
            "converged": bool(estimator.converged_),
            "n_support": len(estimator.support_),
            "margin": float(estimator.margin_),
        }
        return FitReport(construct_seconds=0.0, train_seconds=0.0, solver=finite(facts))
