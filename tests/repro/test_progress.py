"""What a sweep says about the time left, and how it shows it."""

import io
from typing import Any

import pytest
from rich.console import Console

from repro.plan import Cell
from repro.progress import Display, Forecast, duration


def cell(dataset: str = "a", model: str = "m", protocol: str = "paper") -> Cell:
    identity = {"dataset": dataset, "model": model, "protocol": protocol}
    return Cell(dataset, model, protocol, 0, {}, "0" * 16, identity, {})


def record(seconds: float, **names: str) -> dict[str, Any]:
    return {"identity": cell(**names).identity, "seconds": {"total": seconds}}


def test_the_closest_cells_tell_the_time() -> None:
    forecast = Forecast([], processes=2)
    forecast.learn(cell().identity, 10)
    forecast.learn(cell().identity, 20)
    forecast.learn(cell(model="n").identity, 100)
    assert forecast.left([cell(), cell()]) == "about 15 s left"  # 2 x 15 s, two at a time
    assert forecast.left([cell(model="n", protocol="holdout")]) == "about 1 min 40 s left"
    assert forecast.left([]) == "about 0 s left"


def test_this_sweep_counts_more_than_records_of_before() -> None:
    forecast = Forecast([record(1000)], processes=1)
    assert forecast.left([cell()]) == "about 16 min 40 s left"
    forecast.learn(cell().identity, 3)
    assert forecast.left([cell()]) == "about 3 s left"


def test_cells_unlike_all_seen_make_it_a_lower_bound() -> None:
    assert Forecast([record(30)], processes=1).left([cell(), cell(dataset="b")]) == "more than 30 s left"
    assert Forecast([], processes=1).left([cell()]) == "time left not known yet"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (3600, "1 h 0 min"), (9059, "2 h 30 min")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("terminal", [False, True])
def test_a_line_a_cell_without_a_terminal_and_a_bar_with_one(terminal: bool) -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=100, highlight=False)
    with Display(2, console) as display:
        display.finished("one [0]", "about 5 s left")
        display.finished("two", "about 0 s left")
    text = output.getvalue()
    assert "one [0]" in text
    if terminal:
        assert "2/2" in text
        assert "\x1b[" in text
    else:
        assert "[1/2] one [0] (about 5 s left)" in text
        assert "\x1b[" not in text
        assert len(text.splitlines()) == 2
