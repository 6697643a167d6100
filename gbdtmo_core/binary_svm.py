"""One support vector machine a label: the binary decomposition that Rank-SVM is compared with."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from gbdtmo_core import _lib
from gbdtmo_core._checks import N_JOBS, Check, above, integer
from gbdtmo_core._kernels import (
    BLOCK_BYTES,
    MACHINE_CHECKS,
    CallableKernel,
    Kernel,
    check_range,
    check_symmetric,
    gram_matrix,
    is_indefinite,
    is_linear,
    make_kernel,
    row_blocks,
)
from gbdtmo_core._multilabel import MultiLabelClassifier

FloatArray = NDArray[np.float64]

# C of the hard margin, in units of one over the kernel's variance. The largest multiplier of the yeast genes is below
# 300 in these units; labels that cannot be separated take steps in proportion to C.
_HARD_MARGIN = 1e5
_SCALE_ROWS = 1000  # the kernel's variance is measured on so many rows


class BinarySVMClassifier(MultiLabelClassifier):
    """A binary SVM for every label (scikit-learn's SVC), and the label-set step of Rank-SVM.

    Source: the rival in Elisseeff & Weston, A kernel method for multi-labelled classification (NeurIPS 2001).

    Parameters
    ----------
    C : float, default=1.0
        As in SVC: 1/2 |w|^2 + C * (sum of slacks) is minimised for each label. With two classes this is also what
        Rank-SVM minimises. numpy.inf asks for the hard margin; libsvm needs a finite bound, which is then 10^5 over
        the variance of the training rows in the kernel's feature space. Labels that cannot be separated then take up to
        ``max_iter`` steps each: minutes from some hundred rows on.
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        "poly" is (gamma x.y + coef0)^degree. A callable gets two sets of rows (float64, dense or CSR as X was;
        copies) and returns their kernel matrix.
    degree : int, default=3
    gamma : {"scale", "auto"} or float, default="scale"
        Of "poly" and "rbf"; "scale" is 1 / (m * X.var()), "auto" 1 / m.
    coef0 : float, default=0.0
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the score.
    max_iter : int, default=10,000,000
        Steps of the solver for a label at most. A ConvergenceWarning says which labels were stopped.
    cache_size : float, default=500
        MB. If the kernel matrix of the training rows (8 n^2 bytes) fits, it is computed once for all labels; otherwise
        the solver of each label computes rows of it and keeps so many MB. The matrix of a callable is always whole.
        libsvm's own RBF values lose digits where rows are far from the origin relative to their spread: centre X.
    label_set : {"threshold", "size", "none"}, default="threshold"
        How scores become sets: labels above a threshold that is linear in the scores (section 4 of the paper), as many
        of the best labels as ``size_estimator`` says, or not at all.
    size_estimator : estimator, default=None
        For label_set="size": classifier or regressor of the size from X; a regressor's answer is rounded, and clipped
        to 0 .. n_labels. None: an SVC of the same kernel and C, with a class for every size.
    n_jobs : int or None, default=None
        Labels trained at the same time, in threads; None is 1, -1 all. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Has no effect, since the solver draws no random numbers; taken so that this class may stand where
        `RankSVMClassifier` does.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels of the columns; where y was a matrix 0 .. n_labels - 1, where a frame its columns' names.
    support_ : int array of shape (n_support,)
        Training rows that are support vectors of some label; rows of weight 0 are not counted.
    support_vectors_ : array or CSR matrix of shape (n_support, m); absent for "precomputed"
    dual_coef_ : float64 array of shape (n_labels, n_support)
        r_k(x) = sum over i of dual_coef_[k, i] K(x_i, x) + intercept_[k].
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
        **MACHINE_CHECKS,
        "tol": above(0),
        "max_iter": integer(1, 2**31 - 1),
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
        max_iter: int = 10_000_000,
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
        self._kernel = None if self._is_precomputed() else self._make_kernel(X)
        gram = self._gram(X)
        self._bound = float(self.C) if np.isfinite(self.C) else self._hard_margin(X)
        with np.errstate(over="ignore"):
            check_range("C times sample_weight", self._bound * (np.ones(1) if sample_weight is None else sample_weight))
        solver = self._svc() if gram is None else self._svc(kernel="precomputed")
        self._solve(solver, X if gram is None else gram, indicator, sample_weight)
        if self._kernel is not None:
            self.support_vectors_ = X[self.support_]
        if is_linear(self._kernel):
            self.coef_ = np.ascontiguousarray((self.support_vectors_.T @ self.dual_coef_.T).T)
        if gram is None:
            return None
        coefficients = np.zeros((len(gram), len(self.intercept_)))
        coefficients[self.support_] = self.dual_coef_.T
        return np.asarray(gram @ coefficients + self.intercept_)

    def _make_kernel(self, X: Any) -> Kernel:
        return make_kernel(self.kernel, X, degree=self.degree, gamma=self.gamma, coef0=self.coef0)

    def _gram(self, X: Any) -> FloatArray | None:
        """The kernel matrix of the training rows; None where it is too large, and the solver has the same kernel."""
        is_given = self._kernel is None or isinstance(self._kernel, CallableKernel)
        if not is_given and 8 * X.shape[0] ** 2 > self.cache_size * 2**20:
            return None
        gram = X if self._kernel is None else gram_matrix(self._kernel, X, threads=_lib.n_threads(self.n_jobs))
        if not np.isfinite(gram).all():
            raise ValueError("the kernel of X has infinite values; scale X.")
        if is_given:
            check_symmetric(gram)
            if is_indefinite(gram):
                warnings.warn(
                    "the kernel is not positive semi-definite: the solver ends at stationary points that "
                    "need not be optimal. Use a kernel that is, or add a constant to the diagonal.",
                    stacklevel=5,
                )
        return gram

    def _hard_margin(self, X: Any) -> float:
        """The C that stands for infinity. The SVM's bias makes shifts of feature space void: its variance counts."""
        rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _SCALE_ROWS)).astype(int)
        part = X[rows][:, rows] if self._kernel is None else gram_matrix(self._kernel, X[rows], threads=1)
        variance = float(part.diagonal().mean() - part.mean())
        return _HARD_MARGIN / variance if variance > 0 else _HARD_MARGIN

    def _svc(self, **changes: Any) -> SVC:
        """An SVC of this kernel and C. What C and gamma stand for is known from the training rows."""
        kernel = self._kernel
        settings = {
            "C": self._bound,
            "kernel": partial(kernel.block, threads=1) if isinstance(kernel, CallableKernel) else self.kernel,
            "degree": self.degree,
            "gamma": getattr(self._kernel, "gamma", 1.0),
            "coef0": self.coef0,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "cache_size": self.cache_size,
        }
        return SVC(**{**settings, **changes})

    def _solve(self, solver: SVC, X: Any, indicator: NDArray[np.uint8], weight: FloatArray | None) -> None:
        """Trains every different label once, and lays the solutions out for all labels."""
        flipped = indicator[0] == 1
        columns, which = np.unique(indicator ^ flipped, axis=1, return_inverse=True)  # all 0 in the first row
        varied = np.flatnonzero(columns.any(axis=0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fits = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(_train)(solver, X, columns[:, column], weight) for column in varied
            )
        coefficients = np.zeros((columns.shape[1], X.shape[0]))
        intercepts = np.full(columns.shape[1], -1.0)
        steps = np.zeros(columns.shape[1], np.int64)
        for column, svc in zip(varied, fits, strict=True):
            coefficients[column, svc.support_] = svc.dual_coef_.toarray()[0] if svc._sparse else svc.dual_coef_[0]
            intercepts[column] = svc.intercept_[0]
            steps[column] = svc.n_iter_[0]
        which, signs = which.ravel(), np.where(flipped, -1.0, 1.0)
        self.support_ = np.flatnonzero(coefficients.any(axis=0))
        self.dual_coef_ = coefficients[which][:, self.support_] * signs[:, None]
        self.intercept_ = intercepts[which] * signs
        self.n_iter_ = steps[which]
        stopped = [column for column, svc in zip(varied, fits, strict=True) if svc.fit_status_ != 0]
        self._warn(np.flatnonzero(np.isin(which, stopped)))

    def _warn(self, stopped: NDArray[np.int64]) -> None:
        if len(stopped) == 0:
            return
        warnings.warn(
            f"the SVMs of the labels in columns {stopped.tolist()} were stopped after max_iter={self.max_iter} steps: "
            "scale X, take a smaller C (no hard margin separates what overlaps), or raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=6,
        )

    def _scores(self, X: Any) -> FloatArray:
        if is_linear(self._kernel):
            return np.asarray(X @ self.coef_.T + self.intercept_)
        if self._kernel is None:
            return np.asarray(X[:, self.support_] @ self.dual_coef_.T + self.intercept_)
        threads = _lib.n_threads(self.n_jobs)
        size = max(1, BLOCK_BYTES // (8 * max(1, len(self.support_))))
        blocks = [
            self._kernel.block(part, self.support_vectors_, threads=threads) @ self.dual_coef_.T
            for part in row_blocks(X, size)
        ]
        return np.asarray(np.concatenate(blocks) + self.intercept_)

    def _default_size_estimator(self) -> Any:
        return self._svc()


def _train(solver: SVC, X: Any, column: NDArray[np.uint8], weight: FloatArray | None) -> SVC:
    return clone(solver).fit(X, column, sample_weight=weight)
