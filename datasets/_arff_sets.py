"""The descriptions of ARFF sets, ``arff_sets/*.yaml``: which files, where from, and what tells inputs from outputs."""

from __future__ import annotations

import re
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
        groups = [_files(content["files"], "files")]
        if "other_form" in content:
            groups.append(_files(content["other_form"], "other_form"))
        if len(groups[-1]) != len(groups[0]):
            raise ValueError(f"other_form has {len(groups[-1])} files and files {len(groups[0])}; expected as many")
        n_targets = content.get("n_targets")
        if not (n_targets is None or _is_count(n_targets)):
            raise TypeError(f"n_targets should be a whole number from 1, not {n_targets!r}")
        if xml and n_targets is not None:
            raise ValueError("xml lists labels and n_targets counts targets of a regression: give one of them")
        return Description(
            alternatives=[[*map(_file, group), *xml] for group in groups],
            has_xml=bool(xml),
            n_targets=n_targets,
            ignored=tuple(_texts(content, "ignored")),
            rows=tuple(file.get("rows") for file in groups[0]),
        )
    except (KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise FormatError(f"{path}: {type(error).__name__}: {' '.join(str(error).split())}") from error


def _check_keys(content: Mapping[str, Any], known: set[str]) -> None:
    if unknown := set(content) - known:
        raise ValueError(f"unknown keys {sorted(unknown)}; known are {sorted(known)}")


def _files(content: Any, key: str) -> list[Mapping[str, Any]]:
    """Return what is said of each of the files under a key, after checking what `_file` does not."""
    if not isinstance(content, list) or not all(isinstance(file, dict) for file in content):
        raise TypeError(f"{key} should be a list, each of its files with path and sha256")
    if not 1 <= len(content) <= 2:
        raise ValueError("expected one file, or one of training rows and one of test rows")
    if len({str(file.get("path")) for file in content}) < len(content):
        raise ValueError(f"{key} has one file twice; training and test rows would be the same")
    if key == "other_form" and any("rows" in file for file in content):
        raise ValueError("other_form has rows; they are counted for files alone")
    for file in content:
        if not (file.get("rows") is None or _is_count(file["rows"])):
            raise TypeError(f"rows should be a whole number from 1, not {file['rows']!r}")
    return content


def _file(content: Mapping[str, Any]) -> DataFile:
    if not isinstance(content, dict):
        raise TypeError(f"expected a file with path and sha256, not {content!r}")
    _check_keys(content, _FILE_KEYS)
    path, digest = content["path"], content["sha256"]
    if not (isinstance(path, str) and path):
        raise TypeError(f"path should be text, not {path!r}")
    if not (digest is None or (isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest))):
        raise ValueError(f"sha256 should be 64 hex digits in lower case, or null, not {digest!r}")
    return DataFile(path, digest, tuple(Url(url) for url in _texts(content, "origins")))


def _texts(content: Mapping[str, Any], key: str) -> list[str]:
    texts = content.get(key, [])
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise TypeError(f"{key} should be a list of texts, not {texts!r}")
    return texts


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
