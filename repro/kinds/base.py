"""What every kind of table is made from, and what it gives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from repro import tables
from repro.plan import Plan
from repro.provenance import ROOT

LEGEND = """\
Accuracies in percent, RMSE in the targets' units; mean ± sample standard deviation over n seeds; best round and
training seconds are means. `paper` protocol: early stopping watched the test rows and their best score is reported, as
for the published values, which is optimistic. `holdout` protocol: early stopping watched validation rows, and the test
rows were scored once. A cell matches within 0.3 points (accuracy) or 1 % (RMSE) of the published value, or within two
standard errors of our mean."""

LABEL_SCORES = {
    "average_precision": "Precision",
    "label_ranking_loss": "Ranking loss",
    "hamming_loss": "Hamming loss",
    "one_error": "One-error",
}
"""The four scores of label sets that Elisseeff and Weston report, with their titles."""


@dataclass(frozen=True)
class Evidence:
    """What a plan's records say.

    Attributes
    ----------
    plan : Plan
    cells : DataFrame
        Planned cells with the reason of each gap, see `repro.report.cell_frame`.
    runs : DataFrame
        A row a recorded run, see `repro.report.run_frame`.
    records : list of dict
        The records themselves, in the order of the cells.
    root : Path
        Folder of the run store, below which records name their artefacts.
    """

    plan: Plan
    cells: pd.DataFrame
    runs: pd.DataFrame
    records: list[dict[str, Any]]
    root: Path

    def published(self, key: str = "published") -> pd.DataFrame:
        """Return the published values that the experiment names under this key."""
        return pd.read_csv(ROOT / self.plan.table[key])

    def recorded(self) -> pd.DataFrame:
        """Return the runs with what tells their cells."""
        return self.cells.merge(self.runs.drop(columns=["seed"]), on="run_id", how="inner")


@dataclass(frozen=True)
class Page:
    """One table or figure, as it is written.

    Attributes
    ----------
    name : str
        Of its files, without ending.
    markdown : str
        What follows the title.
    table : DataFrame
        Its CSV.
    drawings : mapping of str to bytes
        Files by ending.
    cells : DataFrame or None
        The planned cells it shows; None: all.
    data : mapping
        Source and checksums of data that it shows and no record names.
    about : mapping
        What else its sidecar says.
    """

    name: str
    markdown: str
    table: pd.DataFrame
    drawings: Mapping[str, bytes] = field(default_factory=dict)
    cells: pd.DataFrame | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)


def paired(recorded: pd.DataFrame, column: str, first: str, second: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pick the seeds that two models, or two protocols, both have.

    Parameters
    ----------
    recorded : DataFrame
        Runs of one data set, see `Evidence.recorded`.
    column : str
        ``model`` or ``protocol``.
    first, second : str
        Values of that column.

    Returns
    -------
    tuple of DataFrame
        The runs of each, by seed, both in the same order; ``score`` and ``validation_score`` are ``test`` and
        ``validation`` in the paper's units.
    """
    in_units = {
        name: [tables.in_paper_units(metric, value) for metric, value in zip(recorded["metric"], values, strict=True)]
        for name, values in (("score", recorded["test"]), ("validation_score", recorded["validation"]))
    }
    by_seed = recorded.assign(**in_units).set_index("seed")
    one, other = (by_seed[by_seed[column] == name] for name in (first, second))
    seeds = one.index.intersection(other.index)
    return one.loc[seeds], other.loc[seeds]


def signed_difference(metric: str, value: float, error: float) -> str:
    """Format a difference of scores with its sign and, where there is one, its standard error; a dash for NaN."""
    if math.isnan(value):
        return "–"
    text = tables.format_score(metric, value)
    text = text if text.startswith("-") else f"+{text}"
    return text if math.isnan(error) else f"{text} ± {tables.format_score(metric, error)}"


def all_scores(records: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return every score of the test rows, as recorded, by run id and name."""
    return {record["run_id"]: record["scores"]["all"] for record in records}


def chosen_text(record: Mapping[str, Any]) -> str:
    """Write what was chosen for a run, such as ``C 0.3``; empty if nothing was left open."""
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in record["selected"].items())


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a frame's rows as dictionaries."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def image(name: str, title: str) -> str:
    """Return the Markdown that shows the drawing of a page of this name."""
    return f"![{title}]({name}.png)"
