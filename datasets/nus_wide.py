"""NUS-WIDE: 81 concepts of 269,648 pictures, from 128 cVLAD+ features (GBDT-MO, section 5.2).

Features and labels come as Mulan's two ARFF files, or as the RAR archive that holds them where a program that opens it
is installed. Their checksums are not known here, so what they hold is checked: the sizes, and every label.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from . import _rar
from ._arff import ArffFile
from ._origins import Url
from .base import Dataset, FormatError, MissingDataError, published_split
from .fetch import DataFile, Found, checksums, describe_sources, locate
from .mulan import read_table, require_same_header

N_TRAIN, N_TEST, N_FEATURES = 161_789, 107_859, 128
_CONCEPTS = """
airport animal beach bear birds boats book bridge buildings cars castle cat cityscape clouds computer coral cow
dancing dog earthquake elk fire fish flags flowers food fox frost garden glacier grass harbor horses house lake leaf
map military moon mountain nighttime ocean person plane plants police protest railroad rainbow reflection road rocks
running sand sign sky snow soccer sports statue street sun sunset surf swimmers tattoo temple tiger tower town toy
train tree valley vehicle water waterfall wedding whales window zebra
"""
CONCEPTS = tuple(_CONCEPTS.split())
ALSO_CALLED = {"cityspace": "cityscape"}  # Mulan's spelling
LABELS_SHA256 = "a6aa63c143745fb2a19b1592f1a44d847fa7c1e949dd374b5af9ef27622ed5e3"
"""Of the official labels as uint8, training rows first, one byte a label."""

MEMBERS = ("nus-wide-full-cVLADplus-train.arff", "nus-wide-full-cVLADplus-test.arff")
ARFF_FILES = tuple(DataFile(f"nus_wide/{member}", None, origins=()) for member in MEMBERS)
RAR_FILE = DataFile(
    "nus_wide/nuswide-cVLADplus.rar",
    None,
    (Url("https://sourceforge.net/projects/mulan/files/datasets/nuswide-cVLADplus.rar/download"),),
)


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load the official training and test rows; of the training rows, the last 20 % after RandomState(0) validate.

    The files are read twice and streamed: memory is that of the arrays, 160 MB, and little more.
    """
    found = _locate(cache_dir, download)
    files = _open(found)
    require_same_header(files[0], files[1])
    targets = label_columns(files[0])
    named = len(files[0].attributes) == 1 + N_FEATURES + len(CONCEPTS)  # the first column names the picture
    table = read_table(files, targets, "multilabel", ignored=[files[0].attributes[0].name] if named else [])
    if table.rows != (N_TRAIN, N_TEST) or table.X.shape[1] != N_FEATURES:
        raise FormatError(
            f"{files[0].path}: {table.rows} rows of {table.X.shape[1]} features; expected {(N_TRAIN, N_TEST)} of "
            f"{N_FEATURES}"
        )
    require_official_labels(table.y, str(files[0].path))
    return Dataset(
        name="nus_wide",
        X=table.X,
        y=table.y,
        task="multilabel",
        feature_names=table.feature_names,
        target_names=CONCEPTS,
        source=describe_sources(found),
        sha256=checksums(found),
        fixed_split=published_split(N_TRAIN, N_TEST),
    )


def _locate(cache_dir: str | os.PathLike[str] | None, download: bool) -> list[Found]:
    """Find the two files; the archive serves only where it can be opened."""
    alternatives: list[Sequence[DataFile]] = [ARFF_FILES]
    if _rar.can_open():
        return locate("nus_wide", [*alternatives, (RAR_FILE,)], cache_dir=cache_dir, download=download)
    try:
        return locate("nus_wide", alternatives, cache_dir=cache_dir, download=download)
    except MissingDataError as error:
        origin = RAR_FILE.origins[0].label
        raise MissingDataError(f"{error}\nThey lie in {origin}. To have it downloaded: {_rar.HELP}.") from error


def _open(found: Sequence[Found]) -> list[ArffFile]:
    if len(found) == 1:
        return [ArffFile(found[0].path, member) for member in MEMBERS]
    return [ArffFile(file.path) for file in found]


def label_columns(file: ArffFile) -> list[int]:
    """Return the columns of the 81 concepts, in the order of `CONCEPTS`."""
    columns = {ALSO_CALLED.get(a.name, a.name): column for column, a in enumerate(file.attributes)}
    absent = [concept for concept in CONCEPTS if concept not in columns]
    if absent:
        last = file.attributes[-1].line
        raise file.fail(last, f"{len(absent)} of the 81 concepts are no attributes: {', '.join(absent[:5])}")
    return [columns[concept] for concept in CONCEPTS]


def require_official_labels(labels: NDArray[np.uint8], origin: str) -> None:
    """Refuse labels, uint8 (269,648, 81), that are not the official ones in the official order of rows."""
    digest = hashlib.sha256(np.ascontiguousarray(labels).data).hexdigest()
    if digest != LABELS_SHA256:
        raise FormatError(
            f"{origin}: the labels are not the official ones: SHA-256 expected {LABELS_SHA256}, found {digest}"
        )
