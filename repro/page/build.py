"""Makes the page from what is published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from repro import tables
from repro.page import findings
from repro.page.catalogue import PARTS, Entry, further
from repro.page.markup import prose_html, table_html
from repro.page.numbers import Numbers
from repro.page.sources import PageError, Published, Results, read_results
from repro.sidecar import origins

TEMPLATES = Path(__file__).parent / "templates"


def make_page(folder: Path, prose: Path) -> str:
    """Return the page.

    Parameters
    ----------
    folder : Path
        The published results.
    prose : Path
        The document of findings, in a folder beside `folder`.

    Raises
    ------
    PageError, StoreError
        If what is published is not what was written, see `repro.page.sources.read_results`, or cannot be read.
    """
    results = read_results(folder)
    try:
        text = prose.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(f"cannot read {prose}: {error}. Restore the committed file") from error
    parts = list(_parts(results))
    models, worth = findings.optimism(results, "table5")
    tallies = [
        found
        for entry in _entries()
        if entry.paper == entry.name and (found := findings.tally(results, entry.name, entry.paper))
    ]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            parts=parts,
            published=list(results.tables),
            missing=[entry for entry in _entries() if entry.name not in results.tables],
            tallies=tallies,
            table5=next((one for one in tallies if one.name == "table5"), None),
            without_nus_wide=findings.without(results, "nus_wide"),
            not_run=findings.not_run(results),
            missed=findings.missed(results, "table5"),
            optimism={"models": models, "rows": worth},
            dropped=findings.dropped_rows(results),
            splits=findings.split_sums(results),
            hessians=findings.hessians(results),
            tests=findings.first_words(results, "significance"),
            genes=findings.first_words(results, "ranksvm_table"),
            promises=findings.promises(results),
            titles={entry.name: entry.title for entry in _entries()},
            tolerance={"points": tables.POINTS, "relative": f"{tables.RELATIVE:.0%}"},
            prose=prose_html(text, f"../{prose.parent.name}", list(results.tables), Numbers(results)),
            prose_path=f"../{prose.parent.name}/{prose.name}",
            records=list(results.records.values()),
        )
    )


def _entries() -> list[Entry]:
    return [entry for part in PARTS for entry in part.entries]


def _parts(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the parts that have published tables."""
    known = {entry.name for entry in _entries()}
    for part in [*PARTS, further([name for name in results.tables if name not in known])]:
        sections = [
            _section(results, entry, results.tables[entry.name])
            for entry in part.entries
            if entry.name in results.tables
        ]
        if sections:
            yield {"title": part.title, "sections": sections}


def _section(results: Results, entry: Entry, published: Published) -> dict[str, Any]:
    paper = f"paper/{entry.paper}.csv" if (results.folder / f"paper/{entry.paper}.csv").exists() else ""
    runs = set(published.sidecar["runs"])
    used = [record for record in published.records.records() if record["run_id"] in runs] if published.records else []
    origin = origins(record["provenance"] for record in used)
    started = sorted(record["provenance"]["started"][:10] for record in used)
    return {
        "entry": entry,
        "html": table_html(published, entry.title, paper),
        "paper": paper,
        "records": published.records,
        "n_runs": len(runs),
        "days": " to ".join(dict.fromkeys([started[0], started[-1]])) if started else "",
        "commits": [str(commit)[:9] for commit in origin["commit"]],
        "dirty": any(origin["dirty"]),
        "cpus": origin["cpu"],
        "files": [f"{entry.name}.{ending}" for ending in ("md", "csv", "json")],
    }


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals["style"] = Markup((TEMPLATES / "style.css").read_text("utf-8"))
    return made
