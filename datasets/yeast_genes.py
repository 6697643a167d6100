"""Yeast genes: what a gene does in the cell; 2,417 genes, 103 features, 14 labels (Elisseeff and Weston 2001).

Mulan publishes the set as two ARFF files in a RAR archive. The PyPI wheel river carries the same rows in one CSV file,
the 917 test rows first. Whatever the form, the arrays are the same: their checksum is compared.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _rar
from ._arff import ArffFile
from ._origins import Url, Wheel
from .base import Dataset, FormatError, published_split
from .fetch import DataFile, Found, checksums, describe_sources, locate
from .mulan import read_table, require_same_header, target_columns

N_TRAIN, N_TEST = 1_500, 917
FEATURES = tuple(f"Att{i}" for i in range(1, 104))
LABELS = tuple(f"Class{i}" for i in range(1, 15))
VALUES_SHA256 = "51eea6d5937cbe007104ecc6b9ca102ca366b40fff881e255094be61a7d7a601"
"""Of the float32 features followed by the uint8 labels, training rows first, in C order."""

MEMBERS = ("yeast-train.arff", "yeast-test.arff")
_MEMBER_SHA256 = (
    "e759dc991ff54694a4ff9c4314f3be0d6fd2b1994a4b563f57e416394c6aebbd",
    "4aaac102bff9669a765bf0b378602e5cc8c3b181048282e2f003117b496d552a",
)
ARFF_FILES = tuple(
    DataFile(f"yeast_ml/{member}", sha256, origins=()) for member, sha256 in zip(MEMBERS, _MEMBER_SHA256, strict=True)
)
CSV_FILE = DataFile(
    "yeast_ml/yeast.csv.gz",
    "2969cb4bab877a27adcbe17871fa0b378a1e54b98816cd6106b542ee450a1c09",
    (Wheel("river==0.26.1", "river/datasets/yeast.csv.gz"),),
)
RAR_FILE = DataFile(
    "yeast_ml/yeast.rar", None, (Url("https://sourceforge.net/projects/mulan/files/datasets/yeast.rar/download"),)
)

Values = tuple[NDArray[np.float32], NDArray[np.uint8]]


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load the published training and test rows; of the training rows, the last 20 % after RandomState(0) validate.

    Every gene's features have unit norm, and every gene has 1 to 11 labels.
    """
    alternatives: list[Sequence[DataFile]] = [ARFF_FILES, (CSV_FILE,)]
    if _rar.can_open():
        alternatives.append((RAR_FILE,))
    found = locate("yeast_genes", alternatives, cache_dir=cache_dir, download=download)
    X, y = read(found)
    return Dataset(
        name="yeast_genes",
        X=X,
        y=y,
        task="multilabel",
        feature_names=FEATURES,
        target_names=LABELS,
        source=describe_sources(found),
        sha256=checksums(found),
        fixed_split=published_split(N_TRAIN, N_TEST),
    )


def read(found: Sequence[Found]) -> Values:
    """Read features and labels from any of the three forms, the training rows first.

    Raises
    ------
    FormatError
        They are not the published ones.
    """
    path = found[0].path
    if path.suffix == ".gz":
        X, y = read_csv(path)
    elif path.suffix == ".rar":
        X, y = read_arff([ArffFile(path, member) for member in MEMBERS])
    else:
        X, y = read_arff([ArffFile(file.path) for file in found])
    digest = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()
    if digest != VALUES_SHA256:
        raise FormatError(f"{path}: not the published values: SHA-256 expected {VALUES_SHA256}, found {digest}")
    return X, y


def read_arff(files: Sequence[ArffFile]) -> Values:
    """Read Mulan's training and test rows. The labels are the last columns; Mulan's XML lists them in another order."""
    require_same_header(files[0], files[1])
    table = read_table(files, target_columns(files[0], len(LABELS)), "multilabel")
    return table.X, table.y


def read_csv(path: Path) -> Values:
    """Read the wheel's rows and put its test rows, which come first, last."""
    with gzip.open(path, "rt", encoding="ascii", newline="") as stream:
        _header, *rows = csv.reader(stream)
    values: NDArray[Any] = np.roll(np.array(rows, dtype=np.float64), -N_TEST, axis=0)
    X, y = np.split(values, [len(FEATURES)], axis=1)
    return X.astype(np.float32), y.astype(np.uint8)
