"""Table IV: the data sets as loaded, beside the published sizes."""

from __future__ import annotations

from typing import Any

import pandas as pd

import datasets
from repro.kinds.base import Evidence, Page, rows_of
from repro.pipe_table import pipe_table

COLUMNS = ["n_train", "n_test", "n_features", "n_outputs", "task"]
LEGEND = """\
Training and test rows of the `paper` protocol (first seed), as our loaders give them; where the paper says something
else, that stands in brackets."""


def pages(evidence: Evidence) -> list[Page]:
    """Make one table: a row a data set."""
    loaded, reasons = {}, {}
    for name in evidence.plan.table["datasets"]:
        try:
            loaded[name] = datasets.load(name)
        except datasets.DatasetError as error:
            reasons[name] = str(error).splitlines()[0]
    described = {name: describe(data) for name, data in loaded.items()}
    table = sizes(evidence.plan.table["datasets"], described, reasons, evidence.published())
    data = {name: {"source": one.source, "sha256": one.sha256} for name, one in loaded.items()}
    text = f"{sizes_markdown(table)}\n\n{LEGEND}"
    return [Page(evidence.plan.name, text, table, data=data, about={"sizes": described})]


def describe(data: datasets.base.Dataset) -> dict[str, Any]:
    """Return a data set's sizes and task by `COLUMNS`."""
    split = data.split(0)
    values = (len(split.train), len(split.test), data.X.shape[1], data.n_outputs, data.task)
    return dict(zip(COLUMNS, values, strict=True))


def sizes(
    names: list[str], described: dict[str, dict[str, Any]], reasons: dict[str, str], published: pd.DataFrame
) -> pd.DataFrame:
    """Set sizes beside the published ones.

    Returns
    -------
    DataFrame
        One row a name: `COLUMNS`, empty where the set is not here; ``published_<column>``; ``agrees``, None where it is
        not here; ``note``, the reason.
    """
    theirs = {row["dataset"]: row for row in rows_of(published)}
    rows = []
    for name in names:
        own = described.get(name, dict.fromkeys(COLUMNS))
        row = {"dataset": name, **own, **{f"published_{column}": theirs[name][column] for column in COLUMNS}}
        row["agrees"] = all(own[c] == theirs[name][c] for c in COLUMNS) if name in described else None
        rows.append({**row, "note": reasons.get(name, "")})
    return pd.DataFrame(rows).astype(dict.fromkeys(COLUMNS, object))


def sizes_markdown(table: pd.DataFrame) -> str:
    """Write `sizes` as a Markdown table."""
    rows = []
    for row in rows_of(table):
        cells = []
        for column in COLUMNS:
            own, theirs = _text(row[column]), _text(row[f"published_{column}"])
            cells.append(own if own == theirs else f"{own} ({theirs})")
        rows.append([row["dataset"], *cells, row["note"]])
    head = ["data set", "training rows", "test rows", "features", "outputs", "task", "note"]
    return pipe_table(rows, head)


def _text(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return value if isinstance(value, str) else f"{int(value):,}"
