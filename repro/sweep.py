"""Runs what is missing of an experiment and writes its tables: ``python -m repro.sweep experiment=table5``.

Cells run in processes of their own, cheapest data set first. What is recorded is skipped, what failed is tried again,
a data set that cannot be had leaves gaps with the reason. Killed at any moment, the same command goes on from there.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pandas as pd
from filelock import FileLock, Timeout

import datasets
from repro import workers
from repro.job import Runner, complete_in_process, require_same_data
from repro.plan import Cell, Plan, PlanError, make_plan
from repro.progress import Display, Forecast
from repro.provenance import ROOT, usable_cpus
from repro.published import published_records
from repro.report import RESULTS, PublishError, write_tables
from repro.run import ROW_METRIC, run_cell
from repro.store import RUNS_DIR, RunStore, StoreError

if TYPE_CHECKING:
    from repro.tracking import Mirror

# Environment of the workers, for libraries that start a thread a core when they are loaded.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# What every cell loads, without the boosting libraries: a model's peak memory holds its own only.
PRELOAD = ("repro.job", "repro.report", "repro.progress", "sklearn.ensemble")
_BYTES_A_PROCESS = 2 * 2**30  # the largest data set's cells stay below


log = logging.getLogger(__name__)


class Busy(RuntimeError):
    """Another sweep is running in this checkout."""


def run_sweep(
    plan: Plan,
    store: RunStore,
    *,
    runner: Runner = run_cell,
    processes: int | None = None,
    mirror: Mirror | None = None,
    preload: Sequence[str] = PRELOAD,
) -> list[Cell]:
    """Run the cells of a plan that are not recorded, and mirror the records to MLflow.

    Parameters
    ----------
    plan : Plan
    store : RunStore
    runner : callable
        Gives a cell's record; must be importable by its name.
    processes : int, optional
        Cells run at a time. By default as many as there are cores and memory for. The cores are divided among them.
    mirror : Mirror, optional
        None: no mirroring.
    preload : sequence of str
        Modules the worker processes share.

    Returns
    -------
    list of Cell
        The cells that have no record now.

    Raises
    ------
    Busy
        If another sweep is running on the same store.
    StoreError
        If the store cannot be written, or a record of the plan cannot be read; what is recorded stays.
    """
    store.prepare()
    with _sole_sweep(store), ThreadPoolExecutor(1, thread_name_prefix="mlflow") as mirroring:
        store.clean_temporary()
        records = _readable_records(plan, store)
        if mirror is not None:
            mirroring.submit(mirror.try_sync).result()
        missing = [cell for cell in plan.cells if not store.has(cell.run_id)]
        runnable = _with_data(missing, store)
        processes, threads = _divide(len(runnable), processes)
        forecast = Forecast([*published_records(RESULTS, plan.name), *records], processes)
        mirrored = []
        with Display(len(runnable)) as display, _worker_environment(threads):
            display.say(
                f"{plan.experiment}: {len(plan.cells)} cells, {len(plan.cells) - len(missing)} recorded, "
                f"{len(missing) - len(runnable)} without data, {len(runnable)} to run "
                f"({processes} at a time, {threads} thread{'s' if threads > 1 else ''} each)"
            )
            for cell in _run(runnable, store, runner, processes, threads, forecast, display, preload):
                if mirror is not None:
                    mirrored.append(mirroring.submit(mirror.try_sync, [cell.run_id]))
        for future in mirrored:
            future.result()
        if mirror is not None and plan.setting_names:  # those recorded before belong to the sweep, too
            mirroring.submit(mirror.try_sync, [cell.run_id for cell in plan.cells if store.has(cell.run_id)]).result()
    return [cell for cell in plan.cells if not store.has(cell.run_id)]


@contextmanager
def _sole_sweep(store: RunStore) -> Iterator[None]:
    lock = FileLock(str(store.root / "sweep.lock"), blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise Busy(
            f"another sweep is running on {store.root}; wait for it, or stop it and run this command again"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _readable_records(plan: Plan, store: RunStore) -> list[dict[str, Any]]:
    """Read all records: before hours of work, a bad one of this plan must be known, or one of other data.

    A bad record of another plan must not stop it.
    """
    needed = {cell.run_id for cell in plan.cells}
    records = []
    for identifier in store.identifiers():
        try:
            records.append(store.read(identifier))
        except StoreError as error:
            if identifier in needed:
                raise
            log.warning("%s", error)
    require_same_data((record for record in records if record["run_id"] in needed), store)
    return records


def _with_data(cells: Sequence[Cell], store: RunStore) -> list[Cell]:
    """Drop the cells whose data cannot be had, after noting why; loading once here also downloads once."""
    available = {}
    for name in dict.fromkeys(cell.identity["dataset"] for cell in cells):
        try:
            datasets.load(name)
        except datasets.DatasetError as error:
            store.write_missing_dataset(name, error)
            print(f"{name} cannot be had: {error}", file=sys.stderr)
        else:
            store.forget_missing_dataset(name)
            available[name] = True
    return [cell for cell in cells if cell.identity["dataset"] in available]


def _divide(n_cells: int, processes: int | None) -> tuple[int, int]:
    """Return how many processes to run at a time, and how many threads each may use."""
    cores = usable_cpus()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = min(cores, max(1, memory // _BYTES_A_PROCESS), max(1, n_cells))
    processes = most if processes is None else max(1, min(processes, cores))
    return processes, max(1, cores // processes)


@contextmanager
def _worker_environment(threads: int) -> Iterator[None]:
    """Set what worker processes inherit: their threads, and where this project lies whatever the working folder is."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {**dict.fromkeys(_THREAD_VARIABLES, str(threads)), "PYTHONPATH": os.pathsep.join(paths)}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(
    cells: Sequence[Cell],
    store: RunStore,
    runner: Runner,
    processes: int,
    threads: int,
    forecast: Forecast,
    display: Display,
    preload: Sequence[str],
) -> Iterator[Cell]:
    """Run the cells and yield those that were recorded."""
    logs = [store.root / "logs" / f"{cell.run_id}.log" for cell in cells]
    arguments = [({**cell.config, "n_jobs": threads}, str(store.root), runner) for cell in cells]
    open_cells = dict(enumerate(cells))
    calls = workers.run_each(complete_in_process, arguments, processes=processes, logs=logs, preload=preload)
    try:
        for index, exit_code in calls:
            cell = open_cells.pop(index)
            text = _outcome(cell, exit_code, logs[index], store, forecast)
            display.finished(text, forecast.left(list(open_cells.values())))
            if store.has(cell.run_id):
                yield cell
    finally:
        calls.close()


