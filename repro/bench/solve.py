"""Times whole fits of label rankings, and what one epoch of ours takes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from hydra.utils import instantiate

from repro import memory
from repro.bench import shapes
from repro.bench.solvers.base import Solver, SolverReport

_FEW_EPOCHS = 2


def time_fit(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fit once.

    Returns
    -------
    dict
        ``fit_seconds``; the fields of `repro.bench.solvers.base.SolverReport` and its ``relative_gap``; ``n_pairs`` of
        relevant and irrelevant labels; ``memory`` in MiB: ``data`` (resident before the fit), ``peak``.
    """
    data = shapes.load(config["dataset"])
    solver: Solver = instantiate(config["estimator"])
    resident = memory.resident_mb()
    memory.reset_peak()
    seconds, report = _fit(solver, data, config)
    return {
        "fit_seconds": seconds,
        **asdict(report),
        "relative_gap": report.relative_gap,
        "n_pairs": n_pairs(data.y),
        "memory": {"data": resident, "peak": memory.peak_mb()},
        "data": data.described,
    }


def time_epochs(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fit for two epochs and for the configured ``max_iter``: what the others take, each, without kernel and start.

    Returns
    -------
    dict
        ``epoch_seconds``; ``n_iter`` of both fits; ``n_pairs``.

    Raises
    ------
    RuntimeError
        If the longer fit is no longer: the problem is solved before.
    """
    data = shapes.load(config["dataset"])
    few = {**config["estimator"], "max_iter": _FEW_EPOCHS}
    fits = [_fit(instantiate(estimator), data, config) for estimator in (few, few, config["estimator"])]
    _, (short, start), (long, end) = fits  # the first one touches memory that the others find ready
    if start.n_iter is None or end.n_iter is None or end.n_iter <= start.n_iter:
        raise RuntimeError(f"the fits took {start.n_iter} and {end.n_iter} epochs: take a smaller tol")
    return {
        "epoch_seconds": (long - short) / (end.n_iter - start.n_iter),
        "n_iter": [start.n_iter, end.n_iter],
        "n_pairs": n_pairs(data.y),
        "data": data.described,
    }


def _fit(solver: Solver, data: shapes.BenchData, config: Mapping[str, Any]) -> tuple[float, SolverReport]:
    start = time.perf_counter()
    report = solver.fit(data.X, data.y, config["threads"])
    return time.perf_counter() - start, report


def n_pairs(indicator: shapes.Array) -> int:
    """Count the pairs of a relevant and an irrelevant label over all rows."""
    relevant = np.asarray(indicator, dtype=np.int64).sum(axis=1)
    return int((relevant * (indicator.shape[1] - relevant)).sum())
