"""What MLflow holds after mirroring, read back through its own client."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from configs import compose_config
from fake_cells import record_of
from mlflow.entities import RunTag
from mlflow.tracking import MlflowClient

from repro import tracking
from repro.store import RunStore, unseal
from repro.tracking import RUN_ID_TAG, SWEEP_TAG, Finish, Mirror


@pytest.fixture(autouse=True)
def _default_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without runs, made once: MLflow takes seconds for it."""
    store = RunStore(tmp_path_factory.mktemp("template"))
    store.prepare()
    assert Mirror(store).sync() == 0
    return store.root / "mlflow.db"


@pytest.fixture
def store(tmp_path: Path, template: Path) -> RunStore:
    made = RunStore(tmp_path / "my runs")
    made.prepare()
    (made.root / "mlflow.db").write_bytes(template.read_bytes())
    return made


def record(seed: int, **changes: Any) -> dict[str, Any]:
    return record_of(compose_config("protocol=holdout", f"seed={seed}"), **changes)


def client_of(store: RunStore) -> MlflowClient:
    return MlflowClient(tracking_uri=Mirror(store).uri)


def mirrored(store: RunStore) -> list[Any]:
    client = client_of(store)
    experiment = client.get_experiment_by_name("gbdtmo/digits")
    return list(client.search_runs([experiment.experiment_id])) if experiment else []


def test_a_run_is_mirrored_with_params_scores_curve_and_artefacts(store: RunStore, tmp_path: Path) -> None:
    curve = [1 - 0.9 * 0.999**i for i in range(2500)]  # more than one batch
    (store.models_dir / "m.bin").write_bytes(b"model")
    data = {**record(3)["dataset"], "sha256": {"digits.csv.gz": "0a1b"}}
    one = record(3, history={"accuracy": curve}, artifacts={"model": "models/m.bin"}, best_round=[4, 8], dataset=data)
    store.write(one)
    assert Mirror(store).sync() == 1
    (run,) = mirrored(store)
    assert run.info.status == "FINISHED"
    assert run.data.tags[RUN_ID_TAG] == one["run_id"]
    assert run.data.tags["sha256.digits.csv.gz"] == "0a1b"
    own = one["identity"]["params"]
    settings = f"learning_rate={own['learning_rate']} max_depth={own['max_depth']}"
    assert run.info.run_name == f"gbdt_mo holdout seed 3 {settings}"
    assert run.data.params["dataset"] == "digits"
    assert run.data.params["seed"] == "3"
    assert run.data.params["max_depth"] == str(one["identity"]["params"]["max_depth"])
    assert run.data.metrics["test"] == one["scores"]["test"]
    assert run.data.metrics["validation"] == one["scores"]["validation"]
    assert run.data.metrics["best_round"] == 6
    assert run.data.metrics["seconds.train"] == 5.0
    client = client_of(store)
    history = client.get_metric_history(run.info.run_id, "curve.accuracy")
    assert [(point.step, point.value) for point in history] == list(enumerate(curve, start=1))
    folder = Path(client.download_artifacts(run.info.run_id, "", str(tmp_path)))
    assert unseal(json.loads((folder / "record" / f"{one['run_id']}.json").read_text()), "artefact", "") == one
    assert yaml.safe_load((folder / "config.yaml").read_text()) == one["config"]
    assert (folder / "model" / "m.bin").read_bytes() == b"model"
    assert (store.root / "mlartifacts" / "digits" / run.info.run_id).is_dir()


def test_a_mirrored_run_is_not_written_again(store: RunStore) -> None:
    store.write(record(0))
    assert Mirror(store).sync() == 1
    store.write(record(1))
    assert Mirror(store).sync() == 1
    assert Mirror(store).sync([record(1)["run_id"]]) == 0
    assert len(mirrored(store)) == 2


def children_of(store: RunStore, parent: str) -> list[str]:
    found = [run for run in mirrored(store) if run.data.tags.get("mlflow.parentRunId") == parent]
    return sorted(run.data.params["seed"] for run in found)


def parents(store: RunStore) -> list[Any]:
    return [run for run in mirrored(store) if SWEEP_TAG in run.data.tags]


