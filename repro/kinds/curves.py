"""Figures 3 and 4: scores after each round, and what they are at fixed rounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro import figures, tables
from repro.kinds.base import Evidence, Page, image, rows_of
from repro.pipe_table import pipe_table

PARTS = ("test", "train")
FINE, COARSE = 200, 10  # the CSV has each of the first rounds, then every tenth, and the last
LEGEND = """\
Means over the seeds on test rows. A model that early stopping has ended stays as it is at its best round; a dash: all
its seeds had ended. Solid: test rows; dashed: training rows."""


def pages(evidence: Evidence) -> list[Page]:
    """Make one figure, a panel a data set and metric, with the values at fixed rounds as a table."""
    table = evidence.plan.table
    name, metrics = evidence.plan.name, list(table["metrics"])
    curves = curve_frame(evidence.cells, evidence.records, metrics)
    if curves.empty:
        return [Page(name, "No curve is recorded.", curves)]
    fixed = at_rounds(curves, table["rounds"])
    drawn = figures.curves(curves, metrics, {metric: tables.metric_title(metric) for metric in metrics})
    text = f"{image(name, 'scores after each round')}\n\n{fixed_markdown(fixed)}\n\n{LEGEND}"
    return [Page(name, text, thinned(curves), drawn)]


def curve_frame(cells: pd.DataFrame, records: Iterable[Mapping[str, Any]], metrics: Sequence[str]) -> pd.DataFrame:
    """Average curves over seeds.

    Parameters
    ----------
    cells : DataFrame
        Planned cells, see `Evidence`.
    records : iterable of mapping
        With the curves of `repro.curves.staged_curves` in ``history``.
    metrics : sequence of str
        Those wanted.

    Returns
    -------
    DataFrame
        ``dataset``, ``model``, ``part``, ``metric``, ``round`` (from 1 to the longest seed's last), ``value`` in the
        paper's units, ``n_seeds``, and ``n_running``, how many of them early stopping has not ended before this round.
    """
    keys = cells.set_index("run_id")[["dataset", "model"]]
    found: dict[tuple[str, ...], list[list[float]]] = {}
    for record in records:
        dataset, model = keys.loc[record["run_id"]]
        for part in PARTS:
            for metric in metrics:
                curve = record["history"].get(f"{part}.{metric}")
                if curve:
                    found.setdefault((dataset, model, part, metric), []).append(curve)
    frames = [_averaged(key, seeds) for key, seeds in found.items()]
    columns = ["dataset", "model", "part", "metric", "round", "value", "n_seeds", "n_running"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def _averaged(key: tuple[str, ...], seeds: list[list[float]]) -> pd.DataFrame:
    lengths = np.array([len(curve) for curve in seeds])
    rounds = np.arange(1, lengths.max() + 1)
    held = np.array([np.pad(curve, (0, lengths.max() - len(curve)), mode="edge") for curve in seeds])
    names = dict(zip(("dataset", "model", "part", "metric"), key, strict=True))
    return pd.DataFrame(
        {
            **names,
            "round": rounds,
            "value": [tables.in_paper_units(names["metric"], value) for value in held.mean(axis=0)],
            "n_seeds": len(seeds),
            "n_running": [int((lengths >= number).sum()) for number in rounds],
        }
    ).round({"value": 8})


def thinned(curves: pd.DataFrame) -> pd.DataFrame:
    """Leave out most of the late rounds, between which curves hardly move; see `FINE`."""
    last = curves.groupby(["dataset", "model", "part", "metric"])["round"].transform("max")
    rounds = curves["round"]
    return curves[(rounds <= FINE) | (rounds % COARSE == 0) | (rounds == last)]


def at_rounds(curves: pd.DataFrame, rounds: Sequence[int]) -> pd.DataFrame:
    """Take the test curves at fixed rounds and at their last: a row a data set, metric and model, a column a round."""
    rows = []
    test = curves[curves["part"] == "test"]
    for (dataset, metric, model), own in test.groupby(["dataset", "metric", "model"], sort=False):
        values = own.set_index("round")["value"]
        row: dict[Any, Any] = {"dataset": dataset, "metric": metric, "model": model, "n_seeds": own["n_seeds"].iloc[0]}
        row |= {number: values.get(number, math.nan) for number in rounds}
        rows.append({**row, "last": values.iloc[-1], "last_round": values.index[-1]})
    return pd.DataFrame(rows)


def fixed_markdown(fixed: pd.DataFrame) -> str:
    """Write `at_rounds` as a Markdown table."""
    rounds = [column for column in fixed.columns if isinstance(column, int)]
    rows = []
    for row in rows_of(fixed):
        values = [row[str(number)] for number in rounds]
        cells = [
            "–" if math.isnan(value) else tables.format_score(row["metric"], value) for value in [*values, row["last"]]
        ]
        title = f"{row['dataset']} ({tables.metric_title(row['metric'])})"
        rows.append([title, row["model"], *cells[:-1], f"{cells[-1]} at {row['last_round']}", row["n_seeds"]])
    head = ["data set", "model", *(f"round {number}" for number in rounds), "last", "n"]
    return pipe_table(rows, head)
