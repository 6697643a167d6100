"""Sweeps of quick stand-in cells: what is run, what is not, and what a failure leaves."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import fake_cells
import pandas as pd
import pytest
from filelock import FileLock
from mlflow.tracking import MlflowClient
from omegaconf import OmegaConf

import datasets
from repro import sweep, workers
from repro.job import complete
from repro.plan import Plan, make_plan
from repro.store import RunStore, StoreError
from repro.sweep import Busy, run_sweep

NARROW = ("--datasets", "digits", "--models", "gbdt_mo", "--seeds", "1")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan("table5", datasets=["digits"], models=["gbdt_mo"], seeds=3)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def executions(store: RunStore) -> list[str]:
    return (store.root / "executions.log").read_text().splitlines()


def test_every_cell_is_recorded_once_and_not_run_again(
    plan: Plan, store: RunStore, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_sweep(plan, store, runner=fake_cells.quick) == []
    assert store.identifiers() == sorted(cell.run_id for cell in plan.cells)
    assert run_sweep(plan, store, runner=fake_cells.quick) == []
    assert sorted(executions(store)) == sorted(f"{cell.run_id} once" for cell in plan.cells)
    lines = capfd.readouterr().err
    assert len(re.findall(r"\[\d/6\] digits gbdt_mo \w+ seed \d: (?:validation )?accuracy", lines)) == 6
    assert "6 cells, 6 recorded" in lines
    assert list((store.root / "logs").iterdir()) == []


def test_only_what_is_missing_is_run(plan: Plan, store: RunStore) -> None:
    run_sweep(plan, store, runner=fake_cells.quick)
    lost = plan.cells[2].run_id
    store.record_path(lost).unlink()
    run_sweep(plan, store, runner=fake_cells.quick)
    assert executions(store)[6:] == [f"{lost} once"]


def test_a_record_of_other_data_is_not_taken_for_this(
    plan: Plan, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set of one's own may get other rows under the same name."""
    monkeypatch.setattr(datasets, "file_checksums", lambda name: {"mine.arff": "a"} if name == "digits" else {})
    old, new = ({"source": "made up", "sha256": {"mine.arff": digest}} for digest in "ba")
    sizes = {"n_fit": 10, "n_validation": 0, "n_test": 5}
    for cell, data in zip(plan.cells, [new, old], strict=False):
        store.write(fake_cells.record_of(OmegaConf.create(cell.config), dataset=data | sizes))
    message = rf"{plan.cells[1].run_id} on 'digits' was made from another mine\.arff .* delete .*{plan.cells[1].run_id}"
    with pytest.raises(StoreError, match=message):
        run_sweep(plan, store, runner=fake_cells.quick)
    with pytest.raises(StoreError, match=message):
        complete(OmegaConf.create(plan.cells[1].config), store, fake_cells.quick)
    assert not complete(OmegaConf.create(plan.cells[0].config), store, fake_cells.quick)
    assert not (store.root / "executions.log").exists()
    store.record_path(plan.cells[1].run_id).unlink()
    assert run_sweep(plan, store, runner=fake_cells.quick) == []


def test_a_bad_record_stops_only_a_sweep_that_needs_it(plan: Plan, store: RunStore) -> None:
    store.prepare()
    store.record_path("0" * 16).write_text("{}")
    needed = plan.cells[0].run_id
    store.record_path(needed).write_text('{"schema": 1, "run_')
    with pytest.raises(StoreError, match=needed):
        run_sweep(plan, store, runner=fake_cells.quick)
    assert not (store.root / "executions.log").exists()
    store.record_path(needed).unlink()
    assert run_sweep(plan, store, runner=fake_cells.quick) == []


@pytest.mark.parametrize(
    ("runner", "reason"),
    [
        (fake_cells.failing, r"ValueError: seed 1 does not converge"),
        (fake_cells.dying, r"killed by SIGKILL \(out of memory\?\); the end of its output: allocating"),
    ],
)
def test_a_failed_cell_stops_no_other_and_is_tried_again(
    plan: Plan, store: RunStore, runner: object, reason: str
) -> None:
    missing = run_sweep(plan, store, runner=runner)  # type: ignore[arg-type]
    assert [cell.seed for cell in missing] == [1, 1]
    assert len(store.identifiers()) == 4
    for cell in missing:
        failure = store.failure(cell.run_id)
        assert failure is not None
        assert re.search(reason, failure)
    assert run_sweep(plan, store, runner=fake_cells.quick) == []
    assert list(store.failures_dir.iterdir()) == []
    assert sorted(executions(store)) == sorted(f"{cell.run_id} once" for cell in plan.cells)


