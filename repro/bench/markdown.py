"""Markdown of the benchmark's data frames; nothing is read or written here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.bench.frames import OURS, needed_mb
from repro.pipe_table import pipe_table
from repro.tables import format_score, in_paper_units

EMPTY = "–"
BUSY = "†"
MADE_UP = "*"
PARTS = ("histogram", "split", "partition", "gradient", "leaf", "rest")


def table(rows: Sequence[Sequence[object]], head: Sequence[str]) -> str:
    """Return a Markdown table."""
    return pipe_table(rows, head)


def number(value: Any, digits: int = 3) -> str:
    """Format with significant digits, without exponents; a dash where there is nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return EMPTY
    value = float(value)
    if value == 0:
        return "0"
    if math.isinf(value):
        return "any"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def checks_markdown(checks: pd.DataFrame) -> str:
    """Write promises beside measurements."""
    marks = {True: "✓", False: "✗ **missed**", None: "not measured"}
    rows = []
    for row in _dicts(checks):
        bound = f"{'≤' if row['at_most'] else '≥'} {number(row['bound'])} {row['unit']}".strip()
        if math.isinf(row["bound"]):
            bound = "works"
        measured = f"{number(row['measured'])} {row['unit']}".strip()
        holds = None if row["holds"] is None or math.isnan(row["measured"]) else bool(row["holds"])
        rows.append([row["claim"], row["where"], bound, measured, marks[holds], row["note"]])
    return table(rows, ["what", "where", "must be", "measured", "", "note"])


def rounds_markdown(frame: pd.DataFrame, shape: str) -> str:
    """Write one shape of a `compared` frame: a row a model, a column a number of threads."""
    own = frame[frame["shape"] == shape]
    threads = sorted(own["threads"].unique())
    several = [f"{n} thread{'s' if n > 1 else ''}" for n in threads]
    head = ["model", *(f"s a round, {name}" for name in several), *(f"/ fastest peer, {name}" for name in several)]
    head += [
        *(f"/ limit, {name}" for name in several),
        "construction s",
        "peak MB above data",
        "peak MB",
        "leaves a round",
    ]
    head += ["test score"]
    rows = []
    for model, part in own.groupby("model", sort=False):
        by_threads = {row["threads"]: row for row in _dicts(part)}
        last = by_threads[max(by_threads)]
        rows.append(
            [
                model,
                *(_seconds(by_threads.get(n)) for n in threads),
                *(_of(by_threads.get(n), "to_peer") for n in threads),
                *(_of(by_threads.get(n), "to_limit") for n in threads),
                " / ".join(_of(by_threads.get(n), "construct_seconds") for n in threads),
                _of(last, "above_mb"),
                _of(last, "peak_mb"),
                _of(last, "leaves"),
                format_score(last["metric"], in_paper_units(last["metric"], last["score"])),
            ]
        )
    return table(rows, head)


