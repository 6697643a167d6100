"""The toy problem of Elisseeff and Weston (2001), section 5: three labels in the unit square, one of them always there.

Every seed draws 50 points of its own, and they are both the training and the test rows: the paper asks what the models
can express, not how they generalise.
"""

from __future__ import annotations

import hashlib
import os

import numpy as np
from numpy.typing import NDArray

from .base import FIT_SHARE, Dataset, Split

SEEDS = 50
N_POINTS = 50
BOUNDARIES = (((0.0, 0.0), (1.0, 1.0)), ((0.0, 1.0), (0.5, 0.5)))
"""Where label sets change: segments of the lines x2 = x1 and x1 + x2 = 1, from one point (x1, x2) to another."""


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Draw the points of every seed with ``RandomState(seed)``, uniformly from [0, 1)², as float32.

    The arguments are taken for uniformity and not used.
    """
    X = np.concatenate([np.random.RandomState(seed).random_sample((N_POINTS, 2)) for seed in range(SEEDS)])
    X = X.astype(np.float32)
    y = labels(X)
    return Dataset(
        name="ranksvm_toy",
        X=X,
        y=y,
        task="multilabel",
        feature_names=("x1", "x2"),
        target_names=("label1", "label2", "label3"),
        source=f"drawn by NumPy's RandomState, seeds 0 to {SEEDS - 1}",
        sha256={"values": hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()},
        seed_splits=tuple(_split(seed) for seed in range(SEEDS)),
    )


def labels(X: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return the labels of points (n, 2) of the square, uint8 (n, 3).

    Label 1 is always there. A point above x2 = x1 has a second label, which is label 2 above x1 + x2 = 1, else label 3:
    the paper's size predictor is x2 - x1, but the line between labels 2 and 3 it only draws, so that one is assumed.
    """
    x1, x2 = np.asarray(X, dtype=np.float64).T
    two, high = x2 > x1, x1 + x2 > 1
    return np.column_stack([np.ones_like(two), two & high, two & ~high]).astype(np.uint8)


def _split(seed: int) -> Split:
    """Take a seed's points; the last fifth validates, for models that choose something on rows of their own."""
    points = np.arange(seed * N_POINTS, (seed + 1) * N_POINTS)
    fit, validation = np.split(points, [int(FIT_SHARE * N_POINTS)])
    return Split(train=points, fit=fit, validation=validation, test=points, resubstitution=True)
