"""Scores against scikit-learn and values worked out by hand."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import (
    accuracy_score,
    hamming_loss,
    label_ranking_average_precision_score,
    label_ranking_loss,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
)

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


def by_the_formulas(indicator: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Ranking loss, precision and one-error of Elisseeff and Weston (2001), section 2, a label at a time."""
    rows = []
    for y, r in zip(indicator, scores, strict=True):
        labels = range(len(y))
        relevant, others = [k for k in labels if y[k]], [k for k in labels if not y[k]]
        wrong = sum(r[k] <= r[other] for k in relevant for other in others)
        precisions = [
            sum(r[other] >= r[k] for other in relevant) / sum(r[other] >= r[k] for other in labels) for k in relevant
        ]
        rows.append(
            {
                "label_ranking_loss": wrong / (len(relevant) * len(others)) if relevant and others else 0.0,
                "average_precision": np.mean(precisions) if relevant else 1.0,
                "one_error": float(not {k for k in labels if r[k] == max(r)} <= set(relevant)),
            }
        )
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


RANKINGS = ("label_ranking_loss", "average_precision", "one_error")


@pytest.mark.parametrize("n_levels", [2, 4, 1000])
def test_rankings_of_labels_by_the_formulas_and_scikit_learn(rng: np.random.Generator, n_levels: int) -> None:
    """With few levels most scores are tied; some rows have no labels, some all of them."""
    indicator = (rng.random((200, 5)) < rng.choice([0.0, 0.3, 0.6, 1.0], (200, 1))).astype(np.uint8)
    assert {0, 5} <= set(indicator.sum(axis=1))
    scores = rng.integers(0, n_levels, indicator.shape) / 7 - 1
    expected = by_the_formulas(indicator, scores)
    for name in RANKINGS:
        assert metrics.METRICS[name].function(indicator, scores) == pytest.approx(expected[name], rel=1e-12), name
    assert expected["label_ranking_loss"] == pytest.approx(label_ranking_loss(indicator, scores), rel=1e-12)
    precision = label_ranking_average_precision_score(indicator, scores)
    assert expected["average_precision"] == pytest.approx(precision, rel=1e-12)


def test_rankings_by_hand() -> None:
    """Labels 1 and 3 of four, scores 4 3 2 1: pairs (1,2) (1,4) (3,4) are right, (3,2) is wrong."""
    indicator, scores = np.array([[1, 0, 1, 0]]), np.array([[4.0, 3.0, 2.0, 1.0]])
    assert metrics.label_ranking_loss(indicator, scores) == 1 / 4
    assert metrics.average_precision(indicator, scores) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert metrics.one_error(indicator, scores) == 0
    assert metrics.one_error(1 - indicator, scores) == 1


def test_a_constant_score_ranks_nothing_right() -> None:
    indicator, scores = np.array([[1, 0, 1, 0]]), np.zeros((1, 4))
    assert metrics.label_ranking_loss(indicator, scores) == 1
    assert metrics.average_precision(indicator, scores) == 1 / 2
    assert metrics.one_error(indicator, scores) == 1


@pytest.mark.parametrize(("filled", "expected"), [(0, (0.0, 1.0, 1.0)), (1, (0.0, 1.0, 0.0))])
def test_rows_without_labels_and_with_all(filled: int, expected: tuple[float, float, float]) -> None:
    indicator, scores = np.full((1, 3), filled), np.array([[1.0, 2.0, 1.0]])
    assert tuple(metrics.METRICS[name].function(indicator, scores) for name in RANKINGS) == expected


def test_one_error_is_what_top1_accuracy_misses_where_nothing_is_tied(rng: np.random.Generator) -> None:
    indicator, scores = rng.integers(0, 2, (50, 4)), rng.normal(size=(50, 4))
    assert metrics.one_error(indicator, scores) == pytest.approx(1 - metrics.top1_accuracy(indicator, scores))


def test_rankings_do_not_depend_on_the_blocks(rng: np.random.Generator, monkeypatch) -> None:
    indicator, scores = rng.integers(0, 2, (50, 4)), rng.integers(0, 3, (50, 4)).astype(float)
    whole = {name: metrics.METRICS[name].function(indicator, scores) for name in RANKINGS}
    monkeypatch.setattr(metrics, "_BLOCK_CELLS", 28)  # seven rows at a time, and one that is left
    parts = {name: metrics.METRICS[name].function(indicator, scores) for name in RANKINGS}
    assert parts == pytest.approx(whole, rel=1e-12)


def test_memory_of_rankings_is_that_of_a_block(rng: np.random.Generator) -> None:
    """Ten times the rows of a block take no more than the block."""
    n = 10 * metrics._BLOCK_CELLS // 100
    indicator, scores = rng.integers(0, 2, (n, 100), np.uint8), rng.random((n, 100), np.float32)
    tracemalloc.start()
    try:
        metrics.average_precision(indicator, scores)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * 8 * metrics._BLOCK_CELLS


def test_hamming_loss_agrees_with_scikit_learn(rng: np.random.Generator) -> None:
    indicator, predicted = rng.integers(0, 2, (2, 40, 6)).astype(np.uint8)
    assert metrics.hamming_loss(indicator, predicted) == pytest.approx(hamming_loss(indicator, predicted), rel=1e-12)
    assert metrics.hamming_loss(indicator, predicted.astype(bool)) == metrics.hamming_loss(indicator, predicted)


def test_hamming_loss_of_one_label_a_row_is_two_qths_of_the_error(rng: np.random.Generator) -> None:
    """A wrong class is one label too many and one too few (Elisseeff and Weston 2001, section 2)."""
    n_labels = 7
    classes, predicted = rng.integers(0, n_labels, (2, 300))
    one_hot = np.eye(n_labels, dtype=np.uint8)
    error = 1 - accuracy_score(classes, predicted)
    assert metrics.hamming_loss(one_hot[classes], one_hot[predicted]) == pytest.approx(2 / n_labels * error, rel=1e-12)


@pytest.mark.parametrize(
    "predicted", [np.array([[0.2, 1.0], [0.0, 1.0]]), np.array([[-1, 1], [1, 1]]), np.array([0, 1]), np.zeros((2, 3))]
)
def test_what_is_no_label_set_has_no_hamming_loss(predicted: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"expected predicted label sets, 0/1 of shape \(2, 2\)"):
        metrics.hamming_loss(np.eye(2), predicted)


def test_what_is_recorded_of_labels(rng: np.random.Generator) -> None:
    indicator, scores = rng.integers(0, 2, (20, 4)), rng.normal(size=(20, 4))
    of_scores = metrics.score_all("multilabel", indicator, scores)
    assert list(of_scores) == ["top1_accuracy", "rmse", *RANKINGS]
    assert metrics.reported_metric("multilabel") == "top1_accuracy"
    with_sets = metrics.score_all("multilabel", indicator, scores, predicted=1 - indicator)
    assert with_sets == {**of_scores, "hamming_loss": 1.0}
    with pytest.raises(ValueError, match="for the task 'regression'; expected them for multilabel"):
        metrics.score_all("regression", indicator, scores, predicted=indicator)


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
