"""What stopping on the test rows is worth: the paper's protocol minus the holdout protocol, a row a cell."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from repro import tables
from repro.kinds.base import Evidence, Page, paired, rows_of, signed_difference
from repro.pipe_table import pipe_table

PROTOCOLS = ("paper", "holdout")
LEGEND = """\
Means over the n seeds that both protocols have. *difference*: `paper` minus `holdout`, with its standard error over
the seeds' differences; accuracy in points, RMSE in the targets' units, where below 0 is better. Two things are in it:
`paper` stops on the test rows and reports the best score on them, and it trains on the validation rows too, a quarter
more than `holdout`, but for MNIST and its inpainting, which have validation rows of their own. *validation minus
test*, within the `holdout` runs, has the first alone: the score on the rows that stopped the training minus that on
rows it never saw, of one and the same model; but of other rows, so that one seed says little. *best
round*: `paper` / `holdout`."""
HEAD = [
    "data set",
    "model",
    "n",
    "paper",
    "holdout",
    "difference",
    "in %",
    "validation minus test",
    "best round",
    "note",
]


def pages(evidence: Evidence) -> list[Page]:
    """Make one table: a row a data set and model."""
    table = protocol_cost(evidence.cells, evidence.runs)
    return [Page(evidence.plan.name, f"{protocol_cost_markdown(table)}\n\n{LEGEND}", table)]


def protocol_cost(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Subtract the holdout protocol's scores from the paper protocol's.

    Parameters
    ----------
    cells, runs : DataFrame
        Planned cells and recorded runs, see `Evidence`.

    Returns
    -------
    DataFrame
        One row a data set and model in the order of the plan: ``metric``, ``n_seeds`` that both protocols have;
        ``paper_mean``, ``holdout_mean``, ``difference`` and its ``standard_error``, in the paper's units;
        ``relative``, the difference over the holdout mean; ``optimism`` (validation minus test score under ``holdout``)
        and ``optimism_error``; ``paper_best_round``, ``holdout_best_round``; ``note``, why runs are missing.
    """
    recorded = cells.merge(runs.drop(columns=["seed"]), on="run_id", how="inner")
    rows = []
    for (dataset, model), planned in cells.groupby(["dataset", "model"], sort=False):
        own = recorded[recorded["run_id"].isin(planned["run_id"])]
        sides = dict(zip(PROTOCOLS, paired(own, "protocol", *PROTOCOLS), strict=True))
        row = {"dataset": dataset, "model": model, **_difference(*sides.values())}
        row |= {f"{name}_best_round": side["best_round"].mean() for name, side in sides.items()}
        rows.append({**row, "note": "; ".join(planned["gap"].dropna().unique())})
    return pd.DataFrame(rows)


def _difference(paper: pd.DataFrame, holdout: pd.DataFrame) -> dict[str, Any]:
    difference = paper["score"] - holdout["score"]
    optimism = holdout["validation_score"] - holdout["score"]
    return {
        "metric": paper["metric"].iloc[0] if len(paper) else None,
        "n_seeds": len(paper),
        "paper_mean": paper["score"].mean(),
        "holdout_mean": holdout["score"].mean(),
        "difference": difference.mean(),
        "standard_error": difference.sem(),
        "relative": difference.mean() / holdout["score"].mean(),
        "optimism": optimism.mean(),
        "optimism_error": optimism.sem(),
    }


def protocol_cost_markdown(table: pd.DataFrame) -> str:
    """Write a `protocol_cost` as a Markdown table."""
    rows = []
    for row in rows_of(table):
        if not row["n_seeds"]:
            rows.append([row["dataset"], row["model"], "0", *["–"] * 6, row["note"]])
            continue
        metric = row["metric"]
        cells = [f"{row['dataset']} ({tables.metric_title(metric)})", row["model"], row["n_seeds"]]
        cells += [tables.format_score(metric, row[f"{name}_mean"]) for name in PROTOCOLS]
        cells += [signed_difference(metric, row["difference"], row["standard_error"]), f"{100 * row['relative']:+.1f}"]
        cells += [signed_difference(metric, row["optimism"], row["optimism_error"]), _rounds(row), row["note"]]
        rows.append(cells)
    return pipe_table(rows, HEAD)


def _rounds(row: dict[str, Any]) -> str:
    values = [row[f"{name}_best_round"] for name in PROTOCOLS]
    return " / ".join("–" if math.isnan(value) else f"{value:,.0f}" for value in values)
