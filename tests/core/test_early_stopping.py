"""Early stopping and the record of the validation metric, recomputed from staged predictions with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor
from tests.core.support import FloatArray, as_reported, fit_core, staged_raw
from tests.oracle import boosting
from tests.oracle.losses import LARGER_IS_BETTER, evaluate

CASES = [
    ("squared_error", None, "mse"),
    ("squared_error", "rmse", "rmse"),
    ("squared_error", "mae", "mae"),
    ("softmax", None, "log_loss"),
    ("softmax", "accuracy", "accuracy"),
    ("sigmoid", None, "log_loss"),
    ("sigmoid", "accuracy", "accuracy"),
]
PATIENCE = 4
FAST: dict[str, Any] = {"n_estimators": 80, "learning_rate": 0.5, "max_depth": 3, "min_samples_leaf": 5}


def _data(loss: str, seed: int = 0) -> tuple[FloatArray, Any, FloatArray, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4))
    scores = X @ rng.normal(size=(4, 3)) * [2.0, 0.5, 0.1] + rng.normal(size=(300, 3))
    y: Any = scores.argmax(axis=1) if loss == "softmax" else scores if loss == "squared_error" else (scores > 0) * 1
    return X[:200], y[:200], X[200:], y[200:]


def _best_round(history: FloatArray, metric: str) -> tuple[int, int]:
    """(first best round, round after which training ends), from 1, by the rule of patience."""
    costs = -history if metric in LARGER_IS_BETTER else history
    best = 0
    for r in range(len(costs)):
        if costs[r] < costs[best]:
            best = r
        if r - best >= PATIENCE:
            return best + 1, r + 1
    return best + 1, len(costs)


# Single-output regression, where each output stops on its own, has a test apart.
JOINT = [(*case, how) for case in CASES for how in ("multi", "single") if (case[0], how) != ("squared_error", "single")]


@pytest.mark.parametrize(("loss", "eval_metric", "name", "tree_output"), JOINT)
def test_metric_and_best_round(loss: str, eval_metric: str | None, name: str, tree_output: str) -> None:
    X, y, Xv, yv = _data(loss)
    params = {**FAST, "eval_metric": eval_metric, "tree_output": tree_output}
    endless = fit_core(loss, X, y, eval_set=(Xv, yv), **params)
    target = boosting.as_target(loss, yv, 3)
    expected = np.array([evaluate(name, loss, raw, target) for raw in staged_raw(endless, Xv)])
    assert list(endless.evals_result_["validation"]) == [name]
    np.testing.assert_allclose(endless.evals_result_["validation"][name], expected, rtol=1e-12)
    assert endless.best_iteration_ == endless.n_iter_ == 80

    best, end = _best_round(expected, name)
    assert end < 80, "the problem should stop early"
    stopped = fit_core(loss, X, y, eval_set=(Xv, yv), early_stopping_rounds=PATIENCE, **params)
    assert (stopped.best_iteration_, stopped.n_iter_) == (best, end)
    np.testing.assert_allclose(stopped.evals_result_["validation"][name], expected[:end], rtol=1e-12)
    np.testing.assert_array_equal(staged_raw(stopped, Xv)[best - 1], staged_raw(endless, Xv)[best - 1])
    last = stopped.predict(Xv) if loss == "squared_error" else stopped.decision_function(Xv)
    np.testing.assert_array_equal(last, staged_raw(endless, Xv)[best - 1])


@pytest.mark.parametrize("metric", [None, "rmse", "mae"])
def test_single_output_regression_stops_each_output(metric: str | None) -> None:
    X, y, Xv, yv = _data("squared_error")
    params = {**FAST, "eval_metric": metric, "early_stopping_rounds": PATIENCE, "base_score": 0.0}
    model = GBDTMORegressor(tree_output="single", **params).fit(X, y, eval_set=(Xv, yv))
    alone = [GBDTMORegressor(**params).fit(X, y[:, j], eval_set=(Xv, yv[:, j])) for j in range(3)]
    assert model.best_iteration_.shape == (3,)
    np.testing.assert_array_equal(model.best_iteration_, [one.best_iteration_ for one in alone])
    assert len(set(model.best_iteration_)) > 1, "the outputs should stop at different rounds"
    assert model.n_iter_ == max(one.n_iter_ for one in alone)
    np.testing.assert_array_equal(model.predict(Xv), np.column_stack([one.predict(Xv) for one in alone]))
    history = model.evals_result_["validation"][metric or "mse"]
    assert history.shape == (model.n_iter_, 3)
    for j, one in enumerate(alone):
        np.testing.assert_array_equal(history[: one.n_iter_, j], one.evals_result_["validation"][metric or "mse"])
        assert np.all(np.isnan(history[one.n_iter_ :, j]))
    for j in range(3):
        assert np.sum(model.tree_output_ == j) == alone[j].n_iter_


def test_single_output_regression_agrees_with_the_oracle() -> None:
    X, y, Xv, yv = _data("squared_error", seed=1)
    params = {**FAST, "n_estimators": 8, "early_stopping_rounds": 2, "max_bins": 16}
    model = GBDTMORegressor(tree_output="single", **params).fit(X, y, eval_set=(Xv, yv))
    oracles = boosting.fit_each_output(X, y, eval_set=(Xv, yv), **params)
    np.testing.assert_array_equal(model.best_iteration_, [oracle.best_iteration for oracle in oracles])
    expected = [oracle.staged_raw(Xv)[int(oracle.best_iteration) - 1] for oracle in oracles]
    np.testing.assert_allclose(model.predict(Xv), np.column_stack(expected), atol=1e-9)


def test_early_stopping_agrees_with_the_oracle() -> None:
    X, y, Xv, yv = _data("softmax", seed=2)
    params = {**FAST, "n_estimators": 15, "early_stopping_rounds": 3, "max_bins": 16}
    model = GBDTMOClassifier(**params).fit(X, y, eval_set=(Xv, yv))
    oracle = boosting.fit(X, y, loss="softmax", n_outputs=3, eval_set=(Xv, yv), **params)
    assert (model.best_iteration_, model.n_iter_) == (oracle.best_iteration, len(oracle.rounds))
    np.testing.assert_allclose(model.evals_result_["validation"]["log_loss"], oracle.history, rtol=1e-9)
    np.testing.assert_allclose(
        staged_raw(model, Xv)[-1], as_reported("softmax", oracle.staged_raw(Xv))[oracle.best_iteration - 1]
    )


def test_a_tie_keeps_the_earlier_round() -> None:
    """Accuracy on four rows moves in quarters: rounds of equal score follow each other."""
    X, y, Xv, yv = _data("softmax")
    model = GBDTMOClassifier(**FAST, eval_metric="accuracy", early_stopping_rounds=PATIENCE).fit(
        X, y, eval_set=(Xv[:4], yv[:4])
    )
    history = model.evals_result_["validation"]["accuracy"]
    assert np.sum(history == history.max()) > 1
    assert model.best_iteration_ == 1 + int(history.argmax())


def test_without_validation_rows_there_is_no_record() -> None:
    X, y, _, _ = _data("squared_error")
    model = GBDTMORegressor(**{**FAST, "n_estimators": 3}).fit(X, y)
    assert model.evals_result_ == {}
    assert model.best_iteration_ == model.n_iter_ == 3
    assert len(list(model.staged_predict(X))) == 3


def test_validation_rows_alone_change_nothing() -> None:
    X, y, Xv, yv = _data("sigmoid")
    plain = GBDTMOClassifier(**{**FAST, "n_estimators": 5}).fit(X, y)
    watched = GBDTMOClassifier(**{**FAST, "n_estimators": 5}).fit(X, y, eval_set=(Xv, yv))
    np.testing.assert_array_equal(watched.predict_proba(Xv), plain.predict_proba(Xv))


def test_released_growth_takes_an_equal_accuracy_for_an_improvement() -> None:
    """The released program compares (score, round) pairs; a smaller error must still be smaller."""
    X, y, Xv, yv = _data("softmax", seed=2)
    released = {**FAST, "growth": "released", "max_leaves": 6}
    endless = GBDTMOClassifier(**released, eval_metric="accuracy").fit(X, y, eval_set=(Xv, yv))
    curve = endless.evals_result_["validation"]["accuracy"]
    best = 0
    for r in range(len(curve)):
        best = r if curve[r] >= curve[best] else best
        if r - best >= PATIENCE:
            break
    assert best > curve[: r + 1].argmax(), "the curve needs a tie with its best value to tell the rules apart"
    model = GBDTMOClassifier(**released, eval_metric="accuracy", early_stopping_rounds=PATIENCE)
    model.fit(X, y, eval_set=(Xv, yv))
    assert (model.best_iteration_, model.n_iter_) == (best + 1, r + 1)
