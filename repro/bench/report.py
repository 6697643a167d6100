"""Writes the benchmark's report, Figure 5 and the inference table from records, and publishes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from repro import figures
from repro.bench import checks as promises
from repro.bench import frames, markdown, scaling, scaling_markdown, scores, sparse
from repro.bench.cell import bench_store, was_busy
from repro.bench.plan import BenchCell, BenchPlan
from repro.provenance import ROOT
from repro.published import records_path
from repro.sidecar import with_sidecar
from repro.store import RunStore, seal, write_together

NOT_RUN = "not run"
PAPER = ROOT / "results" / "paper"
LEGEND = f"""\
Medians over all repeats, the first round of each left out; in brackets the fastest and the slowest. Every cell ran
alone in a process pinned to its cores. *construction* is binning or the library's own data structure, timed apart;
*peak MB above data* is what training added to the resident memory of loaded data and libraries. *limit*: the time that
the adds (or the bytes, if longer) of the histograms of gbdt_mo's trees take at this machine's measured rates, counting
only entries outside each feature's most frequent bin. {markdown.MADE_UP} made-up data of that shape.
{markdown.BUSY} others used the machine meanwhile."""
TABLE6_LEGEND = f"""\
Mean of all rounds of a cell, without evaluation rows and without binning. Every cell ran alone in a process pinned to
its cores. {markdown.MADE_UP} made-up features, or made-up data of that shape. {markdown.BUSY} others used the machine
meanwhile."""

SCALING_LEGEND = f"""\
Medians over all repeats; in brackets the fastest and the slowest. Every cell is one whole fit, alone in a process
pinned to one core. C = 10 where the margin is soft (frank_wolfe needs it), in the paper's scaling for rank_svm and
frank_wolfe, in the SVC's own for one_vs_rest, which solves another problem and whose tolerance is no duality gap.
frank_wolfe stops after 60 seconds: its gap says how far it came. *peak MiB above data* is what the fit added to the
resident memory of loaded data and libraries. *pairs* are of a relevant and an irrelevant label, over all rows. An
epoch's seconds are the difference of a long and a short fit over the epochs between them. {markdown.MADE_UP} made-up
data. {markdown.BUSY} others used the machine meanwhile."""
_LEGENDS = {"table6": TABLE6_LEGEND, "ranksvm_scaling": SCALING_LEGEND}


class BenchReportError(RuntimeError):
    """Records that make no report together, or none that may be published; the message says why."""


@dataclass(frozen=True)
class Evidence:
    """The records of a plan, and what they say.

    Attributes
    ----------
    measured : list
        Cells with their records.
    gaps : dict of str to str
        Label of each cell without a record, and why.
    rounds, compared, limits, predictions, parts, growth, sparse, score, one_row : DataFrame
        See `repro.bench.frames` and `repro.bench.scores`.
    """

    measured: list[tuple[BenchCell, dict[str, Any]]]
    gaps: dict[str, str]
    rounds: pd.DataFrame
    compared: pd.DataFrame
    limits: pd.DataFrame
    predictions: pd.DataFrame
    parts: pd.DataFrame
    growth: pd.DataFrame
    sparse: pd.DataFrame
    score: pd.DataFrame
    one_row: pd.DataFrame


def gather(plan: BenchPlan, store: RunStore) -> Evidence:
    """Read a plan's records.

    Raises
    ------
    BenchReportError
        If they come from different machines: such seconds cannot be compared.
    StoreError
        If a record cannot be read.
    """
    measured = [(cell, store.read(cell.run_id)) for cell in plan.cells if store.has(cell.run_id)]
    check_one_machine([record for _, record in measured])
    gaps = {
        cell.label: (store.failure(cell.run_id) or NOT_RUN).splitlines()[0]
        for cell in plan.cells
        if not store.has(cell.run_id)
    }
    rounds, limits = frames.round_frame(measured), frames.limit_frame(measured)
    return Evidence(
        measured=measured,
        gaps=gaps,
        rounds=rounds,
        compared=frames.compared(rounds, limits),
        limits=limits,
        predictions=frames.predict_frame(measured, rounds),
        parts=frames.part_frame(rounds),
        growth=frames.growth_frame(rounds),
        sparse=frames.sparse_frame(rounds, pd.read_csv(PAPER / "table6.csv"), pd.read_csv(PAPER / "table8.csv")),
        score=scores.score_frame(measured),
        one_row=scores.row_frame(measured),
    )


def check_one_machine(records: Sequence[Mapping[str, Any]]) -> None:
    """Refuse records of different machines.

    Raises
    ------
    BenchReportError
    """
    machines = {
        (record["provenance"]["cpu"], record["provenance"]["n_cpus"], record["provenance"]["platform"])
        for record in records
    }
    if len(machines) > 1:
        named = "; ".join(f"{cpu}, {n} cores, {platform}" for cpu, n, platform in sorted(machines))
        raise BenchReportError(
            f"these records come from {len(machines)} machines and cannot be compared: {named}. Delete those of one "
            "machine, or use another runs_dir."
        )


def all_checks(evidence: Evidence) -> pd.DataFrame:
    """Return every promise beside what was measured, see `repro.bench.checks`."""
    reference = pd.read_csv(PAPER / "speed_reference.csv")
    found: Iterator[promises.Check] = iter(
        [
            *promises.speed_checks(evidence.compared, reference),
            *promises.score_checks(evidence.score),
            *promises.part_checks(evidence.compared, evidence.parts),
            *promises.memory_checks(evidence.rounds),
            *promises.growth_checks(evidence.growth, evidence.rounds),
            *promises.sparse_checks(evidence.sparse),
            *promises.inference_checks(evidence.predictions, evidence.one_row),
        ]
    )
    return promises.check_frame(found)


def write_report(plan: BenchPlan, root: Path, folder: Path) -> list[Path]:
    """Write what the plan's kind of table asks for, with a sidecar.

    Parameters
    ----------
    plan : BenchPlan
    root : Path
        Folder of the run store.
    folder : Path
        Where the report goes.

    Returns
    -------
    list of Path
    """
    return _write(plan, gather(plan, bench_store(root)), folder, {})


def _write(plan: BenchPlan, evidence: Evidence, folder: Path, lines: Mapping[str, bytes]) -> list[Path]:
    drawn = _drawings(plan, evidence)
    text, csv = _CONTENTS[plan.kind](plan, evidence)
    contents = with_sidecar(
        plan.experiment,
        markdown=f"{_title(plan, evidence)}\n\n{text}\n\n{_LEGENDS.get(plan.kind, LEGEND)}\n",
        csv=csv.to_csv(index=False, lineterminator="\n"),
        records=[record for _, record in evidence.measured],
        about=_about(plan, evidence),
        beside={**drawn, **lines},
    )
    write_together({folder / file: content for file, content in contents.items()})
    return [folder / file for file in (f"{plan.experiment}.md", *drawn, *lines)]


def _drawings(plan: BenchPlan, evidence: Evidence) -> dict[str, bytes]:
    """Return the drawings by their files' names."""
    name, drawn = plan.experiment, {}
    if plan.kind == "figure5" and len(evidence.compared):
        made_up = set(evidence.compared.loc[evidence.compared["synthetic"], "shape"])
        drawn = figures.round_bars(evidence.compared, plan.titles, made_up)
    elif plan.kind == "bench" and len(evidence.growth):
        name = f"{name}_growth"
        drawn = figures.growth_bars(evidence.growth[evidence.growth["variant"] != "base"], promises.GROWTH)
    elif plan.kind == "ranksvm_scaling":
        drawn = figures.log_log_panels(scaling.panels(scaling.solve_frame(evidence.measured)))
    return {f"{name}.{ending}": content for ending, content in drawn.items()}


