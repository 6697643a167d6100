"""Caltech101 described by the HOG of OpenCV 4: 324 values too, of the same layout, but smoother.

Pixels vote for the two nearest orientations and the nearest cells, weighted by a Gaussian over the block. GBDT-MO does
not say which HOG it took. OpenCV is no requirement of this project, since it is large and serves this option alone.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Dataset, MissingDataError
from .caltech101 import BLOCK, CELL, ORIENTATIONS, SIDE, load_described


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load the HOG values by OpenCV; otherwise as `datasets.caltech101.load`.

    Raises
    ------
    MissingDataError
        Also where OpenCV 4 is not installed.
    """
    descriptor, library = _descriptor()

    def describe(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        return np.array([descriptor.compute(image).ravel() for image in images], np.float32)

    names = tuple(f"hog{i}" for i in range(descriptor.getDescriptorSize()))
    return load_described("caltech101_opencv", describe, library, names, cache_dir=cache_dir, download=download)


def _descriptor() -> tuple[Any, str]:
    try:
        from cv2 import HOGDescriptor, __version__
    except ImportError as error:
        raise MissingDataError(
            "data set 'caltech101_opencv' is computed by OpenCV 4, which is not installed: "
            f"{sys.executable} -m pip install 'opencv-python-headless<5'"
        ) from error
    step = (CELL, CELL)
    return HOGDescriptor((SIDE, SIDE), (BLOCK * CELL, BLOCK * CELL), step, step, ORIENTATIONS), f"OpenCV {__version__}"
