"""The driver of the authors' program: its bins by their rule, and the program itself where a compiled copy is named."""

import os

import numpy as np
import pytest

import datasets
from repro.models.gbdt_mo import GBDTMO
from repro.models.released_library import VARIABLE, ReleasedLibrary, released_edges
from tests.oracle import binning

SETTINGS = {
    "learning_rate": 0.3,
    "max_depth": 4,
    "max_leaves": 12,
    "max_bins": 8,
    "min_samples_leaf": 4,
    "min_split_gain": 1e-3,
    "reg_lambda": 1.0,
}


@pytest.mark.parametrize("max_bins", [2, 5, 32])
@pytest.mark.parametrize(
    "values", [[1.5], [0, 1], [0, 1, 2, 3], list(range(50)), [0] * 70 + list(range(30)), list(range(30)) + [29] * 90]
)
def test_edges_are_those_of_the_rule_stated_step_by_step(values: list[float], max_bins: int) -> None:
    column = np.array(values, dtype=np.float64)
    np.testing.assert_array_equal(released_edges(column, max_bins), binning.released_edges(column, max_bins))


def test_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ReleasedLibrary(**SETTINGS, node_cache=16)
    with pytest.raises(RuntimeError, match="not fitted"):
        model.predict_scores(np.zeros((2, 2)))
    for value in ("", "no/such/file.so"):
        monkeypatch.setenv(VARIABLE, value)
        with pytest.raises(FileNotFoundError, match=f"{VARIABLE} must name"):
            model.train_rounds(
                np.zeros((9, 2)), np.zeros(9), task="multiclass", n_outputs=2, n_rounds=1, seed=0, n_jobs=1
            )


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"no compiled copy: {VARIABLE} is not set")
@pytest.mark.parametrize(("name", "task"), [("digits", "multiclass"), ("digits_inpainting", "regression")])
def test_grows_the_trees_that_our_released_mode_grows(name: str, task: str) -> None:
    data = datasets.load(name)
    split = data.split(0)
    X, y, X_test = data.X[split.train], data.y[split.train], data.X[split.test]
    theirs = ReleasedLibrary(**SETTINGS, node_cache=16)
    times = theirs.train_rounds(X, y, task=task, n_outputs=data.n_outputs, n_rounds=5, seed=0, n_jobs=1)
    ours = GBDTMO(**SETTINGS, growth="released", binning="released", base_score=0.0, n_estimators=5)
    ours.train_rounds(X, y, task=task, n_outputs=data.n_outputs, n_rounds=5, seed=0, n_jobs=1)
    assert len(times.round_seconds) == 5
    np.testing.assert_allclose(theirs.predict_scores(X_test), ours.predict_scores(X_test), rtol=0, atol=1e-9)
