"""Run records on disk: one JSON file a finished run, written whole or not at all.

A record carries the digest of what was written, so that a change by hand is noticed when it is read.
Layout under the store's root (``results/runs`` by default)::

    records/<run_id>.json    finished runs
    failures/<run_id>.json   runs whose last try failed; removed when a later try succeeds
    failures/dataset-<name>.json   data sets that could not be had
    models/                  model files the records point to
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import socket
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from repro import provenance

SCHEMA = 1
RUNS_DIR = "results/runs"
"""Where the store is by default, relative to the project."""
_TRACEBACK_LINES = 30
_ROOM_BYTES = 64 * 2**20
_NUMBER = (int, float)
Shape = dict[str, type | tuple[type, ...]]
"""What readers of a record rely on, by its place, with its types; a place may be inside another, as ``a.b``."""
RUN_SHAPE: Shape = {
    "schema": int,
    "run_id": str,
    "identity": dict,
    **{f"identity.{key}": str for key in ("dataset", "protocol", "model")},
    "identity.params": dict,
    "identity.seed": int,
    "config": dict,
    "scores": dict,
    "scores.metric": str,
    "scores.test": _NUMBER,
    "scores.validation": (*_NUMBER, type(None)),
    "scores.optimistic": bool,
    "scores.all": dict,
    "best_round": (*_NUMBER, list, type(None)),
    "peak_memory_mb": _NUMBER,
    **dict.fromkeys(("rounds", "n_trees", "n_leaves", "unassigned_fraction"), (*_NUMBER, type(None))),
    "history": dict,
    "seconds": dict,
    "seconds.train": _NUMBER,
    "seconds.total": _NUMBER,
    "dataset": dict,
    "provenance": dict,
    "provenance.started": str,
}


class StoreError(RuntimeError):
    """A record cannot be read or written; the message says which, why, and what to do."""


def check_runs_dir(value: object) -> str:
    """Return a config's ``runs_dir``, the root of the store relative to the project.

    Raises
    ------
    StoreError
        If it names no folder: records would land in the project itself.
    """
    if not isinstance(value, str) or not value.strip():
        raise StoreError(f"runs_dir must name the folder of the run store, such as {RUNS_DIR}, not {value!r}")
    return value


def run_id(identity: Mapping[str, Any]) -> str:
    """Return the name of the run with this identity: 16 hex digits of the SHA-256 of its canonical JSON.

    Parameters
    ----------
    identity : mapping
        ``dataset``, ``protocol``, ``model``, ``params`` and ``seed``; JSON values only.
    """
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record as JSON gives it back, and last its ``digest``, the SHA-256 of its canonical JSON."""
    as_read = json.loads(_to_json(record))
    return {**as_read, "digest": _digest(as_read)}


def unseal(record: Mapping[str, Any], where: str, remedy: str) -> dict[str, Any]:
    """Return a record without its digest, after comparing them.

    Parameters
    ----------
    record : mapping
        As read.
    where, remedy : str
        For the message: what holds the record, and what to do.

    Raises
    ------
    StoreError
        If the record is not what was written.
    """
    bare = {key: value for key, value in record.items() if key != "digest"}
    if "digest" not in record:
        raise StoreError(f"{where} carries no digest, so that nothing tells whether it is as it was written. {remedy}")
    if record["digest"] != _digest(bare):
        raise StoreError(f"{where} was changed after it was written: it does not have its digest. {remedy}")
    return bare


