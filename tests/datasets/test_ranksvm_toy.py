"""The toy problem of the ranking paper, from its definition."""

from __future__ import annotations

import numpy as np
import pytest

import datasets
from datasets import ranksvm_toy


def test_labels_of_the_four_corners_regions() -> None:
    """Below x2 = x1 label 1 alone; above it label 2 too where x1 + x2 > 1, else label 3."""
    points = np.array([[0.9, 0.1], [0.5, 0.2], [0.5, 0.9], [0.1, 0.5], [0.5, 0.5]])
    expected = [[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 0, 0]]
    assert ranksvm_toy.labels(points).tolist() == expected


@pytest.mark.parametrize("seed", [0, 7])
def test_points_of_a_seed_are_numpys(seed: int) -> None:
    data = datasets.load("ranksvm_toy")
    points = np.random.RandomState(seed).rand(50, 2).astype(np.float32)
    split = data.split(seed)
    np.testing.assert_array_equal(data.X[split.train], points)
    first, second = points.astype(float).T
    expected = np.stack([first >= 0, (second > first) & (first + second > 1), (second > first) & (first + second <= 1)])
    np.testing.assert_array_equal(data.y[split.train], expected.T)


def test_it_is_scored_on_its_training_rows() -> None:
    data = datasets.load("ranksvm_toy")
    assert data.n_seeds_default == 50
    split = data.split(3)
    assert split.resubstitution
    assert split.test.tolist() == split.train.tolist() == list(range(150, 200))
    assert split.fit.tolist() + split.validation.tolist() == split.train.tolist()
    assert len(split.validation) == 10


def test_every_seed_has_all_three_regions() -> None:
    """Else the problem would be another one."""
    data = datasets.load("ranksvm_toy")
    for seed in range(50):
        sets = {tuple(row) for row in data.y[data.split(seed).train].tolist()}
        assert sets == {(1, 0, 0), (1, 1, 0), (1, 0, 1)}
