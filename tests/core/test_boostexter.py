"""BoosTexterClassifier as users meet it: forms of y, label sets, refusals, the published data set."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from gbdtmo_core import BoosTexterClassifier, _lib_stumps
from tests.core.support import FloatArray

X, SETS = make_multilabel_classification(n_samples=200, n_features=6, n_classes=4, random_state=0)
XC, LABELS = make_classification(n_samples=200, n_features=8, n_informative=5, n_classes=3, random_state=0)


@parametrize_with_checks([BoosTexterClassifier(n_estimators=20)])
def test_scikit_learn_compatibility(estimator: Any, check: Any) -> None:
    check(estimator)


def test_labels_of_positive_score_are_predicted() -> None:
    model = BoosTexterClassifier(30).fit(X, SETS)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
    assert np.mean(model.predict(X) != SETS) < 0.2


def test_label_sets_by_threshold_and_by_size() -> None:
    scores = BoosTexterClassifier(30).fit(X, SETS).decision_function(X)
    for rule in ({"label_set": "threshold"}, {"label_set": "size"}, {"label_set": "size", "size_estimator": Ridge()}):
        model = BoosTexterClassifier(30, **rule).fit(X, SETS)
        np.testing.assert_array_equal(model.decision_function(X), scores)  # the rule comes after the scores
        predicted = model.predict(X)
        assert np.mean(predicted != SETS) < 0.3
        lowest = np.where(predicted == 1, scores, np.inf).min(axis=1)
        assert np.all(lowest >= np.where(predicted == 0, scores, -np.inf).max(axis=1))


def test_sizes_are_boosted_by_default() -> None:
    """The default predictor of the size is the same class over sizes, with the same settings."""
    model = BoosTexterClassifier(25, smoothing=0.01, label_set="size").fit(X, SETS)
    sizes = BoosTexterClassifier(25, smoothing=0.01).fit(X, SETS.sum(axis=1)).predict(X)
    np.testing.assert_array_equal(model.predict(X).sum(axis=1), sizes)


def test_without_a_rule_there_are_scores_alone() -> None:
    model = BoosTexterClassifier(5, label_set="none").fit(X, SETS)
    assert model.decision_function(X).shape == SETS.shape
    with pytest.raises(ValueError, match="label_set"):
        model.predict(X)


def test_classes() -> None:
    names = np.array(["b", "a", "c"])[LABELS]
    model = BoosTexterClassifier(50).fit(XC, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(XC, names) > 0.9
    np.testing.assert_array_equal(model.predict(XC), model.classes_[model.decision_function(XC).argmax(axis=1)])
    two = BoosTexterClassifier(50).fit(XC, LABELS == 0)
    assert two.decision_function(XC).shape == (200,)
    for stage in two.staged_decision_function(XC):
        assert stage.shape == (200,)
    np.testing.assert_array_equal(stage, two.decision_function(XC))


def test_forms_of_y_agree() -> None:
    expected = BoosTexterClassifier(10).fit(X, SETS).decision_function(X)
    sets = [set(np.flatnonzero(row).tolist()) for row in SETS]
    for y in (SETS.astype(bool), scipy.sparse.csr_matrix(SETS), pd.DataFrame(SETS), sets):
        np.testing.assert_array_equal(BoosTexterClassifier(10).fit(X, y).decision_function(X), expected)


def test_forms_of_x_agree() -> None:
    expected = BoosTexterClassifier(10).fit(X, SETS).decision_function(X)
    for rows in (
        np.asfortranarray(X),
        pd.DataFrame(X, columns=list("abcdef")),
        X.tolist(),
        np.repeat(X, 2, axis=1)[:, ::2],
    ):
        model = BoosTexterClassifier(10).fit(rows, SETS)
        np.testing.assert_array_equal(model.decision_function(rows), expected)


def test_one_sample() -> None:
    model = BoosTexterClassifier(3).fit([[1.0, 2.0]], [[1, 0, 1]])
    assert model.feature_.tolist() == [-1, -1, -1]
    np.testing.assert_array_equal(model.predict([[1.0, 2.0], [-5.0, 7.0]]), [[1, 0, 1], [1, 0, 1]])


def test_rows_that_are_all_zero_and_full_and_empty_sets() -> None:
    rows = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    model = BoosTexterClassifier(5).fit(rows, [[0, 0], [0, 0], [1, 1], [1, 1]])
    np.testing.assert_array_equal(model.predict(rows), [[0, 0], [0, 0], [1, 1], [1, 1]])
    constant = BoosTexterClassifier(5).fit(np.zeros((4, 2)), [[0, 1], [0, 1], [1, 1], [0, 1]])
    np.testing.assert_array_equal(constant.predict(rows), np.tile([0, 1], (4, 1)))


@pytest.mark.parametrize(
    ("rows", "sets", "params", "match"),
    [
        (X, SETS, {"n_estimators": 0}, "n_estimators must be an integer"),
        (X, SETS, {"n_estimators": 2.5}, "n_estimators must be an integer"),
        (X, SETS, {"smoothing": 0}, "smoothing must be None or a finite number above 0"),
        (X, SETS, {"smoothing": np.inf}, "smoothing"),
        (X, SETS, {"label_set": "rank"}, "label_set must be one of 'sign'"),
        (X, SETS, {"n_jobs": 0}, "n_jobs"),
        (X, SETS, {"verbose": -1}, "verbose"),
        (np.where(X.max() == X, np.nan, X), SETS, {}, "NaN"),
        (np.where(X.max() == X, np.inf, X), SETS, {}, "infinity"),
        (scipy.sparse.csr_matrix(X), SETS, {}, r"(?i)sparse"),
        (X, SETS[:, :1], {}, "one column"),
        (X, SETS[:-1], {}, "inconsistent"),
        (X, SETS * 2, {}, "0 and 1"),
    ],
)
def test_what_cannot_be_used_is_refused(rows: Any, sets: Any, params: dict[str, Any], match: str) -> None:
    model = BoosTexterClassifier(**params)
    with pytest.raises((ValueError, TypeError), match=match):
        model.fit(rows, sets)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("weight", [5e-324, 1e307])
def test_weights_too_small_or_large_for_a_smoothing_are_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="sample_weight sums to"):
        BoosTexterClassifier(2).fit(X, SETS, sample_weight=np.full(len(X), weight))
    model = BoosTexterClassifier(2, smoothing=0.01).fit(X, SETS, sample_weight=np.full(len(X), weight))
    np.testing.assert_array_equal(model.feature_, BoosTexterClassifier(2, smoothing=0.01).fit(X, SETS).feature_)


def test_an_interrupt_leaves_the_estimator_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    model = BoosTexterClassifier(5).fit(X, SETS)
    expected, boost = model.decision_function(X), _lib_stumps.StumpBooster.boost

    def interrupted(booster: Any, stumps: Any, first: int, last: int) -> None:
        if first == 3:
            raise KeyboardInterrupt
        boost(booster, stumps, first, last)

    monkeypatch.setattr(_lib_stumps.StumpBooster, "boost", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_estimators=8).fit(X[:, :2], SETS[:, :2])
    np.testing.assert_array_equal(model.decision_function(X), expected)
    assert len(model.feature_) == 5


TOO_LARGE = """
import resource
import numpy as np
from gbdtmo_core._lib_stumps import StumpBooster
X, indicator = np.zeros((2**20, 1)), np.zeros((2**20, 200), np.uint8)
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
try:
    StumpBooster(X, indicator, None, smoothing=1e-3, threads=1)
