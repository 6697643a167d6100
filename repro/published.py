"""Published records: compact, sealed, one line a run; tables that are made from another's records read them here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from repro.store import RunStore, unseal


def published_records(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return a table's published records, each with its ``cell``; none if it has not been published.

    Raises
    ------
    StoreError
        If one was changed after it was published.
    """
    path = records_path(folder, name)
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    remedy = "Restore the published file, or publish it again."
    return [unseal(json.loads(line), f"line {n} of {path}", remedy) for n, line in enumerate(lines, 1)]


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
