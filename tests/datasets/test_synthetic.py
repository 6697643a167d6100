"""The synthetic sets, from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import datasets

SIZE = 20_000


def test_friedman1_of_a_seed_by_its_definition() -> None:
    """Seed 2 of NumPy's legacy generator, in the order of the authors' scripts: x, noise, test x, test noise."""
    data = datasets.load("friedman1")
    random = np.random.RandomState(2)
    for part in ("train", "test"):
        x = 2 * random.rand(10_000, 10) - 1
        f = np.array([np.sin(np.pi * a * b) + 2 * (c - 0.5) ** 2 + d + 0.5 * e for a, b, c, d, e in x[:, :5]])
        y = f[:, None] + 0.1 * random.randn(10_000, 5)
        rows = getattr(data.split(2), part)
        np.testing.assert_array_equal(data.X[rows], x.astype(np.float32))
        np.testing.assert_allclose(data.y[rows], y, rtol=1e-12)


def test_random_projection_of_a_seed_by_its_definition() -> None:
    data = datasets.load("random_projection")
    random = np.random.RandomState(4)
    w = 2 * random.rand(4, 8) - 1
    for part in ("train", "test"):
        x = 2 * random.rand(10_000, 4) - 1
        rows = getattr(data.split(4), part)
        np.testing.assert_array_equal(data.X[rows], x.astype(np.float32))
        np.testing.assert_allclose(data.y[rows], np.einsum("ij,jk->ik", x, w), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["friedman1", "random_projection"])
def test_each_seed_has_rows_of_its_own(name: str) -> None:
    data = datasets.load(name)
    assert data.n_seeds_default == 5
    for seed in range(5):
        split = data.split(seed)
        assert split.train.tolist() == list(range(seed * SIZE, seed * SIZE + 10_000))
        assert split.test.tolist() == list(range(seed * SIZE + 10_000, (seed + 1) * SIZE))
        assert split.fit.tolist() == split.train.tolist()[:8_000]
        assert split.validation.tolist() == split.train.tolist()[8_000:]
    with pytest.raises(ValueError, match="rows for the seeds 0 to 4 alone"):
        data.split(5)


def test_noise_of_friedman1_is_a_tenth_and_differs_by_output() -> None:
    y = datasets.load("friedman1").y
    differences = y[:, 1:] - y[:, :-1]
    assert differences.std(axis=0) == pytest.approx([0.1 * np.sqrt(2)] * 4, rel=0.01)
