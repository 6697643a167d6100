"""Losses (gradient, Hessian, best constant) and evaluation metrics.

``loss`` is "squared_error", "softmax" or "sigmoid"; ``f`` holds raw scores (n, d) and ``target`` the targets (n, d):
numbers, one-hot rows or 0/1 indicators.
"""

import numpy as np

from tests.oracle.binning import FloatArray

LARGER_IS_BETTER = {"accuracy"}


def softmax(f: FloatArray) -> FloatArray:
    e = np.exp(f - f.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sigmoid(f: FloatArray) -> FloatArray:
    e = np.exp(-np.abs(f))
    return np.where(f >= 0, 1 / (1 + e), e / (1 + e))


def gradients(loss: str, f: FloatArray, target: FloatArray, hessian: str) -> tuple[FloatArray, FloatArray]:
    """Gradient (n, d) of each row, and its Hessian: the diagonal (n, d), or softmax's whole matrix (n, d, d)."""
    if loss == "squared_error":
        return f - target, np.ones_like(f)
    p = softmax(f) if loss == "softmax" else sigmoid(f)
    if hessian == "exact":
        return p - target, p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :]
    return p - target, np.ones_like(f) if hessian == "constant" else p * (1 - p)


def best_constant(loss: str, target: FloatArray) -> FloatArray:
    """The constant prediction (d,) the boosting starts from when base_score is None."""
    n, mean = len(target), target.mean(axis=0)
    if loss == "squared_error":
        return mean
    if loss == "softmax":
        return np.log(np.maximum(target.sum(axis=0), 0.5) / n)
    share = np.clip(mean, 0.5 / n, 1 - 0.5 / n)
    return np.log(share / (1 - share))


def log_loss(loss: str, f: FloatArray, target: FloatArray) -> float:
    """Mean negative log-likelihood: over rows (softmax), over rows and outputs (sigmoid)."""
    if loss == "softmax":
        top = f.max(axis=1)
        log_sum = top + np.log(np.exp(f - top[:, None]).sum(axis=1))
        return float(np.mean(log_sum - (f * target).sum(axis=1)))
    return float(np.mean(np.logaddexp(0, f) - f * target))


def accuracy(f: FloatArray, target: FloatArray) -> float:
    """Share of rows whose highest score (ties: lowest index) belongs to one of their labels."""
    return float(np.mean(target[np.arange(len(f)), f.argmax(axis=1)] > 0))


def evaluate(metric: str | None, loss: str, f: FloatArray, target: FloatArray) -> float:
    if metric is None:
        metric = "mse" if loss == "squared_error" else "log_loss"
    if metric == "log_loss":
        return log_loss(loss, f, target)
    if metric == "accuracy":
        return accuracy(f, target)
    if metric == "mae":
        return float(np.mean(np.abs(f - target)))
    mse = float(np.mean((f - target) ** 2))
    return mse if metric == "mse" else float(np.sqrt(mse))
