"""Mirror of the run records in MLflow: ``python -m repro.tracking ui`` shows it, ``... sync`` brings it up to date.

The records are the truth. What is missing in MLflow, or was half written when a process was killed, is written again by
the next call; deleting ``mlflow.db`` and ``mlartifacts`` loses nothing. The runs of a sweep over settings are nested
below one parent run for each data set and model.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

# Set before MLflow is imported: it reads them once. A server that is down must not hold up a sweep for minutes.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")

import yaml
from filelock import FileLock
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import SQLAlchemyError

from repro.provenance import ROOT
from repro.store import RunStore, StoreError

T = TypeVar("T")
log = logging.getLogger(__name__)
for _chatty in ("mlflow.store.db.utils", "alembic"):  # a line for each of dozens of migrations
    logging.getLogger(_chatty).setLevel(logging.WARNING)

PREFIX = "gbdtmo/"
RUN_ID_TAG = "gbdtmo.run_id"
SWEEP_TAG = "gbdtmo.sweep"
SWEEP_VARIABLE = "GBDTMO_SWEEP"
"""Environment variable by which a multirun names its sweep to its jobs."""
_PARENT_TAG = "mlflow.parentRunId"  # what MLflow's page nests runs by
_BATCH = 1000  # the most metrics MLflow takes in one call
_PAGE = 1000
_PARAM_LENGTH = 500
_NAMED = ("learning_rate", "max_depth")  # what the grid sweeps, shown in a run's name


class Mirror:
    """Writes run records to MLflow, each once.

    Parameters
    ----------
    store : RunStore
        Whose records are mirrored. The default database and its artefacts lie in the store's folder.
    uri : str, optional
        Tracking URI; ``MLFLOW_TRACKING_URI`` if not given, and the SQLite file ``mlflow.db`` if that is not set.
    sweep : str, optional
        Name of a sweep: the runs that `sync` is given by name become children of its parent runs, see `parent_name`. A
        run that belonged to another sweep is taken over.
    """

    def __init__(self, store: RunStore, uri: str | None = None, sweep: str | None = None) -> None:
        self._store = store
        self._sweep = sweep
        self._database = store.root.resolve() / "mlflow.db"
        self._is_default = not (uri or os.environ.get("MLFLOW_TRACKING_URI"))
        self.uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self._database}"
        # One writer at a time: parallel ones would break a SQLite schema that is being made, and a run that another
        # process is writing would look like one left by a kill.
        self._lock = FileLock(str(store.root / "mlflow.lock"))
        self.is_down = False
        self.n_present = 0
        """How many runs the last `sync` found mirrored already."""

    def try_sync(self, identifiers: Iterable[str] | None = None) -> int:
        """Do `sync`, but answer failure with a warning and try no more in this process."""
        return self._try(lambda: self.sync(identifiers)) or 0

    def try_finish(self, dataset: str, model: str, finish: Finish) -> None:
        """Do `finish`, but answer failure with a warning and try no more in this process."""
        self._try(lambda: self.finish(dataset, model, finish))

    def try_end(self) -> None:
        """Do `end`, but answer failure with a warning."""
        self._try(self.end)

    def _try(self, action: Callable[[], T]) -> T | None:
        if self.is_down:
            return None
        try:
            return action()
        except (MlflowException, SQLAlchemyError, OSError) as error:
            self.is_down = True
            log.warning(
                "MLflow at %s cannot be written (%s). The run records are safe; the next call mirrors them.",
                self.uri,
                " ".join(str(error).split())[:300],
            )
            return None

    def sync(self, identifiers: Iterable[str] | None = None) -> int:
        """Mirror the records that MLflow lacks.

        Parameters
        ----------
        identifiers : iterable of str, optional
            Only these runs, which become children of the sweep's parents; all records of the store if not given.

        Returns
        -------
        int
            Number of runs written now.
        """
        wanted = self._store.identifiers() if identifiers is None else list(identifiers)
        sweep = None if identifiers is None else self._sweep
        written = 0
        with self._lock:
            self._check_database()
            self._make_database()
            client = MlflowClient(tracking_uri=self.uri)
            experiments = _experiments(client)
            only = wanted[0] if len(wanted) == 1 else None
            finished, unfinished = _mirrored(client, list(experiments.values()), only)
            missing = [identifier for identifier in wanted if identifier not in finished]
            self.n_present = len(wanted) - len(missing)
            for identifier in missing:
                for broken in unfinished.get(identifier, []):
                    client.delete_run(broken)
                try:
                    record = self._store.read(identifier)
                except StoreError as error:  # it must not keep the others out
                    log.warning("not mirrored: %s", error)
                    continue
                experiment = self._experiment(client, experiments, record["identity"]["dataset"])
                parent = _parent(client, experiment, parent_name(sweep, record["identity"])) if sweep else None
                _write_run(client, experiment, record, self._store, parent)
                written += 1
            if sweep:
                self._nest(client, experiments, sweep, [finished[one] for one in wanted if one in finished])
        return written

    @staticmethod
    def _nest(client: MlflowClient, experiments: Mapping[str, str], sweep: str, runs: Iterable[Any]) -> None:
        """Make runs that were mirrored before children of the sweep's parents."""
        for run in runs:
            name = parent_name(sweep, run.data.params)
            parent = _parent(client, experiments[PREFIX + run.data.params["dataset"]], name)
            if run.data.tags.get(_PARENT_TAG) != parent:
                client.set_tag(run.info.run_id, _PARENT_TAG, parent)

    def finish(self, dataset: str, model: str, finish: Finish) -> None:
        """Write a sweep's summary to its parent run, and end that."""
        if self._sweep is None:
            raise ValueError("no sweep to finish: the mirror was made without one")
        with self._lock:
            self._make_database()
            client = MlflowClient(tracking_uri=self.uri)
            experiment = self._experiment(client, _experiments(client), dataset)
            parent = _parent(client, experiment, parent_name(self._sweep, {"dataset": dataset, "model": model}))
            for key, value in {"dataset": dataset, "model": model, **finish.tags}.items():
                client.set_tag(parent, key, value)  # a parameter could not change when the sweep goes on
            now = int(time.time() * 1000)
            client.log_batch(parent, metrics=[Metric(key, value, now, 0) for key, value in finish.metrics.items()])
            for path in finish.files:
                client.log_artifact(parent, str(path), "summary")
            client.set_terminated(parent, status="FINISHED" if finish.is_whole else "FAILED")

    def end(self) -> None:
        """End the sweep's parent runs that no summary has ended."""
        with self._lock:
            self._make_database()
            client = MlflowClient(tracking_uri=self.uri)
            for run in _runs(client, list(_experiments(client).values()), f"tags.`{SWEEP_TAG}` LIKE '{self._sweep}_%'"):
                if run.info.status == "RUNNING":
                    client.set_terminated(run.info.run_id)

    def _check_database(self) -> None:
        """Refuse a file that SQLite cannot read: MLflow would try again for minutes."""
        path = Path(self.uri.removeprefix("sqlite:///"))
        if not (self.uri.startswith("sqlite:///") and path.exists()):
            return
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error as error:
            raise OSError(f"{path} is no SQLite database: {error}; move it away and a new one is made") from error

    def _make_database(self) -> None:
        """Make the default database whole or not at all: one half migrated by a killed process could not be opened."""
        if not self._is_default or self._database.exists():
            return
        for leftover in self._database.parent.glob(".mlflow-*.tmp"):  # of a killed process: we hold the lock
            shutil.rmtree(leftover)
        with tempfile.TemporaryDirectory(prefix=".mlflow-", suffix=".tmp", dir=self._database.parent) as folder:
            fresh = Path(folder) / "mlflow.db"
            MlflowClient(tracking_uri=f"sqlite:///{fresh}").search_experiments(max_results=1)
            os.replace(fresh, self._database)

    def _experiment(self, client: MlflowClient, experiments: dict[str, str], dataset: str) -> str:
        name = PREFIX + dataset
        if name not in experiments:
            location = (self._store.root.resolve() / "mlartifacts" / dataset).as_uri()
            experiments[name] = client.create_experiment(name, artifact_location=location if self._is_default else None)
        return experiments[name]


