"""Writes an experiment's tables from its records, and publishes finished ones.

``python -m repro.report table EXPERIMENT`` writes to ``results/runs/tables``,
``python -m repro.report publish EXPERIMENT`` to ``results``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

import datasets
from repro import kinds
from repro.bench.plan import BenchError, is_benchmark, make_bench_plan
from repro.bench.report import BenchReportError, publish_bench, write_report
from repro.kinds.base import Evidence, Page
from repro.plan import WITHOUT_RUNS, Cell, Plan, PlanError, make_plan
from repro.provenance import ROOT
from repro.published import PublishedStore, published_records, records_path
from repro.sidecar import read_sidecar, with_sidecar
from repro.store import RunStore, StoreError, seal, write_together

RESULTS = ROOT / "results"
NOT_RUN = "not run"
NO_DATA = "data not available: "


class PublishError(RuntimeError):
    """A table cannot be published; the message says what is missing or would be lost."""


def cell_frame(plan: Plan, store: RunStore, stated: Mapping[str, str] | None = None) -> pd.DataFrame:
    """List the plan's cells with the reason of each gap (None: recorded).

    Parameters
    ----------
    stated : mapping, optional
        Reasons given by hand: ``dataset`` or ``dataset/model`` to reason.
    """
    rows = [
        {
            "dataset": cell.dataset,
            "model": cell.model,
            "protocol": cell.protocol,
            "seed": cell.seed,
            "seeds": cell.config["dataset"]["seeds"],
            **dict.fromkeys(plan.setting_names),
            **{key.rpartition(".")[2]: value for key, value in cell.settings.items()},
            "run_id": cell.run_id,
            "gap": None if store.has(cell.run_id) else gap_reason(cell, store, stated or {}),
        }
        for cell in plan.cells
    ]
    columns = ["dataset", "model", "protocol", "seed", "seeds", *plan.setting_names, "run_id", "gap"]
    return pd.DataFrame(rows, columns=columns).astype({"gap": object})


def gap_reason(cell: Cell, store: RunStore, stated: Mapping[str, str]) -> str:
    """Say why a cell has no record."""
    for name in (f"{cell.dataset}/{cell.model}", cell.dataset):
        if name in stated:
            return stated[name]
    unavailable = store.missing_dataset(cell.identity["dataset"])
    if unavailable:
        return NO_DATA + _first_line(unavailable)
    failure = store.failure(cell.run_id)
    return f"failed: {_first_line(failure)}" if failure else NOT_RUN


def _first_line(text: str, length: int = 200) -> str:
    line = text.splitlines()[0] if text else ""
    return line if len(line) <= length else line[: length - 1] + "…"


def run_frame(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Turn records into one row a run, see `repro.tables.summarise`."""
    columns = ["run_id", "seed", "metric", "test", "validation", "best_round", "n_trees", "train_seconds", "rounds"]
    columns += ["n_train", "n_test", "n_leaves", "unassigned_fraction"]
    rows = [
        {
            "run_id": record["run_id"],
            "seed": record["identity"]["seed"],
            "metric": record["scores"]["metric"],
            "test": record["scores"]["test"],
            "validation": record["scores"]["validation"],
            "best_round": _mean_round(record["best_round"]),
            "n_trees": record["n_trees"],
            "train_seconds": record["seconds"]["train"],
            "rounds": record["rounds"],
            "n_train": record["dataset"]["n_fit"] + record["dataset"]["n_validation"],
            "n_test": record["dataset"]["n_test"],
            "n_leaves": record["n_leaves"],
            "unassigned_fraction": record["unassigned_fraction"],
        }
        for record in records
    ]
    may_lack = ("validation", "unassigned_fraction", "n_trees", "n_leaves", "rounds")
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(may_lack, float))


def _mean_round(best_round: int | list[int] | None) -> float:
    """Where each output stops on its own, the mean over outputs; NaN for a model without rounds."""
    if best_round is None:
        return math.nan
    return sum(best_round) / len(best_round) if isinstance(best_round, list) else float(best_round)


def write_tables(plan: Plan, store: RunStore, folder: Path, stated: Mapping[str, str] | None = None) -> list[Path]:
    """Write each of the plan's tables as Markdown and CSV with a provenance sidecar.

    Returns
    -------
    list of Path
        The Markdown files, each with its drawings.
    """
    return _write(*_make_pages(plan, store, stated), folder)