def test_cells_that_lose_their_server_are_waited_for(plan: Plan, store: RunStore) -> None:
    (missing,) = run_sweep(plan, store, runner=fake_cells.orphaned, processes=1)
    assert (missing.seed, missing.protocol) == (1, "paper")
    assert store.failure(missing.run_id) == "ValueError: fails as an orphan"
    assert len(store.identifiers()) == 5


@pytest.mark.parametrize("always", [False, True])
def test_a_server_killed_while_it_loads_is_started_again(tmp_path: Path, project_root: Path, always: bool) -> None:
    kill = "import os, pathlib\nmark = pathlib.Path(__file__).with_suffix('.mark')\n"
    kill += f"if {always} or not mark.exists():\n    mark.touch()\n    os.kill(os.getpid(), 9)\n"
    (tmp_path / "killed.py").write_text(kill)
    script = (
        "from pathlib import Path; from repro.workers import run_each;"
        "print(list(run_each(print, [('ran',)], processes=1, logs=[Path('log')], preload=['killed'])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(project_root), str(tmp_path)])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if always:
        assert "WorkersError: no worker process can be started" in done.stderr
    else:
        assert done.stdout == "[(0, 0)]\n", done.stderr
        assert (tmp_path / "log").read_text() == "ran\n"


def test_workers_that_cannot_be_started_are_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> int:
        raise workers.WorkersError("no worker")

    monkeypatch.setattr(sweep, "_sweep_and_report", refuse)
    assert sweep.main(["experiment=table5", *NARROW]) == 2
    assert "error: no worker" in capsys.readouterr().err


def test_terminated_while_it_loads_mlflow_it_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminating:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "repro.tracking":
                signal.raise_signal(signal.SIGTERM)

    monkeypatch.delitem(sys.modules, "repro.tracking", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Terminating(), *sys.meta_path])
    assert sweep.main(["experiment=table5", *NARROW, f"runs_dir={tmp_path}"]) == 130
    assert "interrupted; the same command goes on from here" in capsys.readouterr().err


def test_a_record_that_is_no_json_is_a_failure(plan: Plan, store: RunStore) -> None:
    missing = run_sweep(plan, store, runner=fake_cells.not_finite)
    assert len(missing) == 6
    assert "not JSON compliant" in str(store.failure(missing[0].run_id))


