"""scikit-learn estimators of gradient boosted trees with vector leaves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from gbdtmo_core import _lib
from gbdtmo_core._model import Model
from gbdtmo_core._parameters import check_parameters
from gbdtmo_core._targets import best_constant, check_labels, check_values, collect_classes, encode_labels
from gbdtmo_core.persistence import read_model, write_model

_PARAMETERS = """
    Parameters
    ----------
    n_estimators : int, default=100
        Boosting rounds at most.
    learning_rate : float, default=0.1
        Factor on every leaf value.
    max_depth : int, default=6
        A tree of depth D has up to 2^D leaves.
    max_leaves : int or None, default=None
        Leaves of a tree at most; None: 2^max_depth. Nodes are split in the order of their gain.
    max_bins : int, default=255
        Histogram bins of a feature, 2 to 255; missing values have one more of their own.
    min_samples_leaf : int, default=20
        Training rows that a leaf needs.
    reg_lambda, reg_alpha : float, default=1.0 and 0.0
        L2 and L1 penalty of leaf values: -soft(G, reg_alpha) / (H + reg_lambda).
    min_split_gain : float, default=0.0
        A split needs a larger gain, averaged over the outputs it counts (app. B of the paper).
    top_k : int or None, default=None
        Outputs that a leaf keeps, those of the largest score [eq. 18]; None, or as many as there are: all.
    top_k_mode : {"restricted", "unrestricted"}, default="restricted"
        Whether both sides of a split are scored on one set of outputs [eq. 22] or each on its own [eq. 21].
    hessian : {"diagonal", "constant"}, default="diagonal"
        Second derivatives: the diagonal [eq. 15], or 1 (first-order boosting).
    tree_output : {"multi", "single"}, default="multi"
        One tree a round with vectors in its leaves, or a tree an output (GBDT-SO). With squared error each output of
        the latter stops early on its own.
    growth : {"complete", "released"}, default="complete"
        "released" copies the program released with the paper, which drops nodes; their rows get nothing from the tree.
    node_cache : int, default=16
        Pending nodes that "released" growth remembers.
    binning : {"quantile", "released"}, default="quantile"
        Rule of the bin edges.
    base_score : float or None, default=None
        Score before the first tree; None: the loss's best constant for each output.
    early_stopping_rounds : int or None, default=None
        Stop after so many rounds without a better ``eval_metric`` on ``eval_set``; prediction uses the best round.
    eval_metric : str or None, default=None
        %(metrics)s; None: the loss, "%(loss_metric)s".
    histogram_pool_mb : float, default=1024
        Memory for histograms of nodes that wait; what does not fit is rebuilt. Results do not depend on it.
    n_jobs : int or None, default=None
        Threads, as in scikit-learn: None is 1, -1 all. Results do not depend on it.
    verbose : int, default=0
        Print the validation metric every so many rounds.

    Attributes
    ----------
    best_iteration_ : int%(best_iteration_shape)s
        Rounds that prediction uses, from 1.
    n_iter_ : int
        Rounds trained.
    evals_result_ : dict
        {"validation": {metric: float64 array of shape (n_iter_,)}}%(history_shape)s; empty without ``eval_set``.
    n_leaves_ : int array of shape (n_trees,)
    unassigned_fraction_ : float array of shape (n_trees,)
        Share of the training rows that a tree leaves without a leaf; 0 in complete growth.
    tree_output_ : int array of shape (n_trees,)
        The output that a tree serves; -1: all.
    base_score_ : float array of shape (n_outputs,)
    n_outputs_, n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,), only for frames with string column names
    fit_seconds_ : dict
        Time of "binning" and "training".