def _write(
    evidence: Evidence, pages: Sequence[Page], folder: Path, beside: Mapping[str, bytes] | None = None
) -> list[Path]:
    """Write the pages, each with its sidecar, and what lies beside them, all together; return what is there to see."""
    contents: dict[str, bytes] = {}
    shown: list[str] = []
    for page in pages:
        drawings = {f"{page.name}.{ending}": drawing for ending, drawing in page.drawings.items()}
        contents |= _files(evidence, page, {**drawings, **(beside or {})})
        shown += [f"{page.name}.md", *drawings]
    write_together({folder / file: content for file, content in contents.items()})
    return [folder / file for file in [*shown, *(beside or {})]]


def _make_pages(plan: Plan, store: RunStore, stated: Mapping[str, str] | None) -> tuple[Evidence, list[Page]]:
    cells = cell_frame(plan, store, stated)
    records = [store.read(run_id) for run_id in cells.loc[cells["gap"].isna(), "run_id"]]
    evidence = Evidence(plan, cells, run_frame(records), records, store.root)
    try:
        return evidence, kinds.pages(plan.table["kind"], evidence)
    except ValueError as error:
        raise PublishError(f"{plan.experiment} cannot be made from these records: {error}") from error


def _files(evidence: Evidence, page: Page, beside: Mapping[str, bytes]) -> dict[str, bytes]:
    cells = evidence.cells if page.cells is None else page.cells
    records = [record for record in evidence.records if record["run_id"] in set(cells["run_id"])]
    data = {
        record["identity"]["dataset"]: {key: record["dataset"].get(key) for key in ("source", "sha256")}
        for record in records
    }
    about = {
        "experiment": evidence.plan.experiment,
        **({"records_of": evidence.plan.table["records_of"]} if "records_of" in evidence.plan.table else {}),
        "narrowed": list(evidence.plan.narrowed),
        "n_planned": len(cells),
        "n_recorded": len(records),
        "gaps": _gaps(cells),
        "data": {**data, **page.data},
        **page.about,
    }
    return with_sidecar(
        page.name,
        markdown=f"{_title(evidence.plan, cells)}\n\n{page.markdown}\n",
        csv=page.table.to_csv(index=False, lineterminator="\n"),
        records=records,
        about=about,
        beside=beside,
    )


def _title(plan: Plan, cells: pd.DataFrame) -> str:
    if plan.table["kind"] in WITHOUT_RUNS:
        return f"**{plan.experiment}**"
    recorded = int(cells["gap"].isna().sum())
    title = f"**{plan.experiment}**: {recorded} of {len(cells)} runs recorded."
    if plan.narrowed:
        title += f" Narrowed to {'; '.join(plan.narrowed)}."
    return title


def _gaps(cells: pd.DataFrame) -> list[dict[str, Any]]:
    missing = cells[cells["gap"].notna()]
    return [
        {
            "dataset": dataset,
            "model": model,
            "protocol": protocol,
            "seeds": sorted(set(group["seed"])),
            "reason": reason,
        }
        for (dataset, model, protocol, reason), group in missing.groupby(
            ["dataset", "model", "protocol", "gap"], sort=False
        )
    ]


def publish(plan: Plan, store: RunStore, folder: Path, stated: Mapping[str, str]) -> list[Path]:
    """Write a finished experiment's tables and its records, without their curves, to the published results.

    Parameters
    ----------
    plan : Plan
        The whole experiment.
    store : RunStore
        Whose records are published, together with those published before that it lacks, so that a part can be added
        anywhere. A table made from another experiment's records (``records_of``) is made from the published ones
        instead, so that what is published agrees; they are not published twice.
    folder : Path
        The published results.
    stated : mapping
        Why cells are missing, see `cell_frame`; reasons published before need not be given again.

    Raises
    ------
    PublishError
        If the plan is narrowed, a cell is missing without a reason, or a cell that is published would be lost.
    """
    if plan.table["kind"] in WITHOUT_RUNS:
        return _publish_without_runs(plan, store, folder)
    if plan.narrowed:
        raise PublishError(f"a narrowed table is not published: {'; '.join(plan.narrowed)}")
    names = {name for cell in plan.cells for name in (cell.dataset, f"{cell.dataset}/{cell.model}")}
    if unknown := sorted(set(stated) - names):
        raise PublishError(
            f"{', '.join(unknown)} is no cell of {plan.experiment}; there are {', '.join(sorted(names))}"
        )
    _forget_old_notes(plan, store)
    source = plan.table.get("records_of")
    if source:
        store = PublishedStore(store.root, published_records(folder, source))
    elif _made_from_lines(plan):
        store = PublishedStore(store.root, published_records(folder, plan.name), local=True)
    stated = {
        **(_published_reasons(folder, source) if source else {}),
        **_published_reasons(folder, plan.name),
        **stated,
    }
    cells = cell_frame(plan, store, stated)
    recorded = [cell for cell in plan.cells if store.has(cell.run_id)]
    if not recorded:
        raise PublishError(
            f"{plan.experiment} has no recorded run; {f'publish {source}' if source else 'run it'} first"
        )
    if (cells["gap"] == NOT_RUN).any():
        raise PublishError(_left_out(plan, cells))
    if source:
        return write_tables(plan, store, folder, stated)
    lines = {records_path(folder, plan.name).name: _lines(folder, plan, store, recorded).encode()}
    return _write(*_make_pages(plan, store, stated), folder, lines)


