"""A cell's record: what it says, and which rows it was allowed to see."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datasets
from datasets.base import Dataset
from repro import memory, store
from repro.run import identity, run_cell
from tests.repro.configs import compose_config

FAST = ("model.estimator.n_estimators=30", "model.estimator.early_stopping_rounds=4", "model.estimator.max_depth=3")


def run(*overrides: str, models_dir: Path | None = None) -> dict[str, Any]:
    return run_cell(compose_config(*FAST, *overrides), models_dir=models_dir)


def use(monkeypatch: pytest.MonkeyPatch, data: Dataset) -> None:
    monkeypatch.setattr(datasets, "load", lambda name: data)


@pytest.mark.parametrize("seed", ["null", "true", "1.0", "'1'", "-1"])
def test_a_seed_that_is_no_whole_number_is_refused(seed: str) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number"):
        run(f"seed={seed}")
    with pytest.raises(ValueError, match="seed must be a whole number"):
        identity(compose_config(f"seed={seed}"))


@pytest.mark.parametrize("protocol", ["paper", "holdout"])
@pytest.mark.parametrize("dataset", ["digits", "digits_inpainting"])
@pytest.mark.parametrize("model", ["gbdt_mo", "gbdt_sparse", "lightgbm"])
def test_a_record_is_whole(tmp_path: Path, dataset: str, model: str, protocol: str) -> None:
    choices = (f"dataset={dataset}", f"model={model}", f"protocol={protocol}")
    record = run(*choices, models_dir=tmp_path / "models")
    stored = store.RunStore(tmp_path)
    stored.write(record)
    assert stored.read(record["run_id"]) == json.loads(json.dumps(record))
    assert record["identity"]["seed"] == 0
    assert [record["identity"][key] for key in ("dataset", "model", "protocol")] == [dataset, model, protocol]
    assert (tmp_path / record["artifacts"]["model"]).is_file()
    assert len(list((tmp_path / "models").iterdir())) == 1
    assert record["dataset"]["n_fit"] == (1257 if protocol == "paper" else 1005)
    assert record["dataset"]["n_validation"] == (0 if protocol == "paper" else 252)
    assert record["dataset"]["n_test"] == 540
    assert record["scores"]["optimistic"] is (protocol == "paper")
    assert (record["scores"]["validation"] is None) is (protocol == "paper")
    seconds = record["seconds"]
    assert sum(seconds[phase] for phase in ("load", "select", "construct", "train", "predict")) <= seconds["total"]
    assert record["peak_memory_mb"] > 10


def test_the_paper_protocol_reports_the_best_test_score_of_the_run() -> None:
    record = run("dataset=digits", "model=xgboost", "protocol=paper")
    assert record["scores"]["metric"] == "accuracy"
    assert record["scores"]["test"] == pytest.approx(max(record["history"]["accuracy"]), abs=1e-6)


def test_the_holdout_protocol_sees_test_labels_only_when_it_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = ("dataset=digits", "model=gbdt_sparse", "protocol=holdout")
    data = datasets.load("digits")
    before = run(*choices)
    y = data.y.copy()
    test = data.split(0).test
    y[test] = (y[test] + 1) % 10
    use(monkeypatch, dataclasses.replace(data, y=y))
    after = run(*choices)
    same = ("best_round", "rounds", "history", "selected", "n_leaves")
    assert {key: before[key] for key in same} == {key: after[key] for key in same}
    assert before["scores"]["validation"] == after["scores"]["validation"]
    assert after["scores"]["test"] < 0.2 < before["scores"]["test"]


@pytest.mark.parametrize("protocol", ["paper", "holdout"])
def test_selection_keeps_the_best_setting_on_validation_rows(protocol: str) -> None:
    record = run("dataset=digits", "model=gbdt_sparse", f"protocol={protocol}")
    scores = {trial["params"]["top_k"]: trial["validation"] for trial in record["trials"]}
    assert list(scores) == [2, 4, 8]
    assert record["selected"] == {"top_k": max(scores, key=lambda k: scores[k])}
    if protocol == "holdout":  # the trial is the result
        assert record["scores"]["validation"] == max(scores.values())


def test_selection_is_the_same_for_both_protocols() -> None:
    choices = ("dataset=digits_inpainting", "model=gbdt_sparse")
    paper, holdout = (run(*choices, f"protocol={name}") for name in ("paper", "holdout"))
    assert paper["selected"] == holdout["selected"]
    assert [t["validation"] for t in paper["trials"]] == [t["validation"] for t in holdout["trials"]]


def test_any_hyperparameter_can_be_left_open() -> None:
    record = run("dataset=digits", "model=lightgbm", "+model.select={max_depth: [2, 4], learning_rate: [0.3]}")
    assert [trial["params"]["max_depth"] for trial in record["trials"]] == [2, 4]
    assert record["selected"]["learning_rate"] == 0.3
    assert record["identity"]["params"]["select"] == {"max_depth": [2, 4], "learning_rate": [0.3]}


def test_a_select_grid_must_hold_lists() -> None:
    with pytest.raises(ValueError, match=r"model\.select\.max_depth is 3; expected a list"):
        run("dataset=digits", "model=lightgbm", "+model.select.max_depth=3")


def test_a_config_of_another_task_is_refused() -> None:
    with pytest.raises(ValueError, match="task of digits is 'regression', the data set itself says 'multiclass'"):
        run("dataset=digits", "dataset.task=regression", "model=lightgbm")


def test_a_run_that_diverges_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    data = datasets.load("digits_inpainting")
    y = data.y.copy()
    y[data.split(0).test] = np.nan
    use(monkeypatch, dataclasses.replace(data, y=y))
    with pytest.raises(ValueError, match="not finite"):
        run("dataset=digits_inpainting", "model=lightgbm", "protocol=holdout")


def test_a_failed_save_leaves_no_model_under_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from repro.models.lightgbm import LightGBM

    def half(self: LightGBM, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(LightGBM, "save", half)
    with pytest.raises(OSError, match="disk full"):
        run("dataset=digits", "model=lightgbm", models_dir=tmp_path)
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith(".")]


def test_peak_memory_sees_an_allocation_and_forgets_it() -> None:
    if not memory.reset_peak():
        pytest.skip("this system does not forget a process's earlier peak")
    before = memory.peak_mb()
    block = np.ones(25 * 2**20)  # 200 MiB
    assert memory.peak_mb() - before > 150
    del block
    memory.reset_peak()
    assert memory.peak_mb() - before < 100


@pytest.mark.parametrize("dataset", ["digits", "digits_inpainting"])
def test_curves_hold_every_score_after_each_round(dataset: str) -> None:
    plain = run(f"dataset={dataset}", "model=gbdt_so")
    record = run(f"dataset={dataset}", "model=gbdt_so", "curves=true")
    assert record["scores"] == plain["scores"]
    assert record["run_id"] != plain["run_id"]
    for metric, score in record["scores"]["all"].items():
        curve = record["history"][f"test.{metric}"]
        assert len(curve) == np.max(record["best_round"])
        assert curve[-1] == score
    metric = record["scores"]["metric"]
    if metric == "accuracy":  # all outputs stop together: the curve that early stopping saw, up to the best round
        assert record["history"]["test.accuracy"] == record["history"]["accuracy"][: record["best_round"]]
    assert len(record["history"][f"train.{metric}"]) == len(record["history"][f"test.{metric}"])
