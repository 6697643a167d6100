"""Published records: compact, sealed, one line a run; tables that are made from another's records read them here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from repro.store import RunStore, StoreError, json_object, unseal

_REMEDY = "Restore the published file, or publish it again."


def published_records(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return a table's published records, each with its ``cell``; none if it has not been published.

    Raises
    ------
    StoreError
        If the file is not as it was published: a line was changed, cut off or doubled.
    """
    path = records_path(folder, name)
    if not path.exists():
        return []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: {error}. {_REMEDY}") from error
    records, seen = [], dict[str, int]()
    for number, line in enumerate(lines, 1):
        where = f"line {number} of {path}"
        record = unseal(json_object(line, where, _REMEDY), where, _REMEDY)
        first = seen.setdefault(json.dumps(record.get("cell"), sort_keys=True), number)
        if first != number:
            raise StoreError(f"{where} holds the same cell as line {first}. {_REMEDY}")
        records.append(record)
    return records


def records_path(folder: Path, name: str) -> Path:
    """Return where a table's published records lie, or would: one line of JSON a run."""
    return folder / f"{name}_records.jsonl"


class PublishedStore(RunStore):
    """A run store whose records are published ones, without their curves; failures are the store's own.

    Parameters
    ----------
    root : path
    records : iterable of mapping
        See `published_records`.
    local : bool
        Whether a record of the store's own comes first.
    """

    def __init__(self, root: str | Path, records: Iterable[Mapping[str, Any]], local: bool = False) -> None:
        super().__init__(root)
        self._published = {record["run_id"]: dict(record) for record in records}
        self._local = local

    def has(self, identifier: str) -> bool:
        """Tell whether the run is recorded, here or among the published."""
        return identifier in self._published or (self._local and super().has(identifier))

    def read(self, identifier: str) -> dict[str, Any]:
        """Return the record of a run, see `RunStore.read`."""
        if identifier in self._published and not (self._local and super().has(identifier)):
            return self._published[identifier]
        return super().read(identifier)
