"""Shows how far a sweep is: a bar with the time left on a terminal, one plain line a cell elsewhere."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from repro.plan import Cell


class Forecast:
    """Estimates the time a sweep still takes from what like cells took before.

    Parameters
    ----------
    records : iterable of mapping
        Run records whose seconds are a first guess; their machine may have been another one.
    processes : int
        Cells run at a time.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]], processes: int) -> None:
        self._processes = processes
        self._known: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self._guess: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for record in records:
            identity = record["identity"]
            self._note(self._guess, identity, float(record["seconds"]["total"]))

    def learn(self, identity: Mapping[str, Any], seconds: float) -> None:
        """Take in what a cell of this sweep took."""
        self._note(self._known, identity, seconds)

    @staticmethod
    def _note(seen: dict[tuple[str, ...], list[float]], identity: Mapping[str, Any], seconds: float) -> None:
        for key in _keys(identity):
            seen[key].append(seconds)

    def left(self, cells: Sequence[Cell]) -> str:
        """Say how long these cells will take; nothing like some of them may have been seen yet."""
        expected = [self._expected(cell.identity) for cell in cells]
        known = [seconds for seconds in expected if seconds is not None]
        if cells and not known:
            return "time left not known yet"
        time_left = duration(sum(known) / min(self._processes, max(1, len(cells))))
        if len(known) == len(cells):
            return f"about {time_left} left"
        return f"more than {time_left} left"

    def _expected(self, identity: Mapping[str, Any]) -> float | None:
        for seen in (self._known, self._guess):
            for key in _keys(identity):
                if key in seen:
                    return sum(seen[key]) / len(seen[key])
        return None


def _keys(identity: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Name the groups of like cells, closest first."""
    dataset, model, protocol = identity["dataset"], identity["model"], identity["protocol"]
    return [(dataset, model, protocol), (dataset, model), (dataset,)]


def duration(seconds: float) -> str:
    """Format a time span in words, such as ``3 min 20 s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Display:
    """Progress of a known number of cells; a context manager.

    Parameters
    ----------
    total : int
        Number of cells to run.
    console : Console, optional
        Standard error if not given.
    """

    def __init__(self, total: int, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._total = total
        self._done = 0
        self._bar: Progress | None = None

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
            self._bar = Progress(*columns, console=self._console)
            self._task = self._bar.add_task("", total=self._total, left="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line, above the bar where there is one."""
        self._console.print(text, markup=False)

    def finished(self, text: str, left: str) -> None:
        """Count one cell as done and say how it went, and how long the others will take."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, left=left)
            self.say(text)
        else:
            self.say(f"{time.strftime('%H:%M:%S')} [{self._done}/{self._total}] {text} ({left})")
