"""BoosTexter: AdaBoost.MH with real-valued decision stumps, for label sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gbdtmo_core import _lib
from gbdtmo_core._checks import N_JOBS, VERBOSE, Check, above, integer, one_of, or_none
from gbdtmo_core._label_sets import LabelSetRule, ThresholdRule
from gbdtmo_core._lib_stumps import StumpBooster, Stumps
from gbdtmo_core._multilabel import MultiLabelClassifier


class BoosTexterClassifier(MultiLabelClassifier):
    """Boosted decision stumps that score every label: AdaBoost.MH with real-valued predictions.

    A round tests one feature against one threshold, midway between two neighbouring values of the training rows, and
    gives each label a score on each side, c = 1/2 ln((W+ + smoothing) / (W- + smoothing)), from the weights W+ and W-
    of the rows for which the label is relevant or not. The stump of the least 2 sum sqrt(W+ W-) is taken; of equal ones
    that of the lowest feature, then of the lowest threshold. Weights of rows and labels are then multiplied by exp(-c)
    where the label is relevant and exp(c) where it is not. A label's score is the sum of its c over all rounds. Where
    no column has two values, a round gives all rows the same scores.

    Source: Schapire & Singer, BoosTexter: A boosting-based system for text categorization, Machine Learning 39 (2000);
    the version of real-valued predictions, without abstaining.

    Parameters
    ----------
    n_estimators : int, default=1000
        Rounds, a stump each.
    smoothing : float or None, default=None
        Added to both weights of a label on a side, where the weights of all rows and labels sum to 1; above 0. None:
        1 / (n n_labels), as in the paper, n being the sum of ``sample_weight`` where there is one.
    label_set : {"sign", "threshold", "size", "none"}, default="sign"
        How `predict` makes a set of scores: "sign" takes the labels of positive score, as in the paper; "threshold"
        learns a threshold from the scores; "size" learns how many labels a row has and takes the best ones; with
        "none" there is `decision_function` alone. No meaning for a 1-D y: the class of the largest score is predicted.
    size_estimator : estimator or None, default=None
        With ``label_set="size"``: a classifier or regressor of the number of labels. None: this class over sizes, with
        the same rounds and smoothing.
    n_jobs : int or None, default=None
        Threads, as in scikit-learn: None is 1, -1 all. Results do not depend on it.
    verbose : int, default=0
        Print the exponential loss every so many rounds.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The label of each column of the scores; where y was a matrix 0 .. n_labels - 1, where a frame its columns'
        names.
    feature_ : int32 array of shape (n_estimators,)
        The column that a round's stump tests; -1 where no column has two values.
    threshold_ : float64 array of shape (n_estimators,)
        Rows whose value is larger are on side 1, others on side 0. Where the feature is -1, all are on side 0.
    leaf_scores_ : float64 array of shape (n_estimators, 2, n_labels)
        What a stump adds to the scores of the rows of either side.
    normalizers_ : float64 array of shape (n_estimators,)
        Sum of the weights after each round, where it was 1 before. The product over rounds is the exponential loss of
        the training rows, which bounds their Hamming loss.
    smoothing_ : float
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,), only for frames with string column names
    """

    _parameter_checks: ClassVar[dict[str, Check]] = {
        "n_estimators": integer(1, 2**31 - 1),
        "smoothing": or_none(above(0)),
        "label_set": one_of("sign", "threshold", "size", "none"),
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        n_estimators: int = 1000,
        *,
        smoothing: float | None = None,
        label_set: str = "sign",
        size_estimator: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.smoothing = smoothing
        self.label_set = label_set
        self.size_estimator = size_estimator
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _default_size_estimator(self) -> Any:
        return clone(self).set_params(label_set="none", size_estimator=None)

    def _fit_scores(
        self, X: NDArray[np.float64], indicator: NDArray[np.uint8], sample_weight: NDArray[np.float64] | None
    ) -> None:
        self.smoothing_ = self._choose_smoothing(indicator, sample_weight)
        stumps = Stumps.empty(self.n_estimators, indicator.shape[1])
        threads = _lib.n_threads(self.n_jobs)
        with StumpBooster(X, indicator, sample_weight, smoothing=self.smoothing_, threads=threads) as booster:
            self._boost(booster, stumps)
        self._stumps = stumps
        self.feature_, self.threshold_ = stumps.feature, stumps.threshold
        self.leaf_scores_, self.normalizers_ = stumps.leaf_scores, stumps.normalizer

    def _choose_smoothing(self, indicator: NDArray[np.uint8], sample_weight: NDArray[np.float64] | None) -> float:
        if self.smoothing is not None:
            return float(self.smoothing)
        with np.errstate(over="ignore"):
            n = float(len(indicator)) if sample_weight is None else float(sample_weight.sum())
        smoothing: float = 1 / (n * indicator.shape[1])
        if not 0 < smoothing < np.inf:
            raise ValueError(
                f"sample_weight sums to {n}, too extreme for smoothing=None: rescale it, or set smoothing."
            )
        return smoothing

    def _boost(self, booster: StumpBooster, stumps: Stumps) -> None:
        """Boosts to the end, a round a call so that an interrupt is seen."""
        loss = 1.0
        for round_ in range(self.n_estimators):
            booster.boost(stumps, round_, round_ + 1)
            loss *= stumps.normalizer[round_]
            if self.verbose and (round_ + 1) % self.verbose == 0:
                print(f"[{round_ + 1}] exponential loss: {loss:.6g}")

    def _fit_label_set(
        self,
        rows: Any,
        indicator: NDArray[np.uint8],
        scores: NDArray[np.float64] | None,
        weight: NDArray[np.float64] | None,
    ) -> LabelSetRule:
        if self.label_set == "sign":
            return ThresholdRule(np.zeros(indicator.shape[1]), 0.0)
        return super()._fit_label_set(rows, indicator, scores, weight)

    def _scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = np.zeros((len(X), self.leaf_scores_.shape[2]))
        self._stumps.add(X, scores, 0, len(self.feature_), threads=_lib.n_threads(self.n_jobs))
        return scores

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """`decision_function` after each round; each item is an array of its own."""
        rows = self._check_new_rows(X)
        scores = np.zeros((len(rows), self.leaf_scores_.shape[2]))
        threads = _lib.n_threads(self.n_jobs)
        for round_ in range(len(self.feature_)):
            self._stumps.add(rows, scores, round_, round_ + 1, threads=threads)
            yield self._decision(scores.copy())
