"""Adapter of our own estimators: GBDT-MO, GBDT-SO, GBDT-sparse and released growth, by parameters."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor
from repro.models.base import Array, BoostedModel, FitReport, RoundTimes

# Parts of `training_profile_` that add up to its "total", but for what no part names.
PARTS = ("gradient", "rounding", "histogram", "split", "partition", "leaf", "evaluation")
_LABEL_LOSSES = ("squared_error", "sigmoid")


class GBDTMO(BoostedModel):
    """Boosted multi-output trees of `gbdtmo_core`.

    Parameters
    ----------
    label_loss : str
        What label sets are trained by: "squared_error", as in the paper, or "sigmoid" cross-entropy. Training
        is stopped on the error or on the cross-entropy of the evaluation rows.
    **parameters
        Those of the estimators.
    """

    suffix = ".npz"

    def __init__(self, *, label_loss: str = "squared_error", **parameters: Any) -> None:
        if label_loss not in _LABEL_LOSSES:
            raise ValueError(f"label_loss must be one of {', '.join(_LABEL_LOSSES)}, not {label_loss!r}")
        self._label_loss = label_loss
        self._parameters = parameters
        self._estimator: GBDTMOClassifier | GBDTMORegressor | None = None
        self._n_outputs = 0
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
        """See `BoostedModel.fit`; the estimators draw no random numbers, so `seed` has no effect."""
        self._n_outputs, self._n_jobs = n_outputs, n_jobs
        if task == "multiclass":
            classifier = GBDTMOClassifier(**self._parameters, eval_metric="accuracy", n_jobs=n_jobs)
            self._estimator = classifier.fit(X, y, eval_set=(X_eval, y_eval), classes=np.arange(n_outputs))
        elif self._by_sigmoid(task):
            classifier = GBDTMOClassifier(**self._parameters, eval_metric="log_loss", n_jobs=n_jobs)
            self._estimator = classifier.fit(X, y, eval_set=(X_eval, y_eval))
        else:
            regressor = GBDTMORegressor(**self._parameters, eval_metric="rmse", n_jobs=n_jobs)
            self._estimator = regressor.fit(X, y, eval_set=(X_eval, y_eval))
        return _report(self._estimator)

    def train_rounds(
        self, X: Array, y: Array, *, task: str, n_outputs: int, n_rounds: int, seed: int, n_jobs: int
    ) -> RoundTimes:
        self._n_outputs, self._n_jobs = n_outputs, n_jobs
        parameters = {**self._parameters, "n_estimators": n_rounds, "early_stopping_rounds": None, "n_jobs": n_jobs}
        if task == "multiclass":
            self._estimator = GBDTMOClassifier(**parameters).fit(X, y, classes=np.arange(n_outputs))
        elif self._by_sigmoid(task):
            self._estimator = GBDTMOClassifier(**parameters).fit(X, y)
        else:
            self._estimator = GBDTMORegressor(**parameters).fit(X, y)
        profile = {name: np.asarray(values).tolist() for name, values in self._estimator.training_profile_.items()}
        return RoundTimes(
            construct_seconds=sum(self._estimator.fit_seconds_.values()) - sum(profile["total"]),
            round_seconds=profile["total"],
            n_leaves=int(np.sum(self._estimator.n_leaves_)),
            parts={name: profile[name] for name in PARTS},
            entries=profile["entries"],
            histogram_pool_mb=float(self._estimator.histogram_pool_mb),
        )

    def _by_sigmoid(self, task: str) -> bool:
        return task == "multilabel" and self._label_loss == "sigmoid"

    def raw_scores(self, X: Array, n_jobs: int) -> Array:
        estimator = self._fitted()
        estimator.n_jobs = n_jobs
        classifies = isinstance(estimator, GBDTMOClassifier)
        return np.asarray(estimator.decision_function(X) if classifies else estimator.predict(X))

    def predict_scores(self, X: Array) -> Array:
        return self._columns(self.raw_scores(X, self._n_jobs))

    def predict_labels(self, X: Array) -> Array:
        """The labels whose probability is above 1/2: raw scores above 0 of sigmoids, above 1/2 of squared error."""
        if isinstance(self._fitted(), GBDTMOClassifier):
            return (self.predict_scores(X) > 0).astype(np.uint8)
        return super().predict_labels(X)

    def one_row_calls(self, row: Array) -> tuple[Callable[[], object], Callable[[], object]]:
        """Give two calls to be timed: ``predict`` of `row`, and what scikit-learn itself checks of it before."""
        estimator = self._fitted()

        def validate() -> None:
            check_is_fitted(estimator)
            check_array(row, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", estimator=estimator)
            validate_data(estimator, row, reset=False, skip_check_array=True)

        return lambda: estimator.predict(row), validate

    def staged_scores(self, X: Array) -> Iterator[Array]:
        estimator = self._fitted()
        classifies = isinstance(estimator, GBDTMOClassifier)
        stages = estimator.staged_decision_function(X) if classifies else estimator.staged_predict(X)
        yield from map(self._columns, stages)

    def _columns(self, scores: Array) -> Array:
        """Scores with a column an output, also where the estimator gives a difference or one column."""
        scores = np.asarray(scores, dtype=np.float64)
        if scores.ndim == 1 and self._n_outputs == 2:  # two classes: the difference of their scores
            return np.column_stack([np.zeros_like(scores), scores])
        return scores.reshape(len(scores), self._n_outputs)

    def save(self, path: Path) -> None:
        self._fitted().save_model(path)

    def _fitted(self) -> GBDTMOClassifier | GBDTMORegressor:
        if self._estimator is None:
            raise RuntimeError("the model is not fitted; call fit first")
        return self._estimator


def _report(estimator: GBDTMOClassifier | GBDTMORegressor) -> FitReport:
    used = _trees_used(estimator.tree_output_, estimator.best_iteration_)
    best = np.asarray(estimator.best_iteration_)
    return FitReport(
        best_round=best.tolist(),
        rounds=int(np.max(estimator.n_iter_)),
        n_trees=int(np.count_nonzero(used)),
        n_leaves=int(np.sum(np.asarray(estimator.n_leaves_)[used])),
        unassigned_fraction=float(np.mean(np.asarray(estimator.unassigned_fraction_)[used])),
        history=_history(estimator.evals_result_["validation"]),
        construct_seconds=float(estimator.fit_seconds_["binning"]),
        train_seconds=float(estimator.fit_seconds_["training"]),
    )


def _trees_used(tree_output: Array, best_round: Any) -> Array:
    """Mask of the trees that prediction uses: of each output (-1: all of them) the first `best_round`."""
    tree_output = np.asarray(tree_output)
    used = np.zeros(len(tree_output), dtype=bool)
    for output in np.unique(tree_output):
        rounds = best_round if np.ndim(best_round) == 0 else best_round[output]
        used[np.flatnonzero(tree_output == output)[:rounds]] = True
    return used


def _history(curves: dict[str, Array]) -> dict[str, list[float]]:
    history = {}
    for metric, values in curves.items():
        values = np.asarray(values)
        if values.ndim == 1:
            history[metric] = values.tolist()
        else:  # each output stops on its own; NaN follows its last round
            for output, curve in enumerate(values.T):
                history[f"{metric}_output_{output}"] = curve[~np.isnan(curve)].tolist()
    return history