def _outcome(cell: Cell, exit_code: int, log: Path, store: RunStore, forecast: Forecast) -> str:
    """Say how a cell went, after noting a death that it could not note itself."""
    if not store.has(cell.run_id):
        if exit_code not in (1, workers.SERVER_LOST) or store.failure(cell.run_id) is None:
            store.write_failure(cell.identity, workers.describe_death(exit_code, log))
        store.check_room()
        return f"FAILED {cell.label}: {store.failure(cell.run_id)}"
    log.unlink(missing_ok=True)
    record = store.read(cell.run_id)
    seconds = float(record["seconds"]["total"])
    forecast.learn(cell.identity, seconds)
    return f"{cell.label}: {_score(record['scores'])} in {seconds:.1f} s"


def _score(scores: Mapping[str, Any]) -> str:
    """Show the score on validation rows where there are some: who watches a sweep may be choosing a setting.

    Of label sets the ranking loss of the test rows too, since their reported metric looks at the first label alone.
    """
    if scores["validation"] is not None:
        return f"validation {scores['metric']} {scores['validation']:.5f}"
    ranking = scores["all"].get(ROW_METRIC)
    return f"{scores['metric']} {scores['test']:.5f}" + ("" if ranking is None else f", {ROW_METRIC} {ranking:.5f}")


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if text.strip() and not names:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing; leave it empty for all")
    return names


