"""Markdown tables, written alike everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tabulate import tabulate

_NOTE = "note"


def pipe_table(rows: Sequence[Sequence[Any]], head: Sequence[str]) -> str:
    """Write a Markdown table of texts as they are; a last column of notes is left out where no row has one."""
    width = len(head)
    if head[-1] == _NOTE and not any(row[-1] for row in rows):
        width -= 1
    return tabulate([row[:width] for row in rows], head[:width], tablefmt="pipe", disable_numparse=True)
