"""Measures speed and memory and writes the report: ``python -m repro.bench experiment=bench``.

Cells run one at a time, each in a process of its own; what is recorded with the same code is skipped.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from filelock import FileLock

from repro import workers
from repro.bench.cell import bench_store
from repro.bench.plan import BenchError, BenchPlan, make_bench_plan
from repro.bench.suite import NotQuiet, check_quiet, print_progress, run_bench
from repro.provenance import ROOT
from repro.store import StoreError


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parse(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(
        prog="python -m repro.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", help="experiment=NAME (bench if not given) and Hydra overrides")
    parser.add_argument("--datasets", type=_names, default=[], help="only these shapes, comma-separated; empty: all")
    parser.add_argument("--models", type=_names, default=[], help="only these models, comma-separated; empty: all")
    parser.add_argument("--groups", type=_names, default=[], help="only these groups, comma-separated; empty: all")
    parser.add_argument("--busy", action="store_true", help="measure although the machine is busy; cells are marked")
    parser.add_argument("--again", action="store_true", help="measure cells again during which others used the machine")
    options = parser.parse_intermixed_args(arguments)
    experiments = [text.partition("=")[2] for text in options.overrides if text.startswith("experiment=")]
    if len(experiments) > 1:
        parser.error("say one experiment")
    options.experiment = experiments[0] if experiments else "bench"
    options.overrides = [text for text in options.overrides if not text.startswith("experiment=")]
    return options


def _stop(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark; return 0, 1 if a cell has no record, 2 for a wrong request or a busy machine."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, _stop)
    try:
        plan = make_bench_plan(
            options.experiment,
            overrides=options.overrides,
            shapes=options.datasets,
            models=options.models,
            groups=options.groups,
        )
        if not options.busy:
            check_quiet(say=print_progress)
        return _run_and_report(plan, again=options.again)
    except (BenchError, NotQuiet, StoreError, OSError, workers.WorkersError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130


def _run_and_report(plan: BenchPlan, *, again: bool) -> int:
    # Here, since every cell's process loads this module, and should load little.
    from repro.bench.report import BenchReportError, write_report

    root = ROOT / plan.runs_dir
    bench_store(root).prepare()
    with FileLock(str(root / "sweep.lock"), blocking=False):  # neither two benchmarks nor one beside a sweep
        missing = run_bench(plan, root, again=again, say=print_progress)
    try:
        written = write_report(plan, root, root / "tables")
    except BenchReportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path in written:
        print(f"wrote {path}", file=sys.stderr)
    if missing:
        print(f"{len(missing)} cells have no record; the report says why", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
