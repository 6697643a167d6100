"""Hydra hooks: check a request; give a multirun its parent runs in MLflow, one a data set and model, and tables."""

from __future__ import annotations

import hashlib
import logging
import os
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from repro.job import mistakes_in_one_line
from repro.plan import make_plan, refuse_unread
from repro.provenance import ROOT
from repro.store import RunStore, check_runs_dir
from repro.tracking import SWEEP_VARIABLE, Mirror

log = logging.getLogger(__name__)


class GroupRuns(Callback):
    """Checks a request, and names a sweep to its jobs by the environment, which workers of any launcher inherit."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        """Refuse a wrong request before Hydra makes a folder for it."""
        _check_request(config)

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Name the sweep: the experiment, or what was asked for."""
        _check_request(config)
        os.environ[SWEEP_VARIABLE] = sweep_name(config)

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Write the experiment's tables, show them at the parent runs, and end these."""
        sweep = os.environ.pop(SWEEP_VARIABLE)
        store = RunStore(ROOT / config.runs_dir)
        mirror = Mirror(store, sweep=sweep)
        if config.hydra.runtime.choices.get("experiment"):
            _write_tables(config, store, mirror)
        mirror.try_end()


def _check_request(config: DictConfig) -> None:
    with mistakes_in_one_line():
        refuse_unread(config.hydra.overrides.task)
        RunStore(ROOT / check_runs_dir(config.runs_dir)).prepare()


def _write_tables(config: DictConfig, store: RunStore, mirror: Mirror) -> None:
    # Here, since a single run loads this module, too.
    from repro.report import write_tables
    from repro.sweep import finish_parents

    asked = [text for text in config.hydra.overrides.task if not text.startswith("experiment=")]
    plan = make_plan(config.hydra.runtime.choices.experiment, overrides=asked)
    written = write_tables(plan, store, store.tables_dir)
    for path in written:
        log.info("wrote %s", path)
    if plan.setting_names:
        finish_parents(plan, store, written, mirror)


def sweep_name(config: DictConfig) -> str:
    """Return the experiment's name, else a name that the same command gets again."""
    experiment = config.hydra.runtime.choices.get("experiment")
    if experiment:
        return str(experiment)
    asked = "\n".join(sorted(config.hydra.overrides.task))
    return f"multirun-{hashlib.sha256(asked.encode()).hexdigest()[:8]}"
