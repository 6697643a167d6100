"""Adapter of CatBoost: symmetric trees that serve all outputs at once."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import catboost as cb
import numpy as np

from repro.models.base import Array, BoostedModel, BoostingParameters, FitReport, RoundTimes


class CatBoost(BoostedModel):
    """CatBoost with MultiClass or MultiRMSE; what our parameters do not name keeps CatBoost's default, but for chance.

    Its trees are symmetric: all nodes of a level share one split, so a tree of depth h has 2^h leaves. The depth is
    cut to what `max_leaves` allows. CatBoost has no minimum of samples in a leaf and no gain threshold for these trees.

    Parameters
    ----------
    **boosting
        Fields of `BoostingParameters`.
    """

    suffix = ".cbm"

    def __init__(self, **boosting: Any) -> None:
        self._boosting = BoostingParameters(**boosting)
        self._booster: cb.CatBoost | None = None
        self._n_jobs = 1

    def fit(
        self,
        X: Array,
        y: Array,
        X_eval: Array,
        y_eval: Array,
        *,
        task: str,
        n_outputs: int,
        seed: int,
        n_jobs: int,
    ) -> FitReport:
        parameters = self.library_parameters(task=task, n_outputs=n_outputs, seed=seed, n_jobs=n_jobs)
        start = time.perf_counter()
        train = self._pool(X, y, n_jobs)
        evaluation = cb.Pool(X_eval, y_eval, thread_count=n_jobs)
        constructed = time.perf_counter()
        booster = cb.CatBoost(
            {**parameters, "od_type": "Iter", "od_wait": self._boosting.early_stopping_rounds, "use_best_model": True}
        )
        booster.fit(train, eval_set=evaluation)
        trained = time.perf_counter()
        self._booster, self._n_jobs = booster, n_jobs
        curves = booster.get_evals_result()["validation"]
        return _report(booster, _history(curves, n_outputs), constructed - start, trained - constructed)

    def train_rounds(
        self, X: Array, y: Array, *, task: str, n_outputs: int, n_rounds: int, seed: int, n_jobs: int
    ) -> RoundTimes:
        parameters = self.library_parameters(task=task, n_outputs=n_outputs, seed=seed, n_jobs=n_jobs)
        start = time.perf_counter()
        train = self._pool(X, y, n_jobs)
        clock = _RoundClock()
        # The score of the training rows is no part of a round: it is made once, at the end.
        booster = cb.CatBoost({**parameters, "iterations": n_rounds, "metric_period": n_rounds})
        constructed = time.perf_counter()
        booster.fit(train, callbacks=[clock])
        self._booster, self._n_jobs = booster, n_jobs
        ends = np.array([constructed, *clock.ends])
        return RoundTimes(constructed - start, np.diff(ends).tolist(), _leaf_count(booster))

    def _pool(self, X: Array, y: Array, n_jobs: int) -> cb.Pool:
        pool = cb.Pool(X, y, thread_count=n_jobs)
        # A border count of b makes b + 1 bins.
        pool.quantize(border_count=self._boosting.max_bins - 1)
        return pool

    def library_parameters(self, *, task: str, n_outputs: int, seed: int, n_jobs: int) -> dict[str, Any]:
        """Give our hyper-parameters under CatBoost's names, without noise and sampling."""
        boosting = self._boosting
        common = {
            "iterations": boosting.n_estimators,
            "learning_rate": boosting.learning_rate,
            "depth": min(boosting.max_depth, boosting.max_leaves.bit_length() - 1),
            "l2_leaf_reg": boosting.reg_lambda,
            "boosting_type": "Plain",
            "bootstrap_type": "No",
            "random_strength": 0,
            "random_seed": seed,
            "thread_count": n_jobs,
            "allow_writing_files": False,
            "logging_level": "Silent",
        }
        if task == "multiclass":
            loss = {"loss_function": "MultiClass", "eval_metric": "Accuracy", "classes_count": n_outputs}
            return {**common, **loss}
        return {**common, "loss_function": "MultiRMSE", "eval_metric": "MultiRMSE"}

    def raw_scores(self, X: Array, n_jobs: int) -> Any:
        return self._fitted().predict(X, prediction_type="RawFormulaVal", thread_count=n_jobs)

    def predict_scores(self, X: Array) -> Array:
        return _columns(self.raw_scores(X, self._n_jobs), len(X))

    def staged_scores(self, X: Array) -> Iterator[Array]:
        stages = self._fitted().staged_predict(X, prediction_type="RawFormulaVal", thread_count=self._n_jobs)
        for scores in stages:
            yield _columns(scores, len(X))

    def save(self, path: Path) -> None:
        self._fitted().save_model(str(path))

    def _fitted(self) -> cb.CatBoost:
        if self._booster is None:
            raise RuntimeError("the model is not fitted; call fit first")
        return self._booster


class _RoundClock:
    """Callback that notes when each round ends."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def after_iteration(self, _: Any) -> bool:
        self.ends.append(time.perf_counter())
        return True


def _columns(scores: Any, n_rows: int) -> Array:
    return np.asarray(scores, dtype=np.float64).reshape(n_rows, -1)


def _leaf_count(booster: cb.CatBoost) -> int:
    return int(np.sum(booster.get_tree_leaf_counts()))


def _report(booster: cb.CatBoost, history: dict[str, list[float]], construct: float, train: float) -> FitReport:
    best_round = booster.get_best_iteration() + 1
    return FitReport(
        best_round=best_round,
        rounds=max(len(curve) for curve in history.values()),
        n_trees=booster.tree_count_,
        n_leaves=_leaf_count(booster),
        unassigned_fraction=None,
        history=history,
        construct_seconds=construct,
        train_seconds=train,
    )


def _history(curves: dict[str, list[float]], n_outputs: int) -> dict[str, list[float]]:
    """CatBoost's curves under our names: MultiRMSE adds the squared errors of a row's outputs, ours averages them."""
    if "Accuracy" in curves:
        return {"accuracy": list(curves["Accuracy"])}
    return {"rmse": [value / float(np.sqrt(n_outputs)) for value in curves["MultiRMSE"]]}