"""


class _GBDTMO(BaseEstimator):
    """What regression and classification share."""

    _metrics: tuple[str, ...]
    _loss_metric: str
    classes_: Any

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int = 6,
        max_leaves: int | None = None,
        max_bins: int = 255,
        min_samples_leaf: int = 20,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        min_split_gain: float = 0.0,
        top_k: int | None = None,
        top_k_mode: str = "restricted",
        hessian: str = "diagonal",
        tree_output: str = "multi",
        growth: str = "complete",
        node_cache: int = 16,
        binning: str = "quantile",
        base_score: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: str | None = None,
        histogram_pool_mb: float = 1024,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.max_bins = max_bins
        self.min_samples_leaf = min_samples_leaf
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.min_split_gain = min_split_gain
        self.top_k = top_k
        self.top_k_mode = top_k_mode
        self.hessian = hessian
        self.tree_output = tree_output
        self.growth = growth
        self.node_cache = node_cache
        self.binning = binning
        self.base_score = base_score
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.histogram_pool_mb = histogram_pool_mb
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.growth == "complete"
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _check_rows(self, X: Any, name: str = "X") -> NDArray[Any]:
        """Rows as float32 or float64 (n, m), any strides; NaN stays, infinity and all that is no number is refused."""
        finite: bool | str = "allow-nan" if self.growth == "complete" else True
        checked = check_array(
            X, dtype=[np.float64, np.float32], ensure_all_finite=finite, input_name=name, estimator=self
        )
        return np.asarray(checked)

    def _check_new_rows(self, X: Any) -> NDArray[Any]:
        """The same for rows to predict, which must have the columns of training."""
        check_is_fitted(self)
        rows = self._check_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return rows

    def _check_fit(self, X: Any, y: Any, eval_set: Any) -> tuple[NDArray[Any], tuple[Any, Any] | None]:
        """Training rows, and validation rows with their targets as passed. Changes nothing of the estimator."""
        check_parameters(self.get_params(deep=False), self._metrics)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if self.early_stopping_rounds is not None and eval_set is None:
            raise ValueError(
                "early_stopping_rounds needs validation rows: pass fit(X, y, eval_set=(X_valid, y_valid))."
            )
        rows = self._check_rows(X)
        check_consistent_length(rows, y)
        if eval_set is None:
            return rows, None
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
            raise ValueError("eval_set must be a pair (X_valid, y_valid).")
        eval_rows = self._check_rows(eval_set[0], "X of eval_set")
        if eval_rows.shape[1] != rows.shape[1]:
            raise ValueError(f"X of eval_set has {eval_rows.shape[1]} features, but X has {rows.shape[1]} features.")
        check_consistent_length(eval_rows, eval_set[1])
        return rows, (eval_rows, eval_set[1])

    def _core_params(self, loss: str, threads: int) -> dict[str, Any]:
        return {
            "loss": _lib.LOSSES[loss],
            "growth": _lib.GROWTHS[self.growth],
            "metric": _lib.METRICS[self.eval_metric or self._loss_metric],
            "top_k": self.top_k or 0,
            "restricted": self.top_k_mode == "restricted",
            "constant_hessian": self.hessian == "constant",
            "single_output": self.tree_output == "single",
            "max_depth": self.max_depth,
            "node_cache": self.node_cache,
            "n_threads": threads,
            "max_leaves": 2**62 if self.max_leaves is None else self.max_leaves,
            "min_samples_leaf": self.min_samples_leaf,
            "early_stopping_rounds": self.early_stopping_rounds or 0,
            "histogram_pool_bytes": int(min(self.histogram_pool_mb, 2**40) * 2**20),
            "learning_rate": self.learning_rate,
            "reg_lambda": self.reg_lambda,
            "reg_alpha": self.reg_alpha,
            "min_split_gain": self.min_split_gain,
        }

    def _train(
        self,
        frame: Any,
        X: NDArray[Any],
        y: NDArray[Any],
        validation: tuple[NDArray[Any], NDArray[Any]] | None,
        *,
        loss: str,
        n_outputs: int,
        target_ndim: int,
        classes: NDArray[Any] | None = None,
    ) -> Self:
        """Bins, boosts and keeps the model. ``y`` is int32 (n,) or float64 (n, n_outputs); ``frame`` is X as passed."""
        validate_data(self, frame, reset=True, skip_check_array=True)
        threads = _lib.n_threads(self.n_jobs)
        if self.base_score is None:
            base_score = best_constant(y, n_outputs, loss)
        else:
            base_score = np.full(n_outputs, float(self.base_score))
        start = time.perf_counter()
        mapper = _lib.BinMapper.fit(X, binning=self.binning, max_bins=self.max_bins, threads=threads)
        bins = mapper.apply(X, threads=threads)
        valid_bins = None if validation is None else mapper.apply(validation[0], threads=threads)
        binned = time.perf_counter()
        with _lib.Booster(self._core_params(loss, threads), mapper, bins, y, base_score) as booster:
            if validation is not None and valid_bins is not None:
                booster.validate(valid_bins, validation[1])
            n_rounds = self._boost(booster, validation is not None)
            history = booster.history() if validation is not None else np.empty((0, 1))
            self._keep(
                Model(
                    loss=loss,
                    target_ndim=target_ndim,
                    n_train=len(X),
                    n_rounds=n_rounds,
                    mapper=mapper,
                    forest=booster.forest(),
                    base_score=base_score,
                    best_rounds=booster.best_rounds(),
                    history=history,
                    metric=self.eval_metric or self._loss_metric,
                    seconds={"binning": binned - start, "training": time.perf_counter() - binned},
                    classes=classes,
                )
            )
        return self

    def _boost(self, booster: _lib.Booster, validated: bool) -> int:
        """Boosts to the end, a round a call so that an interrupt is seen; returns the number of rounds."""
        for round_ in range(1, self.n_estimators + 1):
            finished = booster.boost(1)
            if self.verbose and (round_ % self.verbose == 0 or finished):
                metric = f" {self.eval_metric or self._loss_metric} {booster.last_metric():.6g}" if validated else ""
                print(f"[{round_}]{metric}")
            if finished:
                break
        return round_

    def _keep(self, model: Model) -> None:
        """Takes a model as the fitted state; also what loading does."""
        self._model = model
        self.n_outputs_ = len(model.base_score)
        self.base_score_ = model.base_score
        self.n_iter_ = model.n_rounds
        per_output = len(model.best_rounds) > 1 or (self.tree_output == "single" and model.loss == "squared_error")
        self.best_iteration_ = model.best_rounds if per_output else int(model.best_rounds[0])
        history = model.history if per_output else model.history[:, 0]
        self.evals_result_ = {"validation": {model.metric: history}} if len(history) else {}
        self.n_leaves_ = model.forest.n_leaves
        self.unassigned_fraction_ = model.forest.n_unassigned / model.n_train
        self.tree_output_ = model.forest.tree_output
        self.fit_seconds_ = model.seconds
        if model.classes is not None:
            self.classes_ = model.classes

    def _raw_scores(self, X: Any) -> NDArray[np.float64]:
        rows = self._check_new_rows(X)
        return self._model.scores(rows, threads=_lib.n_threads(self.n_jobs))

    def _staged_raw_scores(self, X: Any) -> Iterator[NDArray[np.float64]]:
        rows = self._check_new_rows(X)
        yield from self._model.staged_scores(rows, threads=_lib.n_threads(self.n_jobs))

    def save_model(self, path: str | PathLike[str]) -> None:
        """Writes the fitted model to one file of arrays and JSON (a NumPy .npz, no pickle).

        The file appears whole or not at all.

        Raises
        ------
        sklearn.exceptions.NotFittedError
        TypeError
            For class labels that are neither numbers nor strings.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        write_model(path, type(self).__name__, self.get_params(deep=False), self._model, names)

    @classmethod
    def load_model(cls, path: str | PathLike[str]) -> Self:
        """The estimator that `save_model` wrote to ``path``.

        Raises
        ------
        ValueError
            If the file is no model, damaged, or holds another kind of estimator.
        """
        name, params, model, names = read_model(path)
        if name != cls.__name__:
            raise ValueError(f"{path} holds a {name}, not a {cls.__name__}; use {name}.load_model.")
        estimator = cls(**params)
        estimator._keep(model)
        estimator.n_features_in_ = len(model.mapper.has_missing)
        if names is not None:
            estimator.feature_names_in_ = names
        return estimator


