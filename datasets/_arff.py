"""Read ARFF, the text format of Weka, Mulan and MEKA, one block of rows at a time.

Dense and sparse rows, numeric and nominal attributes, missing values (``?``), quotes, comments, keywords in any case,
and files packed by gzip, bzip2 or RAR. liac-arff, the known reader in Python, makes a Python object of every value,
takes the last of a repeated index in silence, and has had no release since 2020; hence a reader of our own.
"""

from __future__ import annotations

import bz2
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import isfinite, nan
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._rar import open_member
from .base import FormatError

Kind = Literal["numeric", "nominal", "other"]
Line = tuple[int, str]

BLOCK_VALUES = 1 << 15  # values in a block: enough to be fast, little beside any set worth streaming
BINARY = ("0", "1")

_NUMERIC = {"numeric", "real", "integer"}
_OTHER = {"string", "date"}
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_NAME = re.compile(rf"({_QUOTED}|[^\s{{'\"][^\s{{]*)\s*(.*)")
# Values outside quotes are stripped afterwards: a lazy match between blanks takes the square of their number.
_VALUE = re.compile(rf"\s*(?:({_QUOTED})\s*|([^,]*))(,|$)")
_ENTRY = re.compile(rf"\s*([0-9]{{1,9}})\s(?:\s*({_QUOTED})\s*|([^,]*))(,|$)")
_ESCAPED = re.compile(r"\\(.)")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Attribute:
    """A column of an ARFF file.

    Attributes
    ----------
    name : str
    kind : {"numeric", "nominal", "other"}
        "other" are texts and dates, which have no number.
    values : tuple of str
        Of a nominal attribute, in the order declared.
    line : int
        Where it is declared.
    """

    name: str
    kind: Kind
    values: tuple[str, ...]
    line: int


