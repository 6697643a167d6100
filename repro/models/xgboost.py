"""Adapter of XGBoost, with a tree an output a round or with vector leaves."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from repro.models.base import Array, BoostedModel, BoostingParameters, FitReport, RoundTimes


class XGBoost(BoostedModel):
    """Histogram boosting by XGBoost's native interface, which accepts a training part that lacks a class.

    Parameters
    ----------
    multi_strategy : str
        "one_output_per_tree" or "multi_output_tree".
    base_score : float
        Initial raw score of every output. For classes any constant gives the same probabilities.
    **boosting
        Fields of `BoostingParameters`.
    """

    suffix = ".ubj"

    def __init__(self, *, multi_strategy: str, base_score: float, **boosting: Any) -> None:
        self._multi_strategy = multi_strategy
        self._base_score = base_score
        self._boosting = BoostingParameters(**boosting)
        self._booster: xgb.Booster | None = None
        self._best_round = 0
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
        boosting = self._boosting
        start = time.perf_counter()
        train = xgb.QuantileDMatrix(X, y, max_bin=boosting.max_bins, nthread=n_jobs)
        evaluation = xgb.QuantileDMatrix(X_eval, y_eval, ref=train, max_bin=boosting.max_bins, nthread=n_jobs)
        constructed = time.perf_counter()
        results: dict[str, dict[str, list[float]]] = {}
        booster = xgb.train(
            self.library_parameters(task=task, n_outputs=n_outputs, seed=seed, n_jobs=n_jobs),
            train,
            num_boost_round=boosting.n_estimators,
            evals=[(evaluation, "validation")],
            early_stopping_rounds=boosting.early_stopping_rounds,
            evals_result=results,
            verbose_eval=False,
        )
        trained = time.perf_counter()
        self._booster, self._best_round, self._n_jobs = booster, booster.best_iteration + 1, n_jobs
        return _report(booster, results["validation"], constructed - start, trained - constructed)

    def train_rounds(
        self, X: Array, y: Array, *, task: str, n_outputs: int, n_rounds: int, seed: int, n_jobs: int
    ) -> RoundTimes:
        start = time.perf_counter()
        train = xgb.QuantileDMatrix(X, y, max_bin=self._boosting.max_bins, nthread=n_jobs)
        constructed = time.perf_counter() - start
        parameters = self.library_parameters(task=task, n_outputs=n_outputs, seed=seed, n_jobs=n_jobs)
        booster = xgb.Booster(parameters, [train])
        seconds = []
        for round_ in range(n_rounds):
            start = time.perf_counter()
            booster.update(train, round_)
            seconds.append(time.perf_counter() - start)
        self._booster, self._best_round, self._n_jobs = booster, n_rounds, n_jobs
        return RoundTimes(constructed, seconds, sum(_leaf_counts(booster)))

    def library_parameters(self, *, task: str, n_outputs: int, seed: int, n_jobs: int) -> dict[str, Any]:
        """Give our hyper-parameters under XGBoost's names.

        The minimum of samples is min_child_weight for squared error, whose Hessian is one a row; for
        cross-entropy that parameter means something else and keeps XGBoost's default, 1.
        """
        boosting = self._boosting
        common = {
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "multi_strategy": self._multi_strategy,
            "learning_rate": boosting.learning_rate,
            "max_depth": boosting.max_depth,
            "max_leaves": boosting.max_leaves,
            "max_bin": boosting.max_bins,
            "min_split_loss": boosting.min_split_gain,
            "reg_lambda": boosting.reg_lambda,
            "base_score": self._base_score,
            "seed": seed,
            "nthread": n_jobs,
            "verbosity": 0,
        }
        if task == "multiclass":
            loss = {"objective": "multi:softprob", "num_class": n_outputs, "eval_metric": "merror"}
            return {**common, **loss, "min_child_weight": 1}
        loss = {"objective": "reg:squarederror", "eval_metric": "rmse"}
        return {**common, **loss, "min_child_weight": boosting.min_samples_leaf}

    def raw_scores(self, X: Array, n_jobs: int) -> Any:
        booster = self._fitted()
        booster.set_param({"nthread": n_jobs})
        return booster.inplace_predict(X, iteration_range=(0, self._best_round), predict_type="margin", missing=np.nan)

    def predict_scores(self, X: Array) -> Array:
        return np.asarray(self.raw_scores(X, self._n_jobs), dtype=np.float64).reshape(len(X), -1)

    def staged_scores(self, X: Array) -> Iterator[Array]:
        booster = self._fitted()
        scores: Any = self._base_score
        for round_ in range(self._best_round):
            step = booster.inplace_predict(
                X, iteration_range=(round_, round_ + 1), predict_type="margin", missing=np.nan
            )
            # Each step starts from the base score.
            scores = scores + np.asarray(step, dtype=np.float64).reshape(len(X), -1) - self._base_score
            yield scores

    def save(self, path: Path) -> None:
        self._fitted().save_model(path)

    def _fitted(self) -> xgb.Booster:
        if self._booster is None:
            raise RuntimeError("the model is not fitted; call fit first")
        return self._booster


def _report(booster: xgb.Booster, curves: dict[str, list[float]], construct: float, train: float) -> FitReport:
    best_round = booster.best_iteration + 1
    leaves = _leaf_counts(booster)
    n_trees = len(leaves) // booster.num_boosted_rounds() * best_round
    return FitReport(
        best_round=best_round,
        rounds=booster.num_boosted_rounds(),
        n_trees=n_trees,
        n_leaves=sum(leaves[:n_trees]),
        unassigned_fraction=None,
        history=_history(curves),
        construct_seconds=construct,
        train_seconds=train,
    )


def _leaf_counts(booster: xgb.Booster) -> list[int]:
    return [tree.count("leaf=") for tree in booster.get_dump()]


def _history(curves: dict[str, list[float]]) -> dict[str, list[float]]:
    """XGBoost's curves under our names: the share of wrong rows becomes accuracy."""
    if "merror" in curves:
        return {"accuracy": [1.0 - error for error in curves["merror"]]}
    return {"rmse": list(curves["rmse"])}