class GBDTMORegressor(RegressorMixin, _GBDTMO):
    __doc__ = (
        """Gradient boosted trees for one or many numeric targets, squared error.

    Source: Zhang & Jung, GBDT-MO, arXiv 1909.04373.
"""
        + _PARAMETERS
        % {
            "metrics": '"mse", "rmse" (over all cells) or "mae"',
            "loss_metric": "mse",
            "best_iteration_shape": ', or int array of shape (n_outputs,) with tree_output="single"',
            "history_shape": ' (with tree_output="single" (n_iter_, n_outputs), NaN after an output stopped)',
        }
    )

    _metrics = ("mse", "rmse", "mae")
    _loss_metric = "mse"

    def fit(self, X: Any, y: Any, *, eval_set: tuple[Any, Any] | None = None) -> Self:
        """Trains on rows ``X`` and targets ``y``.

        Parameters
        ----------
        X : array-like of shape (n, m), numeric
            Any float or integer dtype and memory order; NaN marks a missing value.
        y : array-like of shape (n,) or (n, d), numeric and finite
        eval_set : pair (X_valid, y_valid), optional
            Rows on which ``eval_metric`` is followed; same columns and outputs.

        Raises
        ------
        ValueError
            For a parameter or an array that cannot be used; the message says why.
        """
        rows, validation = self._check_fit(X, y, eval_set)
        values = check_values(y)
        n_outputs = 1 if values.ndim == 1 else values.shape[1]
        if validation is not None:
            valid_values = check_values(validation[1], "y of eval_set")
            if valid_values.shape[1:] != values.shape[1:]:
                raise ValueError(
                    f"y of eval_set has shape {valid_values.shape}, y has {values.shape}: outputs must be the same."
                )
            validation = validation[0], np.ascontiguousarray(valid_values.reshape(-1, n_outputs))
        return self._train(
            X,
            rows,
            np.ascontiguousarray(values.reshape(-1, n_outputs)),
            validation,
            loss="squared_error",
            n_outputs=n_outputs,
            target_ndim=values.ndim,
        )

    def _shape(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return scores[:, 0] if self._model.target_ndim == 1 else scores

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predictions of shape (n,) or (n, d), as ``y`` was."""
        scores = self._raw_scores(X)
        return self._shape(scores)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Predictions after each round, up to the best."""
        for scores in self._staged_raw_scores(X):
            yield self._shape(scores)


class GBDTMOClassifier(ClassifierMixin, _GBDTMO):
    __doc__ = (
        """Gradient boosted trees for classes (softmax cross-entropy) or label sets (sigmoid cross-entropy).

    Source: Zhang & Jung, GBDT-MO, arXiv 1909.04373.
"""
        + _PARAMETERS
        % {
            "metrics": '"log_loss" or "accuracy" (for label sets: the highest-scored label is one of the row\'s)',
            "loss_metric": "log_loss",
            "best_iteration_shape": "",
            "history_shape": "",
        }
        + """    classes_ : array of shape (n_classes,), or list of q arrays [0, 1] for label sets
    """
    )

    _metrics = ("log_loss", "accuracy")
    _loss_metric = "log_loss"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any, *, eval_set: tuple[Any, Any] | None = None, classes: Any = None) -> Self:
        """Trains on rows ``X`` with class labels or a 0/1 indicator matrix ``y``.

        Parameters
        ----------
        X : array-like of shape (n, m), numeric
            Any float or integer dtype and memory order; NaN marks a missing value.
        y : array-like of shape (n,), labels of any kind, or (n, q) of 0 and 1, q >= 2
        eval_set : pair (X_valid, y_valid), optional
            Rows on which ``eval_metric`` is followed; same columns and labels.
        classes : array-like of shape (n_classes,), optional
            All classes, if the training part may lack some; by default those of ``y`` and of ``eval_set``.

        Raises
        ------
        ValueError
            For a parameter or an array that cannot be used; the message says why.
        """
        rows, validation = self._check_fit(X, y, eval_set)
        labels = check_labels(y)
        valid_labels = None if validation is None else check_labels(validation[1], "y of eval_set")
        if valid_labels is not None and valid_labels.shape[1:] != labels.shape[1:]:
            raise ValueError(
                f"y of eval_set has shape {valid_labels.shape}, y has {labels.shape}: labels must be the same."
            )
        if labels.ndim == 2:
            return self._fit_indicator(X, rows, labels, validation, valid_labels, classes)
        every = collect_classes(labels, valid_labels, classes)
        if validation is not None and valid_labels is not None:
            validation = validation[0], encode_labels(valid_labels, every)
        codes = encode_labels(labels, every)
        return self._train(
            X, rows, codes, validation, loss="softmax", n_outputs=len(every), target_ndim=1, classes=every
        )

    def _fit_indicator(
        self,
        X: Any,
        rows: NDArray[Any],
        labels: NDArray[Any],
        validation: tuple[Any, Any] | None,
        valid_labels: NDArray[Any] | None,
        classes: Any,
    ) -> Self:
        if classes is not None:
            raise ValueError(
                "classes applies to class labels; an indicator matrix has a column for every label already."
            )
        if validation is not None and valid_labels is not None:
            validation = validation[0], np.ascontiguousarray(valid_labels, np.float64)
        values = np.ascontiguousarray(labels, np.float64)
        return self._train(X, rows, values, validation, loss="sigmoid", n_outputs=values.shape[1], target_ndim=2)

    def _keep(self, model: Model) -> None:
        super()._keep(model)
        if model.loss == "sigmoid":
            self.classes_ = [np.array([0, 1])] * self.n_outputs_

    def _decision(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        two_classes = self._model.loss == "softmax" and scores.shape[1] == 2
        return scores[:, 1] - scores[:, 0] if two_classes else scores

    def _labels(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        if self._model.loss == "sigmoid":
            return (scores > 0).astype(np.int64)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Raw scores (n, n_outputs); for two classes (n,), the second's minus the first's, as scikit-learn expects."""
        scores = self._raw_scores(X)
        return self._decision(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels (n,), or 0/1 of shape (n, q) where a label's probability is above one half."""
        scores = self._raw_scores(X)
        return self._labels(scores)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities (n, n_outputs): softmax of the raw scores, or the sigmoid of each."""
        scores = self._raw_scores(X)
        if self._model.loss == "sigmoid":
            return np.asarray(0.5 * (1 + np.tanh(0.5 * scores)))
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """`decision_function` after each round, up to the best."""
        for scores in self._staged_raw_scores(X):
            yield self._decision(scores)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """`predict` after each round, up to the best."""
        for scores in self._staged_raw_scores(X):
            yield self._labels(scores)
