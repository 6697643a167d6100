"""The ablation of the released program: its growth and binning beside complete trees, scores and rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro import tables
from repro.kinds import curves
from repro.kinds.base import Evidence, Page, paired, rows_of, signed_difference
from repro.pipe_table import pipe_table

MODELS = {"complete": "gbdt_mo", "released": "gbdt_mo_released"}
LEGEND = """\
Complete growth and binning / the released program's, all other settings alike; means over the n seeds that both have.
*rows without a leaf*: share of the training rows to which a tree of released growth adds nothing, mean over its trees
up to the best round; complete growth has none. *difference*: released minus complete, with its standard error over
the seeds' differences; accuracy in points, RMSE in the targets' units. *rounds to the lesser score*: the first round
after which the test score is at least as good as the one that the worse of the two ends with. Unlike the best round,
it does not depend on when a run is ended, which the two do not decide alike: released growth takes an accuracy equal
to the best one for an improvement."""
ROUNDS = """\
Test scores after fixed rounds, complete / released. A run that early stopping has ended stays as it is at its best
round; a dash: all had ended."""


def pages(evidence: Evidence) -> list[Page]:
    """Make one table, a row a data set and protocol, with the scores at fixed rounds below."""
    rounds = evidence.plan.table["rounds"]
    table = ablation(evidence.cells, evidence.runs, evidence.records, rounds)
    text = f"{summary_markdown(table)}\n\n{LEGEND}\n\n{ROUNDS}\n\n{rounds_markdown(table, rounds)}"
    return [Page(evidence.plan.name, text, table)]


def ablation(
    cells: pd.DataFrame, runs: pd.DataFrame, records: Sequence[Mapping[str, Any]], rounds: Sequence[int]
) -> pd.DataFrame:
    """Set released growth beside complete growth.

    Parameters
    ----------
    cells, runs : DataFrame
        Planned cells and recorded runs, see `Evidence`.
    records : sequence of mapping
        Those of `runs`, with the curves of `repro.curves.staged_curves` in ``history`` where they were recorded.
    rounds : sequence of int
        After which scores are given.

    Returns
    -------
    DataFrame
        One row a data set and protocol in the order of the plan: ``metric``; ``n_seeds`` that both have;
        ``unassigned``, the mean share (0 to 1) of training rows without a leaf; ``difference`` and
        ``standard_error``; ``note``, why runs are missing. With the prefixes ``complete_`` and ``released_``:
        ``mean`` test score, ``leaves`` a tree, ``best_round``, ``reach`` (rounds to the lesser score) and, for each of
        `rounds`, ``at_<round>``. Scores are in the paper's units. NaN: not recorded.
    """
    recorded = cells.merge(runs.drop(columns=["seed"]), on="run_id", how="inner")
    histories = {record["run_id"]: record["history"] for record in records}
    rows = []
    for (dataset, protocol), planned in cells.groupby(["dataset", "protocol"], sort=False):
        own = recorded[recorded["run_id"].isin(planned["run_id"])]
        sides = dict(zip(MODELS, paired(own, "model", *MODELS.values()), strict=True))
        row = {"dataset": dataset, "protocol": protocol, **_compared(sides), **_reaches(sides, histories)}
        for name, side in sides.items():
            row |= _described(name, side) | _at_rounds(name, side, histories, rounds)
        rows.append({**row, "note": "; ".join(planned["gap"].dropna().unique())})
    return pd.DataFrame(rows)


def _compared(sides: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    complete, released = sides.values()
    difference = released["score"] - complete["score"]
    return {
        "metric": complete["metric"].iloc[0] if len(complete) else None,
        "n_seeds": len(complete),
        "unassigned": released["unassigned_fraction"].mean(),
        "difference": difference.mean(),
        "standard_error": difference.sem(),
    }


def _described(name: str, side: pd.DataFrame) -> dict[str, float]:
    return {
        f"{name}_mean": side["score"].mean(),
        f"{name}_leaves": (side["n_leaves"] / side["n_trees"]).mean(),
        f"{name}_best_round": side["best_round"].mean(),
    }


def _reaches(sides: Mapping[str, pd.DataFrame], histories: Mapping[str, Any]) -> dict[str, float]:
    """Average over seeds the rounds that each side needs to be as good as the worse of both is in the end."""
    complete, released = sides.values()
    found = []
    for *pair, metric in zip(complete["run_id"], released["run_id"], complete["metric"], strict=True):
        own = [histories[run_id].get(f"test.{metric}") for run_id in pair]
        if all(own):
            found.append(rounds_to_lesser(*own, metric=metric))
    means = np.mean(found, axis=0) if found else [math.nan] * len(sides)
    return {f"{name}_reach": float(mean) for name, mean in zip(sides, means, strict=True)}


def rounds_to_lesser(*test_scores: Sequence[float], metric: str) -> list[int]:
    """Return for each curve the first round (from 1) at which it is as good as the one that ends worst ends."""
    sign = 1 if tables.higher_is_better(metric) else -1
    curves_up = [sign * np.asarray(curve) for curve in test_scores]
    target = min(curve[-1] for curve in curves_up)
    return [int(np.argmax(curve >= target)) + 1 for curve in curves_up]


def _at_rounds(name: str, side: pd.DataFrame, histories: Mapping[str, Any], rounds: Sequence[int]) -> dict[str, float]:
    blank = {f"{name}_at_{number}": math.nan for number in rounds}
    records = [{"run_id": run_id, "history": histories[run_id]} for run_id in side["run_id"]]
    frame = curves.curve_frame(side, records, sorted(set(side["metric"])))
    if frame.empty:
        return blank
    (row,) = curves.at_rounds(frame, rounds).to_dict("records")
    return {key: row[number] for key, number in zip(blank, rounds, strict=True)}


def summary_markdown(table: pd.DataFrame) -> str:
    """Write an `ablation` but for its fixed rounds as a Markdown table."""
    head = ["data set", "protocol", "n", "rows without a leaf", "leaves a tree", "score", "difference", "best round"]
    rows = []
    for row in rows_of(table):
        share = "–" if math.isnan(row["unassigned"]) else f"{100 * row['unassigned']:.1f} %"
        score = _both(*(_score(row, f"{name}_mean") for name in MODELS))
        difference = signed_difference(row["metric"], row["difference"], row["standard_error"])
        cells = [_title(row), row["protocol"], row["n_seeds"], share, _numbers(row, "leaves"), score, difference]
        rows.append([*cells, _numbers(row, "best_round"), _numbers(row, "reach"), row["note"]])
    return pipe_table(rows, [*head, "rounds to the lesser score", "note"])


def rounds_markdown(table: pd.DataFrame, rounds: Sequence[int]) -> str:
    """Write the scores at fixed rounds of an `ablation` as a Markdown table."""
    rows = [
        [_title(row), row["protocol"]]
        + [_both(*(_score(row, f"{name}_at_{number}") for name in MODELS)) for number in rounds]
        for row in rows_of(table)
    ]
    head = ["data set", "protocol", *(f"round {number}" for number in rounds)]
    return pipe_table(rows, head)


def _title(row: Mapping[str, Any]) -> str:
    return f"{row['dataset']} ({tables.metric_title(row['metric'])})" if row["n_seeds"] else row["dataset"]


def _score(row: Mapping[str, Any], key: str) -> str:
    return "–" if math.isnan(row[key]) else tables.format_score(row["metric"], row[key])


def _numbers(row: Mapping[str, Any], key: str) -> str:
    values = (row[f"{name}_{key}"] for name in MODELS)
    return _both(*("–" if math.isnan(value) else f"{value:,.0f}" for value in values))


def _both(complete: str, released: str) -> str:
    return "–" if complete == released == "–" else f"{complete} / {released}"
