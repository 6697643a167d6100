"""Scores against scikit-learn and values worked out by hand."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, mean_squared_error

from repro import metrics


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_classification_scores_agree_with_scikit_learn(rng: np.random.Generator) -> None:
    labels, scores = rng.integers(0, 4, 50), rng.normal(scale=3, size=(50, 4))
    assert metrics.accuracy(labels, scores) == accuracy_score(labels, scores.argmax(axis=1))
    expected = log_loss(labels, softmax(scores, axis=1), labels=range(4))
    assert metrics.log_loss(labels, scores) == pytest.approx(expected, rel=1e-12)


def test_log_loss_of_large_scores_is_finite() -> None:
    assert metrics.log_loss(np.array([1]), np.array([[1000.0, 0.0]])) == 1000.0


def test_rmse_is_taken_over_all_cells() -> None:
    targets, predicted = np.zeros((1, 2)), np.array([[3.0, 4.0]])
    assert metrics.rmse(targets, predicted) == np.sqrt(12.5)  # the mean of the outputs' own would be 3.5


def test_regression_scores_agree_with_scikit_learn(rng: np.random.Generator) -> None:
    targets, predicted = rng.normal(size=(2, 30, 3))
    expected = np.sqrt(mean_squared_error(targets.ravel(), predicted.ravel()))
    assert metrics.rmse(targets, predicted) == pytest.approx(expected, rel=1e-12)
    assert metrics.mae(targets, predicted) == pytest.approx(mean_absolute_error(targets, predicted), rel=1e-12)


def test_top1_accuracy_counts_rows_without_labels_as_misses() -> None:
    indicator = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]], dtype=np.uint8)
    scores = np.array([[0.1, 0.2, 0.9], [0.9, 0.2, 0.1], [0.3, 0.2, 0.1]])
    assert metrics.top1_accuracy(indicator, scores) == pytest.approx(1 / 3)


def test_direction() -> None:
    assert metrics.METRICS["accuracy"].is_better(0.9, 0.8)
    assert metrics.METRICS["rmse"].is_better(0.8, 0.9)
    assert not metrics.METRICS["rmse"].is_better(0.8, 0.8)


@pytest.mark.parametrize("task", list(metrics.TASK_METRICS))
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_an_error(task: str, bad: float) -> None:
    truth = np.zeros(2, dtype=int) if task == "multiclass" else np.zeros((2, 3))
    scores = np.array([[0.0, 1.0, 0.0], [0.0, bad, 0.0]])
    with pytest.raises(ValueError, match="not finite"):
        metrics.score_all(task, truth, scores)
