"""Small random problems of label ranking, for comparing Rank-SVM with the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray = NDArray[np.float64]
KERNELS = ("linear", "poly", "rbf", "precomputed", "callable")


def laplacian(X: FloatArray, Y: FloatArray) -> FloatArray:
    """exp(-|x - y|_1), positive definite."""
    return np.asarray(np.exp(-np.abs(X[:, None, :] - Y[None, :, :]).sum(axis=2)))


@dataclass
class RankingProblem:
    """Rows with label sets, and the settings of an estimator for them."""

    seed: int
    X: FloatArray
    indicator: NDArray[np.int64]
    weight: FloatArray | None
    as_csr: bool
    params: dict[str, Any]

    @property
    def C(self) -> float:
        return float(self.params["C"])

    @property
    def given(self) -> Any:
        """What the estimator gets for X."""
        if self.params["kernel"] == "precomputed":
            return self.gram
        return sparse.csr_array(self.X) if self.as_csr else self.X

    @property
    def gram(self) -> FloatArray:
        """The kernel matrix by its definition."""
        kernel, inner = self.params["kernel"], self.X @ self.X.T
        if kernel == "linear":
            return np.asarray(inner)
        if kernel == "poly":
            scaled = self.params["gamma"] * inner + self.params["coef0"]
            return np.asarray(scaled ** self.params["degree"])
        if kernel == "rbf":
            squares = np.diag(inner)
            return np.asarray(np.exp(-self.params["gamma"] * (squares[:, None] + squares - 2 * inner)))
        return laplacian(self.X, self.X)

    def __str__(self) -> str:
        form = "CSR" if self.as_csr else "dense"
        return f"ranking_problem({self.seed}): {self.X.shape} {form} -> {self.indicator.shape[1]}, {self.params}"


def ranking_problem(seed: int) -> RankingProblem:
    """Each kernel, soft and hard in turn; a set that is empty and one that is full are among the rows of each."""
    rng = np.random.default_rng(seed)
    kernel, hard = KERNELS[seed % 5], seed // 5 % 2 == 1
    n, d, q = int(rng.integers(10, 21)), int(rng.integers(3, 6)), int(rng.integers(3, 7))
    X = rng.normal(size=(n, d)) * rng.choice([0.3, 1.0, 3.0])
    X[rng.random(X.shape) < 0.2] = 0.0
    indicator = _label_sets(rng, X, q, noise=0.0 if hard else 1.0)
    params: dict[str, Any] = {"C": np.inf if hard else float(10 ** rng.uniform(-2, 3)), "kernel": kernel}
    if kernel == "poly":
        params |= {"degree": int(rng.integers(2, 5)), "gamma": float(rng.uniform(0.2, 1)), "coef0": 1.0}
    if kernel == "rbf":
        params |= {"gamma": float(rng.uniform(0.1, 1))}
    if kernel == "callable":
        params["kernel"] = laplacian
    weight = rng.choice([0.5, 1.0, 3.0], size=n) if seed % 3 == 0 else None
    return RankingProblem(seed, X, indicator, weight, seed % 20 >= 10 and kernel in ("linear", "poly", "rbf"), params)


def _label_sets(rng: np.random.Generator, X: FloatArray, q: int, noise: float) -> NDArray[np.int64]:
    """The best labels by linear scores, so that without noise a linear ranking has no error."""
    scores = X @ rng.normal(size=(X.shape[1], q)) + 0.5 * rng.normal(size=q)
    scores += noise * scores.std() * rng.normal(size=scores.shape)
    sizes = np.concatenate([[0, q], rng.integers(1, q, size=len(X) - 2)])
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
    return (ranks < sizes[:, None]).astype(np.int64)
