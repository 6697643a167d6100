"""Random projection (synthetic): eight linear functions of four inputs, without noise (GBDT-MO, section 5.1)."""

from __future__ import annotations

import os

import numpy as np

from ._synthetic import N_TEST, N_TRAIN, Array, make, uniform
from .base import Dataset

N_FEATURES, N_TARGETS = 4, 8


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Draw x uniformly from [-1, 1]^4 and W from [-1, 1]^(4 x 8); y = x W. Each seed has a W of its own.

    The arguments are taken for uniformity and not used. The draws come in the order of the authors' scripts (GBDTMO-EX,
    commit 1daa6ba).
    """
    return make("random_projection", _draw)


def _draw(random: np.random.RandomState) -> tuple[Array, Array]:
    weights = uniform(random, N_FEATURES, N_TARGETS)
    X = np.concatenate([uniform(random, n, N_FEATURES) for n in (N_TRAIN, N_TEST)])
    return X, X @ weights