def _about(plan: BenchPlan, evidence: Evidence) -> dict[str, Any]:
    return {
        "experiment": plan.experiment,
        "narrowed": list(plan.narrowed),
        "n_planned": len(plan.cells),
        "n_recorded": len(evidence.measured),
        "gaps": evidence.gaps,
        "busy": [cell.label for cell, record in evidence.measured if was_busy(record)],
        "data": {
            cell.shape: record["measured"]["data"] for cell, record in evidence.measured if record["measured"]["data"]
        },
        "started": sorted(record["provenance"]["started"] for _, record in evidence.measured)[
            :: max(len(evidence.measured) - 1, 1)
        ],
    }


def _title(plan: BenchPlan, evidence: Evidence) -> str:
    title = f"**{plan.experiment}**: {len(evidence.measured)} of {len(plan.cells)} cells recorded."
    if plan.narrowed:
        title += f" Narrowed to {'; '.join(plan.narrowed)}."
    if evidence.measured:
        first = evidence.measured[0][1]["provenance"]
        started = [record["provenance"]["started"] for _, record in evidence.measured]
        commits = sorted({str(record["provenance"]["commit"])[:9] for _, record in evidence.measured})
        title += (
            f" {first['cpu']}, {first['n_cpus']} cores; {min(started)} to {max(started)}; commit {', '.join(commits)}."
        )
    return title


