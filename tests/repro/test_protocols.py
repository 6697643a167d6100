"""Protocols for models that are not stopped early: folds of the training rows, and who may take which protocol."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf
from sklearn.metrics import label_ranking_loss
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor

import datasets
from datasets.base import Dataset, published_split
from repro import store
from repro.models.label_estimator import LabelEstimator
from repro.page.records import record_file, row
from repro.plan import PlanError, make_plan
from repro.protocol import Protocol
from repro.published import published_records
from repro.report import run_frame
from repro.run import hyperparameters, identity, run_cell
from tests.repro.configs import compose_config

NEIGHBOURS = [1, 5, 25]
OPEN = (
    "dataset=scene",
    "model=label_frequency",
    f"model.estimator._target_={__name__}.Neighbours",
    "+model.estimator.n_neighbors=5",
    f"+model.select.n_neighbors={NEIGHBOURS}",
)


class Neighbours(LabelEstimator):
    """The labels' share among the nearest rows: a model whose scores are simple to make again."""

    def _make(self, parameters: Mapping[str, Any], *, seed: int, n_jobs: int) -> Any:
        estimator = KNeighborsRegressor(**parameters)
        estimator.decision_function = estimator.predict
        return estimator

    def _describe(self, estimator: Any) -> Any:
        from repro.models.base import FitReport

        return FitReport(construct_seconds=0.0, train_seconds=0.0, solver={"n_rows": estimator.n_samples_fit_})

    def predict_labels(self, X: Any) -> Any:
        return (self.predict_scores(X) > 0.5).astype(np.uint8)


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Made-up rows under the name of a set of labels."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 4)).astype(np.float32)
    y = (X @ rng.normal(size=(4, 6)) + rng.normal(size=(150, 6)) > 0.3).astype(np.uint8)
    made_up = Dataset(
        name="scene",
        X=X,
        y=y,
        task="multilabel",
        feature_names=tuple("abcd"),
        target_names=tuple("pqrstu"),
        source="made up",
        sha256={},
        fixed_split=published_split(100, 50),
    )
    monkeypatch.setattr(datasets, "load", lambda name: made_up)
    return made_up


def expected_losses(data: Dataset, k: int, seed: int) -> list[float]:
    """The ranking loss of each of three folds of the training rows, by scikit-learn alone."""
    train = data.split(seed).train
    losses = []
    for kept, left_out in KFold(3, shuffle=True, random_state=seed).split(train):
        model = KNeighborsRegressor(k).fit(data.X[train[kept]], data.y[train[kept]])
        truth, scores = data.y[train[left_out]], model.predict(data.X[train[left_out]])
        # Rows with no label or with all of them have no pair: scikit-learn counts them as 0 as well.
        losses.append(float(label_ranking_loss(truth, scores)))
    return losses


@pytest.mark.parametrize("seed", [0, 4])
def test_folds_choose_by_the_mean_ranking_loss_of_the_rows_left_out(data: Dataset, seed: int) -> None:
    record = run_cell(compose_config(*OPEN, "protocol=cross_validated", f"seed={seed}"))
    expected = {k: expected_losses(data, k, seed) for k in NEIGHBOURS}
    assert [trial["params"] for trial in record["trials"]] == [{"n_neighbors": k} for k in NEIGHBOURS]
    for trial in record["trials"]:
        own = expected[trial["params"]["n_neighbors"]]
        assert trial["folds"] == pytest.approx(own)
        assert trial["validation"] == pytest.approx(np.mean(own))
    best = min(NEIGHBOURS, key=lambda k: np.mean(expected[k]))
    assert record["selected"] == {"n_neighbors": best}
    split = data.split(seed)
    final = KNeighborsRegressor(best).fit(data.X[split.train], data.y[split.train])
    loss = label_ranking_loss(data.y[split.test], final.predict(data.X[split.test]))
    assert record["scores"]["all"]["label_ranking_loss"] == pytest.approx(loss)
    assert record["solver"] == {"n_rows": 100}  # all training rows
    assert record["seconds"]["select"] >= sum(trial["seconds"] for trial in record["trials"])
    assert record["scores"]["validation"] is None
    assert record["scores"]["optimistic"] is False


