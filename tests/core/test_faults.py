"""Faults that were measured in the authors' released program; each is a test of ours.

Not here: wrong bits by thread order (test_determinism), a lost last tree (test_persistence), missing values and classes
without rows (test_input), sizes beyond 32 bits inside the C core (tests/c).
"""

from __future__ import annotations

import inspect
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor
from tests.core.support import staged_raw

RNG = np.random.default_rng(21)
X = RNG.normal(size=(120, 3))
Y = RNG.normal(size=(120, 2))
LABELS = RNG.integers(0, 4, size=120)


def test_numba_is_not_needed(project_root: Path) -> None:
    code = "import sys; sys.modules['numba'] = None; import gbdtmo_core"
    subprocess.run([sys.executable, "-c", code], cwd=project_root, check=True, timeout=120)


def test_single_output_classes_predict() -> None:
    model = GBDTMOClassifier(n_estimators=6, tree_output="single", min_samples_leaf=5).fit(X, LABELS)
    assert len(model.n_leaves_) == 6 * 4
    raw = staged_raw(model, X)
    np.testing.assert_array_equal(model.decision_function(X), raw[-1])
    rest = np.concatenate([model.decision_function(X[:1]), model.decision_function(X[1:])])
    np.testing.assert_array_equal(rest, raw[-1])  # whatever the number of rows


def test_a_dropped_left_child_of_the_root_predicts_zero() -> None:
    """One row left of the best split, a minimum of five: the released program walks in a circle."""
    x = np.concatenate([[0.0], np.ones(20)])[:, np.newaxis]
    y = np.concatenate([[100.0], np.zeros(20)])
    settings: dict[str, Any] = {"n_estimators": 3, "min_samples_leaf": 5, "base_score": 0.0}
    model = GBDTMORegressor(growth="released", **settings).fit(x, y)
    assert model.predict(x[:1]) == 0
    np.testing.assert_allclose(model.unassigned_fraction_, 1 / 21)
    complete = GBDTMORegressor(**settings).fit(x, y)
    assert complete.predict(x[:1]) > 0
    assert np.all(complete.unassigned_fraction_ == 0)


@pytest.mark.parametrize("growth", ["complete", "released"])
def test_infinite_features_are_refused(growth: str) -> None:
    for bad in (np.inf, -np.inf):
        x = X.copy()
        x[3, 1] = bad
        with pytest.raises(ValueError, match=r"(?i)infinity"):
            GBDTMORegressor(growth=growth).fit(x, Y)
        with pytest.raises(ValueError, match=r"(?i)infinity"):
            GBDTMORegressor(growth=growth).fit(X, Y).predict(x)


@pytest.mark.parametrize("growth", ["complete", "released"])
def test_one_row(growth: str) -> None:
    model = GBDTMORegressor(n_estimators=2, growth=growth, min_samples_leaf=1).fit(X[:1], Y[:1])
    np.testing.assert_allclose(model.predict(X[:1]), Y[:1], atol=1e-12)


@pytest.mark.parametrize("binning", ["quantile", "released"])
@pytest.mark.parametrize("max_bins", [1, 2])
def test_the_fewest_bins(binning: str, max_bins: int) -> None:
    model = GBDTMORegressor(binning=binning, max_bins=max_bins, n_estimators=2)
    if max_bins == 1:
        with pytest.raises(ValueError, match="max_bins"):
            model.fit(X, Y)
    else:
        assert np.all(np.isfinite(model.fit(X, Y).predict(X)))


def test_a_label_beyond_the_outputs_is_refused() -> None:
    with pytest.raises(ValueError, match="classes"):
        GBDTMOClassifier().fit(X, LABELS, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"(?i)classes|label"):
        GBDTMOClassifier().fit(X, LABELS, classes=[0, 1, 2, 3], eval_set=(X, LABELS + 1))


TOO_LARGE = """
import numpy as np
from gbdtmo_core import GBDTMORegressor
n, d = 2**19 + 1, 2**12  # n * d is beyond 2**31
y = np.broadcast_to(np.zeros((1, d), dtype=np.float32), (n, d))
try:
    GBDTMORegressor(n_estimators=1).fit(np.zeros((n, 1), dtype=np.float32), y)
except MemoryError as error:
    print("refused:", error)
"""


def test_more_cells_than_32_bits_count_end_in_an_exception_at_worst(project_root: Path) -> None:
    """With 4 GB of address space the targets do not fit: an exception, no crash."""

    def limit_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))

    run = subprocess.run(
        [sys.executable, "-c", TOO_LARGE],
        cwd=project_root,
        preexec_fn=limit_memory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("refused:")


def test_targets_shorter_than_the_rows_are_refused() -> None:
    for model, y in [(GBDTMORegressor(), Y), (GBDTMOClassifier(), LABELS), (GBDTMOClassifier(), (Y > 0).astype(int))]:
        with pytest.raises(ValueError, match=r"(?i)inconsistent"):
            model.fit(X, y[:-1])


@pytest.mark.parametrize("growth", ["complete", "released"])
def test_constant_features_predict_the_leaf_of_all_rows(growth: str) -> None:
    """The released program predicts 0; the only leaf is a leaf like any other."""
    model = GBDTMORegressor(n_estimators=200, learning_rate=0.5, base_score=0.0, growth=growth)
    predictions = model.fit(np.ones((120, 3)), Y).predict(np.ones((1, 3)))
    np.testing.assert_allclose(predictions[0], Y.mean(axis=0), atol=1e-9)
    assert np.all(model.unassigned_fraction_ == 0)


def test_there_is_no_seed_that_does_nothing() -> None:
    for estimator in (GBDTMORegressor, GBDTMOClassifier):
        names = set(inspect.signature(estimator).parameters)
        assert not names & {"seed", "random_state"}


def test_bounds_leave_no_row_behind() -> None:
    """Leaf budget, minimum of samples and node cache: every row gets a leaf of every tree all the same."""
    bounds: list[dict[str, Any]] = [{"max_leaves": 5}, {"min_samples_leaf": 30}, {"node_cache": 1}]
    for bound in bounds:
        settings = {"n_estimators": 4, "max_depth": 6, "min_samples_leaf": 1, "base_score": 0.0, **bound}
        complete = GBDTMORegressor(**settings).fit(X, Y)
        assert np.all(complete.unassigned_fraction_ == 0)
        assert np.all(complete.predict(X) != 0)
        released = GBDTMORegressor(growth="released", **settings).fit(X, Y)
        assert np.all(released.unassigned_fraction_ > 0)
        first_errors = [np.mean((next(model.staged_predict(X)) - Y) ** 2) for model in (complete, released)]
        assert first_errors[0] < first_errors[1]
