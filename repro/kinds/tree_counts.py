"""Table X: trees in the best model."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from repro.kinds.base import Evidence, Page, rows_of
from repro.pipe_table import pipe_table

LEGEND = """\
Trees that prediction adds at the best round, mean ± sample standard deviation over n seeds. Where each class or output
has trees of its own, they are all counted, as in the paper. *ratio*: ours over the published number."""


def pages(evidence: Evidence) -> list[Page]:
    """Make one table: a row a data set and model, a column group a protocol."""
    table = tree_counts(evidence.cells, evidence.runs, evidence.published())
    return [Page(evidence.plan.name, f"{tree_counts_markdown(table)}\n\n{LEGEND}", table)]


def tree_counts(cells: pd.DataFrame, runs: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Set the number of trees beside the published one.

    Parameters
    ----------
    cells, runs : DataFrame
        See `repro.tables.comparison`.
    published : DataFrame
        ``dataset``, ``model``, ``n_trees``.

    Returns
    -------
    DataFrame
        One row a data set and model in the order of the plan: ``published``; for each protocol p ``p_n_trees``,
        ``p_sd``, ``p_n_seeds``, ``p_ratio`` to the published number; ``note`` says why there is nothing.
    """
    recorded = cells.merge(runs.drop(columns=["seed"]), on="run_id", how="inner")
    known = {(row["dataset"], row["model"]): float(row["n_trees"]) for row in rows_of(published)}
    rows = []
    for (dataset, model), planned in cells.groupby(["dataset", "model"], sort=False):
        row: dict[str, Any] = {"dataset": dataset, "model": model, "published": known.get((dataset, model), math.nan)}
        for protocol in planned["protocol"].unique():
            own = recorded[recorded["run_id"].isin(planned.loc[planned["protocol"] == protocol, "run_id"])]["n_trees"]
            row[f"{protocol}_n_trees"] = own.mean()
            row[f"{protocol}_sd"] = own.std()
            row[f"{protocol}_n_seeds"] = len(own)
            row[f"{protocol}_ratio"] = own.mean() / row["published"]
        gaps = planned["gap"].dropna().unique()
        rows.append({**row, "note": "; ".join(gaps)})
    return pd.DataFrame(rows)


def tree_counts_markdown(table: pd.DataFrame) -> str:
    """Write `tree_counts` as a Markdown table."""
    protocols = [column.removesuffix("_ratio") for column in table.columns if column.endswith("_ratio")]
    head = ["data set", "model", "published"]
    for protocol in protocols:
        head += [f"{protocol} protocol", "ratio"]
    rows = []
    for row in rows_of(table):
        cells = [row["dataset"], row["model"], _number(row["published"], 1)]
        for protocol in protocols:
            text = _number(row[f"{protocol}_n_trees"], 1)
            if not math.isnan(row[f"{protocol}_sd"]):
                text += f" ± {_number(row[f'{protocol}_sd'], 1)}"
            if row[f"{protocol}_n_seeds"]:
                text += f" (n={row[f'{protocol}_n_seeds']})"
            cells += [text, _number(row[f"{protocol}_ratio"], 2)]
        rows.append([*cells, row["note"]])
    return pipe_table(rows, [*head, "note"])


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:,.{digits}f}"
