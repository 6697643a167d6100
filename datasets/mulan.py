"""Any multi-label or multi-target set of Mulan or MEKA: ARFF files, and what tells inputs from outputs.

Three ways of telling are known: Mulan's XML file of labels; MEKA's ``-C n`` in the relation's name (the first n
attributes are labels, the last -n if n is negative); a number of targets, which are the last attributes. The sets that
can be loaded by name are described in ``arff_sets/*.yaml``, see `load`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from ._arff import BINARY, ArffFile, Attribute
from ._arff_sets import read_description
from .base import Dataset, DatasetError, FormatError, Task, published_split
from .fetch import checksums, describe_sources, locate


@dataclass(frozen=True, eq=False)
class Table:
    """What ARFF files of one set hold.

    Attributes
    ----------
    X : ndarray of float32, shape (n, m)
        NaN: missing.
    y : ndarray of shape (n, d)
        uint8 0/1 for labels, float64 for targets.
    task : {"multilabel", "regression"}
    feature_names, target_names : tuple of str
        In the order of the columns.
    rows : tuple of int
        How many rows each file holds.
    """

    X: NDArray[np.float32]
    y: NDArray[Any]
    task: Task
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    rows: tuple[int, ...]


def load(name: str, *, cache_dir: str | os.PathLike[str] | None = None, download: bool = True) -> Dataset:
    """Load the set that ``arff_sets/<name>.yaml`` describes.

    One file is split at random by seed; of two, the first holds the training rows and the second the test rows.
    """
    described = read_description(name)
    found = locate(name, described.alternatives, cache_dir=cache_dir, download=download)
    paths = [file.path for file in found]
    xml = paths.pop() if described.has_xml else None
    table = read(paths, xml=xml, n_targets=described.n_targets, ignored=described.ignored)
    for path, count, expected in zip(paths, table.rows, described.rows, strict=True):
        if expected not in (None, count):
            file = ArffFile(path)
            raise file.fail(
                file.last_line(),
                f"the file ends after {count} rows, data set '{name}' has {expected}; it is cut off or another one",
            )
    return Dataset(
        name=name,
        X=table.X,
        y=table.y,
        task=table.task,
        feature_names=table.feature_names,
        target_names=table.target_names,
        source=describe_sources(found),
        sha256=checksums(found),
        fixed_split=published_split(*table.rows) if len(table.rows) == 2 else None,
    )


def file_checksums(name: str) -> dict[str, str]:
    """Return the SHA-256 of the files that `load` would read now, by name; none where they cannot be had offline."""
    try:
        return checksums(locate(name, read_description(name).alternatives, download=False))
    except DatasetError:
        return {}


def read(
    paths: Sequence[Path], *, xml: Path | None = None, n_targets: int | None = None, ignored: Sequence[str] = ()
) -> Table:
    """Read the ARFF files of one set, which have one header, into arrays.

    A nominal input of two values becomes one 0/1 column, of more one 0/1 column a value. The files are read twice,
    first to count their rows, so that little more than the arrays is ever held.

    Parameters
    ----------
    paths : sequence of Path
    xml : Path, optional
        Mulan's list of labels; its order says nothing, that of the columns counts.
    n_targets : int, optional
        The last `n_targets` attributes are the targets of a regression. Neither this nor `xml`: MEKA's ``-C n``.
    ignored : sequence of str
        Attributes that are neither inputs nor outputs, such as names of pictures.

    Raises
    ------
    FormatError
        The files are not what they should be; the message names file and line.
    """
    if isinstance(paths, str | os.PathLike):
        raise TypeError(f"paths should be a list of files, not the single {str(paths)!r}")
    if isinstance(ignored, str):
        raise TypeError(f"ignored should be a list of attributes, not the single {ignored!r}")
    if xml is not None and n_targets is not None:
        raise ValueError("xml lists labels and n_targets counts targets of a regression: give one of them")
    files = [ArffFile(Path(path)) for path in paths]
    if not files:
        raise ValueError("paths names no file; expected at least one")
    for other in files[1:]:
        require_same_header(files[0], other)
    if xml is not None:
        targets = label_columns(files[0], read_label_names(Path(xml)), Path(xml))
    elif n_targets is not None:
        targets = target_columns(files[0], n_targets)
    else:
        targets = meka_columns(files[0])
    return read_table(files, targets, "regression" if n_targets is not None else "multilabel", ignored)


def read_table(files: Sequence[ArffFile], targets: Sequence[int], task: Task, ignored: Sequence[str] = ()) -> Table:
    """Read files whose output columns are known; see `read`."""
    first = files[0]
    by_name = {attribute.name: column for column, attribute in enumerate(first.attributes)}
    for name in ignored:
        if name not in by_name:
            raise first.fail(1, f"there is no attribute '{name}' that could be ignored")
        if by_name[name] in targets:
            raise first.fail(first.attributes[by_name[name]].line, f"'{name}' is an output and cannot be ignored")
    skipped = {by_name[name] for name in ignored}
    taken = skipped | set(targets)
    inputs = _Inputs([(c, a) for c, a in enumerate(first.attributes) if c not in taken])
    _require_inputs(first, inputs.names)
    outputs = [first.attributes[column] for column in targets]
    for attribute in outputs:
        _require_output(first, attribute, task)
    flipped = np.array([attribute.values == BINARY[::-1] for attribute in outputs])

    counts = [file.count_rows() for file in files]
    for file, count in zip(files, counts, strict=True):
        if not count:
            raise file.fail(file.attributes[-1].line, "no rows follow; the file is cut off")
    X = np.empty((sum(counts), len(inputs.names)), np.float32)
    y = np.empty((sum(counts), len(outputs)), np.float64 if task == "regression" else np.uint8)
    row = 0
    for file in files:
        for lines, block in file.blocks(skipped):
            rows = slice(row, row + len(lines))
            _require_known(file, lines, block, targets)
            y[rows] = block[:, targets] if task == "regression" else block[:, targets] != flipped
            inputs.fill(X[rows], block)
            _require_finite(file, lines, X[rows], block)
            row += len(lines)
    return Table(X, y, task, inputs.names, tuple(attribute.name for attribute in outputs), tuple(counts))


class _Inputs:
    """Where the input attributes go: one column, or one for each value."""

    def __init__(self, attributes: Sequence[tuple[int, Attribute]]) -> None:
        self._single = [(column, a) for column, a in attributes if len(a.values) <= 2]
        self._many = [(column, a) for column, a in attributes if len(a.values) > 2]
        self._columns = _selection([column for column, _ in self._single])
        starts: dict[int, int] = {}
        names: list[str] = []
        for column, attribute in attributes:
            starts[column] = len(names)
            names += _names(attribute)
        self._starts = starts
        self._places = _selection([starts[column] for column, _ in self._single])
        self.names = tuple(names)

    def fill(self, X: NDArray[np.float32], block: NDArray[np.float64]) -> None:
        with np.errstate(over="ignore"):  # too large a value is told of by its line
            X[:, self._places] = block[:, self._columns]
        for column, attribute in self._many:
            codes = block[:, column, None]
            one_hot = np.where(np.isnan(codes), np.nan, codes == np.arange(len(attribute.values)))
            X[:, self._starts[column] :][:, : len(attribute.values)] = one_hot


def _selection(columns: list[int]) -> slice | NDArray[np.intp]:
    """Return the columns as a slice where they are one, since that is much the faster index."""
    one = columns and columns == list(range(columns[0], columns[-1] + 1))
    return slice(columns[0], columns[-1] + 1) if one else np.array(columns, dtype=np.intp)


def _names(attribute: Attribute) -> list[str]:
    if attribute.kind != "nominal" or attribute.values == BINARY:
        return [attribute.name]
    shown = attribute.values[1:] if len(attribute.values) == 2 else attribute.values
    return [f"{attribute.name}={value}" for value in shown]


def require_same_header(first: ArffFile, other: ArffFile) -> None:
    """Refuse files whose attributes differ."""
    if len(first.attributes) != len(other.attributes):
        last = other.attributes[-1].line
        raise other.fail(last, f"{len(other.attributes)} attributes, but {first.path} has {len(first.attributes)}")
    for mine, theirs in zip(first.attributes, other.attributes, strict=True):
        if (mine.name, mine.kind, mine.values) != (theirs.name, theirs.kind, theirs.values):
            raise other.fail(theirs.line, f"attribute '{theirs.name}' is not as in line {mine.line} of {first.path}")


def read_label_names(path: Path) -> list[str]:
    """Read the labels of Mulan's XML, of whatever depth in its hierarchy."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise FormatError(f"{path}, line {error.position[0]}: not XML: {error}") from error
    except (LookupError, ValueError) as error:
        raise FormatError(f"{path}, line 1: its encoding cannot be read ({error}); save it as UTF-8") from error
    except OSError as error:
        raise FormatError(f"the XML of the labels cannot be read: {error}") from error
    names = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    if not names or None in names:
        raise FormatError(f"{path} lists no labels, or one without a name")
    return [name for name in names if name is not None]


