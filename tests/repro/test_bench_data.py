"""Made-up data of the benchmarks: sizes, shares and repeatability."""

import dataclasses
import operator

import numpy as np
import pytest
from scipy.sparse import issparse

import datasets
from repro.bench import shapes
from repro.bench.synthetic import KINDS, hog_classes, labelled_textures, projected_targets
from tests.repro.configs import compose_bench


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_seed_alone_decides_the_rows(kind: str) -> None:
    maker, task = KINDS[kind]
    X, y = maker(200, 72, 12, 5)
    again, labels = maker(200, 72, 12, 5)
    other, _ = maker(200, 72, 12, 6)
    as_array = operator.methodcaller("toarray") if issparse(X) else np.asarray
    np.testing.assert_array_equal(as_array(X), as_array(again))
    np.testing.assert_array_equal(y, labels)
    assert not np.array_equal(as_array(X), as_array(other))
    assert X.shape == (200, 72)
    assert X.dtype == np.float32
    assert y.shape == ((200,) if task == "multiclass" else (200, 12))


def test_hog_like_rows_are_normalised_by_blocks_of_36() -> None:
    X, y = hog_classes(3000, 324, 101, 0)
    norms = np.linalg.norm(X.reshape(3000, 9, 36), axis=2)
    np.testing.assert_allclose(norms, 1, atol=1e-4)
    assert X.min() >= 0
    counts = np.bincount(y, minlength=101) / 3000
    # Caltech101: 800 and 798 of 8,677 images in its largest categories, 31 in its smallest.
    np.testing.assert_allclose(counts[:2], 800 / 8677, atol=0.015)
    assert counts[100] < 0.01


def test_a_row_has_as_many_labels_as_in_nus_wide() -> None:
    _, y = labelled_textures(20_000, 128, 81, 0)
    assert set(np.unique(y)) == {0, 1}
    assert y.sum(axis=1).mean() == pytest.approx(1.9, abs=0.02)
    assert y.mean(axis=0).argmax() == 0


def test_targets_depend_on_the_features() -> None:
    """Without noise a target is a function of its row: equal rows have equal targets but for noise of a tenth."""
    X, y = projected_targets(4000, 8, 3, 0)
    design = np.column_stack([X, np.ones(len(X))])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert residual.std() < 0.8 * y.std()


def test_made_up_rows_are_marked_and_sized_as_configured() -> None:
    config = compose_bench("shape@dataset=nus_wide", "dataset.rows=300", "dataset.test_rows=100").dataset
    data = shapes.load(config)
    assert data.described["synthetic"]
    assert "seed 0" in data.described["source"]
    assert (data.X.shape, data.y.shape) == ((300, 128), (300, 81))
    assert (data.X_test.shape, data.y_test.shape) == ((100, 128), (100, 81))
    assert len(data.X_validation) == 0


def test_real_rows_are_the_data_sets_own() -> None:
    config = compose_bench("shape@dataset=digits").dataset
    data, digits = shapes.load(config), datasets.load("digits")
    split = digits.split(0)
    np.testing.assert_array_equal(data.X_test, digits.X[split.test])
    assert not data.described["synthetic"]
    assert data.described["sha256"] == dict(digits.sha256)
    assert (data.described["n_train"], data.described["n_test"]) == (config.rows, config.test_rows)


@pytest.mark.parametrize("name", ["mnist", "mnist_inpainting"])
def test_validation_rows_take_no_part_in_training(name: str, monkeypatch: pytest.MonkeyPatch, shared: object) -> None:
    monkeypatch.setenv("GBDTMO_DATA", f"{shared}/data")
    config = compose_bench(f"shape@dataset={name}").dataset
    data = shapes.load(config)
    assert (len(data.X), len(data.X_test), len(data.X_validation)) == (config.rows, config.test_rows, 10_000)
    assert (data.X.shape[1], data.n_outputs) == (config.features, config.outputs)


def test_a_data_set_for_timing_alone_counts_as_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    timing_only = dataclasses.replace(datasets.load("digits"), timing_only=True)
    monkeypatch.setattr(datasets, "load", lambda name: timing_only)
    assert shapes.load({"source": "digits", "synthetic": False}).described["synthetic"]
