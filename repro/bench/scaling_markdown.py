"""Markdown of how time and memory of Rank-SVM grow; nothing is read or written here."""

from __future__ import annotations

from typing import Any

import pandas as pd

from repro.bench.markdown import BUSY, MADE_UP, number, table

_GROUPS = {
    "degrees": "The kernels of the gene table, hard margin, to a relative gap of 1e-3",
    "tight": "One of them to 1e-6",
    "sparse": "Sparse rows, many labels, linear kernel",
}
_AXES = {"rows": "Growth with the rows", "labels": "Growth with the labels", "labels a row": "Growth with the pairs"}


def sections(frame: pd.DataFrame, powers: pd.DataFrame) -> list[str]:
    """Write a section for each thing that was measured.

    Parameters
    ----------
    frame : DataFrame
        See `repro.bench.scaling.with_ratios`.
    powers : DataFrame
        See `repro.bench.scaling.power_frame`.
    """
    if frame.empty:
        return []
    fits, epochs = frame[frame["work"] == "solve"], frame[frame["work"] == "epochs"]
    parts = [(title, fits[fits["group"] == group]) for group, title in _GROUPS.items()]
    parts += [(title, fits[fits["axis"] == axis].sort_values("model")) for axis, title in _AXES.items()]
    made = [part for title, own in parts if len(own) for part in (f"## {title}", _fits(own))]
    if len(epochs):
        made += ["## Seconds an epoch", _epochs(epochs)]
    if len(powers):
        made += ["## Powers of the sizes", _powers(powers)]
    return made


def _fits(frame: pd.DataFrame) -> str:
    rows = [
        [
            row["model"],
            row["variant"],
            _sizes(row),
            f"{row['pairs']:,}",
            _seconds(row),
            number(row["to_ours"]),
            f"{row['relative_gap']:.1e}" if row["relative_gap"] == row["relative_gap"] else "–",
            number(row["n_iter"]),
            number(row["above_mb"]),
            number(row["peak_mb"]),
        ]
        for row in frame.to_dict("records")
    ]
    head = [
        "model",
        "variant",
        "rows × columns → labels",
        "pairs",
        "s",
        "/ rank_svm",
        "relative gap",
        "epochs or steps",
    ]
    return table(rows, [*head, "peak MiB above data", "peak MiB"])


def _epochs(frame: pd.DataFrame) -> str:
    rows = [
        [row["model"], row["variant"], _sizes(row), f"{row['pairs']:,}", _seconds(row)]
        for row in frame.to_dict("records")
    ]
    return table(rows, ["model", "variant", "rows × columns → labels", "pairs", "s an epoch"])


def _powers(powers: pd.DataFrame) -> str:
    what = {"solve": "a fit", "epochs": "an epoch"}
    rows = [
        [
            what[row["work"]],
            row["model"],
            f"{row['axis']}: {row['smallest']:,.0f} to {row['largest']:,.0f}",
            row["n_sizes"],
            number(row["seconds_power"]),
            number(row["memory_power"]),
        ]
        for row in powers.to_dict("records")
    ]
    return table(rows, ["of", "model", "over", "sizes", "seconds", "peak memory above data"])


def _sizes(row: Any) -> str:
    star = MADE_UP if row["synthetic"] else ""
    return f"{row['rows']:,} × {row['features']:,} → {row['labels']}{star}"


def _seconds(row: Any) -> str:
    return f"{number(row['seconds'])} ({number(row['fastest'])}–{number(row['slowest'])}){BUSY if row['busy'] else ''}"
