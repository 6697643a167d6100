"""Builds a model from its config, fits it as a protocol says, and chooses settings that are left open."""

import itertools
import time
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hydra.utils import instantiate
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf
from sklearn.model_selection import KFold

from datasets.base import Dataset, Split
from repro.metrics import METRICS, TASK_METRICS, Metric, reported_metric
from repro.models.base import BoostedModel, FitReport, LabelModel, Model
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
        For each setting tried: ``params``, its ``validation`` score and the ``seconds`` of its fit or fits; where it
        was fitted on folds, the score on each of ``folds``, of which ``validation`` is the mean.
    best : Fit or None
        The fit of the chosen setting under the protocol `SELECTION`; None where nothing was chosen, or by folds.
    seconds : float
        Wall time of all trials.
    """

    chosen: dict[str, Any]
    trials: list[dict[str, Any]]
    best: Fit | None
    seconds: float


def refusal(cfg: DictConfig) -> str | None:
    """Say why the configured model cannot be run under the configured protocol, None if it can."""
    protocol: Protocol = instantiate(cfg.protocol)
    stops_early = "early_stopping_rounds" in cfg.model.estimator
    if stops_early and protocol.stop_rows is None:
        return (
            f"the model {cfg.model.name} is stopped early, and the protocol {protocol.name} has no rows to stop on: "
            "take paper or holdout"
        )
    if not stops_early and protocol.stop_rows is not None:
        return (
            f"the model {cfg.model.name} is not stopped early, so that it has no use for the rows to stop on of the "
            f"protocol {protocol.name}: take published_fit or cross_validated"
        )
    return None


def fit_model(
    cfg: DictConfig, data: Dataset, split: Split, protocol: Protocol, chosen: dict[str, Any] | None = None
) -> Fit:
    """Fit the configured model as `protocol` says, with hyper-parameters `chosen` replaced."""
    stop = None if protocol.stop_rows is None else rows(split, protocol.stop_rows)
    return _fit(cfg, data, rows(split, protocol.fit_rows), stop, chosen)


def _fit(
    cfg: DictConfig,
    data: Dataset,
    fit_rows: NDArray[Any],
    stop_rows: NDArray[Any] | None,
    chosen: dict[str, Any] | None,
) -> Fit:
    model: BoostedModel | LabelModel = instantiate(cfg.model.estimator, **(chosen or {}))
    X, y = data.X[fit_rows], data.y[fit_rows]
    settings = {"task": data.task, "n_outputs": data.n_outputs, "seed": cfg.seed, "n_jobs": cfg.n_jobs}
    if isinstance(model, BoostedModel):
        X_stop, y_stop = data.X[stop_rows], data.y[stop_rows]
        start = time.perf_counter()
        report = model.fit(X, y, X_stop, y_stop, **settings)
    else:
        start = time.perf_counter()
        report = model.fit(X, y, **settings)
    return Fit(model, report, time.perf_counter() - start)


def select(cfg: DictConfig, data: Dataset, split: Split, protocol: Protocol) -> Selection:
    """Try the model's ``select`` grid and keep the best setting (ties: the first), without the test rows.

    Protocols with folds choose by the mean score over them; those with rows to stop on by the validation rows,
    whichever rows they stop on themselves; others choose nothing.
    """
    start = time.perf_counter()
    name = protocol.chosen_by
    metric = METRICS[name if name in TASK_METRICS[data.task] else reported_metric(data.task)]
    trials: list[dict[str, Any]] = []
    best: Fit | None = None
    best_trial: dict[str, Any] = {"params": {}}
    for params in candidates(cfg) if protocol.chooses else []:
        trial, fit = (_try_by_folds if protocol.folds else _try_once)(cfg, data, split, protocol, params, metric)
        trials.append(trial)
        if len(trials) == 1 or metric.is_better(trial["validation"], best_trial["validation"]):
            best, best_trial = fit, trial
    return Selection(best_trial["params"], trials, best, time.perf_counter() - start)


def _try_once(
    cfg: DictConfig, data: Dataset, split: Split, _: Protocol, params: dict[str, Any], metric: Metric
) -> tuple[dict[str, Any], Fit]:
    fit = fit_model(cfg, data, split, SELECTION, params)
    score = _score(fit, data, split.validation, metric)
    return {"params": params, "validation": score, "seconds": fit.seconds}, fit


def _try_by_folds(
    cfg: DictConfig, data: Dataset, split: Split, protocol: Protocol, params: dict[str, Any], metric: Metric
) -> tuple[dict[str, Any], None]:
    numbers = rows(split, protocol.fit_rows)
    folds = KFold(protocol.folds, shuffle=True, random_state=cfg.seed)
    scores, seconds = [], 0.0
    for kept, left_out in folds.split(numbers):
        fit = _fit(cfg, data, numbers[kept], None, params)
        scores.append(_score(fit, data, numbers[left_out], metric))
        seconds += fit.seconds
    return {"params": params, "validation": fmean(scores), "folds": scores, "seconds": seconds}, None


def _score(fit: Fit, data: Dataset, numbers: NDArray[Any], metric: Metric) -> float:
    return metric.function(data.y[numbers], fit.model.predict_scores(data.X[numbers]))


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