def test_test_labels_are_seen_only_when_they_are_scored(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run_cell(compose_config(*OPEN, "protocol=cross_validated"))
    y = data.y.copy()
    y[data.split(0).test] ^= 1
    monkeypatch.setattr(datasets, "load", lambda name: dataclasses.replace(data, y=y))
    after = run_cell(compose_config(*OPEN, "protocol=cross_validated"))
    assert before["selected"] == after["selected"]
    assert [t["folds"] for t in before["trials"]] == [t["folds"] for t in after["trials"]]
    assert before["scores"]["all"] != after["scores"]["all"]


def test_a_published_fit_chooses_nothing(data: Dataset) -> None:
    config = compose_config(*OPEN, "protocol=published_fit")
    record = run_cell(config)
    assert record["trials"] == []
    assert record["selected"] == {}
    assert record["identity"]["params"] == hyperparameters(config) == {"n_neighbors": 5}
    assert record["dataset"]["n_fit"] == 100


def test_infinity_is_a_text_however_it_is_given() -> None:
    """Hydra reads ``C=inf`` as a number, YAML as a text; JSON has no infinite numbers."""
    choices = ("dataset=digits", "model=rank_svm", "protocol=published_fit")
    given = compose_config(*choices, "model.estimator.C=inf")
    assert isinstance(given.model.estimator.C, float)
    assert identity(given) == identity(compose_config(*choices))
    assert hyperparameters(given)["C"] == "inf"
    chosen = compose_config("model=rank_svm", "protocol=cross_validated", "model.select.C=[1,inf]")
    assert hyperparameters(chosen)["select"] == {"C": [1, "inf"]}
    linear = ("model.estimator.kernel=linear", "model.estimator.C=inf", "model.estimator.max_iter=1")
    assert (
        run_cell(compose_config(*choices, "+model.estimator.max_iter=9", *linear))["config"]["model"]["estimator"]["C"]
        == "inf"
    )


def test_folds_choose_by_the_reported_score_where_there_are_no_label_sets() -> None:
    protocol = instantiate(compose_config("protocol=cross_validated").protocol)
    assert protocol == Protocol(name="cross_validated", fit_rows="train", folds=3, chosen_by="label_ranking_loss")
    digits = ("dataset=digits", *OPEN[1:])
    record = run_cell(compose_config(*digits, "protocol=cross_validated"))
    loaded = datasets.load("digits")
    train = loaded.split(0).train
    one_hot = np.eye(10)[loaded.y]
    for trial in record["trials"]:
        shares = []
        for kept, left_out in KFold(3, shuffle=True, random_state=0).split(train):
            model = KNeighborsRegressor(**trial["params"]).fit(loaded.X[train[kept]], one_hot[train[kept]])
            found = model.predict(loaded.X[train[left_out]]).argmax(axis=1)
            shares.append(np.mean(found == loaded.y[train[left_out]]))
        assert trial["folds"] == pytest.approx(shares)
    assert record["scores"]["metric"] == "accuracy"


def test_a_record_without_rounds_is_whole_and_shown(data: Dataset, tmp_path: Path) -> None:
    record = run_cell(compose_config(*OPEN, "protocol=published_fit"))
    runs = store.RunStore(tmp_path)
    runs.write(record)
    stored = runs.read(record["run_id"])
    assert stored["best_round"] is stored["n_trees"] is stored["rounds"] is None
    frame = run_frame([stored])
    assert frame["best_round"].isna().all()
    assert frame["n_trees"].isna().all()
    shown = row({**stored, "cell": {"dataset": "scene", "model": "m", "protocol": "p", "seed": 0}}, 7)
    assert (shown["trees"], shown["best round"], shown["duality gap"]) == ("", "", "")
    gap = row({**stored, "solver": {"duality_gap": 0.0005}, "cell": {"seed": 0}}, 7)["duality gap"]
    assert gap == "0.0005"
    record_file("any", [{**stored, "cell": {"dataset": "scene", "seed": 0}}])


def test_losses_of_single_rows_average_to_the_score(data: Dataset) -> None:
    plain, by_row = (
        run_cell(compose_config(*OPEN, "protocol=published_fit", *own)) for own in ((), ("row_scores=true",))
    )
    assert "row_scores" not in plain
    assert plain["run_id"] != by_row["run_id"]
    losses = by_row["row_scores"]["label_ranking_loss"]
    assert len(losses) == 50
    assert np.mean(losses) == pytest.approx(plain["scores"]["all"]["label_ranking_loss"])
    model = KNeighborsRegressor(5).fit(data.X[:100], data.y[:100])
    one = label_ranking_loss(data.y[[107]], model.predict(data.X[[107]]))
    assert losses[7] == pytest.approx(one, abs=1e-9)


def test_losses_of_rows_are_of_label_sets_alone() -> None:
    with pytest.raises(ValueError, match="row_scores are of label sets; digits has the task 'multiclass'"):
        run_cell(compose_config("dataset=digits", "model=label_frequency", "protocol=published_fit", "row_scores=true"))


@pytest.mark.parametrize(
    ("model", "protocol", "message"),
    [
        ("gbdt_mo", "published_fit", "gbdt_mo is stopped early, and the protocol published_fit has no rows to stop on"),
        ("xgboost", "cross_validated", "take paper or holdout"),
        ("label_frequency", "paper", "label_frequency is not stopped early.*protocol paper: take published_fit or"),
        ("label_frequency", "holdout", "protocol holdout"),
    ],
)
def test_a_protocol_that_a_model_cannot_take_is_refused(model: str, protocol: str, message: str) -> None:
    overrides = [f"protocol={protocol}"]
    with pytest.raises(PlanError, match=f"ranksvm_table: .*{message}"):
        make_plan("ranksvm_table", datasets=["digits"], models=[model], overrides=overrides)
    with pytest.raises(ValueError, match=message):
        run_cell(compose_config("dataset=digits", f"model={model}", *overrides))


def test_published_records_keep_their_identity(project_root: Path) -> None:
    """A run that was recorded before is found again: what a configuration says still makes the same name."""
    results = project_root / "results"
    names = [path.name.removesuffix("_records.jsonl") for path in results.glob("*_records.jsonl")]
    checked = 0
    for name in names:
        for record in published_records(results, name):
            if "params" in record["identity"]:  # a benchmark's cell has another identity
                assert store.run_id(identity(OmegaConf.create(record["config"]))) == record["run_id"]
                checked += 1
    assert checked > 400
