"""The step from scores to label sets, against the paper's definition done slowly."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from gbdtmo_core._label_sets import best_labels, best_thresholds, fit_size_rule, fit_threshold_rule
from tests.oracle import label_sets as oracle
from tests.oracle.binning import FloatArray, IntArray


def _problem(seed: int, *, n: int = 200, n_labels: int = 5, values: int | None = None) -> tuple[FloatArray, IntArray]:
    """Random scores, of few distinct values if asked for, and label sets with empty and full ones."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(n, n_labels))
    if values is not None:
        scores = random.integers(0, values, (n, n_labels)).astype(np.float64)
    indicator = (random.random((n, n_labels)) < random.random((n, 1))).astype(np.uint8)
    indicator[0], indicator[1] = 0, 1
    return scores, indicator


@pytest.mark.parametrize("values", [None, 1, 2, 3, 6])
@pytest.mark.parametrize("n_labels", [2, 3, 8])
def test_thresholds_are_the_papers(n_labels: int, values: int | None) -> None:
    scores, indicator = _problem(n_labels, n_labels=n_labels, values=values)
    expected = [oracle.best_threshold(*row) for row in zip(scores, indicator, strict=True)]
    np.testing.assert_allclose(best_thresholds(scores, indicator), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("scores", "relevant", "expected"),
    [
        ([1, 2, 4], [0, 0, 1], 3.0),  # the middle between the relevant and the irrelevant
        ([1, 2, 4], [1, 0, 0], 4.75),  # ranked worst: one error without any label, two with all
        ([0, 1, 3], [0, 1, 0], 0.5),  # one error below 1 and above 1: the lower segment is the first
        ([1, 2, 4], [0, 0, 0], 4.75),  # empty: half the mean gap (3 / 2) above
        ([1, 2, 4], [1, 1, 1], 0.25),  # full: as far below
        ([2, 2, 2], [0, 0, 0], 2.5),
        ([2, 2, 2], [1, 1, 1], 1.5),
        ([2, 2, 5], [1, 0, 1], 1.25),  # no threshold parts equal scores: one error on either side of them
        ([3, 3, 1], [1, 0, 0], 2.0),  # one error between and above: the segment between comes first
    ],
)
def test_thresholds_by_hand(scores: list[float], relevant: list[int], expected: float) -> None:
    found = best_thresholds(np.array([scores], float), np.array([relevant], np.uint8))
    assert found[0] == expected


@pytest.mark.parametrize("weighted", [False, True])
def test_threshold_rule_is_least_squares(weighted: bool) -> None:
    scores, indicator = _problem(0)
    weight = np.random.default_rng(1).integers(1, 5, len(scores)).astype(np.float64) if weighted else None
    rule = fit_threshold_rule(scores, indicator, weight)
    coef, intercept = oracle.fit_threshold(scores, indicator, np.ones(len(scores)) if weight is None else weight)
    np.testing.assert_allclose(rule.coef, coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rule.intercept, intercept, rtol=1e-9)
    new = _problem(2)[0]
    expected = [[score > coef @ row + intercept for score in row] for row in new]
    np.testing.assert_array_equal(rule.predict(new, None), expected)


def test_weights_repeat_rows() -> None:
    scores, indicator = _problem(3)
    weight = np.random.default_rng(3).integers(1, 4, len(scores))
    rule = fit_threshold_rule(scores, indicator, weight.astype(np.float64))
    repeated = fit_threshold_rule(scores.repeat(weight, axis=0), indicator.repeat(weight, axis=0), None)
    np.testing.assert_allclose(rule.coef, repeated.coef, rtol=1e-9)


def test_scores_that_add_up_to_a_constant() -> None:
    """Rank-SVM's do, but for rounding, which must not become a direction of the fit."""
    scores, indicator = _problem(4)
    scores -= scores.mean(axis=1, keepdims=True)
    clean = fit_threshold_rule(scores, indicator, None)
    rounded = fit_threshold_rule(scores + 1e-13 * _problem(5)[0], indicator, None)
    assert np.abs(clean.coef.sum()) < 1e-12  # least norm
    np.testing.assert_allclose(rounded.coef, clean.coef, atol=1e-9)


def test_rule_follows_the_scale_of_scores() -> None:
    scores, indicator = _problem(6)
    one, large = (fit_threshold_rule(factor * scores, indicator, None) for factor in (1, 1000))
    np.testing.assert_array_equal(one.predict(scores, None), large.predict(1000 * scores, None))


def test_equal_scores_everywhere() -> None:
    scores, indicator = np.ones((4, 3)), np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 1]], np.uint8)
    rule = fit_threshold_rule(scores, indicator, None)
    assert rule.intercept == 1 + (3 * 0.5 - 0.5) / 4
    assert not rule.predict(scores, None).any()


@pytest.mark.parametrize("values", [None, 1, 3])
def test_best_labels(values: int | None) -> None:
    scores, indicator = _problem(7, values=values)
    sizes = indicator.sum(axis=1, dtype=np.int64)
    expected = [oracle.best_labels(*row) for row in zip(scores, sizes, strict=True)]
    np.testing.assert_array_equal(best_labels(scores, sizes), expected)


def test_size_of_a_regressor_is_rounded_and_clipped() -> None:
    X = np.arange(6.0)[:, None]
    rule = fit_size_rule(LinearRegression(), X, np.arange(6), None)
    new = np.array([[-7.0], [1.4], [1.6], [50.0]])
    chosen = rule.predict(np.tile([0.0, 3.0, 2.0], (4, 1)), new)
    np.testing.assert_array_equal(chosen.astype(int), [[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]])


def test_size_of_a_classifier_and_of_a_constant() -> None:
    X = np.array([[0.0], [0.1], [3.0], [3.1]])
    scores = np.array([[1.0, 2.0, 0.0]])
    rule = fit_size_rule(KNeighborsClassifier(1), X, np.array([1, 1, 2, 2]), None)
    np.testing.assert_array_equal(rule.predict(scores, np.array([[0.0]])), [[0, 1, 0]])
    np.testing.assert_array_equal(rule.predict(scores, np.array([[3.0]])), [[1, 1, 0]])
    constant = fit_size_rule(LogisticRegression(), X, np.array([2, 2, 2, 2]), None)  # fits no single class itself
    np.testing.assert_array_equal(constant.predict(scores, np.array([[0.0]])), [[1, 1, 0]])


def test_size_estimator_and_weights() -> None:
    X, sizes, weight = np.arange(4.0)[:, None], np.array([1, 2, 1, 2]), np.array([1.0, 1.0, 1.0, 9.0])
    estimator = LinearRegression()
    rule = fit_size_rule(estimator, X, sizes, weight)
    assert not hasattr(estimator, "coef_")  # a clone is trained
    np.testing.assert_allclose(rule.estimator.coef_, LinearRegression().fit(X, sizes, weight).coef_)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        fit_size_rule(KNeighborsClassifier(), X, sizes, weight)
