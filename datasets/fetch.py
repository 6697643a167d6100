"""Find a data set's files, or download them: always verified, never half written.

Order: the folder named by ``GBDTMO_DATA``, the cache, the public origins. Both folders are laid out alike.
A download goes through pooch into a temporary folder; only a file whose SHA-256 fits is copied beside its place in the
cache and renamed, so readers, other processes and interrupted runs see the whole file or none.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ._origins import Origin, OriginError, UnreachableError
from .base import ChecksumError, DataFolderError, MissingDataError

DATA_VARIABLE = "GBDTMO_DATA"
CACHE_VARIABLE = "GBDTMO_CACHE"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes
    ----------
    path : str
        Path below ``GBDTMO_DATA`` and below the cache.
    sha256 : str or None
        Hex digest; None where it is not known, and the loader checks what the file holds.
    origins : tuple
        Where it can be downloaded, in the order to try; empty for a form that is not public.
    """

    path: str
    sha256: str | None
    origins: tuple[Origin, ...]


@dataclass(frozen=True)
class Found:
    """A file, verified if its checksum is known, and where its bytes came from."""

    path: Path
    sha256: str
    source: str


Alternatives = Sequence[Sequence[DataFile]]


def locate(
    name: str, alternatives: Alternatives, *, cache_dir: str | os.PathLike[str] | None = None, download: bool = True
) -> list[Found]:
    """Return verified files of the first alternative that can be had whole.

    Parameters
    ----------
    name : str
        The data set, for messages.
    alternatives : sequence of sequences of DataFile
        Groups of files that hold the same data in different form, the preferred first.
    cache_dir, download
        As for `datasets.load`.

    Raises
    ------
    ChecksumError, DataFolderError, MissingDataError
        As for `datasets.load`.
    """
    own = _data_folder()
    if own is not None and (found := _find_own(own, alternatives)):
        return found
    cache = cache_folder(cache_dir)
    problems: list[str] = []
    if found := _find_cached(cache, alternatives, problems):
        return found
    if download:
        _require_writable(cache)
        if found := _download_any(cache, alternatives, problems):
            return found
    raise MissingDataError(_explain(name, alternatives, own, cache, problems, download))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def describe_sources(found: Sequence[Found]) -> str:
    """Return the distinct sources of some files in one line."""
    return ", ".join(dict.fromkeys(file.source for file in found))


def checksums(found: Sequence[Found]) -> dict[str, str]:
    """Return file name to SHA-256."""
    return {file.path.name: file.sha256 for file in found}


def _data_folder() -> Path | None:
    value = os.environ.get(DATA_VARIABLE)
    if not value:
        return None
    folder = _expand(value, DATA_VARIABLE)
    if not folder.is_dir():
        raise DataFolderError(f"{DATA_VARIABLE} names '{value}', which is no folder; correct it or unset it")
    return folder


def _expand(value: str | os.PathLike[str], origin: str) -> Path:
    try:
        return Path(value).expanduser()
    except RuntimeError as error:  # no such user
        raise DataFolderError(f"{origin} names '{value}': {error}; correct it or leave it out") from error


def cache_folder(cache_dir: str | os.PathLike[str] | None) -> Path:
    """Return the folder given, else the one named by ``GBDTMO_CACHE``, else the user's cache folder."""
    chosen = cache_dir or os.environ.get(CACHE_VARIABLE)
    if chosen:
        return _expand(chosen, "cache_dir" if cache_dir else CACHE_VARIABLE)
    import pooch

    return Path(pooch.os_cache("gbdtmo"))


def _find_own(folder: Path, alternatives: Alternatives) -> list[Found]:
    """Return the first group that lies whole in the user's folder; every file there must be the right one."""
    whole: list[Found] = []
    for files in alternatives:
        present = [_check_own(folder / file.path, file) for file in files if (folder / file.path).is_file()]
        if len(present) == len(files) and not whole:
            whole = present
    return whole


def _check_own(path: Path, file: DataFile) -> Found:
    digest = sha256_of(path)
    if file.sha256 not in (None, digest):
        raise ChecksumError(
            f"{path} is not the expected file: SHA-256 expected {file.sha256}, found {digest}. "
            f"Replace it, or move it out of {DATA_VARIABLE} to have it downloaded."
        )
    return Found(path, digest, DATA_VARIABLE)


