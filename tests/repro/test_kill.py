"""A sweep killed at any moment leaves whole records, a readable MLflow store and no process; the next finishes it."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from repro.store import RunStore
from repro.tracking import RUN_ID_TAG, Mirror

HERE = Path(__file__).resolve().parent
SEEDS = 4  # 8 cells


@pytest.fixture(autouse=True)
def _default_mlflow_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def start(root: Path, runner: str, mirrored: bool) -> subprocess.Popen[str]:
    """Start a sweep of fake cells and wait until it has planned them."""
    arguments = [str(root), runner, str(SEEDS), "mirrored" if mirrored else "plain"]
    process = python(str(HERE / "fake_cells.py"), *arguments)
    assert process.stdout is not None
    assert process.stdout.readline() == "planned\n"
    return process


def python(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        # What a shell starts in the background ignores interrupts, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def kill(process: subprocess.Popen[str], with_workers: bool = False) -> None:
    """Kill the sweep alone, or with its workers at once, and see that no process stays."""
    workers = psutil.Process(process.pid).children(recursive=True)
    if with_workers:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()  # not read to its end: a worker that stays would keep it open
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []


def check_store(root: Path) -> None:
    """Every record is whole, every table of the MLflow database readable."""
    list(RunStore(root).records())
    database = root / "mlflow.db"
    if database.exists():
        with closing(sqlite3.connect(database)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def check_finished(root: Path, mirrored: bool) -> None:
    runs = RunStore(root)
    assert len(runs.identifiers()) == 2 * SEEDS
    assert [*root.glob("*/.*.tmp"), *root.glob(".mlflow*")] == []
    executed = [line.split() for line in (root / "executions.log").read_text().splitlines()]
    assert {run for run, _ in executed} == set(runs.identifiers())
    assert [run for run, how in executed if how == "twice"] == []
    if mirrored:
        finished = [run for run in mlflow_runs(root) if run.info.status == "FINISHED"]
        assert len(finished) == len(mlflow_runs(root))
        assert Counter(run.data.tags[RUN_ID_TAG] for run in finished) == Counter(runs.identifiers())


def mlflow_runs(root: Path) -> list[object]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=Mirror(RunStore(root), f"sqlite:///{root / 'mlflow.db'}").uri)
    experiment = client.get_experiment_by_name("gbdtmo/digits")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id]))


def test_killed_at_random_moments_it_is_finished_by_the_next_call(tmp_path: Path) -> None:
    moments = random.Random(20)
    for attempt in range(5):
        process = start(tmp_path, "slow", mirrored=False)
        time.sleep(moments.uniform(0, 2))
        kill(process, with_workers=attempt % 2 == 1)
        check_store(tmp_path)
    process = start(tmp_path, "slow", mirrored=False)
    process.communicate(timeout=300)
    assert process.returncode == 0
    check_finished(tmp_path, mirrored=False)


def test_killed_while_it_mirrors_it_is_mirrored_by_the_next_call(tmp_path: Path) -> None:
    moments = random.Random(21)
    for attempt in range(6):
        if attempt == 2:  # until here MLflow's tables were being made
            Mirror(RunStore(tmp_path)).sync([])
        process = start(tmp_path, "quick", mirrored=True)
        time.sleep(moments.uniform(0, 2))
        kill(process, with_workers=attempt % 2 == 1)
        check_store(tmp_path)
    process = start(tmp_path, "quick", mirrored=True)
    process.communicate(timeout=300)
    assert process.returncode == 0
    check_finished(tmp_path, mirrored=True)


def wait_for(folder: Path, pattern: str, number: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(folder.glob(pattern))) < number:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_workers_that_compute_for_ever_die_with_the_sweep(tmp_path: Path) -> None:
    process = start(tmp_path, "endless", mirrored=False)
    wait_for(tmp_path, "logs/*.log", 2)
    assert len(psutil.Process(process.pid).children(recursive=True)) >= 3  # the two cells' processes and their parent
    kill(process)


def test_workers_of_a_multirun_die_with_it(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from joblib import Parallel, delayed; from fake_cells import *;"
        "Parallel(n_jobs=2)(delayed(endless_in_joblib)(Path(sys.argv[1])) for _ in range(2))"
    )
    process = python("-c", script, str(tmp_path))
    wait_for(tmp_path, "*", 2)
    kill(process)


def test_interrupted_it_stops_its_workers(tmp_path: Path) -> None:
    process = start(tmp_path, "endless", mirrored=False)
    wait_for(tmp_path, "logs/*.log", 2)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
