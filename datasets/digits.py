"""scikit-learn's bundled digits: 1,797 images of 8 x 8 pixels, 10 classes. Nothing is downloaded."""

from __future__ import annotations

import hashlib
import os

import numpy as np

from ._images import Images, patch, pixel_names
from .base import Dataset

SIDE = range(8)


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load the digits with raw pixels 0..16; the arguments are taken for uniformity and not used."""
    images = read_images()
    return Dataset(
        name="digits",
        X=patch(images.pixels, SIDE, SIDE).astype(np.float32),
        y=images.labels,
        task="multiclass",
        feature_names=pixel_names(SIDE, SIDE),
        target_names=tuple("0123456789"),
        source=images.source,
        sha256=images.sha256,
    )


def read_images() -> Images:
    """Read the images; the checksum is that of the pixel and label bytes, whatever file the release keeps them in."""
    from sklearn import __version__
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels = bunch.images.astype(np.uint8)
    labels = bunch.target.astype(np.int64)
    content = pixels.tobytes() + labels.astype(np.uint8).tobytes()
    digest = hashlib.sha256(content).hexdigest()
    return Images(pixels, labels, f"scikit-learn {__version__}, load_digits", {"digits": digest})
