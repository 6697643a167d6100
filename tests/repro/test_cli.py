"""The command for one cell, alone and in a parallel multirun, from the shell as a user calls it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mlflow.tracking import MlflowClient

from repro.store import RunStore


def call(project_root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
    return subprocess.run(
        [sys.executable, "-m", "repro.cli", *arguments],
        cwd=project_root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def mlflow_runs(folder: Path) -> list[Any]:
    client = MlflowClient(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    return list(client.search_runs([client.get_experiment_by_name("gbdtmo/digits").experiment_id]))


def test_a_parallel_multirun_records_each_cell_once(project_root: Path, tmp_path: Path) -> None:
    cell = ["dataset=digits", "model=gbdt_mo", "protocol=holdout", "dataset.max_rounds=2", f"runs_dir={tmp_path}"]
    done = call(project_root, "-m", *cell, "seed=range(2)", "hydra/launcher=joblib")
    assert done.returncode == 0, done.stderr
    store = RunStore(tmp_path)
    records = list(store.records())
    assert sorted(record["identity"]["seed"] for record in records) == [0, 1]
    assert {record["scores"]["optimistic"] for record in records} == {False}
    before = {path.name: path.stat().st_mtime_ns for path in store.records_dir.iterdir()}
    runs = mlflow_runs(tmp_path)
    (parent,) = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    assert parent.info.run_name.startswith("multirun-")
    assert parent.info.run_name.endswith("_digits_gbdt_mo")
    assert {run.data.tags["mlflow.parentRunId"] for run in runs if run is not parent} == {parent.info.run_id}
    assert [run.info.status for run in runs] == ["FINISHED"] * 3
    again = call(project_root, *cell, "seed=1")
    assert again.returncode == 0, again.stderr
    assert "already recorded digits gbdt_mo holdout 1" in again.stdout
    assert {path.name: path.stat().st_mtime_ns for path in store.records_dir.iterdir()} == before


def test_a_multirun_of_an_experiment_writes_its_tables(project_root: Path, tmp_path: Path) -> None:
    settings = ["model.estimator.learning_rate=0.1,0.5", "model.estimator.max_depth=2", "seed=0"]
    cell = ["experiment=grid", "dataset=digits", "model=gbdt_mo", "dataset.max_rounds=2", f"runs_dir={tmp_path}"]
    done = call(project_root, "-m", *cell, *settings)
    assert done.returncode == 0, done.stderr
    assert "grid_digits_gbdt_mo.md" in done.stdout
    table = pd.read_csv(tmp_path / "tables/grid_digits_gbdt_mo.csv")
    assert table["n_seeds"].tolist() == [1, 1]
    by_name = {run.info.run_name: run for run in mlflow_runs(tmp_path)}
    parent = by_name.pop("grid_digits_gbdt_mo")
    assert parent.info.status == "FINISHED"
    assert float(parent.data.tags["chosen.learning_rate"]) == table.loc[table["chosen"], "learning_rate"].item()
    assert parent.data.metrics["chosen.validation"] == pytest.approx(table["validation_mean"].max())
    assert [run.data.tags["mlflow.parentRunId"] for run in by_name.values()] == [parent.info.run_id] * 2


def test_a_failed_cell_is_noted_and_told(project_root: Path, tmp_path: Path) -> None:
    done = call(project_root, "dataset=digits", "dataset.task=regression", f"runs_dir={tmp_path}")
    assert done.returncode == 1
    assert "the config says that the task of digits is 'regression'" in done.stderr
    (failure,) = (tmp_path / "failures").iterdir()
    assert "the config says" in failure.read_text()
    assert RunStore(tmp_path).identifiers() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model.estimator.learning_rate=-1",), "learning_rate"),
        (("+model.estimator.learningrate=0.2",), "learningrate"),
        (("+model.learning_rate=0.2",), "a hyper-parameter is model.estimator.learning_rate"),
        (("model.estimator.max_depth=abc",), "abc"),
        (("+bogus=1",), "nothing reads bogus"),
        (("-m", "+bogus=1,2"), "nothing reads bogus"),
        (("seed=null",), "seed must be a whole number"),
        (("dataset.name=iris",), "iris"),
        (("-m", "model.estimator.learning_rate=-1,-2", "hydra/launcher=joblib"), "learning_rate"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    project_root: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = call(project_root, *arguments, f"runs_dir={tmp_path}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
    assert RunStore(tmp_path).identifiers() == []


@pytest.mark.parametrize("arguments", [("runs_dir=",), ("runs_dir=null",), ("-m", "runs_dir=")])
def test_runs_need_a_folder(project_root: Path, arguments: tuple[str, ...]) -> None:
    """With none, Hydra's folder would be /hydra, and the records would land in the project."""
    done = call(project_root, *arguments)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: runs_dir must name the folder of the run store, such as ")
    assert not (project_root / "records").exists()


@pytest.mark.parametrize("arguments", [(), ("-m", "seed=0,1")])
def test_a_folder_that_cannot_be_made_is_named(project_root: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("")
    done = call(project_root, *arguments, "dataset=digits", f"runs_dir={tmp_path / 'file' / 'runs'}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"error: cannot write {tmp_path / 'file' / 'runs'}")
