"""Adapter of LightGBM: one softmax model for classes, one model an output for squared error."""

import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np

from repro.models.base import Array, BoostedModel, BoostingParameters, FitReport, RoundTimes

Curves = dict[str, list[float]]


class LightGBM(BoostedModel):
    """LightGBM as the authors' scripts (GBDTMO-EX, commit 1daa6ba) run it.

    What they leave out keeps LightGBM's default: boost_from_average, and min_sum_hessian_in_leaf beside the
    minimum of samples.

    Parameters
    ----------
    **boosting
        Fields of `BoostingParameters`.
    """

    suffix = ".zip"

    def __init__(self, **boosting: Any) -> None:
        self._boosting = BoostingParameters(**boosting)
        self._boosters: list[lgb.Booster] = []
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
        train = lgb.Dataset(X, params=parameters).construct()
        evaluation = lgb.Dataset(X_eval, reference=train, params=parameters).construct()
        constructed = time.perf_counter()
        labels = [(y, y_eval)] if task == "multiclass" else list(zip(y.T, y_eval.T, strict=True))
        curves: list[Curves] = []
        self._boosters, self._n_jobs = [], n_jobs
        for y_train, y_stop in labels:
            train.set_label(np.ascontiguousarray(y_train))
            evaluation.set_label(np.ascontiguousarray(y_stop))
            booster, curve = self._train(parameters, train, evaluation)
            self._boosters.append(booster)
            curves.append(curve)
        trained = time.perf_counter()
        return _report(self._boosters, curves, constructed - start, trained - constructed)

    def _train(
        self, parameters: dict[str, Any], train: lgb.Dataset, evaluation: lgb.Dataset
    ) -> tuple[lgb.Booster, Curves]:
        results: dict[str, Curves] = {}
        booster = lgb.train(
            parameters,
            train,
            num_boost_round=self._boosting.n_estimators,
            valid_sets=[evaluation],
            valid_names=["validation"],
            callbacks=[
                lgb.early_stopping(self._boosting.early_stopping_rounds, verbose=False),
                lgb.record_evaluation(results),
            ],
        )
        return booster, results["validation"]

    def train_rounds(
        self, X: Array, y: Array, *, task: str, n_outputs: int, n_rounds: int, seed: int, n_jobs: int
    ) -> RoundTimes:
        parameters = self.library_parameters(task=task, n_outputs=n_outputs, seed=seed, n_jobs=n_jobs)
        start = time.perf_counter()
        train = lgb.Dataset(X, params=parameters).construct()
        constructed = time.perf_counter() - start
        seconds = np.zeros(n_rounds)
        self._boosters, self._n_jobs = [], n_jobs
        for label in [y] if task == "multiclass" else list(y.T):
            train.set_label(np.ascontiguousarray(label))
            booster = lgb.Booster(parameters, train)
            for round_ in range(n_rounds):
                start = time.perf_counter()
                booster.update()
                seconds[round_] += time.perf_counter() - start
            booster.free_dataset()
            self._boosters.append(booster)
        leaves = sum(count for booster in self._boosters for count in _leaf_counts(booster))
        return RoundTimes(constructed, seconds.tolist(), leaves)

    def library_parameters(self, *, task: str, n_outputs: int, seed: int, n_jobs: int) -> dict[str, Any]:
        """Give our hyper-parameters under LightGBM's names; the gain threshold is halved, as in those scripts."""
        boosting = self._boosting
        common = {
            "learning_rate": boosting.learning_rate,
            "max_depth": boosting.max_depth,
            "num_leaves": boosting.max_leaves,
            "max_bin": boosting.max_bins,
            "min_data_in_leaf": boosting.min_samples_leaf,
            "min_gain_to_split": boosting.min_split_gain / 2,
            "lambda_l2": boosting.reg_lambda,
            "seed": seed,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": n_jobs,
            "verbosity": -1,
        }
        if task == "multiclass":
            return {**common, "objective": "multiclass", "num_class": n_outputs, "metric": "multi_error"}
        return {**common, "objective": "regression", "metric": "rmse"}

    def raw_scores(self, X: Array, n_jobs: int) -> list[Any]:
        return [
            booster.predict(X, raw_score=True, num_iteration=booster.best_iteration, num_threads=n_jobs)
            for booster in self._fitted()
        ]

    def predict_scores(self, X: Array) -> Array:
        return np.column_stack([np.asarray(score, dtype=np.float64) for score in self.raw_scores(X, self._n_jobs)])

    def staged_scores(self, X: Array) -> Iterator[Array]:
        """See `Model.staged_scores`; an output that stopped earlier keeps its last scores."""
        boosters = self._fitted()
        last = [_rounds_used(booster) for booster in boosters]
        scores: Any = 0.0
        for round_ in range(max(last)):
            steps = [
                booster.predict(X, raw_score=True, start_iteration=round_, num_iteration=1)
                if round_ < rounds
                else np.zeros(len(X))
                for booster, rounds in zip(boosters, last, strict=True)
            ]
            scores = scores + np.column_stack(steps)
            yield scores

    def save(self, path: Path) -> None:
        """Write a zip archive of LightGBM's text models, one an output (classes: one for all)."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, booster in enumerate(self._fitted()):
                archive.writestr(f"model_{number}.txt", booster.model_to_string(num_iteration=booster.best_iteration))

    def _fitted(self) -> list[lgb.Booster]:
        if not self._boosters:
            raise RuntimeError("the model is not fitted; call fit first")
        return self._boosters


def _report(boosters: list[lgb.Booster], curves: list[Curves], construct: float, train: float) -> FitReport:
    best_rounds = [booster.best_iteration for booster in boosters]
    history = _history(curves)
    leaves = [count for booster in boosters for count in _leaf_counts(booster)]
    return FitReport(
        best_round=best_rounds if len(best_rounds) > 1 else best_rounds[0],
        rounds=max(len(curve) for curve in history.values()),
        n_trees=len(leaves),
        n_leaves=sum(leaves),
        unassigned_fraction=None,
        history=history,
        construct_seconds=construct,
        train_seconds=train,
    )


def _rounds_used(booster: lgb.Booster) -> int:
    """Rounds that prediction uses: up to the best, all where nothing was evaluated."""
    return booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()


def _leaf_counts(booster: lgb.Booster) -> list[int]:
    trees = booster.dump_model(num_iteration=booster.best_iteration)["tree_info"]
    return [tree["num_leaves"] for tree in trees]


def _history(curves: list[Curves]) -> dict[str, list[float]]:
    """LightGBM's curves under our names: the share of wrong rows becomes accuracy."""
    if "multi_error" in curves[0]:
        return {"accuracy": [1.0 - error for error in curves[0]["multi_error"]]}
    if len(curves) == 1:
        return {"rmse": list(curves[0]["rmse"])}
    return {f"rmse_output_{output}": list(curve["rmse"]) for output, curve in enumerate(curves)}
