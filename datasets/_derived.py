"""Keep what is computed from a data set's files, so that it is computed once.

One file a result, in the cache: its name tells what it was computed from and how, its content carries the SHA-256 of
all its arrays. A file that is damaged, or that cannot be read, is computed anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fetch import cache_folder

Arrays = dict[str, NDArray[Any]]

_FOLDER = "derived"
_DIGEST = "sha256"

_log = logging.getLogger(__name__)


def cached(
    name: str,
    key: Mapping[str, str | int],
    compute: Callable[[], Arrays],
    *,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Arrays:
    """Return computed arrays from the cache, or compute and keep them.

    Parameters
    ----------
    name : str
        What the arrays are; the first part of the file's name.
    key : mapping
        All that the arrays depend on: checksums of the files, settings, versions of libraries.
    compute : callable
        Makes the arrays: name to array, without objects.
    cache_dir : path, optional
        As for `datasets.load`.

    Notes
    -----
    A cache that cannot be written costs time, not data: a warning is logged and the arrays are returned.
    """
    settings = json.dumps(dict(key), sort_keys=True)
    path = cache_folder(cache_dir) / _FOLDER / f"{name}-{hashlib.sha256(settings.encode()).hexdigest()[:16]}.npz"
    arrays = _read(path)
    if arrays is None:
        arrays = compute()
        _write(path, arrays)
    return arrays


def digest_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of named arrays: of their names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()


def _read(path: Path) -> Arrays | None:
    """Return the arrays of a whole file, None where there is none."""
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        stated = str(arrays.pop(_DIGEST))
        if (found := digest_of(arrays)) != stated:
            raise ValueError(f"SHA-256 expected {stated}, found {found}")
    except Exception as error:  # damaged bytes make zipfile, zlib and NumPy's header parser raise nearly anything
        _log.warning("%s in the cache is damaged (%s: %s); it is computed anew", path, type(error).__name__, error)
        return None
    return arrays


def _write(path: Path, arrays: Arrays) -> None:
    content: dict[str, Any] = {**arrays, _DIGEST: np.array(digest_of(arrays))}
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as stream:
            np.savez(stream, **content)
        os.replace(part, path)
    except OSError as error:
        _log.warning("cannot keep %s (%s); it will be computed again next time", path, error)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