class ArffFile:
    """An ARFF file whose header has been read.

    Attributes
    ----------
    path : Path
    relation : str
    relation_line : int
        Where it stands.
    attributes : tuple of Attribute
    """

    def __init__(self, path: Path, member: str | None = None) -> None:
        """Read the header; `member` is the file within a RAR archive.

        Raises
        ------
        FormatError
            The header is not one; the message names file and line.
        """
        self.path = path
        self._member = member
        self.relation = ""
        self.relation_line = 1
        self.attributes: tuple[Attribute, ...] = ()
        with self._lines() as lines:
            self._read_header(lines)

    def fail(self, line: int, problem: str) -> FormatError:
        """Make the error that names file and line."""
        return FormatError(f"{self._name}, line {line}: {problem}")

    def count_rows(self) -> int:
        """Return the number of data rows; reads the whole file."""
        with self._lines() as lines:
            return sum(1 for _ in _data(lines))

    def last_line(self) -> int:
        """Return the number of the last line; reads the whole file."""
        with self._lines() as lines:
            return max((number for number, _ in lines), default=0)

    def blocks(self, ignored: Iterable[int] = ()) -> Iterator[tuple[list[int], NDArray[np.float64]]]:
        """Yield the rows in blocks.

        Parameters
        ----------
        ignored : iterable of int
            Columns that are not wanted: NaN, whatever they hold.

        Yields
        ------
        lines : list of int, length n
            Where in the file the rows stand.
        rows : ndarray of float64, shape (n, number of attributes)
            Numbers; of a nominal attribute the position of the value among those declared; NaN: missing.

        Raises
        ------
        FormatError
            A row that does not fit the header; the message names file and line.
        """
        reader = _RowReader(self, frozenset(ignored))
        size = max(1, BLOCK_VALUES // len(self.attributes))
        with self._lines() as lines:
            data = _data(lines)
            while block := list(islice(data, size)):
                yield [number for number, _ in block], reader.read(block)

    @property
    def _name(self) -> str:
        return f"{self.path} > {self._member}" if self._member else str(self.path)

    @contextmanager
    def _lines(self) -> Iterator[Iterator[Line]]:
        """Open the file and number its lines; whatever the packing complains of becomes a FormatError."""
        number = 0

        def numbered(stream: IO[str]) -> Iterator[Line]:
            nonlocal number
            for number, line in enumerate(stream, start=1):
                yield number, _legible(line).strip()

        try:
            with _open(self.path, self._member) as stream:
                yield numbered(stream)
        except (EOFError, zlib.error, OSError) as error:
            raise self.fail(number + 1, f"the file cannot be read on: {error}") from error

    def _read_header(self, lines: Iterator[Line]) -> None:
        attributes: dict[str, Attribute] = {}
        number = 0
        for number, line in lines:
            keyword, _, rest = line.replace("\t", " ").partition(" ")
            match keyword.lower():
                case "@relation":
                    self.relation, self.relation_line = _unquote(rest.strip()), number
                case "@attribute":
                    attribute = self._attribute(number, rest.strip())
                    if attribute.name in attributes:
                        first = attributes[attribute.name].line
                        raise self.fail(number, f"attribute '{attribute.name}' is declared in line {first} already")
                    attributes[attribute.name] = attribute
                case "@data":
                    break
                case _ if line and not line.startswith("%"):
                    raise self.fail(number, f"expected @relation, @attribute or @data, not '{_short(line)}'")
        else:
            raise self.fail(number, "the file ends before @data; it is cut off or no ARFF file")
        if not attributes:
            raise self.fail(number, "there is no attribute before @data")
        self.attributes = tuple(attributes.values())

    def _attribute(self, number: int, text: str) -> Attribute:
        match = _NAME.fullmatch(text)
        if match is None:
            raise self.fail(number, f"expected a name and a type after @attribute, not '{_short(text)}'")
        name, kind = _unquote(match[1]), match[2]
        if kind.startswith("{"):
            return Attribute(name, "nominal", self._values(number, name, kind), number)
        word = (kind.lower().split() or [""])[0]
        if word in _NUMERIC:
            return Attribute(name, "numeric", (), number)
        if word in _OTHER:
            return Attribute(name, "other", (), number)
        raise self.fail(
            number,
            f"attribute '{name}' has the unknown type '{_short(kind)}'; expected numeric, real, integer, string, date "
            "or {values}",
        )

    def _values(self, number: int, name: str, text: str) -> tuple[str, ...]:
        if not text.endswith("}"):
            raise self.fail(number, f"the values of attribute '{name}' are not closed by '}}'")
        values = tuple(_unquote(value) for value in self._split(number, text[1:-1]))
        if len(set(values)) != len(values):
            raise self.fail(number, f"attribute '{name}' declares a value twice")
        return values

    def _split(self, number: int, text: str) -> list[str]:
        """Split at commas outside quotes; quotes stay."""
        fields, position = [], 0
        while True:
            match = _VALUE.match(text, position)
            field = "" if match is None else match[1] or match[2].strip()
            if match is None or _has_open_quote(field):
                raise self.fail(number, f"a quote is not closed, or text follows it: '{_short(text[position:])}'")
            fields.append(field)
            if not match[3]:
                return fields
            position = match.end()


class _RowReader:
    """Turns the lines of one file into numbers."""

    def __init__(self, file: ArffFile, ignored: frozenset[int]) -> None:
        self._file = file
        self._ignored = ignored
        wanted = [column for column in range(len(file.attributes)) if column not in ignored]
        for column in wanted:
            attribute = file.attributes[column]
            if attribute.kind == "other":
                raise file.fail(attribute.line, f"attribute '{attribute.name}' holds texts or dates; ignore it by name")
        self._convert = [_converter(attribute) for attribute in file.attributes]
        # What a row of only zeros and gaps means: of a nominal attribute, its first value.
        self._default = np.zeros(len(file.attributes))
        self._default[list(ignored)] = nan
        self._binary = [column for column in wanted if file.attributes[column].values == BINARY]
        self._wanted = wanted
        self._plain = all(a.kind == "numeric" or a.values == BINARY for a in (file.attributes[c] for c in wanted))

    def read(self, lines: Sequence[Line]) -> NDArray[np.float64]:
        """Read rows quickly where they hold nothing but finite numbers and 0/1, else with care, one by one."""
        block = self._read_plain([line for _, line in lines]) if self._plain else None
        if block is None:
            block = np.array([self._read_row(number, line) for number, line in lines])
        return block

    def _read_plain(self, lines: list[str]) -> NDArray[np.float64] | None:
        """Return None where anything else is among the rows, right or wrong."""
        sparse = lines[0][0] == "{"
        if any((line[0] == "{") != sparse or "'" in line or '"' in line for line in lines):
            return None
        block = np.tile(self._default, (len(lines), 1))
        try:
            plain = self._fill_sparse(block, lines) if sparse else self._fill_dense(block, lines)
        except (ValueError, OverflowError):
            return None
        binary = block[:, self._binary]
        finite = np.isfinite(block[:, self._wanted]).all()
        return block if plain and finite and ((binary == 0) | (binary == 1)).all() else None

    def _fill_dense(self, block: NDArray[np.float64], lines: list[str]) -> bool:
        if any(line.count(",") != block.shape[1] - 1 for line in lines):
            return False
        block[:, self._wanted] = np.loadtxt(lines, delimiter=",", comments=None, usecols=self._wanted, ndmin=2)
        return True

    def _fill_sparse(self, block: NDArray[np.float64], lines: list[str]) -> bool:
        if self._ignored or any(line[-1] != "}" or "_" in line for line in lines):
            return False
        given = [line[1:-1].strip() for line in lines]
        pairs = [entry.split() for text in given if text for entry in text.split(",")]
        if any(len(pair) != 2 or not pair[0].isdecimal() or not pair[0].isascii() for pair in pairs):
            return False
        rows = np.repeat(np.arange(len(lines)), [text.count(",") + 1 if text else 0 for text in given])
        columns = np.array([int(index) for index, _ in pairs], dtype=np.int64)
        if ((columns < 0) | (columns >= block.shape[1])).any():
            return False
        block[rows, columns] = [float(value) for _, value in pairs]
        return len(np.unique(rows * block.shape[1] + columns)) == len(pairs)

    def _read_row(self, number: int, line: str) -> NDArray[np.float64]:
        if line.startswith("{"):
            return self._read_sparse(number, line)
        fields = self._file._split(number, line)
        if len(fields) != len(self._convert):
            raise self._file.fail(number, f"the row has {len(fields)} values, expected {len(self._convert)}")
        row = [nan if i in self._ignored else self._value(number, i, field) for i, field in enumerate(fields)]
        return np.array(row)

    def _read_sparse(self, number: int, line: str) -> NDArray[np.float64]:
        if not line.endswith("}"):
            raise self._file.fail(number, "the sparse row is not closed by '}'; is the file cut off?")
        row = self._default.copy()
        seen: set[int] = set()
        for index, text in self._entries(number, line[1:-1].strip()):
            if index >= len(row):
                raise self._file.fail(number, f"index {index}, but there are attributes 0 to {len(row) - 1} only")
            if index in seen:
                name = self._file.attributes[index].name
                raise self._file.fail(number, f"index {index} (attribute '{name}') is given twice")
            seen.add(index)
            if index not in self._ignored:
                row[index] = self._value(number, index, text)
        return row

    def _entries(self, number: int, text: str) -> Iterator[tuple[int, str]]:
        position = 0
        while position < len(text):
            match = _ENTRY.match(text, position)
            value = "" if match is None else match[2] or match[3].strip()
            if match is None or not value or _has_open_quote(value):
                raise self._file.fail(number, f"expected 'index value', not '{_short(text[position:])}'")
            yield int(match[1]), value
            position = match.end()
            if match[4] and position == len(text):
                raise self._file.fail(number, "nothing follows the last comma of the sparse row; is the file cut off?")

    def _value(self, number: int, column: int, text: str) -> float:
        if text == "?":
            return nan
        value = self._convert[column](text)
        if value is None:
            attribute = self._file.attributes[column]
            expected = f"one of {_short(', '.join(attribute.values))}" if attribute.values else "a finite number"
            raise self._file.fail(number, f"attribute '{attribute.name}' is '{_short(text)}', expected {expected}")
        return value


def _converter(attribute: Attribute) -> Callable[[str], float | None]:
    """Return a function from text to number, or to None where the text is no value of the attribute."""
    if attribute.kind != "nominal":
        return _number
    positions = {value: float(position) for position, value in enumerate(attribute.values)}
    if attribute.values == BINARY:  # written as numbers too, such as 1.0
        return lambda text: positions.get(_unquote(text), value if (value := _number(text)) in (0.0, 1.0) else None)
    return lambda text: positions.get(_unquote(text))


def _number(text: str) -> float | None:
    try:
        value = float(_unquote(text))
    except ValueError:
        return None
    return value if isfinite(value) and "_" not in text else None


@contextmanager
def _open(path: Path, member: str | None) -> Iterator[IO[str]]:
    """Open for reading text. Older files are not always UTF-8: what is not is kept for `_legible`."""
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
    opened = openers.get(path.suffix, Path.open)(path, "rb") if member is None else open_member(path, member)
    with opened as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape") as stream:
        yield stream


def _legible(line: str) -> str:
    """Read a line that is not UTF-8 as Latin-1, in which every byte is a character."""
    if line.isascii():
        return line
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        return line.encode("utf-8", "surrogateescape").decode("latin-1")
    return line


def _data(lines: Iterator[Line]) -> Iterator[Line]:
    """Skip the header, comments and empty lines."""
    for _, line in lines:
        if line[:5].lower() == "@data":
            break
    return (numbered for numbered in lines if numbered[1] and not numbered[1].startswith("%"))


def _unquote(text: str) -> str:
    if len(text) < 2 or text[0] not in "'\"":
        return text
    return _ESCAPED.sub(lambda match: _CONTROL.get(match[1], match[1]), text[1:-1])


def _has_open_quote(text: str) -> bool:
    return text[:1] in ("'", '"') and not re.fullmatch(_QUOTED, text)


def _short(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
