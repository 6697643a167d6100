"""scikit-learn estimators of gradient boosted trees with vector leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from gbdtmo_core._base import PARAMETERS_DOC, BaseGBDTMO
from gbdtmo_core._model import Model
from gbdtmo_core._targets import check_labels, check_values, collect_classes, encode_labels


class GBDTMORegressor(RegressorMixin, BaseGBDTMO):
    __doc__ = (
        """Gradient boosted trees for one or many numeric targets, squared error.

    Source: Zhang & Jung, GBDT-MO, arXiv 1909.04373.
"""
        + PARAMETERS_DOC
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
        return self._fit_rows(
            X,
            eval_set,
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


class GBDTMOClassifier(ClassifierMixin, BaseGBDTMO):
    __doc__ = (
        """Gradient boosted trees for classes (softmax cross-entropy) or label sets (sigmoid cross-entropy).

    Source: Zhang & Jung, GBDT-MO, arXiv 1909.04373.
"""
        + PARAMETERS_DOC
        % {
            "metrics": '"log_loss" or "accuracy" (for label sets: the highest-scored label is one of the row\'s)',
            "loss_metric": "log_loss",
            "best_iteration_shape": "",
            "history_shape": "",
        }
        + """    classes_ : array of shape (n_classes,), or list of q arrays [0, 1] for label sets
        Scorers need the list; scikit-learn's cross_val_predict then offers label sets with method="predict" only.
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
            return self._fit_indicator(X, eval_set, rows, labels, validation, valid_labels, classes)
        every = collect_classes(labels, valid_labels, classes)
        if validation is not None and valid_labels is not None:
            validation = validation[0], encode_labels(valid_labels, every)
        codes = encode_labels(labels, every)
        return self._fit_rows(
            X, eval_set, rows, codes, validation, loss="softmax", n_outputs=len(every), target_ndim=1, classes=every
        )

    def _fit_indicator(
        self,
        X: Any,
        eval_set: tuple[Any, Any] | None,
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
        return self._fit_rows(
            X, eval_set, rows, values, validation, loss="sigmoid", n_outputs=values.shape[1], target_ndim=2
        )

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
        labels: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return labels

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
