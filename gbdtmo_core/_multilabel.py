"""What classifiers of label sets share: reading X and y, scores, and the step from scores to label sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from gbdtmo_core._checks import Check, check_ranges, one_of, or_none
from gbdtmo_core._indicator import Labels, encode_like, read_labels
from gbdtmo_core._label_sets import LabelSetRule, fit_size_rule, fit_threshold_rule
from gbdtmo_core._state import forget_fit, unchanged_on_failure
from gbdtmo_core._targets import refuse_non_numbers

_LABEL_SET_CHECKS: dict[str, Check] = {
    "label_set": one_of("threshold", "size", "none"),
    "size_estimator": or_none(
        ("an estimator with fit and predict", lambda value: hasattr(value, "fit") and hasattr(value, "predict"))
    ),
}


class MultiLabelClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of classifiers that score labels and then choose a set of them.

    A subclass has the parameters ``label_set`` and ``size_estimator`` beside its own, and implements `_fit_scores`,
    `_scores` and `_default_size_estimator`. With ``kernel="precomputed"``, X holds kernel values: (n, n) in training,
    (m, n) of new against training rows.
    """

    _accepts_sparse: ClassVar[bool] = False
    _parameter_checks: ClassVar[dict[str, Check]] = {}

    label_set: str
    size_estimator: Any

    @abstractmethod
    def _fit_scores(
        self, X: Any, indicator: NDArray[np.uint8], sample_weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Learns to score labels.

        Parameters
        ----------
        X : float64 array of shape (n, m), C-contiguous, or CSR matrix with sorted int32 indices
            Finite. With ``kernel="precomputed"`` (n, n).
        indicator : uint8 array of shape (n, n_labels), C-contiguous, n_labels >= 2
            Rows may be empty or full; for a 1-D y each has one label.
        sample_weight : float64 array of shape (n,), all above 0, or None

        Returns
        -------
        scores : float64 array of shape (n, n_labels), or None
            The scores of the training rows, if the solver has them; None: `_scores` is asked for them.
        """

    @abstractmethod
    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Scores of shape (len(X), n_labels) for rows as in `_fit_scores`."""

    @abstractmethod
    def _default_size_estimator(self) -> Any:
        """What predicts the size of a set where ``size_estimator`` is None: an unfitted estimator."""

    def __sklearn_tags__(self) -> Any:
        # multi_output stays off: for classifiers it means several multi-class outputs.
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = self._accepts_sparse and not self._is_precomputed()
        return tags

    def _is_precomputed(self) -> bool:
        kernel = getattr(self, "kernel", None)
        return isinstance(kernel, str) and kernel == "precomputed"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Trains on rows ``X`` with label sets ``y``.

        Parameters
        ----------
        X : array-like of shape (n, m), numeric and finite
            Sparse matrices are taken by the classifiers with kernels. With ``kernel="precomputed"`` the (n, n) kernel
            matrix.
        y : indicator matrix of shape (n, n_labels), list of n label sets, or array of shape (n,)
            The matrix (dense, sparse or a frame) holds 0 and 1, or booleans, in two columns at least; sets are what
            `MultiLabelBinarizer` takes (of numbers as Python sets: lists of numbers, all of one length, are read as a
            matrix); a 1-D y holds one class a sample. Rows whose set is empty or full say nothing about the order of
            labels, but they count for the rule that makes sets of scores.
        sample_weight : array-like of shape (n,), default=None
            Not negative. A row of weight 0 is as if it were not there.

        Raises
        ------
        ValueError
            For a parameter or an array that cannot be used; the message says why.
        """
        check_ranges(self.get_params(deep=False), {**_LABEL_SET_CHECKS, **self._parameter_checks})
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        with unchanged_on_failure(self):
            forget_fit(self)
            rows = self._check_rows(X, reset=True)
            check_consistent_length(rows, y, sample_weight)
            labels = read_labels(y)
            weight = None if sample_weight is None else _check_weights(sample_weight, rows)
            used = None if weight is None or weight.all() else weight > 0
            if used is not None and weight is not None:
                rows = rows[np.ix_(used, used)] if self._is_precomputed() else rows[used]
                labels, weight = labels.take(used), weight[used]
            _check_label_count(labels)
            self._used_rows = used if self._is_precomputed() else None
            self._has_sparse_rows = sparse.issparse(rows)
            self._fit_checked(rows, labels, weight)
        return self

    def _fit_checked(self, rows: Any, labels: Labels, weight: NDArray[np.float64] | None) -> None:
        scores = self._fit_scores(rows, labels.indicator, weight)
        self.classes_ = labels.classes
        self._single_label = labels.form == "single"
        self.label_set_: LabelSetRule | None = None
        if not self._single_label and self.label_set != "none":
            self.label_set_ = self._fit_label_set(rows, labels.indicator, scores, weight)

    def _fit_label_set(
        self,
        rows: Any,
        indicator: NDArray[np.uint8],
        scores: NDArray[np.float64] | None,
        weight: NDArray[np.float64] | None,
    ) -> LabelSetRule:
        """The rule that ``label_set`` names; scores as `_fit_scores` gave them."""
        if self.label_set == "size":
            sizes = indicator.sum(axis=1, dtype=np.int64)
            estimator = self._default_size_estimator() if self.size_estimator is None else self.size_estimator
            return fit_size_rule(estimator, rows, sizes, weight)
        return fit_threshold_rule(self._scores(rows) if scores is None else scores, indicator, weight)

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        refuse_non_numbers(X, "X")
        if sparse.issparse(X) and X.format in ("csr", "csc"):
            X.check_format(full_check=True)  # indices out of range would be read and written without a check
        accepted = "csr" if self._accepts_sparse and not self._is_precomputed() else False
        rows = validate_data(self, X, reset=reset, accept_sparse=accepted, dtype=np.float64, order="C")
        if reset and self._is_precomputed() and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                f'kernel="precomputed" needs the square kernel matrix of the training rows; got {rows.shape}.'
            )
        return _plain_csr(rows) if sparse.issparse(rows) else rows

    def _check_new_rows(self, X: Any) -> Any:
        """Rows as `_scores` gets them, dense or sparse as the training rows were."""
        check_is_fitted(self)
        rows = self._check_rows(X, reset=False)
        if self._used_rows is not None:
            return np.ascontiguousarray(rows[:, self._used_rows])
        if sparse.issparse(rows) == self._has_sparse_rows:
            return rows
        return _plain_csr(sparse.csr_array(rows)) if self._has_sparse_rows else rows.toarray()

    def _new_scores(self, rows: Any) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._scores(rows)
        if not np.isfinite(scores).all():
            raise ValueError("the scores of some rows are NaN or infinite: X is too large; scale it as in training.")
        return scores

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the labels, (n, n_labels), in the order of ``classes_``.

        For a 1-D y of two classes (n,): the second's score minus the first's, as scikit-learn expects.
        """
        return self._decision(self._new_scores(self._check_new_rows(X)))

    def _decision(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return scores[:, 1] - scores[:, 0] if self._single_label and scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Label sets as a 0/1 matrix (n, n_labels) in the order of ``classes_``; for a 1-D y the classes (n,).

        Raises
        ------
        ValueError
            For label sets after training with ``label_set="none"``.
        """
        rows = self._check_new_rows(X)
        return self._predict_from(rows, self._new_scores(rows))

    def _predict_from(self, rows: Any, scores: NDArray[np.float64]) -> NDArray[Any]:
        if self._single_label:
            classes: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
            return classes
        if self.label_set_ is None:
            raise ValueError(
                'predict needs a rule for label sets, but the estimator was trained with label_set="none": use '
                "decision_function, or train with another label_set."
            )
        return self.label_set_.predict(scores, rows).astype(np.int64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; of label sets (in any form `fit` takes) the share of rows whose set is predicted exactly.

        It says nothing of how labels are ranked; for that score `decision_function` by scikit-learn's
        ``label_ranking_loss`` or ``label_ranking_average_precision_score``.
        """
        check_is_fitted(self)
        if self._single_label:
            return float(super().score(X, y, sample_weight))
        truth = encode_like(y, self.classes_)
        return float(accuracy_score(truth, self.predict(X), sample_weight=sample_weight))


def _check_weights(sample_weight: Any, rows: Any) -> NDArray[np.float64]:
    weight = check_array(sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
    if weight.shape != (rows.shape[0],):
        raise ValueError(f"sample_weight must have shape ({rows.shape[0]},), one a row of X; got {weight.shape}.")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative; got {weight.min()}.")
    if not weight.any():
        raise ValueError("sample_weight is zero for every sample: nothing is left to learn from.")
    return np.ascontiguousarray(weight)


def _check_label_count(labels: Labels) -> None:
    if len(labels.classes) >= 2:
        return
    if labels.form == "single":
        raise ValueError(f"y has one class only ({labels.classes[0]!r}); a classifier needs at least two.")
    raise ValueError(f"the label sets of y hold {labels.classes.tolist()} alone: ranking needs two labels at least.")


def _plain_csr(rows: Any) -> Any:
    """Sorted indices without duplicates, in int32; a copy where that needs a change."""
    # A new matrix: what this one says of its own order may be outdated.
    rows = type(rows)((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.indices.dtype == np.int32 and rows.indptr.dtype == np.int32:
        return rows
    if max(rows.nnz, *rows.shape) > np.iinfo(np.int32).max:
        raise ValueError(f"sparse X of shape {rows.shape} with {rows.nnz} entries is beyond 32-bit indices.")
    parts = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return type(rows)(parts, shape=rows.shape)
