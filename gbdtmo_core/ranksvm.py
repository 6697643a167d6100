"""Rank-SVM: label scores with a large margin between the relevant and the irrelevant labels of every sample."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from gbdtmo_core import _lib
from gbdtmo_core._checks import N_JOBS, VERBOSE, Check, above, integer, real
from gbdtmo_core._kernels import (
    BLOCK_BYTES,
    MACHINE_CHECKS,
    Kernel,
    check_range,
    check_symmetric,
    gram_matrix,
    is_indefinite,
    is_linear,
    make_kernel,
    row_blocks,
)
from gbdtmo_core._label_groups import LabelGroups, find_groups, separate_groups
from gbdtmo_core._lib_ranksvm import Machine, Origin, State
from gbdtmo_core._multilabel import MultiLabelClassifier

FloatArray = NDArray[np.float64]

_SAMPLE_ROWS = 256  # of training rows, where kernel values are not all at hand: their mean is the origin
_ROUNDING = 1e-14  # as in csrc/bounds.c: of scores, relative to the largest that they are summed from
_WORK_OF_A_CALL = 3e7  # score updates between two looks at interrupts: less than a second


class RankSVMClassifier(MultiLabelClassifier):
    """Large-margin ranking of labels, then a choice of a label set (Rank-SVM).

    Minimises sum_k |w_k|^2 + C sum_i 1 / (|Y_i| |not Y_i|) sum over k in Y_i, l not in Y_i of
    max(0, 1 - r_k(x_i) + r_l(x_i)), with scores r_k(x) = w_k . phi(x) + b_k. The dual is solved to a relative duality
    gap of ``tol``, and the gap is that of feasible points, whatever ended the iteration.

    Source: Elisseeff & Weston, A kernel method for multi-labelled classification (NIPS 14, 2001): the machine in
    section 3, label sets in section 4. With one label a sample it is Weston & Watkins' multi-class machine (1998).

    Parameters
    ----------
    C : float, default=1.0
        In the paper's scaling, without 1/2 before |w|^2: where others minimise 1/2 sum_k |w_k|^2 + C' ..., C = 2 C'.
        numpy.inf is the hard margin.
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        x.y, (gamma x.y + coef0)^degree, exp(-gamma |x - y|^2); or kernel values instead of X; or a function of two sets
        of rows (float64, dense or CSR as X was; copies) that returns their kernel matrix.
    degree : int, default=3
    gamma : {"scale", "auto"} or float, default="scale"
        Of "poly" and "rbf"; "scale" is 1 / (m * X.var()), "auto" 1 / m.
    coef0 : float, default=0.0
    tol : float, default=1e-3
        The solver ends at a relative duality gap of at most this.
    max_iter : int, default=2000
        Epochs (visits of every sample) at most; 0 leaves all scores 0. A ConvergenceWarning states the gap where they
        do not suffice.
    label_set : {"threshold", "size", "none"}, default="threshold"
        How scores become sets: labels above a threshold that is linear in the scores (section 4 of the paper), as many
        of the best labels as ``size_estimator`` says, or not at all.
    size_estimator : estimator, default=None
        For label_set="size": classifier or regressor of the size from X; a regressor's answer is rounded, and clipped
        to 0 .. n_labels. None: this estimator with the sizes as classes.
    cache_size : float, default=1024
        Memory for kernel values of the training rows, MB. If all of them (8 n^2 bytes) fit, they are computed once;
        otherwise rows are computed when they are needed, and those used last are kept, one at least.
    n_jobs : int or None, default=None
        Threads for kernel values, as in scikit-learn: None is 1, -1 all. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Order of the samples.
    verbose : int, default=0
        Print the bounds when the solver has new ones, so many epochs apart at least.

    Attributes
    ----------
    dual_coef_ : float64 array of shape (n_labels, n)
        A_ki = sum over l of alpha_ikl for labels k of sample i, and minus that for the others, so that
        w_k = 1/2 sum_i A_ki phi(x_i). A feasible point of the dual where the solver has converged. n counts training
        rows of weight above 0.
    intercept_ : float64 array of shape (n_labels,)
        b_k; only differences mean something. A label that always (never) occurs has w = 0 and ranks above (below) the
        others by its bias; so do groups of labels that biases alone can order.
    coef_ : float64 array of shape (n_labels, m), for the linear kernel
        w_k.
    support_ : int64 array of shape (n_support,)
        Training rows, of those of weight above 0, with a multiplier above 0.
    support_vectors_ : array or CSR matrix of shape (n_support, m); absent for "precomputed"
    primal_objective_, dual_objective_ : float
        Value of the paper's objective at this solution, and the best lower bound of its optimum. With the hard margin
        the first is infinite until the training rows are ranked without error.
    duality_gap_ : float
        (primal - dual) / primal: never negative, 0 where primal is 0, infinite where it is. NaN for a kernel that is
        found not to be positive semi-definite: there is no certificate then.
    n_iter_ : int
        Epochs.
    converged_ : bool
        Whether the gap is at most ``tol``.
    margin_ : float
        The least (r_k(x_i) - r_l(x_i)) / |w_k - w_l| over the pairs of the training rows [section 3 of the paper];
        pairs that biases alone rank have none. NaN unless all pairs are ranked without error.
    classes_ : array of shape (n_labels,)
        The labels of the columns; where y was a matrix 0 .. n_labels - 1, where a frame its columns' names.
    label_set_ : rule that was learned, or None
        ThresholdRule (coef, intercept) or SizeRule (estimator).
    n_features_in_ : int

    Notes
    -----
    A kernel that is not positive semi-definite is warned of; the objectives are then the formulas' values, and the
    iteration ends by the same rules.
    """

    _accepts_sparse: ClassVar[bool] = True
    _parameter_checks: ClassVar[dict[str, Check]] = {
        **MACHINE_CHECKS,
        "tol": real(0),
        "max_iter": integer(0, 2**62),
        "cache_size": above(0),
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
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
        max_iter: int = 2000,
        label_set: str = "threshold",
        size_estimator: Any = None,
        cache_size: float = 1024,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.label_set = label_set
        self.size_estimator = size_estimator
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit_scores(self, X: Any, indicator: NDArray[np.uint8], sample_weight: FloatArray | None) -> FloatArray:
        threads = _lib.n_threads(self.n_jobs)
        self._kernel = None if self._is_precomputed() else self._make_kernel(X)
        values = _KernelValues(self._kernel, X, cache_bytes=int(min(self.cache_size, 2**40) * 2**20), threads=threads)
        indefinite = False
        if self._is_suspect():
            some = values.sample()
            check_symmetric(some)
            indefinite = is_indefinite(some)
        groups = find_groups(indicator)
        state = self._solve(values, groups, indicator, self._costs(indicator, sample_weight))
        if not self._is_precomputed():
            self.support_vectors_ = X[self.support_]
        if is_linear(self._kernel):
            self.coef_ = np.ascontiguousarray(_times(X.T, 0.5 * self.dual_coef_.T).T)
        scores = self._scores(X) if values.gram is None else values.gram @ (0.5 * self.dual_coef_.T) + self.intercept_
        # A little above 1: the certificate counts these pairs as ranked, whatever rounding makes of their scores.
        sums = 0.5 * np.abs(self.dual_coef_).sum(axis=1)
        largest = float(np.max(np.abs(scores)) + np.max(sums) * np.max(values.diagonal))
        offsets = separate_groups(groups, scores, indicator, margin=1 + _ROUNDING * largest)
        self.intercept_ += offsets
        scores += offsets
        self.margin_ = _least_margin(self.dual_coef_, scores, self.intercept_, indicator)
        if indefinite or state.indefinite:
            self.duality_gap_, self.converged_ = np.nan, False
        self._warn(state)
        return scores

    def _make_kernel(self, X: Any) -> Kernel:
        return make_kernel(self.kernel, X, degree=self.degree, gamma=self.gamma, coef0=self.coef0)

    def _is_suspect(self) -> bool:
        """Whether the kernel may lack positive semi-definiteness."""
        return self._is_precomputed() or callable(self.kernel) or (self.kernel == "poly" and self.coef0 < 0)

    def _costs(self, indicator: NDArray[np.uint8], sample_weight: FloatArray | None) -> FloatArray:
        """C_i = C / (|Y_i| |not Y_i|), times the weight; 0 where there are no pairs."""
        size = indicator.sum(axis=1, dtype=np.float64)
        n_pairs = size * (indicator.shape[1] - size)
        weight = np.ones(len(size)) if sample_weight is None else sample_weight
        with np.errstate(over="ignore"):
            cost = np.where(n_pairs > 0, float(self.C) * weight / np.maximum(n_pairs, 1), 0.0)
        if not np.isinf(self.C):
            check_range("C times sample_weight over the number of a row's pairs", cost)
        return cost

    def _solve(
        self, values: _KernelValues, groups: LabelGroups, indicator: NDArray[np.uint8], cost: FloatArray
    ) -> State:
        """Solves the dual; sets what describes the solution."""
        order = groups.order
        seed = int(check_random_state(self.random_state).randint(2**31))
        with Machine(
            np.ascontiguousarray(indicator[:, order]),
            groups.start,
            cost,
            values.diagonal,
            origin=values.origin(),
            **values.sources(),
            tol=float(self.tol),
            max_epochs=int(self.max_iter),
            seed=seed,
        ) as machine:
            n_visits = max(1, int(_WORK_OF_A_CALL / (values.row_size * indicator.shape[1])))
            state = self._run(machine, min(n_visits, len(indicator)) if self.verbose else n_visits)
            dual_coef, bias = machine.solution()
        self.dual_coef_ = np.empty(dual_coef.T.shape)
        self.dual_coef_[order] = dual_coef.T
        self.intercept_ = np.empty(len(bias))
        self.intercept_[order] = bias
        self.support_ = np.flatnonzero(self.dual_coef_.any(axis=0))
        self.primal_objective_, self.dual_objective_ = state.primal, state.dual
        self.duality_gap_ = state.gap
        self.n_iter_ = state.n_epochs
        self.converged_ = state.gap <= self.tol
        return state

    def _run(self, machine: Machine, n_visits: int) -> State:
        printed: State | None = None
        state = None
        try:
            while state is None or not state.finished:
                state = machine.run(n_visits)
                if self.verbose and (state.finished or self._is_news(state, printed)):
                    printed = state
                    print(f"[{state.n_epochs}] primal {state.primal:.6g} dual {state.dual:.6g} gap {state.gap:.3g}")
        except KeyboardInterrupt as interrupt:
            if state is not None:
                interrupt.add_note(f"Rank-SVM after {state.n_epochs} epochs: relative duality gap {state.gap:.3g}")
            raise
        return state

    def _is_news(self, state: State, printed: State | None) -> bool:
        """Whether a line is due: the solver has new bounds, ``verbose`` epochs after those printed."""
        if printed is None:
            return state.n_epochs >= self.verbose
        is_new = (state.primal, state.dual) != (printed.primal, printed.dual)
        return is_new and state.n_epochs >= printed.n_epochs + self.verbose

    def _warn(self, state: State) -> None:
        if np.isnan(self.duality_gap_):
            warnings.warn(
                "the kernel is not positive semi-definite: primal_objective_ and dual_objective_ bound nothing, and "
                "there is no duality gap. Use a kernel that is, or add a constant to the diagonal.",
                stacklevel=5,
            )
            return
        if self.converged_:
            return
        if np.isinf(state.primal):
            reason = "the training rows are not ranked without error, as C=inf asks for"
            remedy = "They may not be separable (rows that are equal but for their labels never are): take a finite C"
        else:
            reason = f"the relative duality gap is above tol={self.tol:g}"
            remedy = "Scale X, take a smaller C"
        warnings.warn(
            f"Rank-SVM ended after {state.n_epochs} epochs; {reason}, gap {state.gap:.3g}. {remedy} or raise max_iter.",
            ConvergenceWarning,
            stacklevel=5,
        )

    def _scores(self, X: Any) -> FloatArray:
        if is_linear(self._kernel):
            return np.asarray(_times(X, self.coef_.T) + self.intercept_)
        half = 0.5 * self.dual_coef_[:, self.support_].T
        if self._kernel is None:
            return np.asarray(X[:, self.support_] @ half + self.intercept_)
        threads = _lib.n_threads(self.n_jobs)
        size = max(1, BLOCK_BYTES // (8 * max(1, len(self.support_))))
        blocks = [
            self._kernel.block(part, self.support_vectors_, threads=threads) @ half for part in row_blocks(X, size)
        ]
        return np.asarray(np.concatenate(blocks) + self.intercept_)

    def _default_size_estimator(self) -> Any:
        return type(self)(**{**self.get_params(deep=False), "label_set": "none", "size_estimator": None})


class _KernelValues:
    """How the solver gets kernel values of the training rows X: all, by rows, or as rows of the linear kernel."""

    def __init__(self, kernel: Kernel | None, X: Any, *, cache_bytes: int, threads: int) -> None:
        self._kernel, self._X, self._cache_bytes, self._threads = kernel, X, cache_bytes, threads
        n = X.shape[0]
        mean_entries = X.nnz / n if sparse.issparse(X) else X.shape[1]
        self.keeps_weights = is_linear(kernel) and mean_entries <= n
        self.row_size = max(1.0, mean_entries) if self.keeps_weights else n
        self.gram: FloatArray | None = None
        if kernel is None:
            self.gram = X
        elif not self.keeps_weights and 8 * n * n <= cache_bytes:
            self.gram = gram_matrix(kernel, X, threads=threads)
        if self.gram is not None:
            self.diagonal = np.ascontiguousarray(self.gram.diagonal())
        elif kernel is not None:
            self.diagonal = kernel.diagonal(X)
        check_range("K(x, x) of a training row", np.abs(self.diagonal))

    def origin(self) -> Origin:
        """The mean of the training rows in feature space; of a kernel that is taken by rows that of some rows."""
        n = self._X.shape[0]
        share = np.full(n, 1 / n)
        if self.keeps_weights:
            values = _times(self._X, np.asarray(self._X.mean(axis=0)).ravel())
        elif self.gram is not None:
            values = self.gram.mean(axis=1)
        else:
            some = self._some_rows()
            share = np.bincount(some, minlength=n) / len(some)
            size = max(1, BLOCK_BYTES // (8 * len(some)))
            assert self._kernel is not None
            blocks = [
                self._kernel.block(part, self._X[some], threads=self._threads).mean(axis=1)
                for part in row_blocks(self._X, size)
            ]
            values = np.concatenate(blocks)
        return Origin(share, np.ascontiguousarray(values), float(share @ values))

    def sample(self) -> FloatArray:
        """Kernel values of the training rows, of some of them where they are not all at hand."""
        if self.gram is not None:
            return self.gram
        assert self._kernel is not None
        some = self._X[self._some_rows()]
        return self._kernel.block(some, some, threads=self._threads)

    def _some_rows(self) -> NDArray[np.int64]:
        n = self._X.shape[0]
        return np.unique(np.linspace(0, n - 1, min(n, _SAMPLE_ROWS)).astype(np.int64))

    def sources(self) -> dict[str, Any]:
        """Arguments of `Machine`."""
        if self.keeps_weights:
            return {"features": self._X}
        if self.gram is not None:
            return {"gram": self.gram}
        return {"rows": self._rows, "cache_bytes": self._cache_bytes}

    def _rows(self, indices: NDArray[np.int64]) -> FloatArray:
        assert self._kernel is not None
        return self._kernel.block(self._X[indices], self._X, threads=self._threads)


def _times(X: Any, other: FloatArray) -> FloatArray:
    return np.asarray(X @ other)


def _least_margin(
    dual_coef: FloatArray, scores: FloatArray, intercept: FloatArray, relevant: NDArray[np.uint8]
) -> float:
    """The geometric margin of the training rows [section 3]; NaN if some pair is not ranked."""
    products = 0.5 * dual_coef @ (scores - intercept)  # w_k . w_l
    squares = products.diagonal()
    norms = np.sqrt(np.maximum(squares[:, None] + squares - 2 * products, 0))
    norms[norms < 1e-8 * np.sqrt(max(float(np.max(squares)), 0.0))] = 0  # rounding
    least = np.inf
    for k in range(len(intercept)):
        rows = relevant[:, k] == 1
        apart = np.where(relevant[rows] == 1, np.inf, scores[rows, k, None] - scores[rows])
        if (apart <= 0).any():
            return np.nan
        with np.errstate(divide="ignore"):
            least = min(least, float(np.min(apart / norms[k], initial=np.inf)))
    return least