def _publish_without_runs(plan: Plan, store: RunStore, folder: Path) -> list[Path]:
    """Write tables that are made from the data sets, after checking that none that is published is missing here."""
    evidence, pages = _make_pages(plan, store, None)
    for page in pages:
        before = (_published_sidecar(folder, page.name) or {"data": {}})["data"]
        if lost := sorted(set(before) - set(page.data)):
            raise PublishError(
                f"{page.name} is published with {', '.join(lost)}, which cannot be had here; publishing would lose "
                f"that. `make reproduce-{page.name}` says where it was looked for"
            )
    return _write(evidence, pages, folder)


def _made_from_lines(plan: Plan) -> bool:
    """Tell whether the tables need nothing that published lines leave out, which are curves and saved models."""
    return plan.table["kind"] != "first_trees" and not any(cell.config["curves"] for cell in plan.cells)


def _forget_old_notes(plan: Plan, store: RunStore) -> None:
    """Forget that a data set could not be had where it is here now: its cells can be run."""
    for name in dict.fromkeys(cell.identity["dataset"] for cell in plan.cells):
        if store.missing_dataset(name) is not None:
            with suppress(datasets.DatasetError):
                datasets.load(name, download=False)
                store.forget_missing_dataset(name)


def _left_out(plan: Plan, cells: pd.DataFrame) -> str:
    """Say for each data set how many cells are recorded, and how many are not for which reason."""
    left_out = cells[cells["gap"] == NOT_RUN]
    lines = [f"{len(left_out)} of {len(cells)} cells of {plan.experiment} have not been run:"]
    for dataset, part in cells.groupby("dataset", sort=False):
        kinds = part["gap"].map(_kind).value_counts()
        counts = ", ".join(f"{kinds[kind]} {kind}" for kind in _KINDS if kind in kinds)
        models = ", ".join(dict.fromkeys(part.loc[part["gap"] == NOT_RUN, "model"]))
        lines.append(f"  {dataset}: {len(part)} cells, {counts}" + (f" ({models})" if models else ""))
    first = left_out.iloc[0]
    gap = f"--gap '{first['dataset']}/{first['model']}=reason'"
    lines.append("Run the whole experiment, or say why they are missing:")
    lines.append(f'  make publish EXPERIMENT={plan.experiment} ARGS="{gap}"')
    return "\n".join(lines)


_KINDS = ("recorded", "failed", "without data", "missing for a stated reason", NOT_RUN)


def _kind(gap: object) -> str:
    if not isinstance(gap, str):  # None, or what pandas made of it
        return "recorded"
    if gap.startswith(NO_DATA):
        return "without data"
    if gap.startswith("failed: "):
        return "failed"
    return NOT_RUN if gap == NOT_RUN else "missing for a stated reason"


