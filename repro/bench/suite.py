"""Measures what is missing of a benchmark, one cell at a time, each in a process of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import datasets
from repro import workers
from repro.bench.cell import bench_store, measure_in_process, was_busy
from repro.bench.plan import RELEASED_LIBRARY, BenchCell, BenchPlan
from repro.provenance import ROOT, load_average, usable_cpus
from repro.store import RunStore

QUIET_LOAD = 0.5
"""Load average above which a benchmark does not start."""


class NotQuiet(RuntimeError):
    """Other work keeps the machine busy."""


def check_quiet(wait_seconds: float = 120.0, say: Callable[[str], None] = print) -> None:
    """Wait until the machine is quiet, and say so.

    Raises
    ------
    NotQuiet
        If the load average has not fallen in time.
    """
    deadline = time.monotonic() + wait_seconds
    if (load := (load_average() or [0.0])[0]) > QUIET_LOAD:
        say(f"the load average is {load:.2f}; waiting up to {wait_seconds:.0f} s for it to fall to {QUIET_LOAD}")
    while (load := (load_average() or [0.0])[0]) > QUIET_LOAD:
        if time.monotonic() > deadline:
            raise NotQuiet(
                f"the load average is {load:.2f}, so other work would spoil the measurement; end it, or measure anyway "
                "with --busy (cells are marked then)"
            )
        time.sleep(5)


def run_bench(
    plan: BenchPlan, root: Path, *, again: bool = False, say: Callable[[str], None] = print
) -> list[BenchCell]:
    """Measure the cells of a plan that have no record.

    Parameters
    ----------
    plan : BenchPlan
    root : path
        Folder of the run store; benchmark records lie below ``bench/``.
    again : bool
        Measure cells again that were not measured alone.
    say : callable
        Gets a line of progress.

    Returns
    -------
    list of BenchCell
        The cells without a record now.

    Raises
    ------
    StoreError
        If the store cannot be written.
    """
    store = bench_store(root)
    store.prepare()
    store.clean_temporary()
    missing = _distinct(
        cell for cell in plan.cells if not store.has(cell.run_id) or (again and was_busy(store.read(cell.run_id)))
    )
    runnable = [cell for cell in missing if _can_run(cell, store)]
    say(f"{plan.experiment}: {len(plan.cells)} cells, {len(missing)} not recorded, {len(runnable)} to run")
    logs = [store.root / "logs" / f"{cell.run_id}.log" for cell in runnable]
    arguments = [(cell.config, cell.identity, str(root)) for cell in runnable]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    started = time.monotonic()
    with closing(workers.run_each(measure_in_process, arguments, processes=1, logs=logs)) as calls:
        for index, exit_code in calls:
            outcome = _outcome(runnable[index], exit_code, logs[index], store)
            done = f"{time.strftime('%H:%M:%S')} [{index + 1}/{len(runnable)}]"
            say(f"{done} {outcome} ({time.monotonic() - started:.0f} s so far)")
    return [cell for cell in plan.cells if not store.has(cell.run_id)]


def _distinct(cells: Iterable[BenchCell]) -> list[BenchCell]:
    """Drop cells that another group lists too."""
    return list({cell.run_id: cell for cell in cells}.values())


def _can_run(cell: BenchCell, store: RunStore) -> bool:
    """Tell whether a cell can be run here; if not, the reason is noted."""
    reason = None
    if cell.model == "external/released_library" and not os.environ.get(RELEASED_LIBRARY):
        reason = f"no compiled copy of the released program: {RELEASED_LIBRARY} is not set"
    elif cell.threads > usable_cpus():
        reason = f"this machine has {usable_cpus()} usable cores"
    elif cell.model and not cell.config["dataset"]["synthetic"]:
        try:
            datasets.load(cell.config["dataset"]["source"])
        except datasets.DatasetError as error:
            reason = f"data not available: {error}"
    if reason is not None:
        store.write_failure(cell.identity, reason)
    return reason is None


def _outcome(cell: BenchCell, exit_code: int, log: Path, store: RunStore) -> str:
    if not store.has(cell.run_id):
        if exit_code not in (1, workers.SERVER_LOST) or store.failure(cell.run_id) is None:
            store.write_failure(cell.identity, workers.describe_death(exit_code, log))
        return f"FAILED {cell.label}: {store.failure(cell.run_id)}"
    log.unlink(missing_ok=True)
    record = store.read(cell.run_id)
    busy = f", others used {record['other_cpu']:.2f} cores" if was_busy(record) else ""
    return f"{cell.label}: {_summary(record['measured'])} in {record['seconds']['total']:.1f} s{busy}"


def _summary(measured: dict[str, Any]) -> str:
    if "fit_seconds" in measured:
        gap = measured["relative_gap"]
        return f"{measured['fit_seconds']:.4f} s a fit" + (f", gap {gap:.1e}" if gap is not None else "")
    seconds: Sequence[float] | None = measured.get("round_seconds")
    if seconds:
        return f"{sorted(seconds[1:])[len(seconds[1:]) // 2]:.4f} s a round"
    return "done"


def print_progress(text: str) -> None:
    """Show a line of progress on standard error."""
    print(text, file=sys.stderr, flush=True)