def _bench_text(plan: BenchPlan, evidence: Evidence) -> str:
    sections = [*_promises(all_checks(evidence)), *_round_sections(plan, evidence)]
    if len(evidence.parts):
        sections += ["## Where gbdt_mo's round goes", markdown.parts_markdown(evidence.parts, evidence.compared)]
    if len(evidence.limits):
        sections += ["## This machine, one thread", markdown.limits_markdown(evidence.limits)]
    sections += _inference_section(plan, evidence)
    if len(evidence.one_row):
        sections += [markdown.one_row_markdown(evidence.one_row)]
    if len(evidence.rounds):
        many = evidence.rounds[evidence.rounds["group"] == "many_outputs"]
        sections += ["## Peak memory", markdown.memory_markdown(evidence.rounds)]
        sections += ["## How cost grows", markdown.growth_markdown(evidence.growth, many)]
        sections += ["## Top-k splits", markdown.sparse_markdown(evidence.sparse)]
    if len(evidence.score):
        sections += ["## Time to LightGBM's best test score", markdown.scores_markdown(evidence.score)]
    return "\n\n".join([*sections, *_gap_section(evidence)])


def _table6(evidence: Evidence) -> tuple[str, pd.DataFrame]:
    frame = sparse.table6_frame(evidence.measured, pd.read_csv(PAPER / "table6.csv"), pd.read_csv(PAPER / "table8.csv"))
    return "\n\n".join([sparse.table6_markdown(frame), *_gap_section(evidence)]), frame


def _scaling(evidence: Evidence) -> tuple[str, pd.DataFrame]:
    frame = scaling.solve_frame(evidence.measured)
    powers = scaling.power_frame(frame)
    found = promises.check_frame(scaling.scaling_checks(frame, powers))
    parts = []
    if len(frame):
        frame = scaling.with_ratios(frame)
        parts = [*_promises(found), *scaling_markdown.sections(frame, powers)]
    keys = ["group", "shape", "model", "variant", "work", "axis", "claim", "where"]
    csv = _long({"checks": found, "fits": frame, "powers": powers}, keys)
    return "\n\n".join([*parts, *_gap_section(evidence)]), csv


def _promises(found: pd.DataFrame) -> list[str]:
    if not len(found):
        return []
    holding = int((found["holds"] == True).sum())  # noqa: E712 - None is no False
    return [f"## What must hold: {holding} of {len(found)}", markdown.checks_markdown(found)]


def _gap_section(evidence: Evidence) -> list[str]:
    if not evidence.gaps:
        return []
    return ["## Gaps", "\n".join(f"- {label}: {reason}" for label, reason in evidence.gaps.items())]


def _round_sections(plan: BenchPlan, evidence: Evidence) -> list[str]:
    sections = []
    for shape in dict.fromkeys(evidence.compared["shape"]) if len(evidence.compared) else []:
        own = evidence.compared[evidence.compared["shape"] == shape].iloc[0]
        star = markdown.MADE_UP if own["synthetic"] else ""
        sizes = f"{own['n_train']:,} × {own['n_features']} → {own['n_outputs']}"
        sections.append(f"## {plan.titles[shape]}{star}, {sizes}")
        sections.append(markdown.rounds_markdown(evidence.compared, str(shape)))
    return sections


