"""The tests over seeds and over data sets."""

from repro.kinds.base import Evidence, Page
from repro.significance_report import significance_content


def pages(evidence: Evidence) -> list[Page]:
    """Make the page, see `repro.significance_report`."""
    made = significance_content(evidence.cells, evidence.runs, evidence.published())
    return [Page(evidence.plan.name, made.markdown, made.table, made.drawings, about=made.about)]