def label_columns(file: ArffFile, names: Sequence[str], origin: Path) -> list[int]:
    """Return the columns of the labels named, in the file's order."""
    columns = [column for column, attribute in enumerate(file.attributes) if attribute.name in set(names)]
    if len(columns) != len(names):
        absent = sorted(set(names) - {file.attributes[column].name for column in columns})
        what = f"{len(absent)} of them are no attributes there: {', '.join(absent[:5])}" if absent else "some are equal"
        raise file.fail(file.attributes[-1].line, f"{origin} lists {len(names)} labels, but {what}")
    return columns


def target_columns(file: ArffFile, n_targets: int) -> list[int]:
    """Return the last `n_targets` columns."""
    n = len(file.attributes)
    if isinstance(n_targets, bool) or not isinstance(n_targets, int):
        raise TypeError(f"n_targets should be a whole number, not {n_targets!r}")
    if not 0 < n_targets < n:
        last = file.attributes[-1].line
        raise file.fail(last, f"{n_targets} targets, but there are {n} attributes; expected 1 to {n - 1} targets")
    return list(range(n - n_targets, n))


def meka_columns(file: ArffFile) -> list[int]:
    """Return the columns of the labels that MEKA counts in the relation's name."""
    match = re.search(r"-C\s+(-?[0-9]{1,9})(?![\d.])", file.relation)
    if match is None:
        raise file.fail(
            file.relation_line,
            f"the relation '{file.relation}' has no MEKA option -C; name the XML of the labels or a number of targets",
        )
    n_labels, n = int(match[1]), len(file.attributes)
    if not 0 < abs(n_labels) < n:
        raise file.fail(
            file.relation_line, f"-C {n_labels}, but there are {n} attributes; expected 1 to {n - 1} labels"
        )
    return list(range(n_labels)) if n_labels > 0 else list(range(n + n_labels, n))


