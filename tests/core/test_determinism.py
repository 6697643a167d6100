"""Same input, same bits: any number of threads, repeated runs, another order of rows, a forked process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.support import FloatArray, fit_core, staged_raw

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "squared_error": ("squared_error", {}),
    "softmax": ("softmax", {}),
    "sigmoid": ("sigmoid", {"reg_alpha": 0.5}),
    "constant_hessian": ("softmax", {"hessian": "constant"}),
    "exact_hessian": ("softmax", {"hessian": "exact"}),
    "restricted": ("squared_error", {"top_k": 2}),
    "unrestricted": ("softmax", {"top_k": 2, "top_k_mode": "unrestricted"}),
    "budget": ("squared_error", {"max_leaves": 9, "min_samples_leaf": 30}),
    "single_regression": ("squared_error", {"tree_output": "single"}),
    "single_softmax": ("softmax", {"tree_output": "single"}),
    "released": ("squared_error", {"growth": "released", "binning": "released", "node_cache": 4}),
}
N, D = 6000, 5  # enough rows for several threads to be used


def _data(loss: str, *, missing: bool) -> tuple[FloatArray, Any]:
    """Columns of few and of many distinct values, one of them a copy of another: exact ties at every node."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 8))
    X[:, 1] = rng.integers(0, 4, size=N)
    X[:, 2] = X[:, 0]
    X[:, 3] = -X[:, 0]
    scores = X @ rng.normal(size=(8, D)) + np.sin(4 * X[:, [0]]) + rng.normal(size=(N, D))
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    if loss == "softmax":
        return X, scores.argmax(axis=1)
    return X, (scores > 0).astype(int) if loss == "sigmoid" else scores


def _fit(name: str, n_jobs: int | None, order: Any = slice(None), **changes: Any) -> tuple[Any, list[FloatArray]]:
    loss, params = SETTINGS[name]
    X, y = _data(loss, missing=params.get("growth") != "released")
    defaults = {"n_estimators": 5, "learning_rate": 0.3, "max_depth": 5, "max_bins": 40, "min_samples_leaf": 3}
    model = fit_core(loss, X[order], y[order], n_jobs=n_jobs, **{**defaults, **params, **changes})
    return model, staged_raw(model, X)


@pytest.mark.parametrize("name", SETTINGS)
def test_threads_and_repeated_runs_give_the_same_bits(name: str) -> None:
    model, expected = _fit(name, n_jobs=1)
    for n_jobs in (1, 2, 3, -1, None):
        again, stages = _fit(name, n_jobs=n_jobs)
        np.testing.assert_array_equal(np.array(stages).view(np.int64), np.array(expected).view(np.int64))
        np.testing.assert_array_equal(again.n_leaves_, model.n_leaves_)


@pytest.mark.parametrize("base_score", [None, 0.0])
@pytest.mark.parametrize("name", SETTINGS)
def test_order_of_rows_does_not_matter(name: str, base_score: float | None) -> None:
    model, expected = _fit(name, n_jobs=2, base_score=base_score)
    order = np.random.default_rng(11).permutation(N)
    permuted, stages = _fit(name, n_jobs=2, order=order, base_score=base_score)
    np.testing.assert_array_equal(permuted.n_leaves_, model.n_leaves_)
    np.testing.assert_allclose(stages, expected, rtol=0, atol=1e-12)


def test_validation_scores_do_not_depend_on_threads() -> None:
    X, y = _data("softmax", missing=True)
    histories = []
    for n_jobs in (1, 2, 3):
        model = fit_core(
            "softmax",
            X[:2000],
            y[:2000],
            eval_set=(X[2000:], y[2000:]),
            n_jobs=n_jobs,
            n_estimators=6,
            learning_rate=0.3,
        )
        histories.append(model.evals_result_["validation"]["log_loss"])
    np.testing.assert_array_equal(histories[1], histories[0])
    np.testing.assert_array_equal(histories[2], histories[0])


@pytest.mark.parametrize("name", ["softmax", "restricted", "budget", "single_regression"])
def test_memory_for_histograms_changes_nothing(name: str) -> None:
    _, expected = _fit(name, n_jobs=1, histogram_pool_mb=1024)
    for megabytes in (1e-9, 0.05, 0.5):
        _, stages = _fit(name, n_jobs=2, histogram_pool_mb=megabytes)
        np.testing.assert_array_equal(stages, expected)


@pytest.mark.parametrize("exponent", [-200, -30, 30, 200])
@pytest.mark.parametrize("name", ["squared_error", "restricted", "single_regression", "released"])
def test_scaling_targets_by_a_power_of_two_scales_predictions(name: str, exponent: int) -> None:
    """Nothing depends on the unit of y: no fixed epsilon, no lost digits."""
    loss, params = SETTINGS[name]
    X, y = _data(loss, missing=False)
    settings = {"n_estimators": 3, "max_depth": 4, "max_bins": 20, "base_score": 0.0, **params}
    expected = np.array(staged_raw(fit_core(loss, X, y, **settings), X))
    scaled = np.array(staged_raw(fit_core(loss, X, np.ldexp(y, exponent), **settings), X))
    np.testing.assert_array_equal(scaled, np.ldexp(expected, exponent))


def test_order_of_outputs_does_not_matter() -> None:
    X, y = _data("squared_error", missing=True)
    order = np.array([3, 1, 4, 0, 2])
    settings: dict[str, Any] = {"n_estimators": 4, "max_depth": 4, "max_bins": 20}
    expected = fit_core("squared_error", X, y, **settings).predict(X)
    np.testing.assert_allclose(
        fit_core("squared_error", X, y[:, order], **settings).predict(X), expected[:, order], atol=1e-12
    )


FORK = """
import os, sys
import numpy as np
from gbdtmo_core import GBDTMORegressor

rng = np.random.default_rng(0)
X, y = rng.normal(size=(4000, 6)), rng.normal(size=(4000, 3))
fit = lambda: GBDTMORegressor(n_estimators=3, n_jobs=2).fit(X, y).predict(X)
expected = fit()
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(fit(), expected) else 3)
_, status = os.waitpid(child, 0)
assert np.array_equal(fit(), expected)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_forked_process_can_fit_after_its_parent_used_threads(project_root: Path) -> None:
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], cwd=project_root, timeout=120, check=False)
    assert run.returncode == 0
