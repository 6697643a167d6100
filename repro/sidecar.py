"""Puts beside a table the file that says what it was made from, and reads it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from repro import provenance
from repro.store import StoreError, json_object, seal, unseal


def with_sidecar(
    name: str,
    *,
    markdown: str,
    csv: str,
    records: Iterable[Mapping[str, Any]],
    about: Mapping[str, Any],
    beside: Mapping[str, bytes],
) -> dict[str, bytes]:
    """Return the files of a table by their names: ``<name>.md``, ``<name>.csv``, those beside it, and ``<name>.json``.

    The last has the checksums of the others and its own digest, so that a change of any is noticed.

    Parameters
    ----------
    name : str
    markdown, csv : str
    records : iterable of mapping
        What the table was made from, each with ``run_id`` and ``provenance``.
    about : mapping
        What the sidecar says first.
    beside : mapping of str to bytes
        Drawings, published records.
    """
    records = list(records)
    contents = {f"{name}.md": markdown.encode(), f"{name}.csv": csv.encode(), **beside}
    code = provenance.code_version()
    sidecar = {
        **about,
        "sha256": {file: hashlib.sha256(content).hexdigest() for file, content in contents.items()},
        "provenance": origins(record["provenance"] for record in records),
        "written": provenance.utc_now(),
        "written_by": {"commit": code["commit"], "dirty": code["dirty"]},
        "runs": [record["run_id"] for record in records],
    }
    return {**contents, f"{name}.json": (json.dumps(seal(sidecar), indent=1) + "\n").encode()}


def read_sidecar(path: Path) -> dict[str, Any]:
    """Return what a sidecar says.

    Raises
    ------
    StoreError
        If it cannot be read, or is not as it was written.
    """
    remedy = (
        f"Restore the published file, or delete it with {path.stem}.md and publish again: "
        f"make publish EXPERIMENT={path.stem}"
    )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: {error}. {remedy}") from error
    return unseal(json_object(text, str(path), remedy), str(path), remedy)


def origins(described: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Collect what the runs of a table came from: each distinct value once."""
    keys = ("commit", "dirty", "versions", "python", "platform", "cpu", "n_cpus", "threads")
    found: dict[str, list[Any]] = {key: [] for key in keys}
    for one in described:
        for key in keys:
            if one.get(key) not in found[key]:
                found[key].append(one.get(key))
    return found
