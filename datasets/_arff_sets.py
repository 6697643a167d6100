"""The descriptions of ARFF sets, ``arff_sets/*.yaml``: which files, where from, and what tells inputs from outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._origins import Url
from .base import FormatError
from .fetch import Alternatives, DataFile

FOLDER = Path(__file__).with_name("arff_sets")

_KEYS = {"files", "other_form", "xml", "n_targets", "ignored"}
_FILE_KEYS = {"path", "sha256", "origins", "rows"}


@dataclass(frozen=True)
class Description:
    """One set.

    Attributes
    ----------
    alternatives : sequence of sequences of DataFile
        As for `datasets.fetch.locate`; with an XML file, that is the last of each group.
    has_xml : bool
    n_targets : int or None
    ignored : tuple of str
    rows : tuple of int or None
        Of each ARFF file; None where it is not stated.
    """

    alternatives: Alternatives
    has_xml: bool
    n_targets: int | None
    ignored: tuple[str, ...]
    rows: tuple[int | None, ...]


def names() -> list[str]:
    """Return the names of the sets described."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_description(name: str) -> Description:
    """Read the description of a set.

    Raises
    ------
    FormatError
        It has an unknown key, or lacks one.
    """
    import yaml

    path = FOLDER / f"{name}.yaml"
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
        if not isinstance(content, dict):
            raise TypeError(f"expected keys and values, not {type(content).__name__}")
        _check_keys(content, _KEYS)
        xml = [_file(content["xml"])] if "xml" in content else []
        groups = [content[key] for key in ("files", "other_form") if key in content]
        counts = [file.get("rows") for file in content["files"]]
        if not 1 <= len(content["files"]) <= 2:
            raise ValueError("expected one file, or one of training rows and one of test rows")
        return Description(
            alternatives=[[*map(_file, group), *xml] for group in groups],
            has_xml=bool(xml),
            n_targets=content.get("n_targets"),
            ignored=tuple(content.get("ignored", ())),
            rows=tuple(counts),
        )
    except (KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise FormatError(f"{path}: {type(error).__name__}: {' '.join(str(error).split())}") from error


def _check_keys(content: Mapping[str, Any], known: set[str]) -> None:
    if unknown := set(content) - known:
        raise ValueError(f"unknown keys {sorted(unknown)}; known are {sorted(known)}")


def _file(content: Mapping[str, Any]) -> DataFile:
    _check_keys(content, _FILE_KEYS)
    return DataFile(content["path"], content["sha256"], tuple(Url(url) for url in content.get("origins", ())))