def _inference_section(plan: BenchPlan, evidence: Evidence) -> list[str]:
    if not len(evidence.predictions):
        return []
    head = (
        "Milliseconds a round over the test rows, one thread / more: the whole call over its rounds; in brackets, over "
        "the fastest peer's. Models without cells of their own have the few rounds of their timed ones."
    )
    return ["## Inference", head, markdown.inference_markdown(evidence.predictions, plan.titles)]


def long_table(evidence: Evidence) -> pd.DataFrame:
    """Give every figure of the report as a row: ``section``, what it is of, ``quantity``, ``value``."""
    parts = {
        "checks": all_checks(evidence),
        "rounds": evidence.compared,
        "other rounds": evidence.rounds[evidence.rounds["group"] != "rounds"]
        if len(evidence.rounds)
        else evidence.rounds,
        "inference": evidence.predictions,
        "parts": evidence.parts,
        "limits": evidence.limits,
        "growth": evidence.growth,
        "sparse": evidence.sparse,
        "score": evidence.score,
        "one row": evidence.one_row,
    }
    return _long(parts, ["group", "shape", "model", "variant", "threads", "mode", "k", "claim", "where"])


def _long(parts: Mapping[str, pd.DataFrame], keys: list[str]) -> pd.DataFrame:
    molten = [
        frame.melt(id_vars=[key for key in keys if key in frame], var_name="quantity").assign(section=section)
        for section, frame in parts.items()
        if len(frame)
    ]
    columns = ["section", *keys, "quantity", "value"]
    table = pd.concat(molten, ignore_index=True) if molten else pd.DataFrame()
    return table.reindex(columns=columns).dropna(subset=["value"])


_CONTENTS: dict[str, Callable[[BenchPlan, Evidence], tuple[str, pd.DataFrame]]] = {
    "bench": lambda plan, evidence: (_bench_text(plan, evidence), long_table(evidence)),
    "figure5": lambda plan, evidence: ("\n\n".join(_round_sections(plan, evidence)), evidence.compared),
    "inference": lambda plan, evidence: ("\n\n".join(_inference_section(plan, evidence)), evidence.predictions),
    "table6": lambda plan, evidence: _table6(evidence),
    "ranksvm_scaling": lambda plan, evidence: _scaling(evidence),
}
"""Markdown and CSV of each kind of table."""


def publish_bench(plan: BenchPlan, root: Path, folder: Path, stated: Mapping[str, str]) -> list[Path]:
    """Write the report and its records to the published results.

    Parameters
    ----------
    plan : BenchPlan
        The whole benchmark.
    root, folder : Path
        The run store's folder, the published results.
    stated : mapping
        Why cells are missing: ``shape`` or ``shape/model`` to reason.

    Raises
    ------
    BenchReportError
        If the plan is narrowed, a cell is missing without a reason, or others used the machine during a cell.
    """
    if plan.narrowed:
        raise BenchReportError(f"a narrowed benchmark is not published: {'; '.join(plan.narrowed)}")
    store = bench_store(root)
    evidence = gather(plan, store)
    left_out = [
        cell.label
        for cell in plan.cells
        if not store.has(cell.run_id)
        and store.failure(cell.run_id) is None
        and not {cell.shape, f"{cell.shape}/{cell.model}"} & set(stated)
    ]
    if left_out:
        raise BenchReportError(f"{len(left_out)} cells have not been run, among them {left_out[0]}; run `make bench`")
    if busy := [cell.label for cell, record in evidence.measured if was_busy(record)]:
        raise BenchReportError(
            f"others used the machine during {len(busy)} cells, among them {busy[0]}; measure them again when it is "
            "quiet: make bench ARGS=--again"
        )
    if plan.kind in ("figure5", "inference"):  # the benchmark's records are published with it
        return _write(plan, evidence, folder, {})
    lines = [
        json.dumps(seal({"cell": cell.key, **record}), separators=(",", ":"), ensure_ascii=False) + "\n"
        for cell, record in evidence.measured
    ]
    return _write(plan, evidence, folder, {records_path(folder, plan.experiment).name: "".join(lines).encode()})
