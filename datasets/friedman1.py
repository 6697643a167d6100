"""friedman1 (synthetic): five noisy copies of one function of five inputs out of ten (GBDT-MO, section 5.1)."""

from __future__ import annotations

import os

import numpy as np

from ._synthetic import N_TEST, N_TRAIN, Array, make, uniform
from .base import Dataset

N_FEATURES, N_TARGETS = 10, 5
NOISE = 0.1


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Draw x uniformly from [-1, 1]^10 and five targets f(x) + N(0, 0.1²), each with noise of its own.

    The arguments are taken for uniformity and not used. The draws come in the order of the authors' scripts (GBDTMO-EX,
    commit 1daa6ba).
    """
    return make("friedman1", _draw)


def _draw(random: np.random.RandomState) -> tuple[Array, Array]:
    parts = []
    for n in (N_TRAIN, N_TEST):
        x = uniform(random, n, N_FEATURES)
        parts.append((x, friedman(x)[:, None] + NOISE * random.standard_normal((n, N_TARGETS))))
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return X, y


def friedman(x: Array) -> Array:
    """Return sin(π x0 x1) + 2 (x2 - 0.5)² + x3 + 0.5 x4 of each row."""
    value: Array = np.sin(np.pi * x[:, 0] * x[:, 1]) + 2 * (x[:, 2] - 0.5) ** 2 + x[:, 3] + 0.5 * x[:, 4]
    return value