def _digest(record: Mapping[str, Any]) -> str:
    canonical = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def owner() -> str:
    """Name this host and process, for the names of temporary files: it tells a later clean-up whose leftover one is."""
    return f"{socket.gethostname()}.{os.getpid()}"


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file (text as UTF-8) so that a reader, or a kill at any moment, finds the old file or the whole new one.

    Raises
    ------
    StoreError
        If the folder cannot be written or the disk is full. Nothing is left behind then.
    """
    write_together({path: content})


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write files that belong together: none is replaced before all are whole on the disk.

    A kill while they are being replaced can leave some old; whoever must notice keeps their checksums.

    Raises
    ------
    StoreError
        As for `write_atomically`.
    """
    temporaries = {path: path.with_name(f".{path.name}.{owner()}.tmp") for path in contents}
    replaced: list[Path] = []
    path = None
    try:
        try:
            for path, content in contents.items():
                if path.is_dir():
                    raise IsADirectoryError(errno.EISDIR, "a folder has its name", str(path))
                path.parent.mkdir(parents=True, exist_ok=True)
                with temporaries[path].open("wb") as file:
                    file.write(content.encode() if isinstance(content, str) else content)
                    file.flush()
                    os.fsync(file.fileno())
            for path, temporary in temporaries.items():
                os.replace(temporary, path)
                replaced.append(path)
        finally:
            for temporary in temporaries.values():
                with suppress(OSError):  # its folder may be no folder
                    temporary.unlink()
        for folder in {path.parent for path in contents}:
            _sync_folder(folder)
    except OSError as error:
        changed = (
            f"{', '.join(one.name for one in replaced)} had been replaced by then"
            if replaced
            else "Nothing was changed"
        )
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}. {changed}; make room or make the folder "
            "writable, then run the same command again."
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system lets folders be opened."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class RunStore:
    """The records, failures and models under one folder.

    Parameters
    ----------
    root : path
        Made on first writing.
    shape : dict, optional
        What every record must hold; that of an experiment's run if not given.
    """

    def __init__(self, root: str | Path, shape: Shape = RUN_SHAPE) -> None:
        self.root = Path(root)
        self._shape = shape
        self.records_dir = self.root / "records"
        self.failures_dir = self.root / "failures"
        self.models_dir = self.root / "models"
        self.tables_dir = self.root / "tables"

    def prepare(self) -> None:
        """Make the folders and check that they can be written and that there is room.

        Raises
        ------
        StoreError
            If they cannot, before any work is done.
        """
        for folder in (self.records_dir, self.failures_dir, self.models_dir, self.tables_dir):
            probe = folder / f".probe.{os.getpid()}"
            write_atomically(probe, "")
            probe.unlink(missing_ok=True)
        self.check_room()

    def check_room(self) -> None:
        """Check that the disk is not nearly full.

        Raises
        ------
        StoreError
            If it is: every further cell would be computed in vain.
        """
        free = shutil.disk_usage(self.root).free
        if free < _ROOM_BYTES:
            raise StoreError(
                f"only {free / 2**20:.0f} MiB are free under {self.root}, {_ROOM_BYTES / 2**20:.0f} are wanted for "
                "records and models. What is recorded stays; make room, then run the same command again."
            )

    def record_path(self, identifier: str) -> Path:
        """Return where the record of this run lies, or would."""
        return self.records_dir / f"{identifier}.json"

    def has(self, identifier: str) -> bool:
        """Tell whether the run is recorded."""
        return self.record_path(identifier).exists()

    def read(self, identifier: str) -> dict[str, Any]:
        """Return the record of a run.

        Raises
        ------
        StoreError
            If there is none, or the file is no record of this run, or not as it was written.
        """
        path = self.record_path(identifier)
        record = _read_json(path)
        if record.get("schema", SCHEMA) != SCHEMA:
            raise StoreError(
                f"{path} has schema {record['schema']}, this version reads {SCHEMA}. Delete it to run the cell again."
            )
        if faults := _faults(record, self._shape):
            raise StoreError(f"{path} is no run record: {', '.join(faults)}. Delete it to run the cell again.")
        if record["run_id"] != identifier or run_id(record["identity"]) != identifier:
            raise StoreError(
                f"{path} does not hold the run its name says: its identity has the run id "
                f"{run_id(record['identity'])}. Delete it to run the cell again."
            )
        return unseal(record, str(path), "Delete it to run the cell again.")

    def identifiers(self) -> list[str]:
        """Return the ids of all recorded runs, sorted."""
        return sorted(path.stem for path in self.records_dir.glob("*.json") if not path.name.startswith("."))

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield all records in the order of their ids."""
        for identifier in self.identifiers():
            yield self.read(identifier)

    def write(self, record: Mapping[str, Any]) -> None:
        """Record a finished run and forget its failures.

        Raises
        ------
        StoreError
            If the record is not whole, or cannot be written.
        """
        if faults := _faults(record, self._shape):
            raise StoreError(f"not a whole run record: {', '.join(faults)}")
        if record["run_id"] != run_id(record["identity"]):
            raise StoreError(f"{record['run_id']} is not the run id of the record's identity")
        write_atomically(self.record_path(record["run_id"]), _to_json(seal(record)))
        self.forget_failure(record["run_id"])

    def write_failure(self, identity: Mapping[str, Any], error: BaseException | str) -> None:
        """Note why the last try of a run failed."""
        self._write_failure(run_id(identity), {"identity": dict(identity)}, error)

    def write_missing_dataset(self, name: str, error: BaseException | str) -> None:
        """Note why a data set could not be had."""
        self._write_failure(f"dataset-{name}", {"dataset": name}, error)

    def _write_failure(self, stem: str, what: Mapping[str, Any], error: BaseException | str) -> None:
        lines: list[str] = []
        if isinstance(error, BaseException):
            lines = "".join(traceback.format_exception(error)).splitlines()[-_TRACEBACK_LINES:]
            error = f"{type(error).__name__}: {error}"
        note = {**what, "error": error, "traceback": lines, "time": provenance.utc_now()}
        write_atomically(self.failures_dir / f"{stem}.json", _to_json(note, indent=1))

    def failure(self, identifier: str) -> str | None:
        """Return why the last try of a run failed, None if it did not."""
        return self._failure(identifier)

    def missing_dataset(self, name: str) -> str | None:
        """Return why a data set could not be had at the last try, None if it could."""
        return self._failure(f"dataset-{name}")

    def _failure(self, stem: str) -> str | None:
        path = self.failures_dir / f"{stem}.json"
        return str(_read_json(path).get("error")) if path.exists() else None

    def forget_failure(self, identifier: str) -> None:
        """Remove the note of a failed try."""
        (self.failures_dir / f"{identifier}.json").unlink(missing_ok=True)

    def forget_missing_dataset(self, name: str) -> None:
        """Remove the note that a data set could not be had."""
        self.forget_failure(f"dataset-{name}")

    def clean_temporary(self) -> list[Path]:
        """Remove what killed processes of this machine left half written; return the removed files."""
        host = socket.gethostname()
        removed = []
        for path in (*self.root.glob("*/.*.tmp"), *self.models_dir.glob(".*.partial*")):
            named, _, process = path.name.removesuffix(".tmp").partition(".partial")[0].rpartition(".")
            if not named.endswith(f".{host}"):
                continue
            if process.isdigit() and not psutil.pid_exists(int(process)):
                path.unlink(missing_ok=True)
                removed.append(path)
        return removed


def _faults(record: Mapping[str, Any], shape: Shape) -> list[str]:
    """Name what readers rely on and would not find; what lies in a faulty part is not named beside it."""
    faults: dict[str, str] = {}
    for place, types in shape.items():
        parent, _, key = place.rpartition(".")
        if parent in faults:
            continue
        holder = record[parent] if parent else record
        if key not in holder:
            faults[place] = f"{place} is missing"
        elif not isinstance(holder[key], types):
            faults[place] = f"{place} is {json.dumps(holder[key])[:40]}"
    return list(faults.values())


def _to_json(value: Mapping[str, Any], indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else None
    return json.dumps(value, indent=indent, separators=separators, sort_keys=False, allow_nan=False) + "\n"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StoreError(f"there is no {path}; the run has not been recorded") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: {error}. Delete it to run the cell again.") from error
    return json_object(text, str(path), "Delete it to run the cell again.")


def json_object(text: str, where: str, remedy: str) -> dict[str, Any]:
    """Parse one JSON object with finite numbers.

    Raises
    ------
    StoreError
        If it is something else; the message begins with `where` and ends with `remedy`.
    """
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where} is not whole JSON ({error}): this program did not write it so. {remedy}") from error
    if not isinstance(value, dict):
        raise StoreError(f"{where} holds a {type(value).__name__}, not an object. {remedy}")
    return value


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
