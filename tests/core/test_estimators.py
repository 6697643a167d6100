"""The estimators as scikit-learn users meet them, and what they say of a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_classification, make_multilabel_classification, make_regression
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor
from tests.oracle.losses import sigmoid, softmax

FAST: dict[str, Any] = {"n_estimators": 10, "learning_rate": 0.3, "max_depth": 3, "min_samples_leaf": 5}
X, Y = make_regression(n_samples=300, n_features=6, n_targets=3, noise=5.0, random_state=0)
XC, LABELS = make_classification(n_samples=300, n_features=8, n_informative=5, n_classes=3, random_state=0)
XL, SETS = make_multilabel_classification(n_samples=300, n_features=8, n_classes=4, random_state=0)

# Few rows need small leaves, else most checks would look at constant predictions.
CHECKED = [GBDTMORegressor(n_estimators=10, min_samples_leaf=2), GBDTMOClassifier(n_estimators=10, min_samples_leaf=2)]


EXPECTED_FAILURES = {
    "check_classifier_multioutput": "it reads classes_ of a multi-label model as one array; a list of arrays, as trees "
    "in scikit-learn have it, is what scorers need to tell two labels from two classes (test_multilabel_scorers)",
}


def _expected_failures(estimator: Any) -> dict[str, str]:
    return EXPECTED_FAILURES if isinstance(estimator, GBDTMOClassifier) else {}


@parametrize_with_checks(CHECKED, expected_failed_checks=_expected_failures)
def test_scikit_learn_compatibility(estimator: Any, check: Any) -> None:
    check(estimator)


def test_kinds() -> None:
    assert is_regressor(GBDTMORegressor())
    assert is_classifier(GBDTMOClassifier())


def test_parameters_are_keywords_and_survive_clone() -> None:
    with pytest.raises(TypeError):
        GBDTMORegressor(100)  # type: ignore[misc]
    params = {"n_estimators": 7, "top_k": 2, "growth": "released", "n_jobs": 2, "base_score": 0.5}
    model = GBDTMORegressor(**params)
    assert {name: clone(model).get_params()[name] for name in params} == params
    assert model.set_params(max_depth=9).max_depth == 9


def test_cross_validation_pipeline_and_search() -> None:
    pipeline = make_pipeline(StandardScaler(), GBDTMORegressor(**FAST))
    assert cross_val_score(pipeline, X, Y, cv=3).min() > 0.5
    search = GridSearchCV(GBDTMOClassifier(**FAST), {"max_depth": [1, 4], "top_k": [None, 1]}, cv=3)
    search.fit(XC, LABELS)
    assert search.best_score_ > 0.6
    assert cross_val_score(GBDTMOClassifier(**FAST), XL, SETS, cv=3).min() > 0.1  # share of exactly right label sets


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", "average_precision", "neg_brier_score"])
def test_binary_scorers(scoring: str) -> None:
    scores = cross_val_score(GBDTMOClassifier(**FAST), XC, LABELS == 0, scoring=scoring, cv=3)
    assert np.all(np.isfinite(scores))
    if scoring == "roc_auc":
        assert scores.min() > 0.7


def test_multiclass_scorer() -> None:
    assert cross_val_score(GBDTMOClassifier(**FAST), XC, LABELS, scoring="roc_auc_ovr", cv=3).min() > 0.7


@pytest.mark.parametrize("q", [2, 4])
def test_multilabel_scorers(q: int) -> None:
    model = GBDTMOClassifier(**FAST)
    assert roc_auc_score(SETS[:, :q], model.fit(XL, SETS[:, :q]).predict_proba(XL)) > 0.8
    assert cross_val_score(model, XL, SETS[:, :q], scoring="roc_auc", cv=3).min() > 0.6


def test_score_is_scikit_learns() -> None:
    model = GBDTMORegressor(**FAST).fit(X, Y)
    assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)))
    classifier = GBDTMOClassifier(**FAST).fit(XC, LABELS)
    assert classifier.score(XC, LABELS) == accuracy_score(LABELS, classifier.predict(XC))


def test_one_output_grows_scikit_learns_trees() -> None:
    """With a bin a value, no leaf budget and no ties, the equations leave one tree; the peer rounds to float32."""
    rows = np.round(X, 1)
    settings = {"learning_rate": 0.2, "max_depth": 4, "min_samples_leaf": 7}
    peer = HistGradientBoostingRegressor(
        max_iter=8, l2_regularization=1.0, max_leaf_nodes=None, early_stopping=False, **settings
    )
    expected = peer.fit(rows, Y[:, 0]).predict(rows)
    ours = GBDTMORegressor(n_estimators=8, **settings).fit(rows, Y[:, 0])
    np.testing.assert_allclose(ours.predict(rows), expected, atol=1e-4 * np.abs(Y).max())


def test_probabilities_labels_and_scores_belong_together() -> None:
    model = GBDTMOClassifier(**FAST).fit(XC, LABELS)
    raw = model.decision_function(XC)
    assert raw.shape == (300, 3)
    np.testing.assert_allclose(model.predict_proba(XC), softmax(raw), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(XC), raw.argmax(axis=1))
    *_, last = model.staged_predict(XC)
    np.testing.assert_array_equal(last, model.predict(XC))


def test_two_classes() -> None:
    model = GBDTMOClassifier(**FAST).fit(XC, LABELS == 0)
    difference = model.decision_function(XC)
    assert difference.shape == (300,)
    np.testing.assert_allclose(model.predict_proba(XC)[:, 1], sigmoid(difference), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(XC), difference > 0)
    assert model.predict(XC).dtype == bool


def test_label_sets() -> None:
    model = GBDTMOClassifier(**FAST).fit(XL, SETS)
    raw = model.decision_function(XL)
    np.testing.assert_allclose(model.predict_proba(XL), sigmoid(raw), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(XL), raw > 0)
    assert model.predict(XL).shape == (300, 4)


def test_extreme_scores_stay_probabilities() -> None:
    params = {"n_estimators": 1, "min_samples_leaf": 1}
    for base_score in (-1e4, 1e4):
        for model in (
            GBDTMOClassifier(base_score=base_score, **params).fit(XC, LABELS),
            GBDTMOClassifier(base_score=base_score, **params).fit(XL, SETS),
        ):
            probabilities = model.predict_proba(XC)
            assert np.all((probabilities >= 0) & (probabilities <= 1))


def test_feature_names() -> None:
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    model = GBDTMORegressor(**FAST).fit(frame, Y)
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)
    assert model.n_features_in_ == 6
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    assert not hasattr(GBDTMORegressor(**FAST).fit(X, Y), "feature_names_in_")


@pytest.mark.parametrize("tree_output", ["multi", "single"])
def test_what_a_model_says_of_its_trees(tree_output: str) -> None:
    model = GBDTMORegressor(**FAST, tree_output=tree_output, max_leaves=6).fit(X, Y)
    n_trees = 10 if tree_output == "multi" else 30
    assert model.n_iter_ == 10
    assert model.n_outputs_ == 3
    assert model.n_leaves_.shape == model.unassigned_fraction_.shape == model.tree_output_.shape == (n_trees,)
    assert np.all((model.n_leaves_ > 1) & (model.n_leaves_ <= 6))
    assert np.all(model.unassigned_fraction_ == 0)
    outputs = {-1} if tree_output == "multi" else {0, 1, 2}
    assert set(model.tree_output_) == outputs
    assert set(model.fit_seconds_) == {"binning", "training"}
    assert min(model.fit_seconds_.values()) > 0


def test_training_profile_counts_what_histograms_add() -> None:
    values = np.random.RandomState(0).choice([0, 0, 0, 1, 2, 5], size=(2000, 9)).astype(float)
    targets = values[:, :2] + values[:, 2:4]
    # A tree of two leaves needs the root's histogram alone.
    model = GBDTMORegressor(n_estimators=3, max_leaves=2).fit(values, targets, eval_set=(values, targets))
    profile = model.training_profile_
    assert {part.shape for part in profile.values()} == {(3,)}
    most_frequent = [np.unique(column, return_counts=True)[1].max() for column in values.T]
    np.testing.assert_array_equal(profile["entries"], values.size - sum(most_frequent))
    parts = [profile[part] for part in profile if part not in ("total", "entries")]
    assert len(parts) == 7
    assert np.all(np.array(parts) > 0)
    assert np.all(np.sum(parts, axis=0) <= profile["total"])


def test_leaves_of_one_tree_are_counted_by_its_distinct_predictions() -> None:
    model = GBDTMORegressor(n_estimators=1, max_depth=4, min_samples_leaf=5).fit(X, Y)
    assert model.n_leaves_[0] == len(np.unique(model.predict(X), axis=0))
    bounded = GBDTMORegressor(n_estimators=1, max_depth=4, min_samples_leaf=5, max_leaves=5).fit(X, Y)
    assert bounded.n_leaves_[0] == len(np.unique(bounded.predict(X), axis=0)) == 5
    _, rows = np.unique(model.predict(X), axis=0, return_counts=True)
    assert rows.min() >= 5


def test_top_k_leaves_change_at_most_k_outputs() -> None:
    model = GBDTMORegressor(n_estimators=1, top_k=2, base_score=0.0, min_samples_leaf=5).fit(X, Y)
    assert np.all(np.sum(model.predict(X) != 0, axis=1) <= 2)


def test_base_score_is_the_best_constant() -> None:
    np.testing.assert_allclose(GBDTMORegressor(**FAST).fit(X, Y).base_score_, Y.mean(axis=0), rtol=1e-12)
    shares = np.bincount(LABELS) / 300
    np.testing.assert_allclose(GBDTMOClassifier(**FAST).fit(XC, LABELS).base_score_, np.log(shares), rtol=1e-12)
    odds = SETS.mean(axis=0) / (1 - SETS.mean(axis=0))
    np.testing.assert_allclose(GBDTMOClassifier(**FAST).fit(XL, SETS).base_score_, np.log(odds), rtol=1e-12)
    np.testing.assert_array_equal(GBDTMORegressor(**FAST, base_score=0.25).fit(X, Y).base_score_, [0.25] * 3)


def test_base_score_of_a_label_that_all_or_no_rows_have() -> None:
    sets = np.column_stack([np.zeros(300), np.ones(300), SETS[:, 0]])
    expected = np.log(0.5 / 299.5)
    np.testing.assert_allclose(
        GBDTMOClassifier(**FAST).fit(XL, sets).base_score_[:2], [expected, -expected], rtol=1e-12
    )


def test_base_score_of_a_class_without_rows() -> None:
    model = GBDTMOClassifier(**FAST).fit(XC, LABELS, classes=[0, 1, 2, 9])
    np.testing.assert_allclose(model.base_score_[3], np.log(0.5 / 300), rtol=1e-12)


def test_training_loss_falls_every_round() -> None:
    for model, rows, y in [(GBDTMORegressor(**FAST), X, Y), (GBDTMOClassifier(**FAST), XC, LABELS)]:
        history = next(iter(model.fit(rows, y, eval_set=(rows, y)).evals_result_["validation"].values()))
        assert np.all(np.diff(history) < 0)


def test_refitting_forgets_the_old_model() -> None:
    model = GBDTMOClassifier(**FAST).fit(XL, SETS)
    model.fit(XC, LABELS)
    fresh = GBDTMOClassifier(**FAST).fit(XC, LABELS)
    np.testing.assert_array_equal(model.predict_proba(XC), fresh.predict_proba(XC))
    assert set(vars(model)) == set(vars(fresh))
    regressor = GBDTMORegressor(**FAST, tree_output="single").fit(X, Y, eval_set=(X, Y)).fit(X, Y)
    assert regressor.evals_result_ == {}


def test_staged_arrays_are_apart() -> None:
    stages = list(GBDTMORegressor(**FAST).fit(X, Y).staged_predict(X))
    assert not np.shares_memory(stages[0], stages[1])
    assert not np.array_equal(stages[0], stages[1])


def test_verbose_prints_the_metric(capsys: pytest.CaptureFixture[str]) -> None:
    GBDTMORegressor(**FAST, verbose=5).fit(X, Y, eval_set=(X, Y))
    assert capsys.readouterr().out.count("mse") == 2
    GBDTMORegressor(**FAST).fit(X, Y, eval_set=(X, Y))
    assert capsys.readouterr().out == ""
