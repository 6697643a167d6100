"""MNIST-inpainting: predict a patch of a digit from the part above it (GBDT-MO, section 5.2)."""

from __future__ import annotations

import os

import numpy as np

from ._images import patch, pixel_names
from .base import Dataset
from .mnist import official_split, read_images

CROP = range(4, 24)
INPUT_ROWS = CROP[:10]
TARGET_ROWS = CROP[10:14]
TARGET_COLUMNS = CROP[7:13]


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load 70,000 rows of 200 inputs and 24 targets, pixels / 255; the split is that of MNIST."""
    images = read_images(cache_dir=cache_dir, download=download)
    return Dataset(
        name="mnist_inpainting",
        X=np.divide(patch(images.pixels, INPUT_ROWS, CROP), 255, dtype=np.float32),
        y=patch(images.pixels, TARGET_ROWS, TARGET_COLUMNS) / 255,
        task="regression",
        feature_names=pixel_names(INPUT_ROWS, CROP),
        target_names=pixel_names(TARGET_ROWS, TARGET_COLUMNS),
        source=images.source,
        sha256=images.sha256,
        fixed_split=official_split(),
    )
