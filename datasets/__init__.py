"""The data sets of the reproduction, each loaded by ``datasets.load(name)``.

A module of this package that defines ``load(*, cache_dir, download)`` and has a public name is a data set; `base`,
`fetch` and `mulan` are the exceptions. A set of ARFF files needs no module, only a file in ``arff_sets``: `mulan` loads
it.
"""

from __future__ import annotations

import os
import pkgutil
from importlib import import_module

from . import _arff_sets
from .base import (
    ChecksumError,
    DataFolderError,
    Dataset,
    DatasetError,
    FormatError,
    MissingDataError,
    Split,
    TimingOnlyError,
    UnknownDatasetError,
)

__all__ = [
    "ChecksumError",
    "DataFolderError",
    "Dataset",
    "DatasetError",
    "FormatError",
    "MissingDataError",
    "Split",
    "TimingOnlyError",
    "UnknownDatasetError",
    "file_checksums",
    "load",
    "names",
]

_NOT_A_SET = {"base", "fetch", "mulan"}


def names() -> list[str]:
    """Return the names `load` accepts, sorted."""
    return sorted([*_modules(), *_arff_sets.names()])


def _modules() -> list[str]:
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return [name for name in modules if not name.startswith("_") and name not in _NOT_A_SET]


def file_checksums(name: str) -> dict[str, str]:
    """Return the SHA-256 of the files of a set as they are now, where its own code does not fix them.

    Those are the sets of ARFF files: a description may leave a checksum out, or be changed. Of other sets, and where
    the files are not here, there is nothing to return.
    """
    if name not in _arff_sets.names():
        return {}
    from . import mulan

    return mulan.file_checksums(name)


def load(name: str, *, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load a data set from the user's folder, the cache or its public origin, in this order.

    Parameters
    ----------
    name : str
        One of `names()`.
    cache_dir : path, optional
        Where downloads are kept. Default: the folder named by ``GBDTMO_CACHE``, else the user's cache folder.
    download : bool, default True
        Whether a missing file may be downloaded.

    Returns
    -------
    Dataset

    Raises
    ------
    UnknownDatasetError
        There is no such data set.
    ChecksumError
        A file in the folder named by ``GBDTMO_DATA`` is not the expected one.
    DataFolderError
        ``GBDTMO_DATA`` names no folder, or the cache cannot be written.
    MissingDataError
        The files are not here and cannot be downloaded; the message says where to get and put them.
    """
    if name not in names():
        raise UnknownDatasetError(f"unknown data set '{name}'; known are: {', '.join(names())}")
    if name in _modules():
        dataset = import_module(f".{name}", __name__).load(cache_dir=cache_dir, download=download)
    else:
        dataset = import_module(".mulan", __name__).load(name, cache_dir=cache_dir, download=download)
    assert isinstance(dataset, Dataset)
    return dataset
