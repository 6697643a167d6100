"""A small stand-in for MNIST-inpainting, from scikit-learn's bundled digits. Nothing is downloaded."""

from __future__ import annotations

import os

import numpy as np

from ._images import patch, pixel_names
from .base import Dataset
from .digits import SIDE, read_images

INPUT_ROWS = SIDE[:4]
TARGET_ROWS = SIDE[4:6]
TARGET_COLUMNS = SIDE[2:6]


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load 1,797 rows of 32 inputs and 8 targets, pixels / 16; the arguments are taken for uniformity and not used."""
    images = read_images()
    return Dataset(
        name="digits_inpainting",
        X=np.divide(patch(images.pixels, INPUT_ROWS, SIDE), 16, dtype=np.float32),
        y=patch(images.pixels, TARGET_ROWS, TARGET_COLUMNS) / 16,
        task="regression",
        feature_names=pixel_names(INPUT_ROWS, SIDE),
        target_names=pixel_names(TARGET_ROWS, TARGET_COLUMNS),
        source=images.source,
        sha256=images.sha256,
    )
