"""What every model adapter offers to a run."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class FitReport:
    """What one fit did; a field that a model has nothing to say of keeps its default.

    Attributes
    ----------
    construct_seconds, train_seconds : float
        Wall time of binning, or of what else comes before training, and of training with evaluation.
    best_round : int or list of int or None
        Number of rounds used for prediction; a list, one an output, where each output stops on its own.
    rounds : int or None
        Number of rounds trained (the largest over outputs).
    n_trees, n_leaves : int or None
        Trees used for prediction and their leaves.
    unassigned_fraction : float or None
        Mean share of training rows that a tree used for prediction gives no leaf; None if that cannot be.
    history : dict of str to list of float
        The early-stopping metric on the evaluation rows after each round. Where each output stops on its own
        the names end in ``_output_<j>``.
    solver : dict of str to number, bool or None
        What a solver says of its answer, such as ``primal_objective``, ``dual_objective``, ``duality_gap`` (relative),
        ``epochs``, ``converged`` and ``n_support``; None where a number is not finite.
    """

    construct_seconds: float
    train_seconds: float
    best_round: int | list[int] | None = None
    rounds: int | None = None
    n_trees: int | None = None
    n_leaves: int | None = None
    unassigned_fraction: float | None = None
    history: dict[str, list[float]] = field(default_factory=dict)
    solver: dict[str, float | bool | None] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundTimes:
    """What training a fixed number of rounds took.

    Attributes
    ----------
    construct_seconds : float or None
        Wall time of binning, or of making the library's own data structure; None where that was not measured.
    round_seconds : list of float
        Wall time of each round. Where each output is a model of its own, a round is one tree of every output.
    n_leaves : int or None
        Leaves of all trees; None where the library does not tell.
    parts : dict of str to list of float
        Seconds of the parts of each round, where the library tells them.
    entries : list of float
        Histogram entries of each round outside each feature's most frequent bin, where the library tells them.
    histogram_pool_mb : float or None
        Bound of the memory for histograms, in MiB, where the library has one.
    """

    construct_seconds: float | None
    round_seconds: list[float]
    n_leaves: int | None = None
    parts: dict[str, list[float]] = field(default_factory=dict)
    entries: list[float] = field(default_factory=list)
    histogram_pool_mb: float | None = None


class TimedModel(ABC):
    """A boosted model whose rounds can be timed one by one."""

    row_dtype: ClassVar[type[np.floating[Any]]] = np.float32
    """Type of rows that the library takes without a conversion."""

    @abstractmethod
    def train_rounds(
        self, X: Array, y: Array, *, task: str, n_outputs: int, n_rounds: int, seed: int, n_jobs: int
    ) -> RoundTimes:
        """Train `n_rounds` rounds without evaluation rows; see `BoostedModel.fit` for the other parameters."""

    @abstractmethod
    def predict_scores(self, X: Array) -> Array:
        """Raw scores (regression: predictions), float64 (n, n_outputs)."""

    @abstractmethod
    def raw_scores(self, X: Array, n_jobs: int) -> Any:
        """Raw scores just as the library returns them, by so many threads: to time the library alone."""


class Model(ABC):
    """A model as a run sees it once it is fitted; built from hyper-parameters given by keyword."""

    suffix: ClassVar[str]
    """File name ending of a saved model."""

    @abstractmethod
    def predict_scores(self, X: Array) -> Array:
        """Raw scores (regression: predictions) at the best round, float64 (n, n_outputs)."""

    @abstractmethod
    def predict_labels(self, X: Array) -> Array:
        """The label sets of a model that was fitted for "multilabel", 0 or 1, integers (n, n_outputs)."""

    def staged_scores(self, X: Array) -> Iterator[Array]:
        """Give raw scores as `predict_scores` does after each round up to the best; a model without rounds has one."""
        yield self.predict_scores(X)

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write the trained model to `path` in the library's own format."""


class BoostedModel(Model, TimedModel):
    """A boosted model with early stopping.

    Its config has ``early_stopping_rounds``, by which a plan knows that it needs rows to stop on.
    """

    @abstractmethod
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
        """Train until the evaluation rows have not improved for the configured number of rounds.

        Parameters
        ----------
        X, X_eval : ndarray of float32, shape (n, n_features)
            May hold NaN where the library allows it.
        y, y_eval : ndarray
            Codes 0..n_outputs-1 (n,) for "multiclass", of which `y` may lack some; (n, n_outputs) for
            "regression" and "multilabel" (0/1).
        task : str
            "multiclass": softmax cross-entropy, stopped on accuracy. Else squared error, stopped on RMSE.
        n_outputs : int
            Number of classes, labels or targets.
        seed : int
            For libraries that draw random numbers.
        n_jobs : int
            Number of threads.
        """

    def predict_labels(self, X: Array) -> Array:
        """The labels whose score is above 1/2: squared error estimates the probability of each."""
        return (self.predict_scores(X) > 0.5).astype(np.uint8)

    @abstractmethod
    def staged_scores(self, X: Array) -> Iterator[Array]:
        """Give raw scores as `predict_scores` does after each round up to the best."""


class LabelModel(Model):
    """A model of class labels or label sets that is fitted on its rows alone, without rows to stop on."""

    @abstractmethod
    def fit(self, X: Array, y: Array, *, task: str, n_outputs: int, seed: int, n_jobs: int) -> FitReport:
        """Fit on all rows given; the parameters are those of `BoostedModel.fit`.

        Raises
        ------
        ValueError
            For the task "regression", which has no labels.
        """


def indicator_of(y: Array, task: str, n_outputs: int) -> Array:
    """Return the 0/1 indicator matrix (n, n_outputs) of codes ("multiclass": one label a row) or of label sets.

    Raises
    ------
    ValueError
        For another task.
    """
    if task == "multilabel":
        return np.ascontiguousarray(y, dtype=np.uint8)
    if task != "multiclass":
        raise ValueError(f"the task {task!r} has no class labels; this model needs multiclass or multilabel")
    return np.equal.outer(y, np.arange(n_outputs)).astype(np.uint8)


@dataclass(frozen=True, kw_only=True)
class BoostingParameters:
    """Hyper-parameters that every boosting library knows under some name; values come from ``conf/model``."""

    n_estimators: int
    learning_rate: float
    max_depth: int
    max_leaves: int
    max_bins: int
    min_samples_leaf: int
    min_split_gain: float
    reg_lambda: float
    early_stopping_rounds: int