def _require_inputs(file: ArffFile, names: Sequence[str]) -> None:
    if not names:
        raise file.fail(file.attributes[-1].line, "all attributes are outputs or ignored; expected at least one input")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise file.fail(
            file.attributes[-1].line,
            f"two inputs would be called '{twice}': an attribute, and a value of a nominal one",
        )


def _require_output(file: ArffFile, attribute: Attribute, task: Task) -> None:
    if task == "multilabel" and set(attribute.values) != set(BINARY):
        raise file.fail(attribute.line, f"the label '{attribute.name}' should have the values {{0,1}}")
    if task == "regression" and attribute.kind != "numeric":
        raise file.fail(attribute.line, f"the target '{attribute.name}' should be numeric")


def _require_known(file: ArffFile, lines: list[int], block: NDArray[np.float64], targets: Sequence[int]) -> None:
    missing = np.argwhere(np.isnan(block[:, targets]))
    if len(missing):
        row, target = missing[0]
        raise file.fail(lines[row], f"the output '{file.attributes[targets[target]].name}' is missing")


def _require_finite(file: ArffFile, lines: list[int], X: NDArray[np.float32], block: NDArray[np.float64]) -> None:
    rows = np.flatnonzero(np.isinf(X).any(axis=1))
    if len(rows):
        raise file.fail(lines[rows[0]], f"a value is too large for float32: {np.nanmax(np.abs(block[rows[0]]))}")
