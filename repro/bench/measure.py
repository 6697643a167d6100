"""What a benchmark cell does in its process: each kind of work gives measurements, JSON values only."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from hydra.utils import instantiate

from repro import memory
from repro.bench import limit, shapes, solve
from repro.metrics import METRICS, reported_metric
from repro.models.base import Array, BoostedModel, RoundTimes, TimedModel

Config = Mapping[str, Any]
_PREDICTIONS = 5
_ONE_ROW_CALLS = 2000


def time_rounds(config: Config) -> dict[str, Any]:
    """Train a fixed number of rounds and predict the test rows, each phase apart.

    Returns
    -------
    dict
        ``construct_seconds``, ``round_seconds`` (the first is a warm-up), ``n_leaves`` and the other fields of
        `repro.models.base.RoundTimes`; ``predict_seconds`` of the test rows, one a repetition; ``score`` and ``metric``
        on them; ``memory`` in MiB: ``data`` (resident before training), ``peak`` (largest until training ended).
    """
    data = shapes.load(config["dataset"])
    model: TimedModel = instantiate(config["estimator"])
    resident = memory.resident_mb()
    memory.reset_peak()
    times = _train(model, data, config)
    peak = memory.peak_mb()
    rows = data.X_test.astype(model.row_dtype, copy=False)
    metric = reported_metric(data.task)
    return {
        **asdict(times),
        "predict_seconds": _predict_seconds(model, rows, config["threads"]),
        "metric": metric,
        "score": METRICS[metric].function(data.y_test, model.predict_scores(data.X_test)),
        "memory": {"data": resident, "peak": peak},
        "data": data.described,
    }


def _train(model: TimedModel, data: shapes.BenchData, config: Config) -> RoundTimes:
    return model.train_rounds(
        data.X,
        data.y,
        task=data.task,
        n_outputs=data.n_outputs,
        n_rounds=config["rounds"],
        seed=0,
        n_jobs=config["threads"],
    )


def _predict_seconds(model: TimedModel, rows: Array, n_jobs: int) -> list[float]:
    return [_seconds(lambda: model.raw_scores(rows, n_jobs)) for _ in range(_PREDICTIONS)]


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def time_prediction(config: Config) -> dict[str, Any]:
    """Train more rounds, then time the prediction of the test rows by one thread and by all of the cell's.

    Returns
    -------
    dict
        ``predict_seconds`` by number of threads, one a repetition; ``rounds`` of the model.
    """
    data = shapes.load(config["dataset"])
    model: TimedModel = instantiate(config["estimator"])
    _train(model, data, config)
    rows = data.X_test.astype(model.row_dtype, copy=False)
    seconds = {str(n_jobs): _predict_seconds(model, rows, n_jobs) for n_jobs in (1, config["threads"])}
    return {"predict_seconds": seconds, "rounds": config["rounds"], "data": data.described}


def time_to_score(config: Config) -> dict[str, Any]:
    """Train, then score what the model was after each round: evaluation takes no part in the seconds.

    Returns
    -------
    dict
        ``construct_seconds``; ``seconds``, training time after each round; ``test`` and ``validation``, the reported
        ``metric`` on these rows after each round (empty where there are no validation rows).
    """
    data = shapes.load(config["dataset"])
    model: BoostedModel = instantiate(config["estimator"])
    times = _train(model, data, config)
    metric = reported_metric(data.task)
    n_validation = len(data.X_validation)
    stages = model.staged_scores(np.concatenate([data.X_validation, data.X_test]))
    score = METRICS[metric].function
    curves: dict[str, list[float]] = {"validation": [], "test": []}
    for scores in stages:
        if n_validation:
            curves["validation"].append(score(data.y_validation, scores[:n_validation]))
        curves["test"].append(score(data.y_test, scores[n_validation:]))
    return {
        "construct_seconds": times.construct_seconds,
        "seconds": np.cumsum(times.round_seconds).tolist(),
        "metric": metric,
        **curves,
        "data": data.described,
    }


def time_one_row(config: Config) -> dict[str, Any]:
    """Time ``predict`` of one row, and scikit-learn's own validation of that row.

    Returns
    -------
    dict
        ``predict_microseconds`` and ``validation_microseconds``: medians over calls that alternate.
    """
    data = shapes.load(config["dataset"])
    model = instantiate(config["estimator"])
    _train(model, data, config)
    row = np.array(data.X_test[:1])
    predict, validate = model.one_row_calls(row)
    for _ in range(100):
        predict(), validate()
    pairs = [(_seconds(predict), _seconds(validate)) for _ in range(_ONE_ROW_CALLS)]
    return {
        "predict_microseconds": 1e6 * statistics.median(seconds for seconds, _ in pairs),
        "validation_microseconds": 1e6 * statistics.median(seconds for _, seconds in pairs),
        "n_trees": config["rounds"],
        "data": data.described,
    }


def measure_limit(config: Config) -> dict[str, Any]:
    """Measure the machine's rates for gradient rows as long as this shape's."""
    shape = config["dataset"]
    return {**asdict(limit.measure(gradient_lanes(shape["task"], shape["outputs"]))), "data": {}}


def gradient_lanes(task: str, n_outputs: int) -> int:
    """Count the numbers in a gradient row: a gradient an output, and a Hessian where it is not constant."""
    return 2 * n_outputs if task == "multiclass" else n_outputs


WORK: dict[str, Callable[[Config], dict[str, Any]]] = {
    "rounds": time_rounds,
    "predict": time_prediction,
    "score": time_to_score,
    "row": time_one_row,
    "limit": measure_limit,
    "solve": solve.time_fit,
    "epochs": solve.time_epochs,
}
"""Kind of work: what does it."""