def test_a_data_set_that_cannot_be_had_leaves_gaps_with_the_reason(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = datasets.load

    def without_inpainting(name: str) -> datasets.Dataset:
        if name == "digits_inpainting":
            raise datasets.MissingDataError("get it there, put it here")
        return load(name)

    monkeypatch.setattr(datasets, "load", without_inpainting)
    both = make_plan("table5", datasets=["digits_inpainting", "digits"], models=["gbdt_mo"], seeds=1)
    missing = run_sweep(both, store, runner=fake_cells.quick)
    assert {cell.dataset for cell in missing} == {"digits_inpainting"}
    assert store.missing_dataset("digits_inpainting") == "MissingDataError: get it there, put it here"
    monkeypatch.undo()
    assert run_sweep(both, store, runner=fake_cells.quick) == []
    assert store.missing_dataset("digits_inpainting") is None


def test_a_second_sweep_at_the_same_time_is_refused(plan: Plan, store: RunStore) -> None:
    store.prepare()
    with FileLock(store.root / "sweep.lock"), pytest.raises(Busy, match="another sweep is running on"):
        run_sweep(plan, store, runner=fake_cells.quick)
    assert store.identifiers() == []


def test_a_folder_that_cannot_be_written_stops_before_any_work(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        run_sweep(plan, RunStore(tmp_path / "runs"), runner=fake_cells.quick)


def test_a_disk_that_fills_up_stops_the_sweep(plan: Plan, store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.prepare()
    usage = shutil.disk_usage(store.root)
    free = iter([usage.free, 2**20])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=next(free)))
    with pytest.raises(StoreError, match=r"only 1 MiB are free under .* What is recorded stays"):
        run_sweep(plan, store, runner=fake_cells.failing, processes=1)
    assert [record["identity"]["seed"] for record in store.records()] == [0]


@pytest.mark.parametrize(("cells", "asked", "expected"), [(10, None, (2, 2)), (1, None, (1, 4)), (9, 4, (4, 1))])
def test_threads_are_divided_among_the_processes(
    cells: int, asked: int | None, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "usable_cpus", lambda: 4)
    # Memory for two processes.
    monkeypatch.setattr(sweep.os, "sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 2**20)
    assert sweep._divide(cells, asked) == expected


def test_the_cells_get_their_threads(plan: Plan, store: RunStore) -> None:
    run_sweep(plan, store, runner=fake_cells.quick, processes=1)
    assert {record["provenance"]["threads"] for record in store.records()} == {sweep.usable_cpus()}


def test_a_crash_without_output_is_told_by_its_signal(tmp_path: Path) -> None:
    assert workers.describe_death(-11, tmp_path / "none") == "the process was killed by SIGSEGV without any output"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seeds", "2"],
        ["experiment=a", "experiment=b"],
        ["experiment=a", "--seeds", "x"],
        ["experiment=table5", "--datasets", ","],
        ["experiment=table5", "dataset=yeast", "--datasets", "digits"],
        ["experiment=table5", "seed=1", "--seeds", "2"],
        ["experiment=table5", "--processes", "0"],
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as status:
        sweep.main(arguments)
    assert status.value.code == 2


def test_an_unknown_data_set_is_refused_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep.main(["experiment=table5", "--datasets", "iris"]) == 2
    assert "no dataset named iris" in capsys.readouterr().err


def test_the_command_runs_real_cells_and_writes_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    whole_table = f"`.venv/bin/python -m repro.report table table5 runs_dir={tmp_path / 'runs'}` writes the whole table"
    runs = tmp_path / "runs"
    overrides = [f"runs_dir={runs}", "dataset.max_rounds=3"]
    arguments = ["experiment=table5", *NARROW, *overrides]
    assert sweep.main(arguments) == 0
    assert whole_table in capsys.readouterr().err
    records = list(RunStore(runs).records())
    assert {record["identity"]["protocol"] for record in records} == {"paper", "holdout"}
    assert all(record["rounds"] <= 3 for record in records)
    sidecar = json.loads((runs / "tables" / "table5.json").read_text())
    assert sorted(sidecar["runs"]) == sorted(record["run_id"] for record in records)
    assert "digits (accuracy %) | gbdt_mo" in (runs / "tables" / "table5.md").read_text()


def test_a_grid_ends_with_its_choice_at_one_parent_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    settings = ["model.estimator.learning_rate=0.1,0.5", "model.estimator.max_depth=2,3"]
    arguments = ["experiment=grid", *NARROW, *settings, "dataset.max_rounds=2", f"runs_dir={tmp_path}"]
    for _ in range(2):  # the second time there is nothing left to do
        assert sweep.main(arguments) == 0
        client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
        experiment = client.get_experiment_by_name("gbdtmo/digits").experiment_id
        runs = {run.info.run_name: run for run in client.search_runs([experiment])}
        parent = runs.pop("grid_digits_gbdt_mo")
        assert parent.info.status == "FINISHED"
        assert {run.data.tags["mlflow.parentRunId"] for run in runs.values()} == {parent.info.run_id}
        rows = pd.read_csv(tmp_path / "tables" / "grid_digits_gbdt_mo.csv")
        assert len(runs) == rows["n_seeds"].sum() == len(RunStore(tmp_path).identifiers())
        assert parent.data.tags["chosen.learning_rate"] == str(rows.loc[rows["chosen"], "learning_rate"].item())
        files = {Path(file.path).suffix for file in client.list_artifacts(parent.info.run_id, "summary")}
        assert files == {".md", ".csv", ".json", ".png", ".svg"}


def test_a_line_of_label_sets_names_the_ranking_loss_too() -> None:
    scores = {"metric": "top1_accuracy", "validation": None, "test": 0.75, "all": {"label_ranking_loss": 0.21}}
    assert sweep._score(scores) == "top1_accuracy 0.75000, label_ranking_loss 0.21000"
    assert sweep._score({**scores, "all": {}}) == "top1_accuracy 0.75000"
