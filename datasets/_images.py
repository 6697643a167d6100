"""What the image sets share: a holder for images and the cutting of patches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Images:
    """Grey images, uint8 (n, height, width), and the digits they show, int64 (n,)."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]
    source: str
    sha256: dict[str, str]


def pixel_names(rows: range, columns: range) -> tuple[str, ...]:
    """Return names such as ``r04c11``, row by row."""
    return tuple(f"r{row:02d}c{column:02d}" for row in rows for column in columns)


def patch(pixels: NDArray[np.uint8], rows: range, columns: range) -> NDArray[np.uint8]:
    """Cut a rectangle out of each image and lay it out row by row: (n, rows * columns)."""
    cut = pixels[:, rows.start : rows.stop, columns.start : columns.stop]
    return cut.reshape(len(pixels), -1)