except MemoryError as error:
    print("refused:", error)
"""


def test_too_little_memory_is_said(project_root: Path) -> None:
    """Weights of 2^20 rows and 200 labels are 3.4 GB; the process may have 2."""
    command = [sys.executable, "-c", TOO_LARGE]
    run = subprocess.run(command, cwd=project_root, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("refused: The C core could not allocate memory")


def test_verbose_prints_the_loss(capsys: pytest.CaptureFixture[str]) -> None:
    model = BoosTexterClassifier(5, verbose=2).fit(X, SETS)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["[2]", "[4]"]
    assert float(lines[1].split()[-1]) == pytest.approx(np.prod(model.normalizers_[:4]), rel=1e-5)


def test_pickle_clone_and_search() -> None:
    model = BoosTexterClassifier(5, smoothing=0.1, n_jobs=2).fit(X, SETS)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(BoosTexterClassifier(), {"n_estimators": [1, 20]}, cv=3).fit(X, SETS)
    assert search.best_params_ == {"n_estimators": 20}


def _yeast(path: Path) -> tuple[FloatArray, FloatArray]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] not in "@%"]
    values = np.loadtxt(lines, delimiter=",")
    return values[:, :103], values[:, 103:]


def test_yeast_genes(shared: Path) -> None:
    """What AdaBoost.MH with stumps gives on the genes of Elisseeff & Weston, measured with another program."""
    folder = shared / "data/yeast_ml"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}")
    train, test = _yeast(folder / "yeast-train.arff"), _yeast(folder / "yeast-test.arff")
    stages = BoosTexterClassifier(1000, n_jobs=-1).fit(*train).staged_decision_function(test[0])
    found = {}
    for round_, scores in enumerate(stages, start=1):
        if round_ in (30, 1000):
            truth = test[1]
            best = scores.argmax(axis=1)
            found[round_] = [
                label_ranking_average_precision_score(truth, scores),
                label_ranking_loss(truth, scores),
                np.mean((scores > 0) != truth),
                np.mean(truth[np.arange(len(truth)), best] == 0),
            ]
    np.testing.assert_allclose(found[30], [0.749, 0.186, 0.211, 0.233], atol=0.0006)
    np.testing.assert_allclose(found[1000], [0.721, 0.198, 0.227, 0.309], atol=0.0006)