def test_the_runs_of_a_sweep_are_children_of_one_parent(store: RunStore, tmp_path: Path) -> None:
    store.write(record(0))
    Mirror(store).sync()  # mirrored before there was a sweep
    for seed in (1, 2):
        store.write(record(seed))
    mirror = Mirror(store, sweep="grid")
    assert mirror.sync([record(1)["run_id"]]) == 1
    assert mirror.sync([record(0)["run_id"], record(1)["run_id"]]) == 0
    (parent,) = parents(store)
    assert parent.data.tags["mlflow.runName"] == "grid_digits_gbdt_mo"
    assert children_of(store, parent.info.run_id) == ["0", "1"]
    (tmp_path / "grid.md").write_text("a table")
    for is_whole in (False, True):  # a sweep that goes on finds its parent again
        finish = Finish(is_whole, {"chosen.max_depth": f"{4 + is_whole}"}, {"chosen.test": 0.5}, [tmp_path / "grid.md"])
        Mirror(store, sweep="grid").finish("digits", "gbdt_mo", finish)
        (parent,) = parents(store)
        assert parent.info.status == ("FINISHED" if is_whole else "FAILED")
    assert parent.data.tags["chosen.max_depth"] == "5"
    assert parent.data.metrics["chosen.test"] == 0.5
    (file,) = client_of(store).list_artifacts(parent.info.run_id, "summary")
    assert file.path == "summary/grid.md"
    # The parent is no run of ours: the third record is still missing, and belongs to no sweep.
    assert Mirror(store).sync() == 1
    assert children_of(store, parent.info.run_id) == ["0", "1"]


def test_another_sweep_takes_runs_over(store: RunStore) -> None:
    store.write(record(0))
    identifiers = [record(0)["run_id"]]
    for sweep in ("grid", "table9"):
        Mirror(store, sweep=sweep).sync(identifiers)
    first, second = sorted(parents(store), key=lambda run: run.data.tags[SWEEP_TAG])
    assert (children_of(store, first.info.run_id), children_of(store, second.info.run_id)) == ([], ["0"])


def test_a_run_left_half_mirrored_is_replaced(store: RunStore) -> None:
    store.write(record(0))
    store.write(record(1))
    Mirror(store).sync([record(1)["run_id"]])
    client = client_of(store)
    experiment = client.get_experiment_by_name("gbdtmo/digits").experiment_id
    half = client.create_run(experiment, tags={RUN_ID_TAG: record(0)["run_id"]})
    client.log_batch(half.info.run_id, tags=[RunTag("half", "yes")])
    assert Mirror(store).sync() == 1
    runs = mirrored(store)
    assert {run.data.tags[RUN_ID_TAG] for run in runs} == {record(0)["run_id"], record(1)["run_id"]}
    assert [run for run in runs if run.info.status != "FINISHED" or "half" in run.data.tags] == []


def test_a_server_that_is_down_costs_a_warning_and_no_record(
    store: RunStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    store.write(record(0))
    mirror = Mirror(store)
    with caplog.at_level(logging.WARNING, logger="repro.tracking"):
        assert mirror.try_sync() == 0
        assert mirror.try_sync() == 0
    warnings = [entry.message for entry in caplog.records if entry.name == "repro.tracking"]
    assert len(warnings) == 1
    assert uri in warnings[0]
    assert "records are safe" in warnings[0]
    assert store.has(record(0)["run_id"])
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert Mirror(store).try_sync() == 1


@pytest.mark.parametrize("content", [None, b"no database at all" * 100], ids=["folder", "garbage"])
@pytest.mark.parametrize("named", [False, True])
def test_a_database_that_cannot_be_opened_is_told_before_mlflow_tries(
    tmp_path: Path,
    content: bytes | None,
    named: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = RunStore(tmp_path)
    store.write(record(0))
    database = tmp_path / "mlflow.db"
    if content is None:
        database.mkdir()
    else:
        database.write_bytes(content)
    monkeypatch.setattr(tracking, "MlflowClient", None)  # it would try for minutes
    mirror = Mirror(store, f"sqlite:///{database}" if named else None)
    assert mirror.try_sync() == 0
    assert mirror.is_down
    assert "mlflow.db is no SQLite database" in caplog.text
    assert tracking.main(["sync", "--runs-dir", str(tmp_path)]) == 1


def test_what_was_there_already_is_told(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(record(0))
    Mirror(store).sync()
    store.write(record(1))
    store.record_path("0" * 16).write_text("{}")  # no record: it is left out
    assert tracking.main(["sync", "--runs-dir", str(store.root)]) == 0
    assert re.search(r"^1 runs mirrored to sqlite:.*, 1 were there already$", capsys.readouterr().out, re.MULTILINE)


def test_processes_that_mirror_at_once_do_not_break_a_new_database(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for seed in range(3):
        store.write(record(seed))
    command = [sys.executable, "-m", "repro.tracking", "sync", "--runs-dir", str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum(int(output.split()[0]) for output in outputs) == 3
    assert sorted(run.data.tags[RUN_ID_TAG] for run in mirrored(store)) == sorted(store.identifiers())


def test_the_page_serves_the_runs(store: RunStore) -> None:
    store.write(record(0))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "repro.tracking", "ui", "--runs-dir", str(store.root), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        search = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/2.0/mlflow/experiments/search?max_results=10", method="GET"
        )
        assert "gbdtmo/digits" in _answer(search, server)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def _answer(request: urllib.request.Request, server: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        assert server.poll() is None
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return str(response.read().decode())
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise AssertionError("no answer within three minutes")
