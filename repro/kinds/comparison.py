"""Scores beside the published ones."""

from repro import tables
from repro.kinds.base import LEGEND, Evidence, Page


def pages(evidence: Evidence) -> list[Page]:
    """Make one table: a row a data set and model, a column group a protocol."""
    table = tables.comparison(evidence.cells, evidence.runs, evidence.published())
    return [Page(evidence.plan.name, f"{tables.comparison_markdown(table)}\n\n{LEGEND}", table)]
