"""The authors' released program, as recorded in golden files, is reproduced: by the core and by the oracle.

Required are 1e-4 after every round.  Leaf values are sums in double precision on both sides, so once every split is the
same the difference is rounding alone; the second bound says so.
"""

import functools
from pathlib import Path

import numpy as np
import pytest

from tests.core.support import NO_GOLDEN, FloatArray, as_reported, fit_core, golden_files, read_golden, staged_raw
from tests.oracle import boosting

if not golden_files():
    pytest.skip(NO_GOLDEN, allow_module_level=True)

POLICY_FILES = [path for path in golden_files() if path.name.startswith("authors_policy")]

REQUIRED = 1e-4
ROUNDING = 1e-10


def _held(stages: list[FloatArray], predictions: FloatArray) -> FloatArray:
    """The stages a golden file holds: all, or the last."""
    return np.array(stages) if predictions.ndim == 3 else stages[-1]


@pytest.mark.parametrize("path", golden_files(), ids=lambda path: path.stem)
def test_core_reproduces(path: Path) -> None:
    loss, X, y, predictions, params = read_golden(path)
    stages = predictions if predictions.ndim == 3 else [predictions]
    expected = np.array(as_reported(loss, stages))
    actual = np.array(staged_raw(fit_core(loss, X, y, **params), X))[-len(expected) :]
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=REQUIRED)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=ROUNDING)


@functools.cache
def _oracle(path: Path) -> boosting.Ensemble:
    loss, X, y, _, params = read_golden(path)
    return boosting.fit(X, y, loss=loss, **params)


@pytest.mark.parametrize("path", golden_files(), ids=lambda path: path.stem)
def test_oracle_reproduces(path: Path) -> None:
    predictions = read_golden(path)[3]
    np.testing.assert_allclose(_held(_oracle(path).staged, predictions), predictions, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("path", POLICY_FILES, ids=lambda path: path.stem)
def test_unassigned_rows_are_those_the_released_program_drops(path: Path) -> None:
    loss, X, y, predictions, params = read_golden(path)
    model = fit_core(loss, X, y, **params)
    np.testing.assert_allclose(model.unassigned_fraction_, _oracle(path).unassigned_fraction(), atol=1e-12)
    never_reached = np.all(predictions == 0, axis=1).mean()
    assert model.unassigned_fraction_.min() >= never_reached > 0


@pytest.mark.parametrize("path", POLICY_FILES, ids=lambda path: path.stem)
def test_complete_growth_reaches_every_row_of_the_same_data(path: Path) -> None:
    loss, X, y, predictions, params = read_golden(path)
    model = fit_core(loss, X, y, **{**params, "growth": "complete"})
    assert np.all(model.unassigned_fraction_ == 0)
    dropped = np.all(predictions == 0, axis=1)
    assert np.all(np.any(staged_raw(model, X)[0][dropped] != 0, axis=1))
