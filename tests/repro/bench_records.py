"""Benchmark cells and records that were not measured, for tests of what is made of them."""

from collections.abc import Sequence
from typing import Any

from repro.bench.plan import BenchCell
from repro.store import SCHEMA, run_id

PARTS = ("gradient", "rounding", "histogram", "split", "partition", "leaf", "evaluation")
DATA = {
    "source": "made up",
    "n_train": 1000,
    "n_test": 100,
    "n_features": 10,
    "n_outputs": 4,
    "task": "multiclass",
    "synthetic": True,
}
PROVENANCE = {
    "started": "2026-01-01T00:00:00+00:00",
    "commit": "c0ffee",
    "dirty": False,
    "cpu": "some processor",
    "n_cpus": 2,
    "platform": "Linux",
}


def cell(
    work: str, group: str, shape: str, model: str, threads: int = 1, repeat: int = 0, variant: str = ""
) -> BenchCell:
    config = {"dataset": {"title": shape, "synthetic": True}, "threads": threads}
    identity = {"work": work, "group": group, "shape": shape, "model": model, "threads": threads, "repeat": repeat}
    identity["variant"] = variant
    return BenchCell(group, work, shape, model, variant, threads, repeat, config, identity, run_id(identity))


def record(of: BenchCell, measured: dict[str, Any], *, other_cpu: float = 0.0, **provenance: Any) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run_id": of.run_id,
        "identity": of.identity,
        "measured": {"data": DATA, **measured},
        "other_cpu": other_cpu,
        "seconds": {"total": 10.0},
        "provenance": {**PROVENANCE, **provenance},
    }


def rounds(
    shape: str,
    model: str,
    seconds: Sequence[float],
    *,
    group: str = "rounds",
    variant: str = "",
    threads: int = 1,
    repeat: int = 0,
    predict: float = 0.5,
    memory: tuple[float, float] = (100.0, 150.0),
    parts: dict[str, float] | None = None,
    entries: float | None = None,
    other_cpu: float = 0.0,
    data: dict[str, Any] | None = None,
    **provenance: Any,
) -> tuple[BenchCell, dict[str, Any]]:
    """Make a cell of timed rounds; `parts` are seconds a round, the same in each."""
    of = cell("rounds", group, shape, model, threads, repeat, variant)
    measured = {
        "construct_seconds": 0.25,
        "round_seconds": list(seconds),
        "n_leaves": 8 * len(seconds),
        "parts": {name: [(parts or {}).get(name, 0.0)] * len(seconds) for name in PARTS} if parts else {},
        "entries": [] if entries is None else [entries] * len(seconds),
        "histogram_pool_mb": 16.0,
        "predict_seconds": [predict] * 3,
        "metric": "accuracy",
        "score": 0.5,
        "memory": {"data": memory[0], "peak": memory[1]},
        "data": {**DATA, **(data or {})},
    }
    return of, record(of, measured, other_cpu=other_cpu, **provenance)


def limit(shape: str, adds: float, repeat: int = 0) -> tuple[BenchCell, dict[str, Any]]:
    of = cell("limit", "limit", shape, "", repeat=repeat)
    rates = {"lanes": 8, "adds_l1": adds, "adds_l2": adds / 2, "adds_contiguous": 2 * adds, "read_bytes": 1e12}
    return of, record(of, {**rates, "data": {}})


def score(
    group: str,
    model: str,
    test: Sequence[float],
    *,
    validation: Sequence[float] = (),
    variant: str = "",
    step: float = 1.0,
) -> tuple[BenchCell, dict[str, Any]]:
    of = cell("score", group, group, model, variant=variant)
    measured = {
        "construct_seconds": 0.1,
        "seconds": [step * (index + 1) for index in range(len(test))],
        "metric": "rmse" if validation else "accuracy",
        "validation": list(validation),
        "test": list(test),
    }
    return of, record(of, measured)
