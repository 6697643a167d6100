"""Table VII: scores of top-k splits beside the published ones."""

import pandas as pd

from repro import tables
from repro.kinds.base import LEGEND, Evidence, Page

NOTE = """\
`restricted-4`: both sides of a split share one set of four outputs [eq. 22]; `unrestricted-4`: each has its own
[eq. 21]."""


def pages(evidence: Evidence) -> list[Page]:
    """Make one table: a row a data set and kind of split, in the place of the model."""
    table = tables.comparison(by_split(evidence.cells), evidence.runs, published_by_split(evidence.published()))
    text = tables.comparison_markdown(table).replace("| model ", "| split ", 1)
    return [Page(evidence.plan.name, f"{text}\n\n{NOTE}\n\n{LEGEND}", table.rename(columns={"model": "split"}))]


def by_split(cells: pd.DataFrame) -> pd.DataFrame:
    """Let the kind of split stand where the model does: there is only one."""
    return cells.assign(model=cells["split"])


def published_by_split(published: pd.DataFrame) -> pd.DataFrame:
    """Name the published rows as `repro.resolvers.split_kinds` names splits."""
    return published.assign(model=published["top_k_mode"] + "-" + published["top_k"].astype(str))
