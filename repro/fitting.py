"""Builds a model from its config, fits it as a protocol says, and chooses settings that are left open."""

import itertools
import time
from dataclasses import dataclass
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from datasets.base import Dataset, Split
from repro.metrics import METRICS, reported_metric
from repro.models.base import FitReport, Model
from repro.protocol import SELECTION, Protocol, rows


@dataclass(frozen=True)
class Fit:
    """A fitted model, what its fit did, and the wall time of that."""

    model: Model
    report: FitReport
    seconds: float


@dataclass(frozen=True)
class Selection:
    """A choice among settings.

    Attributes
    ----------
    chosen : dict
        Hyper-parameters chosen; empty if nothing was left open.
    trials : list of dict
        For each setting tried: ``params``, its ``validation`` score and the ``seconds`` of its fit.
    best : Fit or None
        The fit of the chosen setting under the protocol `SELECTION`.
    seconds : float
        Wall time of all trials.
    """

    chosen: dict[str, Any]
    trials: list[dict[str, Any]]
    best: Fit | None
    seconds: float


def fit_model(
    cfg: DictConfig, data: Dataset, split: Split, protocol: Protocol, chosen: dict[str, Any] | None = None
) -> Fit:
    """Fit the configured model as `protocol` says, with hyper-parameters `chosen` replaced."""
    model: Model = instantiate(cfg.model.estimator, **(chosen or {}))
    fit_rows, stop_rows = rows(split, protocol.fit_rows), rows(split, protocol.stop_rows)
    X, y, X_stop, y_stop = data.X[fit_rows], data.y[fit_rows], data.X[stop_rows], data.y[stop_rows]
    start = time.perf_counter()
    report = model.fit(X, y, X_stop, y_stop, task=data.task, n_outputs=data.n_outputs, seed=cfg.seed, n_jobs=cfg.n_jobs)
    return Fit(model, report, time.perf_counter() - start)


def select(cfg: DictConfig, data: Dataset, split: Split) -> Selection:
    """Try the model's ``select`` grid, keep the best setting on the validation rows (ties: the first)."""
    start = time.perf_counter()
    metric = METRICS[reported_metric(data.task)]
    validation = rows(split, SELECTION.stop_rows)
    X, y = data.X[validation], data.y[validation]
    trials: list[dict[str, Any]] = []
    best: Fit | None = None
    best_trial: dict[str, Any] = {"params": {}}
    for params in candidates(cfg):
        fit = fit_model(cfg, data, split, SELECTION, params)
        score = metric.function(y, fit.model.predict_scores(X))
        trials.append({"params": params, "validation": score, "seconds": fit.seconds})
        if best is None or metric.is_better(score, best_trial["validation"]):
            best, best_trial = fit, trials[-1]
    return Selection(best_trial["params"], trials, best, time.perf_counter() - start)


def candidates(cfg: DictConfig) -> list[dict[str, Any]]:
    """List all combinations of ``cfg.model.select``, a mapping of hyper-parameters to lists of values.

    A hyper-parameter that the config computed from another keeps its value: to choose the depth, list leaf budgets too.
    """
    if not cfg.model.get("select"):
        return []
    grid: Any = OmegaConf.to_container(cfg.model.select, resolve=True)
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"model.select.{name} is {values!r}; expected a list of values to choose from")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