@dataclass(frozen=True)
class Finish:
    """What a sweep's parent run shows at its end.

    Attributes
    ----------
    is_whole : bool
        Whether every cell is recorded.
    tags : mapping of str to str
        What was chosen.
    metrics : mapping of str to float
    files : sequence of Path
        The tables and drawings.
    """

    is_whole: bool
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    files: Sequence[Path]


def parent_name(sweep: str, run: Mapping[str, Any]) -> str:
    """Name the parent of a run, given by its ``dataset`` and ``model``, in a sweep."""
    return f"{sweep}_{run['dataset']}_{run['model']}"


def _parent(client: MlflowClient, experiment: str, name: str) -> str:
    """Return the parent run of this name, made if there is none yet; callers hold the lock."""
    for run in _runs(client, [experiment], f"tags.`{SWEEP_TAG}` = '{name}'"):
        return str(run.info.run_id)
    return str(client.create_run(experiment, run_name=name, tags={SWEEP_TAG: name}).info.run_id)


def _experiments(client: MlflowClient) -> dict[str, str]:
    found = client.search_experiments(filter_string=f"name LIKE '{PREFIX}%'", max_results=_PAGE)
    return {experiment.name: experiment.experiment_id for experiment in found}


def _mirrored(
    client: MlflowClient, experiments: list[str], only: str | None
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the MLflow runs by run id of those mirrored whole, and of those begun only; of one run or of all."""
    finished: dict[str, Any] = {}
    unfinished: dict[str, list[str]] = {}
    query = f"tags.`{RUN_ID_TAG}` = '{only}'" if only else f"tags.`{RUN_ID_TAG}` != ''"
    for run in _runs(client, experiments, query):
        identifier = run.data.tags[RUN_ID_TAG]
        if run.info.status == "FINISHED":
            finished[identifier] = run
        else:
            unfinished.setdefault(identifier, []).append(run.info.run_id)
    return finished, unfinished


def _runs(client: MlflowClient, experiments: list[str], query: str) -> Iterator[Any]:
    token = None
    while experiments:
        page = client.search_runs(
            experiments, query, run_view_type=ViewType.ACTIVE_ONLY, max_results=_PAGE, page_token=token
        )
        yield from page
        token = page.token
        if not token:
            return


def _write_run(
    client: MlflowClient, experiment: str, record: Mapping[str, Any], store: RunStore, parent: str | None
) -> None:
    identity = record["identity"]
    started = int(datetime.fromisoformat(record["provenance"]["started"]).timestamp() * 1000)
    settings = "".join(f" {key}={identity['params'][key]}" for key in _NAMED if key in identity["params"])
    name = f"{identity['model']} {identity['protocol']} seed {identity['seed']}{settings}"
    tags = {RUN_ID_TAG: record["run_id"], "commit": str(record["provenance"].get("commit"))}
    tags |= {f"sha256.{file}": digest for file, digest in (record["dataset"].get("sha256") or {}).items()}
    tags |= {_PARENT_TAG: parent} if parent else {}
    run = client.create_run(experiment, start_time=started, run_name=name, tags=tags)
    run_id = run.info.run_id
    client.log_batch(run_id, params=_params(record), tags=[RunTag("gbdtmo.metric", record["scores"]["metric"])])
    metrics = [*_final_metrics(record, started), *_curves(record, started)]
    for start in range(0, len(metrics), _BATCH):
        client.log_batch(run_id, metrics=metrics[start : start + _BATCH])
    _write_artifacts(client, run_id, record, store)
    seconds = float(record["seconds"]["total"])
    # Last: only a run that says FINISHED counts as mirrored.
    client.set_terminated(run_id, status="FINISHED", end_time=started + int(seconds * 1000))


def _params(record: Mapping[str, Any]) -> list[Param]:
    identity = record["identity"]
    values = {key: identity[key] for key in ("dataset", "model", "protocol", "seed")}
    values |= dict(_flatten(identity["params"]))
    values |= {f"selected.{key}": value for key, value in (record.get("selected") or {}).items()}
    return [Param(key, str(value)[:_PARAM_LENGTH]) for key, value in values.items()]


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _final_metrics(record: Mapping[str, Any], time: int) -> Iterator[Metric]:
    scores = record["scores"]
    values = {"test": scores["test"], "validation": scores["validation"]}
    values |= {f"test.{name}": value for name, value in scores["all"].items()}
    values |= {f"seconds.{phase}": value for phase, value in record["seconds"].items()}
    values |= {key: record[key] for key in ("rounds", "n_trees", "n_leaves", "peak_memory_mb", "unassigned_fraction")}
    best = record["best_round"]
    values["best_round"] = sum(best) / len(best) if isinstance(best, list) else best
    values |= {f"solver.{name}": value for name, value in record.get("solver", {}).items()}
    for name, value in values.items():
        if value is not None:
            yield Metric(name, float(value), time, 0)


def _curves(record: Mapping[str, Any], time: int) -> Iterator[Metric]:
    """Give the value of each per-round metric after each round, the first round being step 1."""
    for name, curve in record["history"].items():
        for step, value in enumerate(curve, start=1):
            if value is not None:
                yield Metric(f"curve.{name}", float(value), time, step)


def _write_artifacts(client: MlflowClient, run_id: str, record: Mapping[str, Any], store: RunStore) -> None:
    client.log_text(run_id, yaml.safe_dump(record["config"], sort_keys=False), "config.yaml")
    client.log_artifact(run_id, str(store.record_path(record["run_id"])), "record")
    model = (record.get("artifacts") or {}).get("model")
    if model and (store.root / model).is_file():
        client.log_artifact(run_id, str(store.root / model), "model")


def main(arguments: list[str] | None = None) -> int:
    """Mirror what is missing; with ``ui``, then serve MLflow's user interface until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m repro.tracking", description=__doc__)
    parser.add_argument("command", choices=["ui", "sync"])
    parser.add_argument("--runs-dir", default=str(ROOT / "results" / "runs"), help="folder of the run records")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5000)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    store = RunStore(options.runs_dir)
    mirror = Mirror(store)
    try:
        store.prepare()
        written = mirror.try_sync()
    except StoreError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if mirror.is_down:
        return 1
    print(f"{written} runs mirrored to {mirror.uri}, {mirror.n_present} were there already", flush=True)
    if options.command == "ui":
        if mirror.uri.startswith(("http://", "https://")):
            print(f"MLFLOW_TRACKING_URI is a server: open {mirror.uri}")
            return 0
        server = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", mirror.uri]
        server += ["--host", options.host, "--port", str(options.port), "--workers", "1"]
        # Its job runner serves features that this project does not use, by further processes.
        os.execve(sys.executable, server, {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
