"""Random splits, from their definition."""

from __future__ import annotations

import numpy as np
import pytest

from datasets.base import Dataset, Split, random_split


@pytest.mark.parametrize("seed", range(3))
def test_split_by_its_definition(seed: int) -> None:
    rows = np.arange(649)
    np.random.RandomState(seed).shuffle(rows)
    split = random_split(649, seed)
    assert split.train.tolist() == rows[:454].tolist()
    assert split.test.tolist() == rows[454:].tolist()
    assert split.fit.tolist() == rows[:363].tolist()  # int(0.8 * 454)
    assert split.validation.tolist() == rows[363:454].tolist()


def test_seeds_differ_and_repeat() -> None:
    assert random_split(100, 1).test.tolist() == random_split(100, 1).test.tolist()
    assert random_split(100, 1).test.tolist() != random_split(100, 2).test.tolist()


def test_first_rows_of_seed_0_are_numpys() -> None:
    """NumPy freezes RandomState's streams: this is np.random.RandomState(0).permutation(10)."""
    split = random_split(10, 0)
    assert split.train.tolist() == [2, 8, 4, 9, 1, 6, 7]
    assert split.test.tolist() == [3, 0, 5]


def test_split_arrays_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        random_split(10, 0).train[0] = 1


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"train": [0, 1, 4]}, "1 rows are train and test rows at once"),
        ({"fit": [0, 4, 5]}, "2 rows are fit and test rows at once"),
        ({"validation": [3, 5]}, "1 rows are validation and test rows at once"),
        ({"validation": [1]}, "1 rows are fit and validation rows at once"),
        ({"validation": [1], "test": [0, 1, 2], "resubstitution": True}, "1 rows are fit and validation rows"),
        ({"test": [0, 1], "resubstitution": True}, "should test the rows it trains on"),
        ({"resubstitution": True}, "should test the rows it trains on"),
    ],
)
def test_rows_that_overlap_are_refused(parts: dict[str, object], problem: str) -> None:
    split = {"train": [0, 1, 2], "fit": [0, 1], "validation": [2], "test": [4, 5]}
    assert len(Split(**split).test) == 2  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=problem):
        Split(**{**split, **parts})  # type: ignore[arg-type]


def test_data_set_does_not_follow_later_changes_through_its_own_arrays() -> None:
    data = Dataset("x", np.zeros((3, 1)), np.zeros(3), "multiclass", ("a",), ("t",), "here", {})
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        data.y[0] = 1


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("seed", [None, True, 1.0, "1", -1, 2**32])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object, fixed: bool) -> None:
    own = random_split(4, 0) if fixed else None
    data = Dataset("x", np.zeros((4, 1)), np.zeros(4), "multiclass", ("a",), ("t",), "here", {}, own)
    with pytest.raises(ValueError, match="seed must be a whole number from 0"):
        data.split(seed)  # type: ignore[arg-type]
    assert len(data.split(np.int64(2)).test) == 2
