"""Finds the record of a number from what stands around it: its column's head, its row, the heading above."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from repro.page.records import RecordFile

REFERENCE = "gbdt_mo"
"""What tables of differences compare with, unless a column's title names another model."""
_KEYS = {
    "data set": "dataset",
    "method": "model",
    "label sets": "label_sets",
    "rounds": "n_estimators",
    "doubled": "variant",
    "2,000 rows × 50 features": "variant",
}
"""Headings that name a part of a cell's key by another word."""
_NAMING = {"dataset", "shape", "model", "protocol", "against", "split", "where", "data", "threads", "variant", "rate"}
"""Columns, and swept settings beside them, that say what a row is of."""
_IN_HEADS = ("dataset", "shape", "threads")
"""What a column's title says of its numbers; a method named there is what others are compared with."""
_NO_RESULT = {"note", "must be", "by Tables I and II", "k", "task", "what"}
_FROM_TABLE5 = "published difference"
"""Columns that start so are made from the published values of Table V."""
_SHARES = "Where gbdt_mo's round goes"
"""The section of the benchmark in which *split* is a part of a round, and not a kind of split."""
_BENCH_GROUPS = {
    "What must hold": (),
    "This machine": ("limit",),
    "Inference": ("rounds", "inference"),
    "Peak memory": ("rounds", "pool", "memory"),
    "How cost grows": ("growth", "many_outputs"),
    "Top-k splits": ("sparse",),
    "Time to": ("score_mnist", "score_inpainting"),
}
"""Groups of benchmark cells below each heading; below others, the timed rounds."""


class RowLinks:
    """Links for the rows of one table.

    Parameters
    ----------
    file : RecordFile
    paper : str
        What published values link to; empty if there is nothing.
    section : str
        The heading above the table.
    head : sequence of str
        The titles of its columns.
    """

    def __init__(self, file: RecordFile, paper: str, section: str, head: Sequence[str]) -> None:
        self._file = file
        self._paper = paper
        self._head = [_name(title) for title in head]
        self._is_paper = section.startswith("Published")
        self._section = self._mentioned(section)
        self._has_shares = section.startswith(_SHARES)
        if "group" in file.fields:
            self._section["group"] = _bench_groups(section, head) & frozenset(file.fields["group"])
        named_models = [named["model"] for title in head if "model" in (named := self._mentioned(title))]
        self._reference = named_models[0] if named_models else frozenset([REFERENCE])
        self._columns: list[dict[str, frozenset[str]]] = []
        protocol: frozenset[str] = frozenset()
        for title in head:
            named = self._mentioned(title)
            protocol = named.get("protocol", protocol)  # named in one column, it holds for those after it
            own = frozenset(title.split()) & frozenset(file.fields.get("protocol", [])) or protocol
            self._columns.append({**{field: named[field] for field in _IN_HEADS if field in named}, "protocol": own})

    def of(self, cells: Sequence[str]) -> list[str | None]:
        """Return the address of each cell's record, None for cells that are no result.

        Parameters
        ----------
        cells : sequence of str
            A row's text.
        """
        plain = [re.sub(r"\*\*|`", "", cell).strip() for cell in cells]
        own: dict[str, frozenset[str]] = {}
        for name, cell in zip(self._head, plain, strict=True):
            if self._is_naming(name):
                own |= self._named(name, cell)
        return [
            self._address(name, column, own) if self._is_result(name, cell) else None
            for name, cell, column in zip(self._head, plain, self._columns, strict=True)
        ]

    def _address(
        self, name: str, column: Mapping[str, frozenset[str]], own: Mapping[str, frozenset[str]]
    ) -> str | None:
        if name in _NO_RESULT:
            return None
        is_published = re.match(r"published\b|Tables? ", name) and "protocol" not in self._mentioned(name)
        if is_published or "implied" in name or self._is_paper:
            return self._paper_file(name, own) or None
        facts = {**self._section, **own, **{field: values for field, values in column.items() if values}}
        return f"#{self._file.anchor_of(facts)}"

    def _paper_file(self, name: str, own: Mapping[str, frozenset[str]]) -> str:
        """Return the file of published values; not every column is from the table's own."""
        if name.startswith(_FROM_TABLE5):
            return self._paper.replace("table12", "table5")
        if own.get("variant") == frozenset(["full"]):  # seconds without a choice of outputs are Table VIII's
            return self._paper.replace("table6", "table8")
        return self._paper

    def _is_result(self, name: str, cell: str) -> bool:
        is_nothing = name == "n" and cell == "0"  # of no runs
        return bool(re.search(r"\d", cell)) and not self._is_naming(name) and not is_nothing

    def _is_naming(self, name: str) -> bool:
        if name == "split" and self._has_shares:
            return False
        return name in _NAMING or name in self._file.fields

    def _named(self, name: str, cell: str) -> dict[str, frozenset[str]]:
        """Return what a cell that names something says."""
        value = re.sub(r"( \(.*\)|\*)$", "", cell)
        if value in self._file.fields.get(name, []):
            return {name: frozenset([value])}
        if name == "data":
            return {"group": frozenset([f"score_{value}"])}
        found = self._mentioned(cell)
        if name == "against" and "model" in found:
            found["model"] |= self._reference
        return found

    def _mentioned(self, text: str) -> dict[str, frozenset[str]]:
        """Return the values of the key's parts that a text names."""
        found = {
            field: frozenset(value for value in values if value and self._names(text, field, value))
            for field, values in self._file.fields.items()
            if field != "group"
        }
        return {field: values for field, values in found.items() if values}

    def _names(self, text: str, field: str, value: str) -> bool:
        if field == "threads":
            words = [f"{value} thread", f"{value} threads"]
        elif field == "protocol":
            words = [f"{value} protocol"]
        elif field in ("dataset", "model", "shape", "variant", "split"):
            words = [value, value.rpartition("/")[2], self._file.titles.get(value, value)]
            words += [self._file.sizes.get(value, value), value.removesuffix("_labels")]
        else:
            words = [f"{field} {value}"]
        return any(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in words)


def _name(title: str) -> str:
    """Spell a column's title as the parts of a key are spelt."""
    underscored = title.replace(" ", "_")
    return _KEYS.get(title, underscored if underscored in ("learning_rate", "max_depth") else title)


def _bench_groups(section: str, head: Sequence[str]) -> frozenset[str]:
    if head[0] == "trees":
        return frozenset(["row"])
    for start, groups in _BENCH_GROUPS.items():
        if section.startswith(start):
            return frozenset(groups)
    return frozenset(["rounds"])
