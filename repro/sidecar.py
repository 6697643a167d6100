"""Writes a table with the file beside it that says what it was made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from repro import provenance
from repro.store import write_atomically


def write_with_sidecar(
    folder: Path,
    name: str,
    *,
    markdown: str,
    csv: str,
    records: Iterable[Mapping[str, Any]],
    about: Mapping[str, Any],
    drawings: Mapping[str, bytes],
) -> Path:
    """Write ``<name>.md``, ``<name>.csv``, any drawings, and ``<name>.json``.

    Parameters
    ----------
    folder : Path
    name : str
    markdown, csv : str
    records : iterable of mapping
        What the table was made from, each with ``run_id`` and ``provenance``.
    about : mapping
        What the sidecar says first.
    drawings : mapping of str to bytes
        Files beside the table, by their name.

    Returns
    -------
    Path
        The Markdown file.
    """
    records = list(records)
    contents = {f"{name}.md": markdown.encode(), f"{name}.csv": csv.encode(), **drawings}
    for file, content in contents.items():
        write_atomically(folder / file, content)
    code = provenance.code_version()
    sidecar = {
        **about,
        "sha256": {file: hashlib.sha256(content).hexdigest() for file, content in contents.items()},
        "provenance": origins(record["provenance"] for record in records),
        "written": provenance.utc_now(),
        "written_by": {"commit": code["commit"], "dirty": code["dirty"]},
        "runs": [record["run_id"] for record in records],
    }
    write_atomically(folder / f"{name}.json", json.dumps(sidecar, indent=1) + "\n")
    return folder / f"{name}.md"


def origins(described: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Collect what the runs of a table came from: each distinct value once."""
    keys = ("commit", "dirty", "versions", "python", "platform", "cpu", "n_cpus", "threads")
    found: dict[str, list[Any]] = {key: [] for key in keys}
    for one in described:
        for key in keys:
            if one.get(key) not in found[key]:
                found[key].append(one.get(key))
    return found
