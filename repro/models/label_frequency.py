"""The baseline that looks at no input: every row gets the labels in the order of their frequency."""

import json
import time
from pathlib import Path

import numpy as np

from repro.models.base import Array, FitReport, LabelModel, indicator_of


class LabelFrequency(LabelModel):
    """Scores each label by its share of the training rows; the label set is what more than half of them have."""

    suffix = ".json"

    def __init__(self) -> None:
        self._shares: Array | None = None

    def fit(self, X: Array, y: Array, *, task: str, n_outputs: int, seed: int, n_jobs: int) -> FitReport:
        start = time.perf_counter()
        self._shares = indicator_of(y, task, n_outputs).mean(axis=0, dtype=np.float64)
        return FitReport(construct_seconds=0.0, train_seconds=time.perf_counter() - start)

    def predict_scores(self, X: Array) -> Array:
        return np.tile(self._fitted(), (len(X), 1))

    def predict_labels(self, X: Array) -> Array:
        return (self.predict_scores(X) > 0.5).astype(np.uint8)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"label_frequency": self._fitted().tolist()}) + "\n", encoding="utf-8")

    def _fitted(self) -> Array:
        if self._shares is None:
            raise RuntimeError("the model is not fitted; call fit first")
        return self._shares
