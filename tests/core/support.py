"""What tests of the core share: fitting by loss name, raw scores in one shape, golden files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor

FloatArray = NDArray[np.float64]
Estimator = GBDTMORegressor | GBDTMOClassifier

PROJECT = Path(__file__).resolve().parents[2]
GOLDEN = Path(os.environ.get("GBDTMO_SHARED", PROJECT.parent / "shared")) / "golden"
NO_GOLDEN = "no golden/*.npz in the folder named by GBDTMO_SHARED (default: ../shared)"

LOSS_NAMES = {"mse": "squared_error", "ce": "softmax", "bce": "sigmoid"}


def fit_core(
    loss: str, X: Any, y: Any, *, n_outputs: int | None = None, eval_set: Any = None, **params: Any
) -> Estimator:
    """The estimator that minimises ``loss``; ``n_outputs`` classes even where ``y`` misses some."""
    if loss == "squared_error":
        return GBDTMORegressor(**params).fit(X, y, eval_set=eval_set)
    classes = None if n_outputs is None or loss == "sigmoid" else np.arange(n_outputs)
    return GBDTMOClassifier(**params).fit(X, y, eval_set=eval_set, classes=classes)


def staged_raw(model: Estimator, X: Any) -> list[FloatArray]:
    """Raw scores after each round, (n, d) each; (n, 1) with the difference of both scores for two classes."""
    stages = model.staged_predict(X) if isinstance(model, GBDTMORegressor) else model.staged_decision_function(X)
    return [np.asarray(stage, dtype=np.float64).reshape(len(X), -1) for stage in stages]


def as_reported(loss: str, stages: Any) -> list[FloatArray]:
    """The oracle's raw scores in the shape of :func:`staged_raw`."""
    if loss == "softmax" and stages[0].shape[1] == 2:
        return [stage[:, [1]] - stage[:, [0]] for stage in stages]
    return list(stages)


def golden_files() -> list[Path]:
    return sorted(GOLDEN.glob("*.npz"))


def read_golden(path: Path) -> tuple[str, FloatArray, Any, FloatArray, dict[str, Any]]:
    """loss, X, y, predictions and parameters under the estimators' names."""
    with np.load(path) as case:
        X, y, predictions = case["X"], case["y"], case["predictions"]
        theirs = json.loads(str(case["params"]))
    params = {
        "n_outputs": theirs["n_outputs"],
        "n_estimators": theirs["rounds"],
        "learning_rate": theirs["lr"],
        "max_depth": theirs["max_depth"],
        "max_leaves": theirs["max_leaves"],
        "max_bins": min(theirs["max_bins"], 255),
        "min_samples_leaf": theirs["min_samples"],
        "reg_alpha": theirs["reg_l1"],
        "reg_lambda": theirs["reg_l2"],
        "min_split_gain": theirs["gamma"],
        "top_k": theirs["topk"] or None,
        "top_k_mode": "restricted" if theirs["one_side"] else "unrestricted",
        "node_cache": theirs["hist_cache"],
        "base_score": theirs["base_score"],
        "tree_output": "single" if theirs.get("single") else "multi",
        "growth": "released" if path.name.startswith("authors_policy") else "complete",
        "binning": "released" if path.name.startswith("authors_") else "quantile",
    }
    return LOSS_NAMES[theirs["loss"]], X, y, predictions, params
