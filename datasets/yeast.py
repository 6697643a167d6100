"""Yeast (UCI): where a protein is found in the cell; 1,484 rows, 8 numeric features, 10 classes."""

from __future__ import annotations

import os

import numpy as np

from ._origins import Url
from .base import Dataset
from .fetch import DataFile, checksums, describe_sources, locate

FILE = DataFile(
    "yeast_uci/yeast.data",
    "7cf61776fc04f527f93bf57a327b863893a1225d82df02d457e8950173218258",
    (
        Url("https://archive.ics.uci.edu/static/public/110/yeast.zip", ("yeast.data",)),
        Url("https://archive.ics.uci.edu/ml/machine-learning-databases/yeast/yeast.data"),
    ),
)
FEATURES = ("mcg", "gvh", "alm", "mit", "erl", "pox", "vac", "nuc")
CLASSES = ("CYT", "NUC", "MIT", "ME3", "ME2", "ME1", "EXC", "VAC", "POX", "ERL")


def load(*, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load the rows in the file's order, without the sequence name in its first column."""
    found = locate("yeast", ((FILE,),), cache_dir=cache_dir, download=download)
    rows = [line.split() for line in found[0].path.read_text("ascii").splitlines()]
    return Dataset(
        name="yeast",
        X=np.array([row[1:-1] for row in rows], dtype=np.float32),
        y=np.array([CLASSES.index(row[-1]) for row in rows]),
        task="multiclass",
        feature_names=FEATURES,
        target_names=CLASSES,
        source=describe_sources(found),
        sha256=checksums(found),
    )
