"""The toy of Elisseeff & Weston, section 5: label 1 is everywhere, and two lines part {1}, {1, 2} and {1, 3}.

A ranking with the right size of the set parts all regions; a threshold on the scores, or a decision a label, does not.
The paper gives a Hamming loss of .00 and .08 on its 50 points; the line x1 + x2 = 1 is an assumption.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from gbdtmo_core import BinarySVMClassifier
from gbdtmo_core.ranksvm import RankSVMClassifier

N_SEEDS = 12


def _losses(estimator: Any) -> np.ndarray:
    """Hamming loss on the training points, (N_SEEDS,)."""
    losses = []
    for seed in range(N_SEEDS):
        rows = np.random.default_rng(seed).random((50, 2))
        above, near = rows[:, 1] > rows[:, 0], rows.sum(axis=1) < 1
        sets = np.column_stack([np.ones(50, int), above & near, above & ~near])
        losses.append(np.mean(estimator.fit(rows, sets).predict(rows) != sets))
    return np.array(losses)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ranking_with_separated_sizes_is_without_error() -> None:
    separated = _losses(RankSVMClassifier(np.inf, label_set="size", random_state=0))
    assert np.mean(separated == 0) >= 0.75
    assert separated.mean() < 0.01


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_least_squares_of_the_size_and_thresholds_are_not() -> None:
    fitted = _losses(RankSVMClassifier(np.inf, label_set="size", size_estimator=LinearRegression(), random_state=0))
    thresholds = _losses(RankSVMClassifier(np.inf, random_state=0))
    assert 0 < fitted.mean() < 0.03
    assert thresholds.mean() == pytest.approx(0.16, abs=0.03)


def test_a_decision_a_label_cannot() -> None:
    losses = _losses(BinarySVMClassifier(1e3))
    assert losses.mean() == pytest.approx(0.08, abs=0.03)
    assert losses.min() > 0
