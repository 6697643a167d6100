"""Does one cell once: skips what is recorded, writes the record or why it failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from datasets import DatasetError
from repro.run import identity
from repro.store import RunStore, StoreError, run_id

Runner = Callable[..., dict[str, Any]]
"""``runner(config, models_dir=folder)`` gives a run record; `repro.run.run_cell`, or a quick one in tests."""

_MISTAKES = (DatasetError, StoreError, HydraException, OmegaConfBaseException, ValueError, TypeError, OSError)


def complete(config: DictConfig, store: RunStore, runner: Runner) -> bool:
    """Make sure that the store holds the record of this cell.

    Returns
    -------
    bool
        Whether the cell was run now; False if it was recorded before.

    Raises
    ------
    Exception
        Whatever stopped the run, after the store has noted it.
    """
    cell_identity = identity(config)
    identifier = run_id(cell_identity)
    if store.has(identifier):
        return False
    try:
        record = runner(config, models_dir=store.models_dir)
        if record["run_id"] != identifier:
            raise StoreError(f"the run {identifier} came back with the record of {record['run_id']}")
    except Exception as error:
        store.write_failure(cell_identity, error)
        raise
    store.write(record)
    return True


def complete_in_process(config: Mapping[str, Any], store_root: str, runner: Runner) -> None:
    """Do `complete` as the whole work of a process; an error leaves through the exit status."""
    complete(OmegaConf.create(dict(config)), RunStore(store_root), runner)


@contextmanager
def mistakes_in_one_line() -> Iterator[None]:
    """End the program with one line on a wrong request; workers of a parallel multirun hand the line on."""
    try:
        yield
    except _MISTAKES as error:
        if os.environ.get("HYDRA_FULL_ERROR") == "1":
            raise
        raise SystemExit(f"error: {' '.join(str(error).split())} (HYDRA_FULL_ERROR=1 shows where)") from error
