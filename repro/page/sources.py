"""Reads what is published under ``results/`` and checks that it is what was written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from repro.page.records import RecordFile, record_file
from repro.published import published_records
from repro.sidecar import read_sidecar

_SUFFIX = "_records"


class PageError(RuntimeError):
    """The page cannot be made from these files; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Published:
    """One published table or figure.

    Attributes
    ----------
    name : str
    markdown : str
    sidecar : dict
        What it was made from.
    drawings : dict of str to Path
        Image files by name without ending, of each the smaller of SVG and PNG.
    records : RecordFile or None
        The records it was made from; None where it needed no runs.
    """

    name: str
    markdown: str
    sidecar: dict[str, Any]
    drawings: dict[str, Path]
    records: RecordFile | None


@dataclass(frozen=True)
class Results:
    """All that is published.

    Attributes
    ----------
    folder : Path
    tables : dict of str to Published
        By name, sorted.
    records : dict of str to RecordFile
        By name, sorted.
    """

    folder: Path
    tables: dict[str, Published]
    records: dict[str, RecordFile]

    def frame(self, name: str) -> pd.DataFrame | None:
        """Return the CSV of a published table (or ``paper/<name>``), with verdicts as text; None if there is none.

        Raises
        ------
        PageError
            If it is no CSV.
        """
        path = self.folder / f"{name}.csv"
        try:
            return pd.read_csv(path, dtype={"matched": object}) if path.exists() else None
        except (OSError, ValueError) as error:
            raise PageError(f"cannot read {path}: {error}. Restore the committed file") from error


def read_results(folder: Path) -> Results:
    """Read the published results.

    Raises
    ------
    PageError
        If a file is missing, or is not the one its sidecar describes, or a table's runs are not among the records.
    StoreError
        If a record, or what says of what a table was made, was changed after it was published.
    """
    names = sorted(path.stem.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}.jsonl"))
    records = {name: record_file(name, published_records(folder, name)) for name in names}
    sidecars = {path.stem: read_sidecar(path) for path in sorted(folder.glob("*.json"))}
    for path in folder.glob("*.md"):
        if path.stem not in sidecars:
            raise PageError(f"{path} has no {path.stem}.json that says what it was made from. {_again(path.stem)}")
    named = {file for sidecar in sidecars.values() for file in sidecar["sha256"]}
    for name in names:
        if f"{name}{_SUFFIX}.jsonl" not in named:
            raise PageError(f"no table names {folder / name}{_SUFFIX}.jsonl: it was not published so. {_again(name)}")
    tables = {
        name: Published(
            name=name,
            markdown=_checked(folder, name, sidecar),
            sidecar=sidecar,
            drawings=_drawings(folder, sidecar),
            records=_records_of(name, sidecar, records),
        )
        for name, sidecar in sidecars.items()
    }
    return Results(folder, tables, records)


def _again(name: str) -> str:
    return f"Restore the published file, or publish it again: make publish EXPERIMENT={name}"


def _checked(folder: Path, name: str, sidecar: Mapping[str, Any]) -> str:
    """Return a table's Markdown, after comparing its files with their checksums."""
    for file, digest in sidecar["sha256"].items():
        path = folder / file
        if not path.exists():
            raise PageError(f"{path} is missing; {name}.json names it. {_again(name)}")
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise PageError(f"{path} was changed after it was published: {name}.json has its checksum. {_again(name)}")
    return (folder / f"{name}.md").read_text("utf-8")


def _drawings(folder: Path, sidecar: Mapping[str, Any]) -> dict[str, Path]:
    """Return the images that a sidecar names, of each the smaller form."""
    found: dict[str, list[Path]] = {}
    for file in sorted(sidecar["sha256"]):
        if file.endswith((".svg", ".png")):
            found.setdefault(Path(file).stem, []).append(folder / file)
    return {stem: min(paths, key=lambda path: path.stat().st_size) for stem, paths in sorted(found.items())}


def _records_of(name: str, sidecar: Mapping[str, Any], records: Mapping[str, RecordFile]) -> RecordFile | None:
    """Find the file that holds the runs of a table: its own, that of the experiment it names, or any with all."""
    runs = set(sidecar["runs"])
    if not runs:
        return None
    source = sidecar.get("records_of", name)
    likely = [records[source]] if source in records else list(records.values())
    for file in likely:
        if runs <= file.run_ids:
            return file
    raise PageError(
        f"{name}.md was made from {len(runs)} runs, and {', '.join(f'{file.name}{_SUFFIX}.jsonl' for file in likely)} "
        f"lacks some of them. {_again(name)}"
    )
