"""One support vector machine a label: the binary decomposition that Rank-SVM is compared with."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from gbdtmo_core._checks import N_JOBS, Check, above, integer, is_integer, is_real
from gbdtmo_core._multilabel import MultiLabelClassifier

FloatArray = NDArray[np.float64]
KERNELS = ("linear", "poly", "rbf", "precomputed")

# C of the hard margin in units of one over the kernel's variance. On the yeast genes the largest multiplier of a
# separated label is below 200 in these units; far more makes labels that cannot be separated very slow.
_HARD_MARGIN = 1e5
_SCALE_ROWS = 1000  # the kernel's variance is measured on so many rows
_BLOCK_BYTES = 2**27


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and float(value) > 0


class BinarySVMClassifier(MultiLabelClassifier):
    """A binary SVM for every label (scikit-learn's SVC), and the label-set step of Rank-SVM.

    Source: the rival in Elisseeff & Weston, A kernel method for multi-labelled classification (NeurIPS 2001).

    Parameters
    ----------
    C : float, default=1.0
        As in SVC: 1/2 |w|^2 + C * (sum of slacks) is minimised for each label. With two classes this is also what
        Rank-SVM minimises. numpy.inf asks for the hard margin; libsvm needs a finite bound, which is then 10^6 over
        the variance of the training rows in the kernel's feature space.
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        "poly" is (gamma x.y + coef0)^degree. A callable gets two sets of rows (float64, dense or CSR as X was) and
        returns their kernel matrix.
    degree : int, default=3
    gamma : {"scale", "auto"} or float, default="scale"
        Of "poly" and "rbf"; "scale" is 1 / (m * X.var()), "auto" 1 / m.
    coef0 : float, default=0.0
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the score.
    max_iter : int, default=-1
        Steps of the solver for a label; -1: no limit. A warning says which labels were stopped.
    cache_size : float, default=500
        MB. If the kernel matrix of the training rows (8 n^2 bytes) fits, it is computed once for all labels; otherwise
        the solver of each label computes rows of it and keeps so many MB. The matrix of a callable is always whole.
    label_set : {"threshold", "size", "none"}, default="threshold"
        How scores become sets: labels above a threshold that is linear in the scores (section 4 of the paper), as many
        of the best labels as ``size_estimator`` says, or not at all.
    size_estimator : estimator, default=None
        Classifier or regressor of the size from X; a regressor's answer is rounded, and clipped to 0 .. n_labels.
        None: an SVC of the same kernel and C, with a class for every size.
    n_jobs : int or None, default=None
        Labels trained at the same time, in threads; None is 1, -1 all. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Taken so that all classifiers of label sets are built alike. The solver draws no random numbers.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels of the columns; 0 .. n_labels - 1 where y was a matrix.
    support_ : int array of shape (n_support,)
        Training rows that are support vectors of some label; rows of weight 0 are not counted.
    support_vectors_ : array or CSR matrix of shape (n_support, m); absent for "precomputed"
    dual_coef_ : float64 array of shape (n_support, n_labels)
        r_k(x) = sum over i of dual_coef_[i, k] K(x_i, x) + intercept_[k].
    intercept_ : float64 array of shape (n_labels,)
    coef_ : float64 array of shape (n_labels, m), for the linear kernel
    n_iter_ : int array of shape (n_labels,)
        Steps of the solver. A label that always or never occurs takes none: its SVM is w = 0 with the score 1 or -1.
        Labels that always occur together, or always one without the other, are solved once.
    label_set_ : rule that was learned, or None
        ThresholdRule (coef, intercept) or SizeRule (estimator).
    n_features_in_ : int
    """

    _accepts_sparse: ClassVar[bool] = True
    _parameter_checks: ClassVar[dict[str, Check]] = {
        "C": ("a number above 0, or numpy.inf", _is_positive),
        "kernel": (f"one of {KERNELS} or a callable", lambda value: callable(value) or value in KERNELS),
        "degree": integer(0),
        "gamma": (
            'a number above 0, "scale" or "auto"',
            lambda value: value in ("scale", "auto") if isinstance(value, str) else is_real(value) and value > 0,
        ),
        "coef0": ("a finite number", is_real),
        "tol": above(0),
        "max_iter": ("-1 or a whole number above 0", lambda value: is_integer(value) and (value > 0 or value == -1)),
        "cache_size": above(0),
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "linear",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_iter: int = -1,
        cache_size: float = 500,
        label_set: str = "threshold",
        size_estimator: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.label_set = label_set
        self.size_estimator = size_estimator
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_scores(self, X: Any, indicator: NDArray[np.uint8], sample_weight: FloatArray | None) -> FloatArray | None:
        self._gamma = self._gamma_of(X)
        whole = callable(self.kernel) or 8 * X.shape[0] ** 2 <= self.cache_size * 2**20
        matrix = self._kernel(X, X) if whole else None
        self._bound = self._hard_margin(X) if np.isinf(self.C) else float(self.C)
        self._solve(X if matrix is None else matrix, whole, indicator, sample_weight)
        if not self._is_precomputed():
            self.support_vectors_ = X[self.support_]
        if self.kernel == "linear":
            self.coef_ = np.asarray((self.support_vectors_.T @ self.dual_coef_).T)
        return None if matrix is None else matrix[:, self.support_] @ self.dual_coef_ + self.intercept_

    def _gamma_of(self, X: Any) -> float:
        if self.gamma == "scale":
            variance = X.multiply(X).mean() - X.mean() ** 2 if sparse.issparse(X) else X.var()
            return float(1 / (X.shape[1] * variance)) if variance > 0 else 1.0
        return 1 / X.shape[1] if self.gamma == "auto" else float(self.gamma)

    def _kernel(self, X: Any, Y: Any) -> FloatArray:
        """Kernel values (len(X), len(Y)); of a precomputed kernel X has them."""
        if self._is_precomputed():
            return np.asarray(X)
        if callable(self.kernel):
            values = np.asarray(self.kernel(X, Y), np.float64)
        else:
            parameters = {"gamma": self._gamma, "degree": self.degree, "coef0": self.coef0}
            values = pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **parameters)
        if values.shape != (X.shape[0], Y.shape[0]) or not np.isfinite(values).all():
            raise ValueError(
                f"the kernel must give finite values of shape {(X.shape[0], Y.shape[0])}; got shape {values.shape}"
                f"{'' if np.isfinite(values).all() else ' with infinite or missing values: scale X'}."
            )
        return np.ascontiguousarray(values)

    def _hard_margin(self, X: Any) -> float:
        """The C that stands for infinity. The SVM's bias makes shifts of feature space void: its variance counts."""
        rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _SCALE_ROWS)).astype(int)
        part = X[rows][:, rows] if self._is_precomputed() else self._kernel(X[rows], X[rows])
        variance = float(part.diagonal().mean() - part.mean())
        return _HARD_MARGIN / variance if variance > 0 else _HARD_MARGIN

    def _svc(self, **changes: Any) -> SVC:
        settings = {
            "C": self._bound,
            "kernel": self.kernel,
            "degree": self.degree,
            "gamma": self._gamma,
            "coef0": self.coef0,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "cache_size": self.cache_size,
        }
        return SVC(**{**settings, **changes})

    def _solve(self, X: Any, is_matrix: bool, indicator: NDArray[np.uint8], weight: FloatArray | None) -> None:
        """Trains the different labels, and lays their solutions out for all."""
        flipped = indicator[0] == 1
        columns, which = np.unique(indicator ^ flipped, axis=1, return_inverse=True)  # each 0 in the first row
        which = which.ravel()
        varied = columns.any(axis=0)
        solver = self._svc(kernel="precomputed") if is_matrix else self._svc()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solutions = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(_train)(solver, X, column, weight) for column in columns.T[varied]
            )
        coefficients = np.zeros((X.shape[0], len(varied)))
        intercepts = np.full(len(varied), -1.0)
        steps = np.zeros(len(varied), np.int64)
        stopped = np.zeros(len(varied), bool)
        for column, svc in zip(np.flatnonzero(varied), solutions, strict=True):
            dual = svc.dual_coef_
            coefficients[svc.support_, column] = dual.toarray()[0] if sparse.issparse(dual) else dual[0]
            intercepts[column] = svc.intercept_[0]
            steps[column] = svc.n_iter_[0]
            stopped[column] = svc.fit_status_ != 0
        signs = np.where(flipped, -1.0, 1.0)
        self.support_ = np.flatnonzero(coefficients.any(axis=1))
        self.dual_coef_ = np.ascontiguousarray(coefficients[self.support_][:, which] * signs)
        self.intercept_ = intercepts[which] * signs
        self.n_iter_ = steps[which]
        if stopped.any():
            warnings.warn(
                f"the SVMs of the labels in columns {np.flatnonzero(stopped[which]).tolist()} were stopped after "
                f"max_iter={self.max_iter} steps; raise max_iter or tol, scale X, or take a smaller C.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _scores(self, X: Any) -> FloatArray:
        if self.kernel == "linear":
            return np.asarray(X @ self.coef_.T + self.intercept_)
        if self._is_precomputed():
            return np.asarray(X[:, self.support_] @ self.dual_coef_ + self.intercept_)
        scores = np.empty((X.shape[0], len(self.intercept_)))
        step = max(1, _BLOCK_BYTES // (8 * max(1, len(self.support_))))
        for start in range(0, X.shape[0], step):
            values = self._kernel(X[start : start + step], self.support_vectors_)
            scores[start : start + step] = values @ self.dual_coef_ + self.intercept_
        return scores

    def _default_size_estimator(self) -> Any:
        return self._svc()


def _train(solver: SVC, X: Any, column: NDArray[np.uint8], weight: FloatArray | None) -> SVC:
    return SVC(**solver.get_params()).fit(X, column, sample_weight=weight)
