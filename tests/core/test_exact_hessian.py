"""hessian="exact": what softmax's whole Hessian must do; test_oracle compares its trees with the equations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor, load_model
from tests.core.support import FloatArray, staged_raw

N, D = 600, 4
SETTINGS: dict[str, Any] = {
    "n_estimators": 4,
    "learning_rate": 0.3,
    "max_depth": 4,
    "max_bins": 16,
    "min_samples_leaf": 5,
}


def _data(d: int = D) -> tuple[FloatArray, Any]:
    rng = np.random.default_rng(d)
    X = rng.normal(size=(N, 5))
    y = (X @ rng.normal(size=(5, d)) + 0.7 * rng.normal(size=(N, d))).argmax(axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def _exact(**changes: Any) -> GBDTMOClassifier:
    return GBDTMOClassifier(**{**SETTINGS, "hessian": "exact", **changes})


def test_it_differs_from_the_diagonal() -> None:
    X, y = _data()
    diagonal = GBDTMOClassifier(**SETTINGS).fit(X, y)
    assert np.abs(_exact().fit(X, y).decision_function(X) - diagonal.decision_function(X)).max() > 0.01


@pytest.mark.parametrize("reg_lambda", [0.25, 2.0])
def test_two_classes_are_the_diagonal_with_half_the_penalty(reg_lambda: float) -> None:
    """H = w [1 -1; -1 1] and G = g (1, -1) give x = G / (2 w + lambda), half of G / (w + lambda / 2); the gain too."""
    X, y = _data(2)
    exact = _exact(reg_lambda=reg_lambda, min_split_gain=0.01).fit(X, y)
    halved = {"learning_rate": 0.15, "reg_lambda": reg_lambda / 2, "min_split_gain": 0.02}
    diagonal = GBDTMOClassifier(**{**SETTINGS, **halved}).fit(X, y)
    np.testing.assert_array_equal(exact.n_leaves_, diagonal.n_leaves_)
    np.testing.assert_allclose(staged_raw(exact, X), staged_raw(diagonal, X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
def test_order_of_classes_does_not_matter(reg_lambda: float) -> None:
    X, y = _data()
    order = np.array([2, 0, 3, 1])
    settings = {"reg_lambda": reg_lambda, "min_split_gain": 0.01, "min_samples_leaf": 20}
    expected = _exact(**settings).fit(X, y)
    permuted = _exact(**settings).fit(X, order[y])
    np.testing.assert_array_equal(permuted.n_leaves_, expected.n_leaves_)
    raw = permuted.decision_function(X)[:, order]
    np.testing.assert_allclose(raw, expected.decision_function(X), rtol=0, atol=1e-11)


def test_trees_leave_the_sum_of_scores_alone() -> None:
    """The gradient sums to 0 over classes and the Hessian's rows do, so that a Newton step does."""
    X, y = _data()
    for reg_lambda in (0.0, 1e-20, 1.0):
        model = _exact(reg_lambda=reg_lambda, base_score=0.0).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X).sum(axis=1), 0, atol=1e-13)


def test_penalties_far_below_rounding_are_the_limit_of_none() -> None:
    X, y = _data()
    settings = {"min_split_gain": 0.01, "min_samples_leaf": 20}
    expected = _exact(reg_lambda=0.0, **settings).fit(X, y).decision_function(X)
    for reg_lambda in (1e-9, 1e-14, 1e-300, 5e-324):
        actual = _exact(reg_lambda=reg_lambda, **settings).fit(X, y).decision_function(X)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e3 * reg_lambda + 1e-12)


def test_newtons_method_finds_the_class_frequencies() -> None:
    """Trees of one leaf, no damping: from equal scores to the frequencies' logarithms, digits doubling a round."""
    X, y = np.zeros((100, 1)), np.repeat(np.arange(D), [10, 20, 30, 40])
    frequencies = np.array([0.1, 0.2, 0.3, 0.4])
    settings: dict[str, Any] = {"n_estimators": 6, "learning_rate": 1.0, "reg_lambda": 0.0, "base_score": 0.0}
    exact = _exact(**settings).fit(X, y)
    assert np.all(exact.n_leaves_ == 1)
    first = next(exact.staged_decision_function(X[:1]))[0]
    np.testing.assert_allclose(first - first[0], D * (frequencies - frequencies[0]), rtol=1e-14)  # by hand
    np.testing.assert_allclose(exact.predict_proba(X[:1])[0], frequencies, rtol=1e-14)
    diagonal = GBDTMOClassifier(**{**SETTINGS, **settings}).fit(X, y)
    assert np.abs(diagonal.predict_proba(X[:1])[0] - frequencies).max() > 1e-9


def test_copies_and_mirror_images_of_features_lose_every_tie() -> None:
    X, y = _data()
    complete = np.round(2 * np.nan_to_num(X))  # a bin a value, so that mirrored bins part the rows alike
    expected = staged_raw(_exact().fit(complete, y), complete)
    wide = np.column_stack([complete, complete, -complete])
    np.testing.assert_array_equal(staged_raw(_exact(n_jobs=2).fit(wide, y), wide), expected)


def test_top_k_of_all_outputs_is_no_restriction() -> None:
    X, y = _data()
    expected = _exact().fit(X, y).decision_function(X)
    np.testing.assert_array_equal(_exact(top_k=D).fit(X, y).decision_function(X), expected)


def test_early_stopping_and_saving(tmp_path: Path) -> None:
    X, y = _data()
    model = _exact(n_estimators=200, early_stopping_rounds=3).fit(X[:400], y[:400], eval_set=(X[400:], y[400:]))
    losses = model.evals_result_["validation"]["log_loss"]
    assert model.best_iteration_ == 1 + int(np.argmin(losses)) == len(losses) - 3
    model.save_model(tmp_path / "model")
    same = load_model(tmp_path / "model")
    assert same.hessian == "exact"
    np.testing.assert_array_equal(same.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"top_k": D - 1}, "top_k=None"),
        ({"reg_alpha": 0.5}, "reg_alpha=0"),
        ({"tree_output": "single"}, "tree_output"),
        ({"growth": "released"}, "growth"),
    ],
    ids=str,
)
def test_what_only_the_diagonal_has_is_refused(changes: dict[str, Any], words: str) -> None:
    X, y = np.nan_to_num(_data()[0]), _data()[1]
    model = _exact(**changes)
    with pytest.raises(ValueError, match=rf'hessian="exact" needs .*{words}.*hessian="diagonal"'):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


def test_losses_whose_hessian_is_diagonal_refuse_it() -> None:
    X, y = _data()
    with pytest.raises(ValueError, match=r'squared error is diagonal.*hessian="diagonal" is exact'):
        GBDTMORegressor(hessian="exact").fit(X, y)
    with pytest.raises(ValueError, match=r'sigmoid.* is diagonal.*hessian="diagonal" is exact'):
        _exact().fit(X, np.eye(D, dtype=int)[y])


def test_the_number_of_classes_is_bounded() -> None:
    X, y = np.random.default_rng(0).normal(size=(258, 2)), np.arange(258) % 129
    settings: dict[str, Any] = {"n_estimators": 1, "max_bins": 4}
    with pytest.raises(ValueError, match=r"at most 128 classes.*got 129"):
        _exact(**settings).fit(X, y)
    model = _exact(**settings).fit(X, np.minimum(y, 127))
    assert model.n_leaves_[0] > 1
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
