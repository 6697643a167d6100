"""Kernel machines, boosted stumps and boosted trees on the same sets of labels, compared row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro import paired_rows, significance
from repro.kinds.base import LABEL_SCORES, Evidence, Page, all_scores, chosen_text, rows_of
from repro.metrics import METRICS
from repro.pipe_table import pipe_table
from repro.run import ROW_METRIC
from repro.significance_report import ALPHA, probability

_DASH = "–"
_KEY = ["dataset", "model", "protocol"]
LEGEND = """\
The best value of each score in bold. Every protocol uses the test rows once: *cross_validated* chose on three folds of
the training rows and fitted on all of them, *holdout* stopped on a fifth of them, which took no part in the fit. Label
sets: a threshold that is learned from the scores (machines), positive scores (BoosTexter, sigmoids), scores above 1/2
(squared error, frequencies). `boostexter_1000` and `label_frequency` have nothing left to choose: they are fitted on
all training rows. Boosted trees have one setting for all, kernel machines one kernel: neither family was
tuned further."""
COMPARED = f"""\
Ranking loss of each method less that of {{reference}}, on the same test rows; above 0 {{reference}} is better. The
{significance.LEVEL:.0%} interval and *p of t* are of the paired t test, *p of Wilcoxon* of the signed-rank test, whose
ranks heed a few large differences less; both are two-sided and adjusted by Holm for the number of methods, **bold**
below {ALPHA:g}. *won*: rows on which {{reference}} loses less, of those that differ. Rows are draws, the fitted models
are not: this says which of these models is better on new rows, not what other training rows would have given."""


def pages(evidence: Evidence) -> list[Page]:
    """Make one page: for each data set the four scores, and every method row by row against the reference."""
    reference = evidence.plan.table["reference"]
    table = families(evidence.cells, evidence.runs, evidence.records, reference)
    sections = []
    for dataset, own in table.groupby("dataset", sort=False):
        sections.append(f"## {dataset}\n\n{scores_markdown(own)}")
        if own["difference"].notna().any():
            sections.append(compared_markdown(own, reference))
    text = "\n\n".join([*sections, LEGEND, COMPARED.format(reference=reference)])
    return [Page(evidence.plan.name, text, table)]


def families(
    cells: pd.DataFrame, runs: pd.DataFrame, records: Sequence[Mapping[str, Any]], reference: str
) -> pd.DataFrame:
    """Set the scores of all methods side by side, and compare them with the reference row by row.

    Parameters
    ----------
    cells, runs : DataFrame
        Planned cells and recorded runs, see `Evidence`; one seed.
    records : sequence of mapping
        Those of `runs`, with ``row_scores``.
    reference : str
        A model.

    Returns
    -------
    DataFrame
        One row a data set and model in the order of the plan: ``protocol``, a column a score of `LABEL_SCORES`,
        ``choice`` (what folds chose), ``best_round``, ``train_seconds``, ``note`` (why there is no run), and the
        columns of `repro.paired_rows.compare_rows`.
    """
    scores = all_scores(records)
    by_run = {record["run_id"]: record for record in records}
    rows = []
    for row in rows_of(cells.merge(runs[["run_id", "best_round", "train_seconds"]], on="run_id", how="left")):
        own = {key: row[key] for key in [*_KEY, "best_round", "train_seconds"]}
        own |= {metric: scores.get(row["run_id"], {}).get(metric, math.nan) for metric in LABEL_SCORES}
        choice = chosen_text(by_run[row["run_id"]]) if row["run_id"] in by_run else ""
        rows.append({**own, "choice": choice, "note": row["gap"] if isinstance(row["gap"], str) else ""})
    compared = paired_rows.compare_rows(_losses(cells, by_run), reference)
    return pd.DataFrame(rows).merge(compared, on=["dataset", "model"], how="left")


def _losses(cells: pd.DataFrame, by_run: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    frames = [
        pd.DataFrame({"dataset": row["dataset"], "model": row["model"], "loss": losses})
        .rename_axis("row")
        .reset_index()
        for row in rows_of(cells)
        if row["run_id"] in by_run
        for losses in [by_run[row["run_id"]]["row_scores"][ROW_METRIC]]
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["dataset", "model", "row", "loss"])


def scores_markdown(table: pd.DataFrame) -> str:
    """Write the scores of one data set as a Markdown table."""
    best = {name: _best(name, table[name]) for name in LABEL_SCORES}
    rows = []
    for row in rows_of(table):
        cells = [row["model"], row["protocol"]]
        cells += [_number(row[name], bold=row[name] == best[name]) for name in LABEL_SCORES]
        rounds = _DASH if math.isnan(row["best_round"]) else f"{row['best_round']:.0f}"
        rows.append([*cells, row["choice"] or _DASH, rounds, _seconds(row["train_seconds"]), row["note"]])
    head = ["model", "protocol", *LABEL_SCORES.values(), "chosen", "rounds used", "train s", "note"]
    return pipe_table(rows, head)


def _best(metric: str, values: pd.Series) -> float:
    return float(values.max() if METRICS[metric].greater_is_better else values.min())


def _number(value: float, bold: bool = False) -> str:
    text = _DASH if math.isnan(value) else f"{value:.3f}"
    return f"**{text}**" if bold else text


def _seconds(value: float) -> str:
    return _DASH if math.isnan(value) else f"{value:.1f}"


def compared_markdown(table: pd.DataFrame, reference: str) -> str:
    """Write the comparisons of one data set with the reference as a Markdown table."""
    rows = []
    for row in rows_of(table[table["difference"].notna()]):
        interval = f"{row['difference']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}]"
        won = f"{row['wins']:.0f} of {row['wins'] + row['losses']:.0f}"
        rows.append([row["model"], f"{row['n']:.0f}", interval, won, _p(row["p_holm"]), _p(row["wilcoxon_p_holm"])])
    head = ["against", "n", f"ranking loss less that of {reference}", "won", "p of t", "p of Wilcoxon"]
    return pipe_table(rows, head)


def _p(value: float) -> str:
    return f"**{probability(value)}**" if value < ALPHA else probability(value)
