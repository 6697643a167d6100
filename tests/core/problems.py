"""Random problems for comparing the core with the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.core.support import FloatArray

Rng = np.random.Generator


@dataclass
class Problem:
    """Training data, rows to predict, and parameters."""

    name: str  # the call that makes it again
    loss: str
    X: FloatArray
    y: Any
    probe: FloatArray
    params: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}: X {self.X.shape}, {self.params}"


def tree_params(rng: Rng, d: int) -> dict[str, Any]:
    """A random choice of everything a tree depends on, all of it exact in binary."""
    params = {
        "max_depth": int(rng.integers(1, 6)),
        "max_leaves": rng.choice([None, 2, 3, 4, 6, 9]),
        "min_samples_leaf": int(rng.choice([1, 1, 2, 4])),
        "reg_lambda": float(rng.choice([0.0, 0.5, 1.0, 4.0])),
        "reg_alpha": float(rng.choice([0.0, 0.0, 0.5, 1.0, 2.0])),
        "min_split_gain": float(rng.choice([0.0, 0.0, 0.125, 0.5])),
        "top_k": rng.choice([None, 1, *range(1, d + 1)]),
        "top_k_mode": str(rng.choice(["restricted", "unrestricted"])),
        "hessian": str(rng.choice(["diagonal", "constant"])),
        "tree_output": str(rng.choice(["multi", "multi", "single"])),
    }
    if params["tree_output"] == "single":  # a leaf of one output has nothing to choose
        params["top_k"] = None
    return params


def _small_integers(rng: Rng, n: int, m: int, missing: float) -> FloatArray:
    X = rng.integers(0, rng.integers(1, 6, size=m) + 1, size=(n, m)).astype(np.float64)
    X[rng.random((n, m)) < missing] = np.nan
    X[:, rng.integers(m)] = X[:, 0] * rng.choice([-1.0, 1.0])  # a copy or a mirror image parts the rows alike
    return X


def probe_points(rng: Rng, X: FloatArray, count: int = 150) -> FloatArray:
    """Values on, between and beyond those of ``X``, and missing ones: trees that agree there are the same function."""
    columns = []
    for column in X.T:
        known = np.unique(column[~np.isnan(column)])
        if len(known) == 0:
            known = np.zeros(1)
        between = (known[1:] + known[:-1]) / 2
        beyond = [known[0] - 1, known[-1] + 1]
        columns.append(rng.choice(np.concatenate([known, between, between + 0.125, beyond, [np.nan]]), size=count))
    return np.column_stack([*columns])


def _labels(rng: Rng, n: int, d: int) -> Any:
    labels = rng.integers(0, d, size=n)
    labels[:2] = [0, d - 1]  # at least two classes
    return labels


def exact_problem(seed: int, loss: str) -> Problem:
    """Few distinct values and first-round gradients that are exact in binary: many ties, no rounding in sums.

    Integers for squared error; for softmax with 2, 4 or 8 classes of equal score p = 1/d, for sigmoid p = 1/2.
    """
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 41)), int(rng.integers(1, 5))
    d = int(rng.choice([2, 4, 8])) if loss == "softmax" else int(rng.integers(1 + (loss == "sigmoid"), 12))
    X = _small_integers(rng, n, m, missing=float(rng.choice([0, 0, 0.15, 0.5])))
    if loss == "squared_error":
        y: Any = rng.integers(-1, 2, size=(n, d)).astype(np.float64) * rng.integers(1, 4)
    elif loss == "softmax":
        y = _labels(rng, n, d)
    else:
        y = rng.integers(0, 2, size=(n, d))
    params = tree_params(rng, d) | {
        "n_outputs": d,
        "n_estimators": 1,
        "learning_rate": float(rng.choice([1.0, 0.5])),
        "base_score": 0.0,
        "max_bins": int(rng.choice([2, 3, 4, 255])),
    }
    return Problem(f"exact_problem({seed}, {loss!r})", loss, X, y, probe_points(rng, X), params)


def factorial_problem(seed: int) -> Problem:
    """A full 2^k design: every node holds a power of two of rows, so the gradients of later rounds stay exact too."""
    rng = np.random.default_rng(seed)
    k, copies, d = int(rng.integers(2, 5)), int(rng.choice([1, 2])), int(rng.integers(1, 10))
    grid = np.stack(np.meshgrid(*[[0.0, 1.0]] * k, indexing="ij"), axis=-1).reshape(-1, k)
    X = rng.permutation(np.repeat(grid, copies, axis=0))
    y = rng.integers(-2, 3, size=(len(X), d)).astype(np.float64)
    params = tree_params(rng, d) | {
        "n_estimators": 3,
        "learning_rate": float(rng.choice([1.0, 0.5])),
        "base_score": 0.0,
        "reg_lambda": 0.0,
        "reg_alpha": float(rng.choice([0.0, 0.5])),
    }
    return Problem(f"factorial_problem({seed})", "squared_error", X, y, grid, params)


def continuous_problem(seed: int, loss: str) -> Problem:
    """Continuous features with some structure; more distinct values than bins, half of the time."""
    rng = np.random.default_rng(seed)
    n, m, d = int(rng.integers(20, 50)), int(rng.integers(1, 5)), int(rng.integers(2, 11))
    X = rng.normal(size=(n, m))
    signal = np.sin(3 * X[:, [0]]) * rng.normal(size=d) + X @ rng.normal(size=(m, d)) + rng.normal(size=(n, d))
    X[rng.random((n, m)) < rng.choice([0, 0, 0.2])] = np.nan
    if loss == "softmax":
        y: Any = signal.argmax(axis=1)
        y[:2] = [0, d - 1]
    else:
        units = 10.0 ** rng.integers(-4, 5, size=d) if rng.random() < 0.3 else np.ones(d)
        y = (signal > 0).astype(np.int64) if loss == "sigmoid" else signal * units
    params = tree_params(rng, d) | {
        "n_outputs": d,
        "n_estimators": 4,
        "learning_rate": float(rng.uniform(0.05, 1)),
        "reg_lambda": float(rng.uniform(0.1, 2)),
        "reg_alpha": float(rng.choice([0, rng.uniform(0, 2)])),
        "min_split_gain": float(rng.choice([0, rng.uniform(0, 0.1)])),
        "base_score": rng.choice([None, 0.0, 0.75]),
        "max_bins": int(rng.choice([2, 7, 16, 255])),
    }
    return Problem(f"continuous_problem({seed}, {loss!r})", loss, X, y, probe_points(rng, X, 50), params)
