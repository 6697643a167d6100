"""Table XII: the confidence that GBDT-MO is better."""

from repro.kinds.base import Evidence, Page
from repro.significance_report import KINDS


def pages(evidence: Evidence) -> list[Page]:
    """Make the page, see `repro.significance_report`."""
    made = KINDS["confidence"](evidence.recorded(), evidence.published(), evidence.published("scores"))
    return [Page(evidence.plan.name, made.markdown, made.table, made.drawings, about=made.about)]
