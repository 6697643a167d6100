"""What the two synthetic sets of GBDT-MO (section 5.1) share: 10,000 training and 10,000 test rows, five seeds.

Every seed draws rows of its own, so the sets hold five blocks of 20,000 rows, and a seed's split is its block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .base import FIT_SHARE, Dataset, Split

SEEDS = 5
N_TRAIN = N_TEST = 10_000

Array = NDArray[np.float64]
Draw = Callable[[np.random.RandomState], tuple[Array, Array]]


def uniform(random: np.random.RandomState, *shape: int) -> Array:
    """Draw from [-1, 1)."""
    return 2 * random.random_sample(shape) - 1


def make(name: str, draw: Draw) -> Dataset:
    """Make a set of five blocks; `draw` returns the training and test rows of one, in this order."""
    blocks = [draw(np.random.RandomState(seed)) for seed in range(SEEDS)]
    X, y = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return Dataset(
        name=name,
        X=X.astype(np.float32),
        y=y,
        task="regression",
        feature_names=tuple(f"x{i}" for i in range(X.shape[1])),
        target_names=tuple(f"y{j}" for j in range(y.shape[1])),
        source=f"drawn by NumPy's RandomState, seeds 0 to {SEEDS - 1}",
        sha256={"values": hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()},
        seed_splits=tuple(_split(seed) for seed in range(SEEDS)),
    )


def _split(seed: int) -> Split:
    """Split a block; its rows are drawn independently, so the last fifth of the training rows validates as they are."""
    start = seed * (N_TRAIN + N_TEST)
    train, test = np.split(np.arange(start, start + N_TRAIN + N_TEST), [N_TRAIN])
    fit, validation = np.split(train, [int(FIT_SHARE * N_TRAIN)])
    return Split(train=train, fit=fit, validation=validation, test=test)
