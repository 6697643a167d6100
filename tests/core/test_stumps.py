"""AdaBoost.MH against its equations in plain NumPy, its invariants, and same input, same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gbdtmo_core import BoosTexterClassifier
from tests.core.support import FloatArray
from tests.oracle import stumps as oracle

Problem = tuple[FloatArray, Any]


def _random(n: int, m: int, q: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    scores = X @ rng.normal(size=(m, q)) + rng.normal(size=(n, q))
    return X, (scores > rng.normal(size=q)).astype(np.uint8)


def _coarse(n: int, m: int, q: int, seed: int) -> Problem:
    """Few distinct values, a constant column, a copy of a column and its mirror image: exact ties every round."""
    X, y = _random(n, m, q, seed)
    X = np.round(X)
    return np.column_stack([np.full(n, 3.0), X, X[:, 0], -X[:, 0]]), y


def _extreme(n: int, m: int, q: int, seed: int) -> Problem:
    """Labels that never, always or jointly occur, empty and full sets, equal rows with other sets, rows of zeros."""
    X, y = _random(n, m, q, seed)
    y[:, 0], y[:, 1], y[:, 3] = 0, 1, y[:, 2]
    y[:3], y[3:6] = 0, 1
    X[10:20], X[20:25] = X[30:40], 0
    return X, y


PROBLEMS: dict[str, Callable[[int, int, int, int], Problem]] = {
    "random": _random,
    "coarse": _coarse,
    "extreme": _extreme,
}


def _fit(X: Any, y: Any, **params: Any) -> BoosTexterClassifier:
    weight = params.pop("sample_weight", None)
    return BoosTexterClassifier(**params).fit(X, y, sample_weight=weight)


def _check_same(model: BoosTexterClassifier, expected: list[oracle.Stump]) -> None:
    assert model.feature_.tolist() == [stump.feature for stump in expected]
    np.testing.assert_allclose(model.threshold_, [stump.threshold for stump in expected], rtol=0, atol=1e-15)
    np.testing.assert_allclose(model.leaf_scores_, [stump.leaf_scores for stump in expected], rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.normalizers_, [stump.normalizer for stump in expected], rtol=1e-11)


@pytest.mark.parametrize("shape", [(40, 3, 2), (70, 4, 9), (50, 2, 17)])
@pytest.mark.parametrize("kind", ["random", "coarse"])
def test_stumps_are_those_of_the_equations(kind: str, shape: tuple[int, int, int]) -> None:
    X, y = PROBLEMS[kind](*shape, 3)
    _check_same(_fit(X, y, n_estimators=6), oracle.boost(X, y, 6, 1 / y.size))


def test_stumps_where_labels_are_extreme() -> None:
    X, y = _extreme(60, 3, 5, 8)
    _check_same(_fit(X, y, n_estimators=8), oracle.boost(X, y, 8, 1 / y.size))


def test_stumps_with_weights_and_another_smoothing() -> None:
    X, y = _random(50, 3, 4, 5)
    weight = np.random.default_rng(1).uniform(0.1, 3, size=50)
    model = _fit(X, y, n_estimators=5, smoothing=0.02, sample_weight=weight)
    _check_same(model, oracle.boost(X, y, 5, 0.02, weight))
    assert model.smoothing_ == 0.02
    default = _fit(X, y, n_estimators=5, sample_weight=weight)
    _check_same(default, oracle.boost(X, y, 5, 1 / (4 * weight.sum()), weight))


def test_scores_add_up_over_rounds() -> None:
    X, y = _random(80, 3, 4, 6)
    model = _fit(X, y, n_estimators=12)
    sides = (X[:, model.feature_] > model.threshold_).astype(int)  # (n, rounds)
    gained = model.leaf_scores_[np.arange(12), sides]
    for stage, expected in zip(
        model.staged_decision_function(X), np.cumsum(gained, axis=1).swapaxes(0, 1), strict=True
    ):
        np.testing.assert_array_equal(stage, expected)
    np.testing.assert_array_equal(model.decision_function(X), stage)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_normalizers_bound_the_hamming_loss(kind: str) -> None:
    """Schapire & Singer 1999, theorem 1 on pairs: exponential loss = product of normalisers >= Hamming loss."""
    X, y = PROBLEMS[kind](150, 4, 5, 9)
    model = _fit(X, y, n_estimators=40)
    bounds = np.cumprod(model.normalizers_)
    assert np.all(model.normalizers_ <= 1)
    for scores, bound in zip(model.staged_decision_function(X), bounds, strict=True):
        assert np.exp(-(2.0 * y - 1) * scores).mean() == pytest.approx(bound, rel=1e-10)
        assert np.mean((scores > 0) != y) <= bound
    assert bounds[-1] < bounds[0]


# 1,200 rows are more than what a second thread costs, so that threads are used.
@pytest.mark.parametrize("kind", PROBLEMS)
def test_threads_do_not_change_a_bit(kind: str) -> None:
    X, y = PROBLEMS[kind](1200, 60, 9, 4)
    expected = _fit(X, y, n_estimators=15, n_jobs=1)
    for n_jobs in (2, 3):
        model = _fit(X, y, n_estimators=15, n_jobs=n_jobs)
        for name in ("feature_", "threshold_", "leaf_scores_", "normalizers_"):
            np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
        np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("kind", PROBLEMS)
def test_order_of_rows_does_not_change_a_bit(kind: str) -> None:
    X, y = PROBLEMS[kind](300, 5, 6, 2)
    order = np.random.default_rng(0).permutation(len(X))
    expected, model = _fit(X, y, n_estimators=60), _fit(X[order], y[order], n_estimators=60)
    for name in ("feature_", "threshold_", "leaf_scores_", "normalizers_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))


def test_many_rounds_on_separable_rows_stay_finite() -> None:
    """Once every pair is right, its weights would vanish in products; all still count, and the loss goes on falling."""
    X = np.arange(8.0)[:, None]
    y = np.column_stack([X[:, 0] > 3, X[:, 0] < 2, np.zeros(8), np.ones(8)]).astype(int)
    model = _fit(X, y, n_estimators=5000, smoothing=1e-6)
    assert np.all(np.isfinite(model.leaf_scores_))
    assert np.all((model.normalizers_ > 0) & (model.normalizers_ <= 1))
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores > 0, y == 1)
    assert np.abs(scores).min() > 100


def test_constant_columns_leave_one_score_for_all_rows() -> None:
    """By hand: a share p of the rows has the label, c = 1/2 ln((p / Q + eps) / ((1 - p) / Q + eps))."""
    y = np.array([[1, 0], [1, 0], [0, 0], [1, 1]])
    model = _fit(np.ones((4, 2)), y, n_estimators=3)
    assert model.feature_.tolist() == [-1, -1, -1]
    assert np.all(np.isinf(model.threshold_))
    expected = np.log([(3 / 8 + 1 / 8) / (1 / 8 + 1 / 8), (1 / 8 + 1 / 8) / (3 / 8 + 1 / 8)]) / 2
    np.testing.assert_allclose(model.leaf_scores_[0], [expected, expected], atol=1e-15)
    scores = model.decision_function([[1.0, 1.0], [1e300, -1e300]])
    np.testing.assert_array_equal(scores, np.repeat(scores[:1], 2, axis=0))


def test_a_column_of_two_neighbouring_numbers_is_split_between_them() -> None:
    X = np.array([[1.0], [np.nextafter(1, 2)], [-np.finfo(float).max], [np.finfo(float).max]])
    y = np.array([[0, 1], [1, 0], [0, 1], [1, 0]])
    model = _fit(X, y, n_estimators=1)
    assert model.threshold_[0] == 1.0
    np.testing.assert_array_equal(model.predict(X), y)


def test_equal_stumps_go_to_the_lowest_feature_then_the_lowest_threshold() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    y = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])  # below 0.5 and above 2.5 part them equally well
    for columns, feature, threshold in [((x, -x), 0, 0.5), ((-x, x), 0, -2.5), ((0 * x, x, x), 1, 0.5)]:
        model = _fit(np.column_stack(columns), y, n_estimators=1)
        assert (model.feature_[0], model.threshold_[0]) == (feature, threshold)


def test_rescaled_weights_change_the_smoothing_alone() -> None:
    X, y = _random(60, 3, 3, 1)
    expected = _fit(X, y, n_estimators=10, smoothing=0.01)
    for factor in (1e-200, 3.0, 1e200):
        model = _fit(X, y, n_estimators=10, smoothing=0.01, sample_weight=np.full(60, factor))
        np.testing.assert_array_equal(model.feature_, expected.feature_)
        np.testing.assert_allclose(model.leaf_scores_, expected.leaf_scores_, atol=1e-11)


def test_weights_count_as_repetitions() -> None:
    X, y = _random(60, 3, 3, 7)
    weight = np.random.default_rng(2).integers(0, 4, size=60)
    repeated = _fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0), n_estimators=20)
    model = _fit(X, y, n_estimators=20, sample_weight=weight)
    np.testing.assert_array_equal(model.feature_, repeated.feature_)
    np.testing.assert_array_equal(model.threshold_, repeated.threshold_)
    np.testing.assert_allclose(model.leaf_scores_, repeated.leaf_scores_, atol=1e-11)
