"""Measures one benchmark cell in a process of its own and records it.

Nothing that starts threads is loaded before the process is pinned to its cores.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import psutil

from repro import provenance
from repro.store import SCHEMA, RunStore, Shape, run_id

SHAPE: Shape = {
    "schema": int,
    "run_id": str,
    "identity": dict,
    "measured": dict,
    "measured.data": dict,
    "other_cpu": (int, float),
    "seconds": dict,
    "seconds.total": (int, float),
    "provenance": dict,
    "provenance.started": str,
}
"""What every benchmark record holds."""
_BUSY_CORES = 0.15
_BUSY_SECONDS = 0.2


def bench_store(root: Any) -> RunStore:
    """Return the store of benchmark records below a run store's folder."""
    return RunStore(f"{root}/bench", SHAPE)


def measure_in_process(config: Mapping[str, Any], identity: Mapping[str, Any], root: str) -> None:
    """Do one cell as the whole work of a process; an error is noted and leaves through the exit status."""
    store = bench_store(root)
    try:
        described = provenance.collect(threads=config["threads"])  # of the machine, before it is cut to some cores
        pin(config["threads"])
        record = measured_record(config, identity, described)
    except Exception as error:
        store.write_failure(identity, error)
        raise
    store.write(record)


def pin(threads: int) -> None:
    """Let this process use so many cores, and each thread pool as many threads.

    Raises
    ------
    RuntimeError
        If there are fewer cores, or if OpenMP is loaded already and would not listen.
    """
    if "libgomp" in _loaded_libraries():
        raise RuntimeError("OpenMP was loaded before the process was pinned to its cores, so its threads have no bound")
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise RuntimeError(f"{threads} threads are to be measured, but this process may use {len(cores)} cores")
    os.sched_setaffinity(0, cores[-threads:])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)


def _loaded_libraries() -> str:
    with open("/proc/self/maps", encoding="utf-8") as file:
        return file.read()


def measured_record(
    config: Mapping[str, Any], identity: Mapping[str, Any], described: Mapping[str, Any]
) -> dict[str, Any]:
    """Measure a cell in this process and return its record.

    ``other_cpu`` is the number of cores that other processes kept busy meanwhile.
    """
    # Here, since it loads the numeric libraries.
    from repro.bench.measure import WORK

    watch = CpuWatch()
    start = time.perf_counter()
    measured = WORK[config["work"]](config)
    return {
        "schema": SCHEMA,
        "run_id": run_id(identity),
        "identity": dict(identity),
        "measured": measured,
        "other_cpu": watch.other_cores(),
        "seconds": {"total": time.perf_counter() - start},
        "provenance": dict(described),
    }


def was_busy(record: Mapping[str, Any]) -> bool:
    """Tell whether other processes disturbed a measurement; a moment's work in a short cell does not count."""
    other = float(record["other_cpu"])
    return other > _BUSY_CORES and other * float(record["seconds"]["total"]) > _BUSY_SECONDS


class CpuWatch:
    """Tells how busy other processes have kept this machine since it was made."""

    def __init__(self) -> None:
        self._start = (time.perf_counter(), self._busy(), self._own())

    @staticmethod
    def _busy() -> float:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        counted_twice = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        return float(sum(times) - idle - counted_twice)

    @staticmethod
    def _own() -> float:
        own = os.times()
        return own.user + own.system + own.children_user + own.children_system

    def other_cores(self) -> float:
        """Mean number of cores that others used."""
        wall, busy, own = self._start
        seconds = max(time.perf_counter() - wall, 1e-3)
        return max(0.0, ((self._busy() - busy) - (self._own() - own)) / seconds)
