"""Lets the numbers of prose lead to what they were made from: the records of a table that their paragraph names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import pandas as pd
from markdown_it.token import Token

from repro.page.sources import Results

_NUMBER = re.compile(r"(?<![\w.,/])[−+-]?(?:\d[\d,]*)?\.\d+(?!\w|\.\d)(?: %)?|(?<![\w.,/])\d+ %")
"""Integers alone may be rounds, rows, labels or depths: they are left out."""
_SENTENCE = re.compile(r"(?<=[.:;]) +(?=[^\d. ])")
_NO_RECORD = re.compile(r"\banchor\b|\bhand runs?\b")
"""What the released program printed, and what was run by hand, has no record here."""
_NAMES = {
    "mnist": r"MNIST(?!-inpainting)",
    "mnist_inpainting": "MNIST-inpainting|[Ii]npainting",
    "yeast": "Yeast",
    "yeast_genes": "genes?",
    "student_por": "Student-por",
    "caltech101": "Caltech101",
    "nus_wide": "NUS-WIDE",
    "digits": r"digits(?!_)",
    "osales_imputed": "osales",
}
"""What prose calls data sets, where that is not their own name."""
_DIGITS = 3
"""A number of fewer is equal to some published value by chance."""


class Numbers:
    """Finds the address of a number in prose.

    Parameters
    ----------
    results : Results
    """

    def __init__(self, results: Results) -> None:
        self._results = results

    def linked(self, children: Sequence[Token], tables: Sequence[str], cell: str, around: Sequence[str]) -> list[Token]:
        """Return the tokens of a paragraph or of a table's cell, its numbers made links.

        Parameters
        ----------
        children : sequence of Token
        tables : sequence of str
            The tables that the numbers are from, the likeliest first.
        cell : str
            The name of the cell's row and column; empty for a paragraph.
        around : sequence of str
            What else may say which data set is meant, the nearest first.
        """
        text = "".join(" " if child.type == "softbreak" else child.content for child in children)
        ends = [match.start() for match in _SENTENCE.finditer(text)] + [len(text)]
        found: list[Token] = []
        at, depth = 0, 0
        for child in children:
            depth += child.nesting if child.type.startswith("link_") else 0
            if child.type != "text" or depth:
                found.append(child)
            else:
                done = 0
                for match in _NUMBER.finditer(child.content):
                    start = max([0, *(end for end in ends if end <= at + match.start())])
                    end = next(end for end in ends if end >= at + match.end())
                    said = cell or text[start:end]
                    if address := self.address(match[0], tables, said, [text, *around]):
                        link = Token("link_open", "a", 1, attrs={"href": address, "class": "number"})
                        found += [_text(child.content[done : match.start()]), link, _text(match[0])]
                        found.append(Token("link_close", "a", -1))
                        done = match.end()
                found.append(_text(child.content[done:]))
            at += 1 if child.type == "softbreak" else len(child.content)
        return found

    def address(self, number: str, tables: Sequence[str], said: str, around: Sequence[str]) -> str | None:
        """Return what a number leads to: the published values that have it, or the records of its table and data set.

        Parameters
        ----------
        number : str
        tables, around : sequence of str
            As for `linked`.
        said : str
            The number's sentence, or the name of its row and column.

        Returns
        -------
        str or None
            None where no record has it.
        """
        if _NO_RECORD.search(said):
            return None
        for table in tables:
            file = self._results.tables[table].records
            if file is None:
                continue
            field = "dataset" if "dataset" in file.fields else "shape"
            dataset = _named([said, *around], file.fields.get(field, []))
            if "publish" in said and (path := self._published_in(number, table, dataset, said)):
                return path
            return f"#{file.anchor_of({field: frozenset([dataset])} if dataset else {})}"
        return None

    def _published_in(self, number: str, table: str, dataset: str | None, said: str) -> str | None:
        """Return the file of published values that has a number, in the paper's unit or as a share; `table`'s first."""
        shown = number.removesuffix(" %").replace("−", "-").replace(",", "")
        is_called_so = re.search(rf"published(?: are)? {re.escape(number)}|published$", said)
        if not is_called_so and len(re.sub(r"\D", "", shown).lstrip("0")) < _DIGITS:
            return None
        decimals = len(shown.partition(".")[2])
        wanted = f"{float(shown):.{decimals}f}"
        for name in sorted(self._published, key=lambda name: name != table):
            for of, value in self._published[name]:
                if of in (dataset, None) and wanted in (f"{value:.{decimals}f}", f"{value / 100:.{decimals}f}"):
                    return f"paper/{name}.csv"
        return None

    @cached_property
    def _published(self) -> Mapping[str, list[tuple[str | None, float]]]:
        """The published scores by table, each with its data set."""
        found: dict[str, list[tuple[str | None, float]]] = {}
        for path in sorted((self._results.folder / "paper").glob("*.csv")):
            frame = self._results.frame(f"paper/{path.stem}")
            if frame is None or "value" not in frame:
                continue
            of = frame["dataset"] if "dataset" in frame else pd.Series([None] * len(frame))
            found[path.stem] = list(zip(of, frame["value"].astype(float), strict=True))
        return found


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _named(around: Sequence[str], datasets: Sequence[str]) -> str | None:
    """Return the one data set that the nearest text names, of those that name any; None if it names several."""
    for text in around:
        called = {name: _NAMES.get(name, re.escape(name)) for name in datasets}
        named = [name for name in datasets if re.search(rf"(?<![\w-])(?:{called[name]})(?![\w-])", text)]
        if named:
            return named[0] if len(named) == 1 else None
    return datasets[0] if len(datasets) == 1 else None
