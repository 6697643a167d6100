"""Runs one cell: load, split, select, fit, predict, score."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

import datasets
from datasets.base import Dataset, Split, check_seed
from repro import memory, provenance, store
from repro.curves import staged_curves
from repro.fitting import Fit, Selection, fit_model, refusal, select
from repro.metrics import METRICS, SET_METRICS, reported_metric, score_all
from repro.models.base import Array, Model
from repro.protocol import SELECTION, Protocol, rows

MODEL_KEYS = ("name", "estimator", "select", "table9_row")
"""What the config of a model may hold; hyper-parameters stand under ``estimator``."""

ROW_METRIC = "label_ranking_loss"
"""The score that ``row_scores`` records of each test row."""


def hyperparameters(cfg: DictConfig) -> dict[str, Any]:
    """Return the resolved hyper-parameters, with the grid of those left open under ``select``.

    A protocol that chooses nothing leaves none open.
    """
    model = _model_settings(cfg)
    params = {name: value for name, value in model["estimator"].items() if name != "_target_"}
    protocol: Protocol = instantiate(cfg.protocol)
    if model.get("select") and protocol.chooses:
        params["select"] = model["select"]
    return params


def _model_settings(cfg: DictConfig) -> dict[str, Any]:
    """Return the resolved model, infinities as text: JSON has none, and ``model.estimator.C=inf`` gives a number.

    Raises
    ------
    ValueError
        If it holds something that nothing reads.
    """
    if unknown := [str(key) for key in cfg.model if key not in MODEL_KEYS]:
        raise ValueError(
            f"model.{unknown[0]} is unknown: the config of a model holds {', '.join(MODEL_KEYS)}; "
            f"a hyper-parameter is model.estimator.{unknown[0]}"
        )
    settings: dict[str, Any] = _with_texts(OmegaConf.to_container(cfg.model, resolve=True))
    return settings


def _with_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_texts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_texts(one) for one in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def identity(cfg: DictConfig) -> dict[str, Any]:
    """Return what makes a run this run and no other; `repro.store.run_id` names it.

    Raises
    ------
    ValueError
        If the seed is no whole number >= 0, or the config of the model holds what nothing reads.
    """
    return {
        "dataset": cfg.dataset.name,
        "protocol": cfg.protocol.name,
        "model": cfg.model.name,
        "params": hyperparameters(cfg),
        "seed": check_seed(cfg.seed),
        **{name: True for name in ("curves", "row_scores") if cfg.get(name)},
    }


def run_cell(cfg: DictConfig, *, models_dir: Path | None = None) -> dict[str, Any]:
    """Run one cell.

    Parameters
    ----------
    cfg : DictConfig
        With ``dataset``, ``model``, ``protocol`` (one file each of ``conf/``), ``seed`` and ``n_jobs``; ``curves`` asks
        for `repro.curves.staged_curves` in the record's ``history``, ``row_scores`` for the label ranking loss of each
        test row in the order of the split.
    models_dir : Path, optional
        Folder that the trained model is written to, as ``<run_id>`` with the ending of its format. None: the
        model is not kept.

    Returns
    -------
    dict
        The run record, JSON values only; see `repro.store`. ``seconds.select`` is the time of the trials
        whose fit is not the result, ``seconds.predict`` that of predicting the test rows; ``peak_memory_mb``
        (MiB, by `repro.memory`) covers all from loading to predicting.

    Raises
    ------
    datasets.DatasetError
        If the data cannot be had, or were made up for timing.
    ValueError
        If config and data disagree, the model cannot take the protocol, the seed is no whole number >= 0, or a score is
        not finite.
    """
    clock = _Clock()
    cfg = cfg.copy()
    check_seed(cfg.seed)
    cfg.model = _model_settings(cfg)
    OmegaConf.resolve(cfg)  # a cell does the same whether it comes from the command line or from a resolved plan
    if refused := refusal(cfg):
        raise ValueError(refused)
    described = provenance.collect(threads=cfg.n_jobs)
    memory.reset_peak()
    with clock.measure("load"):
        data = datasets.load(cfg.dataset.name)
    _check_task(cfg, data)
    data.require_scorable()
    split = data.split(cfg.seed)
    protocol: Protocol = instantiate(cfg.protocol)
    selection = select(cfg, data, split, protocol)
    fit = _final_fit(cfg, data, split, protocol, selection)
    scores = _score(data, split, protocol, fit.model, clock)
    peak = memory.peak_mb()
    curves = staged_curves(fit.model, data, split, protocol) if cfg.get("curves") else {}
    by_row = {"row_scores": _row_scores(data, split, fit.model)} if cfg.get("row_scores") else {}
    run_identity = identity(cfg)
    run_id = store.run_id(run_identity)
    artifacts = {"model": _save_model(fit.model, models_dir, run_id)} if models_dir is not None else {}
    return {
        "schema": store.SCHEMA,
        "run_id": run_id,
        "identity": run_identity,
        "config": OmegaConf.to_container(cfg),
        "scores": scores,
        **by_row,
        **_describe_fit(fit, selection, curves),
        "seconds": _seconds(clock, selection, fit),
        "peak_memory_mb": peak,
        "dataset": _describe_data(data, split, protocol),
        "provenance": described,
        "artifacts": artifacts,
    }


def _check_task(cfg: DictConfig, data: Dataset) -> None:
    if cfg.dataset.task != data.task:
        raise ValueError(
            f"the config says that the task of {data.name} is {cfg.dataset.task!r}, the data set itself says "
            f"{data.task!r}; correct its file under conf/dataset"
        )


def _final_fit(cfg: DictConfig, data: Dataset, split: Split, protocol: Protocol, selection: Selection) -> Fit:
    """Fit as the protocol says, or take the chosen trial where that was done the same way."""
    same_rows = (protocol.fit_rows, protocol.stop_rows) == (SELECTION.fit_rows, SELECTION.stop_rows)
    if selection.best is not None and same_rows:
        return selection.best
    return fit_model(cfg, data, split, protocol, selection.chosen)


def _score(data: Dataset, split: Split, protocol: Protocol, model: Model, clock: "_Clock") -> dict[str, Any]:
    metric = reported_metric(data.task)
    test = rows(split, "test")
    X_test = data.X[test]
    with clock.measure("predict"):
        predicted = model.predict_scores(X_test)
    on_test = score_all(data.task, data.y[test], predicted, _label_sets(data, model, X_test))
    on_validation = None
    if protocol.has_validation:
        validation = rows(split, "validation")
        on_validation = score_all(data.task, data.y[validation], model.predict_scores(data.X[validation]))
    return {
        "metric": metric,
        "test": on_test[metric],
        "validation": on_validation[metric] if on_validation else None,
        "optimistic": protocol.optimistic or split.resubstitution,
        "all": on_test,
    }


def _row_scores(data: Dataset, split: Split, model: Model) -> dict[str, list[float]]:
    if data.task not in SET_METRICS:
        raise ValueError(f"row_scores are of label sets; {data.name} has the task {data.task!r}")
    test = rows(split, "test")
    truth, predicted = data.y[test], model.predict_scores(data.X[test])
    losses = [METRICS[ROW_METRIC].function(truth[[row]], predicted[[row]]) for row in range(len(test))]
    return {ROW_METRIC: [round(loss, 9) for loss in losses]}


def _label_sets(data: Dataset, model: Model, X: Array) -> Array | None:
    return model.predict_labels(X) if data.task in SET_METRICS else None


def _save_model(model: Model, models_dir: Path, run_id: str) -> str:
    """Write the model, never half of it under its name; return its place in the store."""
    models_dir.mkdir(parents=True, exist_ok=True)
    path = models_dir / f"{run_id}{model.suffix}"
    # The ending tells some libraries the format.
    partial = models_dir / f".{run_id}.{store.owner()}.partial{model.suffix}"
    model.save(partial)
    os.replace(partial, path)
    return f"{models_dir.name}/{path.name}"


def _describe_fit(fit: Fit, selection: Selection, curves: dict[str, list[float]]) -> dict[str, Any]:
    report = fit.report
    return {
        "best_round": report.best_round,
        "rounds": report.rounds,
        "n_trees": report.n_trees,
        "n_leaves": report.n_leaves,
        "unassigned_fraction": report.unassigned_fraction,
        "solver": report.solver,
        "history": {**report.history, **curves},
        "selected": selection.chosen,
        "trials": selection.trials,
    }


def _seconds(clock: "_Clock", selection: Selection, fit: Fit) -> dict[str, float]:
    kept = fit.seconds if fit is selection.best else 0.0
    return {
        "load": clock.seconds["load"],
        "select": selection.seconds - kept if selection.trials else 0.0,
        "construct": fit.report.construct_seconds,
        "train": fit.report.train_seconds,
        "predict": clock.seconds["predict"],
        "total": clock.total(),
    }


def _describe_data(data: Dataset, split: Split, protocol: Protocol) -> dict[str, Any]:
    return {
        "source": data.source,
        "sha256": dict(data.sha256),
        "n_fit": len(rows(split, protocol.fit_rows)),
        "n_validation": len(rows(split, "validation")) if protocol.has_validation else 0,
        "n_test": len(rows(split, "test")),
        "n_features": data.X.shape[1],
        "n_outputs": data.n_outputs,
    }


class _Clock:
    """Wall time of named phases, and since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[phase] = time.perf_counter() - start

    def total(self) -> float:
        return time.perf_counter() - self._start
