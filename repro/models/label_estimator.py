"""What adapters of this project's own estimators of label sets share: fitting, scores, label sets, the saved file."""

import math
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from repro.models.base import Array, FitReport, LabelModel, indicator_of


class LabelEstimator(LabelModel):
    """An estimator with ``decision_function`` and ``predict``, trained on an indicator matrix whatever the task.

    Parameters
    ----------
    **parameters
        Those of the estimator; a ``C`` may be the text "inf", since JSON has no infinity.
    """

    suffix = ".joblib"

    def __init__(self, **parameters: Any) -> None:
        if "C" in parameters:
            parameters["C"] = float(parameters["C"])
        self._parameters = parameters
        self._estimator: Any = None

    @abstractmethod
    def _make(self, parameters: Mapping[str, Any], *, seed: int, n_jobs: int) -> Any:
        """Return the unfitted estimator."""

    @abstractmethod
    def _describe(self, estimator: Any) -> FitReport:
        """Say what the fitted estimator knows of its fit, but for the seconds."""

    def fit(self, X: Array, y: Array, *, task: str, n_outputs: int, seed: int, n_jobs: int) -> FitReport:
        indicator = indicator_of(y, task, n_outputs)
        estimator = self._make(self._parameters, seed=seed, n_jobs=n_jobs)
        start = time.perf_counter()
        self._estimator = estimator.fit(np.asarray(X, dtype=np.float64), indicator)
        return replace(self._describe(estimator), train_seconds=time.perf_counter() - start)

    def predict_scores(self, X: Array) -> Array:
        return np.asarray(self._fitted().decision_function(np.asarray(X, dtype=np.float64)), dtype=np.float64)

    def predict_labels(self, X: Array) -> Array:
        return np.asarray(self._fitted().predict(np.asarray(X, dtype=np.float64)), dtype=np.uint8)

    def save(self, path: Path) -> None:
        joblib.dump(self._fitted(), path, compress=3)

    def _fitted(self) -> Any:
        if self._estimator is None:
            raise RuntimeError("the model is not fitted; call fit first")
        return self._estimator


def finite(facts: Mapping[str, float | bool]) -> dict[str, float | bool | None]:
    """Return facts as JSON can hold them: None for what is infinite or no number."""
    return {name: value if math.isfinite(value) else None for name, value in facts.items()}