def _parse(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(
        prog="python -m repro.sweep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", help="experiment=NAME and Hydra overrides for every cell")
    parser.add_argument("--datasets", type=_names, default=[], help="only these, comma-separated; empty: all")
    parser.add_argument("--models", type=_names, default=[], help="only these, comma-separated; empty: all")
    parser.add_argument("--seeds", default="", help="how many seeds; empty: all")
    parser.add_argument("--processes", type=int, help="cells run at a time; by default one a core")
    options = parser.parse_intermixed_args(arguments)
    experiments = [text.partition("=")[2] for text in options.overrides if text.startswith("experiment=")]
    if len(experiments) != 1:
        parser.error("say which experiment: experiment=NAME, once")
    options.experiment = experiments[0]
    options.overrides = [text for text in options.overrides if not text.startswith("experiment=")]
    for name in ("dataset", "model", "seed"):
        if getattr(options, f"{name}s") and any(text.startswith(f"{name}=") for text in options.overrides):
            parser.error(f"{name}= and --{name}s narrow the same: give one of them")
    if options.processes is not None and options.processes < 1:
        parser.error(f"--processes is how many cells run at a time, from 1; not {options.processes}")
    if options.seeds and not (re.fullmatch("[0-9]+", options.seeds) and int(options.seeds) > 0):
        parser.error(f"SEEDS is how many seeds to run, a whole number from 1; not {options.seeds!r}")
    return options


def _stop(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an experiment; return 0, 1 if a cell has no record that was asked for, 2 for a wrong request."""
    options = _parse(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    signal.signal(signal.SIGTERM, _stop)
    print(f"{options.experiment}: reading the experiment and its records", file=sys.stderr, flush=True)
    try:
        plan = make_plan(
            options.experiment,
            overrides=options.overrides,
            datasets=options.datasets,
            models=options.models,
            seeds=int(options.seeds) if options.seeds else None,
        )
        store = RunStore(ROOT / plan.runs_dir)
        return _sweep_and_report(plan, store, options)
    except (PlanError, Busy, StoreError, PublishError, workers.WorkersError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return _interrupted()


def _interrupted() -> int:
    print("interrupted; the same command goes on from here", file=sys.stderr)
    return 130


def _sweep_and_report(plan: Plan, store: RunStore, options: Any) -> int:
    # Here, since every worker imports this module, and MLflow takes seconds to load.
    from repro.tracking import Mirror

    mirror = Mirror(store, sweep=plan.experiment if plan.setting_names else None)
    try:
        missing = run_sweep(plan, store, processes=options.processes, mirror=mirror)
    except KeyboardInterrupt:
        _write(plan, store)
        return _interrupted()
    written = _write(plan, store)
    if plan.setting_names:
        finish_parents(plan, store, written, mirror)
    # A set that cannot be had is a gap in the whole table, but an error to somebody who asked for it by name.
    failed = [
        cell
        for cell in missing
        if cell.dataset in options.datasets or store.missing_dataset(cell.identity["dataset"]) is None
    ]
    if failed:
        print(f"{len(failed)} cells have no record; the table says why, the same command tries again", file=sys.stderr)
    return 1 if failed else 0


def finish_parents(plan: Plan, store: RunStore, written: Sequence[Path], mirror: Mirror) -> None:
    """Show the summary of a sweep over settings at its parent runs, one a data set and model."""
    from repro.tracking import Finish, parent_name

    pairs = dict.fromkeys((cell.dataset, cell.model) for cell in plan.cells)
    for dataset, model in pairs:
        own = [cell for cell in plan.cells if (cell.dataset, cell.model) == (dataset, model)]
        if not any(store.has(cell.run_id) for cell in own):
            continue
        name = parent_name(plan.experiment, {"dataset": dataset, "model": model})
        pages = [path for path in written if path.stem == name] or list(written)
        files = sorted({file for page in pages for file in page.parent.glob(f"{page.stem}.*")})
        tags, metrics = chosen_setting(pages[0].with_suffix(".csv"), plan.setting_names)
        whole = all(store.has(cell.run_id) for cell in own)
        mirror.try_finish(own[0].identity["dataset"], own[0].identity["model"], Finish(whole, tags, metrics, files))


def chosen_setting(table: Path, settings: Sequence[str]) -> tuple[dict[str, str], dict[str, float]]:
    """Read from the CSV of a grid what was chosen, and its scores; nothing from another table."""
    rows = pd.read_csv(table)
    chosen = rows[rows["chosen"]] if "chosen" in rows else rows[:0]
    if chosen.empty:
        return {}, {}
    row = chosen.iloc[0]
    tags = {f"chosen.{name}": str(row[name]) for name in settings}
    return tags, {f"chosen.{name}": float(row[f"{name}_mean"]) for name in ("validation", "test")}


def _write(plan: Plan, store: RunStore) -> list[Path]:
    written = write_tables(plan, store, store.tables_dir)
    for path in written:
        print(f"wrote {path}", file=sys.stderr)
    if plan.narrowed:
        print(
            f"That is the part asked for; records of other cells are kept, and `{_table_command(plan)}` writes the "
            "whole table.",
            file=sys.stderr,
        )
    return written


def _table_command(plan: Plan) -> str:
    """Return the command that writes the whole table of the experiment, called in the project's folder."""
    words = [".venv/bin/python -m repro.report table", plan.experiment]
    if plan.table.get("kind") == "grid":
        for role in ("dataset", "model"):
            words.append(f"{role}={','.join(dict.fromkeys(getattr(cell, role) for cell in plan.cells))}")
    if plan.runs_dir != RUNS_DIR:
        words.append(f"runs_dir={plan.runs_dir}")
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
