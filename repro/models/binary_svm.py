"""Adapter of the binary decomposition: one support vector machine a label."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbdtmo_core import BinarySVMClassifier
from repro.models.base import FitReport
from repro.models.label_estimator import LabelEstimator


class BinarySVM(LabelEstimator):
    """`BinarySVMClassifier`; keywords are its own, but for ``random_state`` and ``n_jobs``, which the run gives."""

    def _make(self, parameters: Mapping[str, Any], *, seed: int, n_jobs: int) -> BinarySVMClassifier:
        return BinarySVMClassifier(**parameters, random_state=seed, n_jobs=n_jobs)

    def _describe(self, estimator: BinarySVMClassifier) -> FitReport:
        return FitReport(
            construct_seconds=0.0,
            train_seconds=0.0,
            solver={"steps": int(np.sum(estimator.n_iter_)), "n_support": len(estimator.support_)},
        )
