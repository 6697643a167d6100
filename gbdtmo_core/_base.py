"""What the estimators share: parameters, checks, training, the fitted state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from gbdtmo_core import _lib
from gbdtmo_core._model import Model
from gbdtmo_core._parameters import check_exact_hessian, check_parameters, check_top_k
from gbdtmo_core._state import unchanged_on_failure
from gbdtmo_core._targets import best_constant, refuse_non_numbers, require_same_columns
from gbdtmo_core._trees import Trees
from gbdtmo_core.persistence import read_model, write_model

PARAMETERS_DOC = """
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
        Outputs that a leaf of a multi-output tree keeps, those of the largest score [eq. 18]; None, or as many as there
        are: all. More than there are is an error.
    top_k_mode : {"restricted", "unrestricted"}, default="restricted"
        Whether both sides of a split are scored on one set of outputs [eq. 22] or each on its own [eq. 21].
    hessian : {"diagonal", "constant", "exact"}, default="diagonal"
        Second derivatives: the diagonal [eq. 15], 1 (first-order boosting), or the whole matrix [eq. 13] of the softmax
        of class labels; other losses have none but the diagonal. "exact" costs O(d^3) a candidate, takes up to 128
        classes, and goes with complete growth of multi-output trees without top_k and reg_alpha. Softmax's matrix is
        singular: reg_lambda=0 gives its pseudo-inverse, the limit of small penalties.
    tree_output : {"multi", "single"}, default="multi"
        One tree a round with vectors in its leaves, or a tree an output (GBDT-SO). With squared error each output of
        the latter stops early on its own.
    growth : {"complete", "released"}, default="complete"
        "released" copies the program released with the paper, which drops nodes; their rows get nothing from the tree.
        As in that program, an accuracy equal to the best one then counts as an improvement in early stopping.
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
    trees_ : sequence of Tree, length n_trees
        Features, thresholds, children and leaf values of every tree; see `gbdtmo_core.Tree`. The raw scores of a row
        are base_score_ plus its leaf's values in each tree that is ``used``.
    base_score_ : float array of shape (n_outputs,)
    n_outputs_, n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,), only for frames with string column names
    fit_seconds_ : dict
        Time of "binning" and "training".
    training_profile_ : dict of str to float array of shape (n_iter_,)
        Seconds of every round, by part: "gradient", "rounding" (to fixed point), "histogram", "split" (search, with
        subtraction), "partition", "leaf" (values and new scores), "evaluation" (validation rows), "total"; of parallel
        work the mean over its threads. "entries": how many entries outside their feature's most frequent bin the
        histograms of the round had to add. Not part of a saved model.
"""


class BaseGBDTMO(BaseEstimator):
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
        refuse_non_numbers(X, name)
        rows: NDArray[Any] = check_array(
            X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", input_name=name, estimator=self
        )
        if self.growth == "released" and np.isnan(rows).any():
            raise ValueError(
                f"{name} has missing values (NaN), which growth='released' does not take, as the program it copies. "
                "Replace them, or use growth='complete'."
            )
        return rows

    def _check_new_rows(self, X: Any) -> NDArray[Any]:
        """The same for rows to predict, which must have the columns of training."""
        if not hasattr(self, "_model"):
            check_is_fitted(self)  # raises; asking it first would cost a single row microseconds
        rows = self._check_rows(X)
        # An array has no column names. If training had none either and the numbers agree, nothing is left to refuse or
        # to warn of, and asking would take longer than to predict a row.
        nameless = type(X) is np.ndarray and not hasattr(self, "feature_names_in_")
        if not nameless or rows.shape[1] != self.n_features_in_:
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
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 2 or isinstance(eval_set[0], tuple):
            raise ValueError("eval_set must be a pair (X_valid, y_valid), not a list of pairs.")
        eval_rows = self._check_rows(eval_set[0], "X of eval_set")
        if eval_rows.shape[1] != rows.shape[1]:
            raise ValueError(f"X of eval_set has {eval_rows.shape[1]} features, but X has {rows.shape[1]} features.")
        check_consistent_length(eval_rows, eval_set[1])
        require_same_columns(y, eval_set[1])
        return rows, (eval_rows, eval_set[1])

    def _core_params(self, loss: str, threads: int) -> dict[str, Any]:
        return {
            "loss": _lib.LOSSES[loss],
            "growth": _lib.GROWTHS[self.growth],
            "metric": _lib.METRICS[self.eval_metric or self._loss_metric],
            "top_k": self.top_k or 0,
            "restricted": self.top_k_mode == "restricted",
            "constant_hessian": self.hessian == "constant",
            "exact_hessian": self.hessian == "exact",
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

    def _fit_rows(self, frame: Any, eval_set: tuple[Any, Any] | None, *args: Any, **kwargs: Any) -> Self:
        """Notes the columns of ``frame`` (X as passed), trains and keeps the model: all of it or nothing."""
        params = self.get_params(deep=False)
        check_top_k(params, kwargs["n_outputs"])
        check_exact_hessian(params, kwargs["loss"], kwargs["n_outputs"])
        with unchanged_on_failure(self):
            validate_data(self, frame, reset=True, skip_check_array=True)
            if eval_set is not None:
                validate_data(self, eval_set[0], reset=False, skip_check_array=True)
            self._keep(self._train(*args, **kwargs))
        return self

    def _train(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        validation: tuple[NDArray[Any], NDArray[Any]] | None,
        *,
        loss: str,
        n_outputs: int,
        target_ndim: int,
        classes: NDArray[Any] | None = None,
    ) -> Model:
        """Bins and boosts. ``y`` is int32 (n,) or float64 (n, n_outputs)."""
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
            self.training_profile_ = booster.profile()
            return Model(
                loss=loss,
                target_ndim=target_ndim,
                n_train=len(X),
                n_rounds=n_rounds,
                mapper=mapper,
                forest=booster.forest(),
                base_score=base_score,
                best_rounds=booster.best_rounds(),
                history=booster.history() if validation is not None else np.empty((0, 1)),
                metric=self.eval_metric or self._loss_metric,
                seconds={"binning": binned - start, "training": time.perf_counter() - binned},
                classes=classes,
            )

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

    @property
    def trees_(self) -> Trees:
        """The trees in the order of training, made when they are asked for."""
        check_is_fitted(self)
        return Trees(self._model.forest, self._model.mapper, self._model.used_trees)

    def _raw_scores(self, X: Any) -> NDArray[np.float64]:
        rows = self._check_new_rows(X)
        # A single row is one thread's work; to ask joblib would take longer than to predict it.
        threads = 1 if len(rows) == 1 else _lib.n_threads(self.n_jobs)
        return self._model.scores(rows, threads=threads)

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
        try:
            estimator = cls(**params)
            check_parameters(estimator.get_params(deep=False), cls._metrics)
            if (model.loss == "squared_error") != is_regressor(estimator):
                raise ValueError(f"its loss is {model.loss}")
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} does not hold a whole {name}: {error}") from error
        estimator._keep(model)
        estimator.n_features_in_ = len(model.mapper.has_missing)
        if names is not None:
            estimator.feature_names_in_ = names
        return estimator
