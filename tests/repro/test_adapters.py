"""Our hyper-parameters under other libraries' names, and their saved models read back by the libraries."""

import zipfile
from pathlib import Path

import joblib
import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

from gbdtmo_core import load_model
from repro.models.gbdt_mo import GBDTMO
from repro.models.lightgbm import LightGBM
from repro.models.rank_svm import RankSVM
from repro.models.xgboost import XGBoost

BOOSTING = {
    "n_estimators": 6,
    "learning_rate": 0.3,
    "max_depth": 3,
    "max_leaves": 6,
    "max_bins": 16,
    "min_samples_leaf": 7,
    "min_split_gain": 0.002,
    "reg_lambda": 1.5,
    "early_stopping_rounds": 3,
}


def xgboost_model(**changed: object) -> XGBoost:
    return XGBoost(multi_strategy="one_output_per_tree", base_score=0.0, **{**BOOSTING, **changed})


@pytest.mark.parametrize(("task", "weight"), [("multiclass", 1), ("multilabel", 7), ("regression", 7)])
def test_xgboost_names(task: str, weight: int) -> None:
    given = xgboost_model().library_parameters(task=task, n_outputs=4, seed=2, n_jobs=3)
    expected = {
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "learning_rate": 0.3,
        "max_depth": 3,
        "max_leaves": 6,
        "max_bin": 16,
        "min_split_loss": 0.002,
        "reg_lambda": 1.5,
        "min_child_weight": weight,
        "base_score": 0.0,
        "seed": 2,
        "nthread": 3,
    }
    assert {name: given[name] for name in expected} == expected


@pytest.mark.parametrize(("task", "metric"), [("multiclass", "multi_error"), ("regression", "rmse")])
def test_lightgbm_names(task: str, metric: str) -> None:
    given = LightGBM(**BOOSTING).library_parameters(task=task, n_outputs=4, seed=2, n_jobs=3)
    expected = {
        "learning_rate": 0.3,
        "max_depth": 3,
        "num_leaves": 6,
        "max_bin": 16,
        "min_data_in_leaf": 7,
        "min_gain_to_split": 0.001,  # half of ours
        "lambda_l2": 1.5,
        "metric": metric,
        "seed": 2,
        "num_threads": 3,
    }
    assert {name: given[name] for name in expected} == expected


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4)).astype(np.float32)
    return X, np.column_stack([X[:, 0] + 5, X[:, 1] * X[:, 2]])


def test_xgboost_starts_from_the_base_score(rows: tuple[np.ndarray, np.ndarray]) -> None:
    """One leaf alone: its value is the closed form of the paper's equation 15 from a start of 0."""
    X, y = rows
    model = xgboost_model(n_estimators=1, min_split_gain=1e9, learning_rate=0.5)
    model.fit(X, y, X, y, task="regression", n_outputs=2, seed=0, n_jobs=1)
    expected = 0.5 * y.sum(axis=0) / (200 + 1.5)
    np.testing.assert_allclose(model.predict_scores(X)[0], expected, rtol=1e-5)


def test_xgboost_leaves_hold_the_minimum_of_samples(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    model = xgboost_model(min_samples_leaf=70, min_split_gain=0.0)
    report = model.fit(X, y, X, y, task="regression", n_outputs=2, seed=0, n_jobs=1)
    assert report.n_leaves <= 2 * report.n_trees  # 200 rows leave no room for three leaves of 70


def test_saved_xgboost_is_read_by_xgboost(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = rows
    model = xgboost_model()
    report = model.fit(X[:100], y[:100], X[100:], y[100:], task="regression", n_outputs=2, seed=0, n_jobs=1)
    model.save(tmp_path / "model.ubj")
    booster = xgb.Booster(model_file=tmp_path / "model.ubj")
    assert booster.best_iteration + 1 == report.best_round
    predicted = booster.predict(xgb.DMatrix(X), iteration_range=(0, booster.best_iteration + 1))
    np.testing.assert_array_equal(predicted.astype(np.float64), model.predict_scores(X))


def test_saved_lightgbm_is_read_by_lightgbm(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = rows
    model = LightGBM(**BOOSTING)
    model.fit(X[:100], y[:100], X[100:], y[100:], task="regression", n_outputs=2, seed=0, n_jobs=1)
    model.save(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as archive:
        texts = [archive.read(name).decode() for name in sorted(archive.namelist())]
    predicted = np.column_stack([lgb.Booster(model_str=text).predict(X) for text in texts])
    np.testing.assert_allclose(predicted, model.predict_scores(X), rtol=1e-12)


def test_saved_gbdt_mo_is_read_by_its_estimator(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = rows
    model = GBDTMO(**BOOSTING, tree_output="single")
    report = model.fit(X[:100], y[:100], X[100:], y[100:], task="regression", n_outputs=2, seed=0, n_jobs=1)
    model.save(tmp_path / "model.npz")
    estimator = load_model(tmp_path / "model.npz")
    assert estimator.best_iteration_.tolist() == report.best_round
    np.testing.assert_array_equal(estimator.predict(X), model.predict_scores(X))


def test_label_sets_by_sigmoids_are_those_of_their_estimator(
    rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, y = rows
    labels = (y > y.mean(axis=0)).astype(np.uint8)
    by_loss = {}
    for loss in ("sigmoid", "squared_error"):
        model = GBDTMO(**BOOSTING, label_loss=loss)
        report = model.fit(
            X[:100], labels[:100], X[100:], labels[100:], task="multilabel", n_outputs=2, seed=0, n_jobs=1
        )
        assert list(report.history) == ["log_loss" if loss == "sigmoid" else "rmse"]
        model.save(tmp_path / loss)
        estimator, by_loss[loss] = load_model(tmp_path / loss), model.predict_labels(X)
        sets = estimator.predict_proba(X) > 0.5 if loss == "sigmoid" else estimator.predict(X) > 0.5
        np.testing.assert_array_equal(by_loss[loss], sets)
    with pytest.raises(ValueError, match="label_loss must be one of squared_error, sigmoid, not 'softmax'"):
        GBDTMO(**BOOSTING, label_loss="softmax")


def test_a_saved_estimator_of_label_sets_is_read_by_joblib(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = rows
    labels = (y > y.mean(axis=0)).astype(np.uint8)
    model = RankSVM(C="inf", kernel="rbf", gamma=9.0)
    report = model.fit(X, labels, task="multilabel", n_outputs=2, seed=0, n_jobs=1)
    model.save(tmp_path / "model.joblib")
    estimator = joblib.load(tmp_path / "model.joblib")
    assert np.isinf(estimator.C)
    np.testing.assert_array_equal(estimator.decision_function(X.astype(np.float64)), model.predict_scores(X))
    np.testing.assert_array_equal(estimator.predict(X.astype(np.float64)), model.predict_labels(X))
    assert report.solver["duality_gap"] == estimator.duality_gap_
    assert report.solver["n_support"] == len(estimator.support_)


def test_two_classes_have_two_scores(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    labels = (y[:, 1] > 0).astype(np.int64)
    model = GBDTMO(**BOOSTING)
    report = model.fit(X, labels, X, labels, task="multiclass", n_outputs=2, seed=0, n_jobs=1)
    scores = model.predict_scores(X)
    assert scores.shape == (200, 2)
    assert np.mean(scores.argmax(axis=1) == labels) == max(report.history["accuracy"]) > 0.8