def _lines(folder: Path, plan: Plan, store: RunStore, recorded: Sequence[Cell]) -> str:
    """Return the compact records, one a line, after checking that no published cell gets lost."""
    path = records_path(folder, plan.name)
    published = published_records(folder, plan.name)
    lost = {_text(record["cell"]) for record in published} - {_text(cell.key) for cell in recorded}
    if lost:
        shown = ", ".join(sorted(lost)[:5]) + (", …" if len(lost) > 5 else "")
        raise PublishError(
            f"{len(lost)} cells published in {path.name} have no record here ({shown}); publishing would lose them. "
            "Run them first: a narrowed or partial run never overwrites a published table."
        )
    return "".join(
        _text(seal({"cell": cell.key, **_compact(store.read(cell.run_id), plan.table)})) + "\n" for cell in recorded
    )


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _compact(record: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the curves, but for what they are on test rows after the rounds that the table shows."""
    bare = {key: value for key, value in record.items() if key != "history"}
    if "rounds" not in table:
        return bare
    at_rounds = {}
    for metric in table.get("metrics", [record["scores"]["metric"]]):
        curve = record["history"].get(f"test.{metric}", [])
        at_rounds[metric] = {str(number): curve[number - 1] for number in table["rounds"] if number <= len(curve)}
    return bare | {"at_rounds": at_rounds}


def _published_reasons(folder: Path, name: str) -> dict[str, str]:
    gaps = (_published_sidecar(folder, name) or {"gaps": []})["gaps"]
    # What was missing then is looked up anew.
    return {f"{gap['dataset']}/{gap['model']}": gap["reason"] for gap in gaps if not gap["reason"].startswith(NO_DATA)}


def _published_sidecar(folder: Path, name: str) -> dict[str, Any] | None:
    """Return what the sidecar of a published table says, None if the table is not published."""
    sidecar = folder / f"{name}.json"
    if sidecar.exists():
        return read_sidecar(sidecar)
    if (folder / f"{name}.md").exists():
        raise PublishError(
            f"{name}.md is published and {sidecar} is missing, which says of what it was made. Restore it, or delete "
            f"{name}.md as well to publish anew"
        )
    return None


def _parse_gaps(texts: Iterable[str]) -> dict[str, str]:
    stated = {}
    for text in texts:
        name, equals, reason = text.partition("=")
        if not (name.strip() and equals and reason.strip()):
            raise PublishError(f"--gap {text!r}: expected DATASET=reason or DATASET/MODEL=reason")
        stated[name.strip()] = reason.strip()
    return stated


def main(arguments: list[str] | None = None) -> int:
    """Write or publish the tables of an experiment; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m repro.report", description=__doc__)
    parser.add_argument("command", choices=["table", "publish"])
    parser.add_argument("experiment")
    parser.add_argument("overrides", nargs="*", help="Hydra overrides, as given to the sweep")
    parser.add_argument("--gap", action="append", default=[], help="DATASET=reason or DATASET/MODEL=reason; repeatable")
    options = parser.parse_intermixed_args(arguments)
    try:
        stated = _parse_gaps(options.gap)
        if is_benchmark(options.experiment):
            return _report_benchmark(options, stated)
        plan = make_plan(options.experiment, overrides=options.overrides)
        if plan.table["kind"] == "grid" and not any(text.startswith("dataset=") for text in options.overrides):
            raise PlanError(f"{options.experiment} is one of each data set: say dataset=NAME, and model=NAME")
        store = RunStore(ROOT / plan.runs_dir)
        if options.command == "table":
            if source := plan.table.get("records_of"):  # also on a fresh clone, which has no runs of its own
                store = PublishedStore(store.root, published_records(RESULTS, source), local=True)
                stated = {**_published_reasons(RESULTS, source), **stated}
            written = write_tables(plan, store, store.tables_dir, stated)
        else:
            before = _published_runs(plan)
            written = publish(plan, store, RESULTS, stated)
            _say_what_changed(plan, before)
    except (PlanError, PublishError, StoreError, BenchError, BenchReportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return _show(written)


def _published_runs(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the published records by their cells."""
    return {_text(record["cell"]): record for record in published_records(RESULTS, plan.name)}


def _say_what_changed(plan: Plan, before: Mapping[str, Mapping[str, Any]]) -> None:
    """Publishing replaces runs published before by those recorded here: whoever does it should know."""
    now = _published_runs(plan)
    replaced = [cell for cell in now if cell in before and now[cell] != before[cell]]
    other_scores = sum(now[cell]["scores"] != before[cell]["scores"] for cell in replaced)
    if len(now) > len(before) or replaced:
        print(
            f"of the {len(now)} lines of {records_path(RESULTS, plan.name).name} {len(set(now) - set(before))} are new "
            f"and {len(replaced)} replaced, {other_scores} of them with other scores",
            file=sys.stderr,
        )


def _report_benchmark(options: argparse.Namespace, stated: Mapping[str, str]) -> int:
    plan = make_bench_plan(options.experiment, overrides=options.overrides)
    root = ROOT / plan.runs_dir
    if options.command == "table":
        return _show(write_report(plan, root, root / "tables"))
    return _show(publish_bench(plan, root, RESULTS, stated))


def _show(written: Iterable[Path]) -> int:
    for path in written:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
