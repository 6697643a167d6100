"""Table VI: seconds a round of top-k splits, mean of the rounds of a cell."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from repro.bench.cell import was_busy
from repro.bench.frames import published_seconds
from repro.bench.markdown import BUSY, MADE_UP, number, table
from repro.bench.plan import Measured


def table6_frame(measured: Measured, published: pd.DataFrame, published_full: pd.DataFrame) -> pd.DataFrame:
    """Set the mean seconds a round beside Table VI, those of the full split on MNIST beside Table VIII.

    Parameters
    ----------
    measured
        Cells with their records; their variant is ``full``, or a mode and k.
    published, published_full : DataFrame
        See `repro.bench.frames.sparse_frame`.

    Returns
    -------
    DataFrame
        One row a cell: ``dataset``, ``split``, ``threads``, ``n_rounds``, ``seconds`` (mean of all rounds,
        the first among them, as in the authors' scripts), ``to_full`` (over the full split's), ``published``,
        ``made_up``, ``busy``.
    """
    paper = published_seconds(published, published_full)
    rows: list[dict[str, Any]] = []
    for cell, record in measured:
        rounds = record["measured"]["round_seconds"]
        dataset = cell.config["dataset"]["name"]
        row = {"dataset": dataset, "split": cell.variant, "threads": cell.threads, "n_rounds": len(rounds)}
        row |= {"seconds": sum(rounds) / len(rounds), "published": paper.get((dataset, cell.variant), math.nan)}
        rows.append({**row, "made_up": record["measured"]["data"]["synthetic"], "busy": was_busy(record)})
    columns = ["dataset", "split", "threads", "n_rounds", "seconds", "published", "made_up", "busy"]
    frame = pd.DataFrame(rows, columns=columns)
    full = frame[frame["split"] == "full"].set_index(["dataset", "threads"])["seconds"].rename("full")
    joined = frame.join(full, on=["dataset", "threads"])
    return joined.assign(to_full=joined["seconds"] / joined["full"]).drop(columns="full")


def table6_markdown(frame: pd.DataFrame) -> str:
    """Write a `table6_frame`."""
    rows = [
        [
            row["dataset"] + (MADE_UP if row["made_up"] else ""),
            row["split"],
            row["threads"],
            f"{number(row['seconds'])}{BUSY if row['busy'] else ''}",
            number(row["to_full"]),
            number(row["published"]),
        ]
        for row in frame.to_dict("records")
    ]
    return table(rows, ["data set", "split", "threads", "s a round", "/ full", "published, 8 threads"])
