"""Adapter of BoosTexter: AdaBoost.MH with decision stumps, a fixed number of rounds."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gbdtmo_core import BoosTexterClassifier
from repro.models.base import Array, FitReport
from repro.models.label_estimator import LabelEstimator


class BoosTexter(LabelEstimator):
    """`BoosTexterClassifier`; keywords are its own, but for ``n_jobs``. It draws no random numbers."""

    def _make(self, parameters: Mapping[str, Any], *, seed: int, n_jobs: int) -> BoosTexterClassifier:
        return BoosTexterClassifier(**parameters, n_jobs=n_jobs)

    def _describe(self, estimator: BoosTexterClassifier) -> FitReport:
        rounds = len(estimator.normalizers_)
        return FitReport(
            construct_seconds=0.0,
            train_seconds=0.0,
            best_round=rounds,
            rounds=rounds,
            n_trees=rounds,
            n_leaves=int(np.sum(1 + (estimator.feature_ >= 0))),
            solver={"exponential_loss": float(np.prod(estimator.normalizers_))},
        )

    def staged_scores(self, X: Array) -> Iterator[Array]:
        yield from self._fitted().staged_decision_function(np.asarray(X, dtype=np.float64))
