"""Writes the report page: ``python -m repro.page``."""

from __future__ import annotations

import argparse
import sys

from repro.page.build import make_page
from repro.page.sources import PageError
from repro.provenance import ROOT
from repro.store import StoreError, write_atomically

RESULTS = ROOT / "results"
PAGE = RESULTS / "report.html"
PROSE = ROOT / "docs" / "findings.md"


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or check it; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m repro.page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if the page is not up to date")
    options = parser.parse_args(arguments)
    try:
        page = make_page(RESULTS, PROSE)
        if not options.check:
            write_atomically(PAGE, page)
            print(PAGE)
            return 0
    except (PageError, StoreError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if PAGE.exists() and PAGE.read_text("utf-8") == page:
        return 0
    print(f"{PAGE} is older than what it is made from: run make report", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