def _seconds(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return EMPTY
    return f"{number(row['seconds'])} ({number(row['fastest'])}–{number(row['slowest'])}){BUSY if row['busy'] else ''}"


def _of(row: Mapping[str, Any] | None, key: str) -> str:
    return EMPTY if row is None else number(row[key])


def parts_markdown(parts: pd.DataFrame, frame: pd.DataFrame) -> str:
    """Write the shares of a round, and histogram time over the limit."""
    near = {(row["shape"], row["threads"]): row for row in _dicts(frame) if row["model"] == OURS}
    rows = []
    for row in _dicts(parts):
        own = near[row["shape"], row["threads"]]
        shares = [
            f"{100 * row[name]:.1f} %" for name in ("histogram", "split", "partition", "gradient", "leaf", "rest")
        ]
        milliseconds = [
            number(1e3 * row["seconds"]),
            number(1e3 * own["part_histogram"]),
            number(1e3 * own["limit_seconds"]),
        ]
        rows.append([row["shape"], row["threads"], *milliseconds, number(own["histogram_to_limit"]), *shares])
    head = ["shape", "threads", "ms a round", "histograms ms", "limit ms", "histograms / limit"]
    head += ["histogram", "split", "partition", "gradient", "leaf", "rest"]
    return table(rows, head)


def limits_markdown(limits: pd.DataFrame) -> str:
    """Write the machine's rates."""
    rows = [
        [
            row["shape"],
            row["lanes"],
            *(number(row[name] / 1e9) for name in ("adds_l1", "adds_l2", "adds_contiguous", "read_bytes")),
        ]
        for row in _dicts(limits)
    ]
    head = ["shape", "lanes", "G adds/s, cells in L1", "G adds/s, cells in L2", "G adds/s, in order", "GB/s read"]
    return table(rows, head)


def inference_markdown(predictions: pd.DataFrame, titles: Mapping[str, str]) -> str:
    """Write milliseconds a round over the test rows: a row a model, a column a shape, one and more threads in it."""
    shapes = list(dict.fromkeys(predictions["shape"]))
    rows = []
    for model, part in predictions.groupby("model", sort=False):
        cells = []
        for shape in shapes:
            own = part[part["shape"] == shape].sort_values("threads")
            values = [
                f"{number(row['predict_ms'])} ({number(row['to_peer'], 2)}×){BUSY if row['busy'] else ''}"
                for row in _dicts(own)
            ]
            cells.append(" / ".join(values) or EMPTY)
        rows.append([model, *cells])
    sizes = {row["shape"]: (row["n_test"], row["rounds"]) for row in reversed(_dicts(predictions))}
    head = [f"{titles[shape]}, {sizes[shape][0]:,} rows, {sizes[shape][1]} rounds" for shape in shapes]
    return table(rows, ["model", *head])


def memory_markdown(rounds: pd.DataFrame) -> str:
    """Write peak memory: the NUS-WIDE shape beside what must be held, many outputs beside vector leaves."""
    nus_wide = (rounds["group"] == "rounds") & (rounds["shape"] == "nus_wide")
    chosen = rounds[nus_wide | rounds["group"].isin(["pool", "memory"])]
    rows = []
    for row in _dicts(chosen):
        needed = needed_mb(row) if row["model"] == OURS else None
        size = f"{row['n_train']:,} × {row['n_features']} → {row['n_outputs']}"
        held = " + ".join(number(value) for value in needed.values()) if needed else EMPTY
        ratio = number(row["above_mb"] / sum(needed.values())) if needed else EMPTY
        rows.append([size, row["model"], row["threads"], number(row["above_mb"]), number(row["peak_mb"]), held, ratio])
    head = ["shape", "model", "threads", "peak MB above data", "peak MB", "bins + gradients + pool MB", "ratio"]
    return table(rows, head)


def growth_markdown(growth: pd.DataFrame, many: pd.DataFrame) -> str:
    """Write the cost of doubled sizes, and of very many outputs."""
    expected = {"rows": "2", "features": "2", "outputs": "2", "bins": "up to 2", "base": ""}
    rows = [
        [row["variant"], f"{number(1e3 * row['seconds'])}{BUSY if row['busy'] else ''}", number(row["leaves"]),
         number(row["ratio"]), expected.get(row["variant"], "")]
        for row in _dicts(growth)
    ]  # fmt: skip
    text = table(rows, ["doubled", "ms a round", "leaves", "time / base", "by Tables I and II"])
    sizes = [
        [row["variant"], number(row["seconds"]), number(row["above_mb"]), number(row["leaves"])] for row in _dicts(many)
    ]
    return text + "\n\n" + table(sizes, ["2,000 rows × 50 features", "s a round", "peak MB above data", "leaves"])


def sparse_markdown(sparse: pd.DataFrame) -> str:
    """Write the times of top-k splits beside Tables VI and VIII."""
    rows = [
        [
            row["shape"],
            row["mode"],
            row["k"],
            f"{number(1e3 * row['seconds'])}{BUSY if row['busy'] else ''}",
            number(row["to_full"]),
            number(row["published"]),
        ]
        for row in _dicts(sparse)
    ]
    return table(rows, ["shape", "split", "k", "ms a round", "/ full", "Tables VI and VIII, s a round (8 threads)"])


def scores_markdown(scores: pd.DataFrame) -> str:
    """Write the times to LightGBM's best test score."""
    rows = [
        [
            row["group"].removeprefix("score_"),
            row["model"],
            row["variant"] or "Table IX",
            row["rounds"],
            f"{format_score(row['metric'], in_paper_units(row['metric'], row['best']))} at {row['best_round']}",
            number(row["best_seconds"]),
            format_score(row["metric"], in_paper_units(row["metric"], row["goal"])),
            EMPTY if math.isnan(row["round"]) else f"{row['round']:.0f}",
            f"{number(row['seconds'])}{BUSY if row['busy'] else ''}",
        ]
        for row in _dicts(scores)
    ]
    head = ["data", "model", "rate", "rounds trained", "own best", "s to it", "LightGBM's best", "reached in round"]
    return table(rows, [*head, "after s"])


def one_row_markdown(one_row: pd.DataFrame) -> str:
    """Write the cost of one row."""
    rows = [
        [row["n_trees"], *(number(row[name]) for name in ("predict", "validation", "beyond"))]
        for row in _dicts(one_row)
    ]
    return table(rows, ["trees", "predict µs", "scikit-learn's validation µs", "beyond it µs"])


def _dicts(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
