"""Caltech101: 8,677 pictures of objects of 101 categories, described by histograms of oriented gradients (HOG).

GBDT-MO (section 5.2) resizes the pictures to 64 x 64 and takes 324 HOG values, without saying which. Here a picture is
made grey first and then resized bilinearly; 9 orientations, cells of 16 x 16 pixels and blocks of 2 x 2 cells, one cell
apart, give 3 * 3 * 4 * 9 = 324 values.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ._derived import Arrays, cached, digest_of
from ._origins import Url
from .base import Dataset, FormatError
from .fetch import DataFile, Found, checksums, describe_sources, locate

SIDE = 64
ORIENTATIONS, CELL, BLOCK = 9, 16, 2
N_IMAGES, N_CATEGORIES = 8_677, 101
BACKGROUND = "BACKGROUND_Google"  # pictures of no category; the paper counts 101 classes without it

GRAY_FILE = DataFile(
    "caltech101/gray64.npz", "e0cefbef56485ae79b498c3d131bea950999764ceb35983310cf9ff12a7f90ab", origins=()
)
ZIP_FILE = DataFile(
    "caltech101/caltech-101.zip",
    "331234750fc7f77520e50d9565e8b6907b03565e30320da1401130db08c61f91",
    (Url("https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip"),),
)
TAR_FILE = DataFile(  # what Caltech offered before, and a user may have kept
    "caltech101/101_ObjectCategories.tar.gz",
    "af6ece2f339791ca20f855943d8b55dd60892c0a25105fcd631ee3d6430f9926",
    origins=(),
)
TAR_IN_ZIP = "caltech-101/101_ObjectCategories.tar.gz"


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load the HOG values of all pictures, sorted by category and file name.

    They are computed once and kept in the cache. Besides the file's, `Dataset.sha256` holds the checksum of the values.
    """
    return load_described(
        "caltech101",
        hog_values,
        f"scikit-image {version('scikit-image')}",
        feature_names(),
        cache_dir=cache_dir,
        download=download,
    )


def load_described(
    name: str,
    describe: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    library: str,
    features: tuple[str, ...],
    *,
    cache_dir: str | os.PathLike[str] | None,
    download: bool,
) -> Dataset:
    """Load the pictures as what `describe`, by a library and its version, makes of the grey images (n, 64, 64)."""
    alternatives = ((GRAY_FILE,), (ZIP_FILE,), (TAR_FILE,))
    (found,) = locate(name, alternatives, cache_dir=cache_dir, download=download)
    key: dict[str, str | int] = {
        "file": found.sha256,
        "hog": f"{ORIENTATIONS} {CELL} {BLOCK} {SIDE}",
        "library": library,
        "pillow": version("pillow"),
        "layout": 1,  # of the arrays below
    }
    arrays = cached(f"{name}-hog", key, lambda: _describe(found, describe), cache_dir=cache_dir)
    return Dataset(
        name=name,
        X=arrays["X"],
        y=arrays["labels"],
        task="multiclass",
        feature_names=features,
        target_names=tuple(arrays["categories"].tolist()),
        source=describe_sources([found]),
        sha256={**checksums([found]), "HOG values": digest_of(arrays)},
    )


def feature_names() -> tuple[str, ...]:
    """Return names such as ``b12c01o8``: block, cell in it (both row, column) and orientation."""
    blocks, cells = range(SIDE // CELL - BLOCK + 1), range(BLOCK)
    return tuple(
        f"b{i}{j}c{k}{m}o{o}" for i in blocks for j in blocks for k in cells for m in cells for o in range(ORIENTATIONS)
    )


def _describe(found: Found, describe: Callable[[NDArray[np.uint8]], NDArray[np.float32]]) -> Arrays:
    images, labels, categories = read_gray(found.path) if found.path.suffix == ".npz" else read_archive(found.path)
    if len(images) != N_IMAGES or len(categories) != N_CATEGORIES:
        raise FormatError(
            f"{found.path} holds {len(images)} pictures of {len(categories)} categories; expected {N_IMAGES} of "
            f"{N_CATEGORIES}"
        )
    return {"X": describe(images), "labels": labels, "categories": categories}


def read_gray(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.str_]]:
    """Read grey images made before: the arrays ``images`` (n, 64, 64), ``labels`` and ``categories``."""
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["images"], arrays["labels"], arrays["categories"]


def read_archive(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.str_]]:
    """Read the public archive, one picture at a time; nothing is unpacked.

    Returns
    -------
    images : ndarray of uint8, shape (n, 64, 64)
        Sorted by category and file name, both by code point.
    labels : ndarray of int64, shape (n,)
    categories : ndarray of str
    """
    images: dict[tuple[str, str], NDArray[np.uint8]] = {}
    with _open_tar(path) as archive:
        for member in archive:
            category, _, file = member.name.rpartition("/")
            category = category.rpartition("/")[2]
            if not member.isfile() or not file.endswith(".jpg") or file.startswith(".") or category == BACKGROUND:
                continue
            content = archive.extractfile(member)
            assert content is not None
            images[category, file] = read_picture(content)
    order = sorted(images)
    categories, labels = np.unique([category for category, _ in order], return_inverse=True)
    return np.array([images[name] for name in order]), labels.astype(np.int64), categories


@contextmanager
def _open_tar(path: Path) -> Iterator[tarfile.TarFile]:
    """Open the archive as a stream, whether it lies in a zip or not."""
    try:
        if path.suffix != ".zip":
            with tarfile.open(path, "r|gz") as archive:
                yield archive
        else:
            with (
                zipfile.ZipFile(path) as outer,
                outer.open(TAR_IN_ZIP) as inner,
                tarfile.open(fileobj=inner, mode="r|gz") as archive,
            ):
                yield archive
    except (tarfile.TarError, zipfile.BadZipFile, KeyError, EOFError) as error:
        raise FormatError(f"{path} is not the archive of Caltech101: {error}") from error


def read_picture(content: IO[bytes]) -> NDArray[np.uint8]:
    """Decode a JPEG, make it grey (ITU-R 601 luma) and resize it to 64 x 64, bilinear with antialiasing."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(content) as picture:
            gray = picture.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    except (UnidentifiedImageError, OSError) as error:
        raise FormatError(f"a picture of Caltech101 cannot be read: {error}") from error
    return np.asarray(gray)


def hog_values(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the 324 HOG values of each image by scikit-image: blocks normalised by L2, clipped at 0.2, L2 again."""
    from skimage.feature import hog

    settings: dict[str, Any] = {
        "orientations": ORIENTATIONS,
        "pixels_per_cell": (CELL, CELL),
        "cells_per_block": (BLOCK, BLOCK),
        "block_norm": "L2-Hys",
    }
    return np.array([hog(image, **settings) for image in images], np.float32)
