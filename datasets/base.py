"""The frozen shape every data set has, and the errors of this package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Task = Literal["multiclass", "multilabel", "regression"]
Rows = NDArray[np.int64]

TRAIN_SHARE = 0.7
FIT_SHARE = 0.8
RANDOM_SPLIT_SEEDS = 10


class DatasetError(Exception):
    """Base of all errors raised by this package."""


class UnknownDatasetError(DatasetError, ValueError):
    """No data set of that name."""


class MissingDataError(DatasetError):
    """The files are neither here nor could they be downloaded."""


class ChecksumError(DatasetError):
    """A file of the user's own data folder is not the expected one."""


class DataFolderError(DatasetError):
    """A folder named by the user or the environment cannot be used."""


class FormatError(DatasetError):
    """A file holds something else than it should."""


class TimingOnlyError(DatasetError, ValueError):
    """A score was asked of a set whose values were made up for timing."""


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Row numbers of one split, as read-only int64 arrays.

    Attributes
    ----------
    train : ndarray of shape (n_train,)
        Rows the ``paper`` protocol fits on, in permuted order.
    fit : ndarray of shape (n_fit,)
        Rows the ``holdout`` protocol fits on.
    validation : ndarray of shape (n_validation,)
        Rows the ``holdout`` protocol stops on; disjoint from `fit` and `test`.
    test : ndarray of shape (n_test,)
        Rows that are scored; disjoint from the others.
    resubstitution : bool
        Whether the set is by its definition scored on its own training rows: then `test` holds these and what is
        recorded is a training error.

    Raises
    ------
    ValueError
        If rows overlap that must not, or a split by resubstitution tests other rows than it trains on.
    """

    train: Rows
    fit: Rows
    validation: Rows
    test: Rows
    resubstitution: bool = False

    def __post_init__(self) -> None:
        for name in ("train", "fit", "validation", "test"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.int64))
        apart = [("fit", "validation")]
        if not self.resubstitution:
            apart += [("train", "test"), ("fit", "test"), ("validation", "test")]
        elif not np.array_equal(np.unique(self.train), np.unique(self.test)):
            raise ValueError("a split by resubstitution should test the rows it trains on, and these differ")
        for one, other in apart:
            if common := len(np.intersect1d(getattr(self, one), getattr(self, other))):
                raise ValueError(f"{common} rows are {one} and {other} rows at once; expected none")

    def __repr__(self) -> str:
        sizes = [f"{len(getattr(self, name))} {name}" for name in ("train", "fit", "validation", "test")]
        return f"Split({', '.join(sizes)} rows)"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """One data set in memory; its arrays are read-only.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n, m), float32, C order
        Features; NaN means missing.
    y : ndarray
        int64 class numbers of shape (n,) for "multiclass", float64 of shape (n, d) for "regression",
        uint8 0/1 of shape (n, q) for "multilabel".
    task : {"multiclass", "multilabel", "regression"}
    feature_names : tuple of str, length m
    target_names : tuple of str
        Class names in the order of their numbers, or the names of the columns of `y`.
    source : str
        Where these bytes came from.
    sha256 : dict
        File name to its SHA-256 in hex.
    fixed_split : Split or None
        The published split; None where splits are drawn at random.
    seed_splits : tuple of Split
        Where each seed has rows of its own: the split of seed 0, 1, ...; else empty.
    timing_only : bool
        Whether values were made up to have the size of real ones: seconds measured on them mean something, scores
        mean nothing and must not be recorded.
    """

    name: str
    X: NDArray[np.float32]
    y: NDArray[Any]
    task: Task
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    source: str
    sha256: dict[str, str]
    fixed_split: Split | None = None
    seed_splits: tuple[Split, ...] = ()
    timing_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", read_only(self.X, np.float32))
        dtypes = {"multiclass": np.int64, "multilabel": np.uint8, "regression": np.float64}
        object.__setattr__(self, "y", read_only(self.y, dtypes[self.task]))
        self._check_shapes()

    def _check_shapes(self) -> None:
        n, m = self.X.shape
        y_shape = (n,) if self.task == "multiclass" else (n, len(self.target_names))
        if self.y.shape != y_shape or m != len(self.feature_names):
            raise FormatError(
                f"data set '{self.name}': X {self.X.shape}, y {self.y.shape}, {len(self.feature_names)} feature "
                f"names and {len(self.target_names)} target names do not fit together"
            )

    @property
    def n_outputs(self) -> int:
        """Number of classes, labels or targets; of the whole set, whatever a split holds."""
        return len(self.target_names)

    @property
    def n_seeds_default(self) -> int:
        """How many seeds the paper averages: 10 random splits, the one published split, or the seeds that have rows."""
        if self.seed_splits:
            return len(self.seed_splits)
        return RANDOM_SPLIT_SEEDS if self.fixed_split is None else 1

    def split(self, seed: int) -> Split:
        """Return the split of this seed; a set with a published split returns that for every seed.

        A random split permutes the rows with ``RandomState(seed)``; the first ``int(0.7 n)`` train, the rest test.
        The first ``int(0.8 n_train)`` of the permuted training rows are `Split.fit`, the last 20 % validate.
        Splits are not stratified, so a training part may lack a rare class.

        Raises
        ------
        ValueError
            If `seed` is no whole number from 0 to 2^32 - 1, or has no rows in a set that has rows for some seeds alone.
        """
        check_seed(seed)
        if self.seed_splits:
            if seed >= len(self.seed_splits):
                raise ValueError(
                    f"data set '{self.name}' has rows for the seeds 0 to {len(self.seed_splits) - 1} alone"
                )
            return self.seed_splits[seed]
        if self.fixed_split is not None:
            return self.fixed_split
        return random_split(len(self.X), seed)

    def require_scorable(self) -> None:
        """Refuse to score a set whose values were made up for timing; whatever records a score calls this first.

        Raises
        ------
        TimingOnlyError
        """
        if self.timing_only:
            raise TimingOnlyError(
                f"the values of data set '{self.name}' were made up for timing: a score on it would say nothing, so "
                "none is recorded. Measure its seconds in a benchmark, or take the real set"
            )

    def __repr__(self) -> str:
        n, m = self.X.shape
        return f"Dataset('{self.name}', {self.task}, {n} rows, {m} features, {self.n_outputs} outputs)"


def check_seed(seed: object) -> int:
    """Return a seed that is a whole number from 0 to 2^32 - 1; refuse all else, booleans and texts too."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise ValueError(f"seed must be a whole number from 0 to 2^32 - 1, not {seed!r}")
    return int(seed)


def random_split(n: int, seed: int) -> Split:
    """Split ``n`` rows at random, as `Dataset.split` says."""
    order = np.arange(n)
    np.random.RandomState(seed).shuffle(order)
    train, test = np.split(order, [int(TRAIN_SHARE * n)])
    fit, validation = np.split(train, [int(FIT_SHARE * len(train))])
    return Split(train=train, fit=fit, validation=validation, test=test)


def published_split(n_train: int, n_test: int) -> Split:
    """Return the split of a set whose first ``n_train`` rows are its training rows and whose others are its test rows.

    Of the training rows, permuted by ``RandomState(0)``, the last 20 % validate.
    """
    order = np.arange(n_train)
    np.random.RandomState(0).shuffle(order)
    fit, validation = np.split(order, [int(FIT_SHARE * n_train)])
    return Split(train=np.arange(n_train), fit=fit, validation=validation, test=np.arange(n_train, n_train + n_test))


def read_only(array: Any, dtype: Any) -> NDArray[Any]:
    """Return a C-ordered view or copy of ``array`` that refuses writing."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.setflags(write=False)
    return view
