"""The core against the equations done slowly in NumPy (tests/oracle) on random problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.problems import Problem, continuous_problem, exact_problem, factorial_problem
from tests.core.support import FloatArray, as_reported, fit_core, staged_raw
from tests.oracle import boosting

LOSSES = ["squared_error", "softmax", "sigmoid"]
NEAR_TIE = 1e-5  # relative; a decision closer than this may fall either way under rounding


def _oracle(problem: Problem, **changes: Any) -> boosting.Ensemble:
    return boosting.fit(problem.X, problem.y, loss=problem.loss, **{**problem.params, **changes})


def _assert_same_bits(problem: Problem, oracle: boosting.Ensemble, probe: FloatArray, **changes: Any) -> None:
    model = fit_core(problem.loss, problem.X, problem.y, **{**problem.params, **changes})
    for rows in (problem.X, probe):
        actual = np.array(staged_raw(model, rows))
        expected = np.array(as_reported(problem.loss, oracle.staged_raw(rows)))
        np.testing.assert_array_equal(actual, expected, err_msg=str(problem))
    n_leaves = [len(tree.leaves) for _, tree in oracle.trees]
    np.testing.assert_array_equal(model.n_leaves_, n_leaves, err_msg=str(problem))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("block", range(4))
def test_exact_gradients_give_exactly_the_same_tree(loss: str, block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        problem = exact_problem(seed, loss)
        oracle = _oracle(problem)
        _assert_same_bits(problem, oracle, problem.probe)


@pytest.mark.parametrize("loss", LOSSES)
def test_released_growth_on_exact_gradients(loss: str) -> None:
    for seed in range(1000, 1150):
        problem = exact_problem(seed, loss)
        problem.X, probe = np.nan_to_num(problem.X, nan=2.0), np.nan_to_num(problem.probe, nan=2.0)
        changes = {"growth": "released", "binning": ["quantile", "released"][seed % 2], "node_cache": 1 + seed % 4}
        oracle = _oracle(problem, **changes)
        _assert_same_bits(problem, oracle, probe, **changes)


def test_gradients_that_stay_exact_over_rounds() -> None:
    for seed in range(200):
        problem = factorial_problem(seed)
        oracle = _oracle(problem)
        _assert_same_bits(problem, oracle, problem.probe)


def test_exact_problems_are_full_of_ties() -> None:
    """Else the tests above would not show how ties are decided."""
    for loss in LOSSES:
        assert np.mean([_oracle(exact_problem(seed, loss)).trees[0][1].ties > 0 for seed in range(50)]) > 0.3


def _assert_close_before_a_near_tie(problem: Problem, **changes: Any) -> int:
    """Compare round by round up to the first near tie; the number of rounds compared."""
    oracle = _oracle(problem, **{name: value for name, value in changes.items() if name != "n_jobs"})
    close = oracle.margins() < NEAR_TIE
    rounds = int(close.argmax()) if close.any() else len(close)
    model = fit_core(problem.loss, problem.X, problem.y, **{**problem.params, **changes})
    tolerance = 1e-9 * max(1.0, float(np.abs(problem.y).max()))
    for rows in (problem.X, problem.probe):
        actual, expected = staged_raw(model, rows), as_reported(problem.loss, oracle.staged_raw(rows))
        for r in range(rounds):
            message = f"round {r + 1} of {problem}"
            np.testing.assert_allclose(actual[r], expected[r], rtol=0, atol=tolerance, err_msg=message)
    n_trees = sum(len(one_round) for one_round in oracle.rounds[:rounds])
    expected_leaves = [len(tree.leaves) for _, tree in oracle.trees[:n_trees]]
    np.testing.assert_array_equal(model.n_leaves_[:n_trees], expected_leaves, err_msg=str(problem))
    return rounds


@pytest.mark.parametrize("loss", LOSSES)
def test_continuous_data(loss: str) -> None:
    rounds = [_assert_close_before_a_near_tie(continuous_problem(seed, loss)) for seed in range(40)]
    assert np.mean(rounds) > 2  # of 4: most are before any near tie


@pytest.mark.parametrize("loss", LOSSES)
def test_released_growth_on_continuous_data(loss: str) -> None:
    rounds = []
    for seed in range(500, 520):
        problem = continuous_problem(seed, loss)
        problem.X, problem.probe = np.nan_to_num(problem.X), np.nan_to_num(problem.probe)
        cache = 1 + seed % 5
        rounds.append(_assert_close_before_a_near_tie(problem, growth="released", binning="released", node_cache=cache))
    assert np.mean(rounds) > 1  # a dropped node's rows keep the gradients of the round before: more near ties


EXACT_HESSIAN: dict[str, Any] = {"hessian": "exact", "reg_alpha": 0.0, "top_k": None, "tree_output": "multi"}


def test_exact_hessian_on_continuous_data() -> None:
    problems = [continuous_problem(seed, "softmax") for seed in range(1000, 1040)]
    rounds = [_assert_close_before_a_near_tie(problem, **EXACT_HESSIAN) for problem in problems]
    assert np.mean(rounds) > 2


def test_exact_hessian_without_penalty() -> None:
    """The matrix is singular then: Newton's step is the pseudo-inverse's."""
    problems = [continuous_problem(seed, "softmax") for seed in range(1100, 1120)]
    changes = {**EXACT_HESSIAN, "reg_lambda": 0.0, "learning_rate": 0.25, "min_samples_leaf": 8, "min_split_gain": 0.01}
    assert np.mean([_assert_close_before_a_near_tie(problem, **changes) for problem in problems]) > 2


def test_exact_hessian_of_many_classes() -> None:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 3)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X) @ rng.normal(size=(3, 33)) + rng.normal(size=(300, 33))).argmax(axis=1)
    params = {"n_outputs": 33, "n_estimators": 2, "max_depth": 3, "max_leaves": 5, "max_bins": 8, "learning_rate": 0.4}
    problem = Problem("33 classes", "softmax", X, y, X[:100], params)
    assert _assert_close_before_a_near_tie(problem, n_jobs=2, **EXACT_HESSIAN) == 2


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("loss", LOSSES)
def test_more_rows_and_outputs_than_a_cache_line_or_a_thread_takes(loss: str, d: int) -> None:
    rng = np.random.default_rng(d)
    X = np.round(rng.normal(size=(1200, 4)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    signal = np.nan_to_num(X) @ rng.normal(size=(4, d)) + rng.normal(size=(1200, d))
    y = signal.argmax(axis=1) if loss == "softmax" else (signal > 1) * 1 if loss == "sigmoid" else signal
    params = {"n_outputs": d, "n_estimators": 2, "max_depth": 4, "max_leaves": 10, "max_bins": 12, "learning_rate": 0.4}
    problem = Problem(f"rows, {d} outputs, {loss}", loss, X, y, X[:100], params)
    assert _assert_close_before_a_near_tie(problem, n_jobs=2) == 2


@pytest.mark.parametrize("tree_output", ["multi", "single"])
@pytest.mark.parametrize("loss", LOSSES)
def test_base_score_none_is_the_best_constant(loss: str, tree_output: str) -> None:
    problem = continuous_problem(7, loss)
    oracle = _oracle(problem, base_score=None)
    params = {**problem.params, "base_score": None, "tree_output": tree_output, "top_k": None}
    model = fit_core(loss, problem.X, problem.y, **params)
    np.testing.assert_allclose(model.base_score_, oracle.base_score, rtol=1e-13)
