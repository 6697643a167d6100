"""Table XII: the confidence that GBDT-MO is better."""

from repro.kinds.base import Evidence, Page
from repro.significance_report import confidence_content


def pages(evidence: Evidence) -> list[Page]:
    """Make the page, see `repro.significance_report`."""
    made = confidence_content(evidence.cells, evidence.runs, evidence.published(), evidence.published("scores"))
    return [Page(evidence.plan.name, made.markdown, made.table)]