def _find_cached(cache: Path, alternatives: Alternatives, problems: list[str]) -> list[Found]:
    for files in alternatives:
        found = [_cached(cache, file, problems) for file in files]
        whole = [file for file in found if file is not None]
        if len(whole) == len(files):
            return whole
    return []


def _cached(cache: Path, file: DataFile, problems: list[str]) -> Found | None:
    path = cache / file.path
    if not path.is_file():
        return None
    digest = sha256_of(path)
    if file.sha256 in (None, digest):
        return Found(path, digest, "cache")
    problem = f"{path} in the cache is damaged: SHA-256 expected {file.sha256}, found {digest}"
    if problem not in problems:
        _log.warning("%s", problem)
        problems.append(problem)
    return None


def _require_writable(cache: Path) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            pass
    except OSError as error:
        raise _unusable_cache(cache, error) from error


def _unusable_cache(cache: Path, error: OSError) -> DataFolderError:
    return DataFolderError(
        f"cannot write a download into the cache {cache}: {error}. "
        f"Make room there (and in {tempfile.gettempdir()}), or name another folder by {CACHE_VARIABLE} or cache_dir."
    )


def _download_any(cache: Path, alternatives: Alternatives, problems: list[str]) -> list[Found]:
    down: set[str] = set()
    for files in alternatives:
        found: list[Found] = []
        for file in files:
            here = _cached(cache, file, problems) or _download(cache, file, problems, down)
            if here is None:
                break
            found.append(here)
        if len(found) == len(files):
            return found
    return []


def _download(cache: Path, file: DataFile, problems: list[str], down: set[str]) -> Found | None:
    """Try the origins of a file in turn; a host found unreachable is not asked again."""
    for origin in file.origins:
        if origin.host in down:
            problems.append(f"{origin.label}: not tried, {origin.host} was out of reach before")
            continue
        try:
            path = _fetch(cache, file, origin)
        except OriginError as error:
            if isinstance(error, UnreachableError):
                down.add(origin.host)
            problems.append(f"{origin.label}: {error}")
            _log.info("%s", problems[-1])
        else:
            return Found(path, sha256_of(path), origin.label)
    return None


def _fetch(cache: Path, file: DataFile, origin: Origin) -> Path:
    import pooch

    target = cache / file.path
    known = None if file.sha256 is None else f"sha256:{file.sha256}"
    try:
        with tempfile.TemporaryDirectory(prefix="gbdtmo-") as folder:
            staged = pooch.retrieve(origin.label, known_hash=known, fname=target.name, path=folder, downloader=origin)
            _publish(Path(staged), target)
    except ValueError as error:  # pooch: the checksum does not fit
        raise OriginError(str(error)) from error
    except OSError as error:
        raise _unusable_cache(cache, error) from error
    return target


def _publish(staged: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        shutil.copyfile(staged, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _explain(
    name: str, alternatives: Alternatives, own: Path | None, cache: Path, problems: list[str], download: bool
) -> str:
    is_public = any(all(file.origins for file in files) for files in alternatives)
    failed = " and could not be downloaded." if download and is_public else "."
    lines = [f"data set '{name}' is not on this machine{failed}"]
    lines.append(f"Looked in {DATA_VARIABLE} ({own or 'not set'}) and the cache ({cache}).")
    lines += [f"  - {problem}" for problem in problems]
    if is_public:
        lines.append("Try again with a network, or" if download else "Downloading is switched off: allow it, or")
    else:
        lines.append("Nothing of it can be downloaded here:")
    lines.append(f"get these files and put them under the folder named by {DATA_VARIABLE} as")
    groups = []
    for files in alternatives:
        groups.append("\n".join(f"  {file.path}  from  {_labels(file)}" for file in files))
    lines.append("\nor\n".join(groups))
    return "\n".join(lines)


def _labels(file: DataFile) -> str:
    return "  or  ".join(origin.directions for origin in file.origins) or "a copy you have"
