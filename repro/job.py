"""Does one cell once: skips what is recorded, writes the record or why it failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import datasets
from repro.run import identity
from repro.store import RunStore, StoreError, run_id

Runner = Callable[..., dict[str, Any]]
"""``runner(config, models_dir=folder)`` gives a run record; `repro.run.run_cell`, or a quick one in tests."""

_MISTAKES = (datasets.DatasetError, StoreError, HydraException, OmegaConfBaseException, ValueError, TypeError, OSError)


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
        require_same_data([store.read(identifier)], store)
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


def require_same_data(records: Iterable[Mapping[str, Any]], store: RunStore) -> None:
    """Refuse records made from other files than there are now, which a set of the user's own may change.

    Raises
    ------
    StoreError
    """
    now: dict[str, dict[str, str]] = {}
    for record in records:
        name = record["identity"]["dataset"]
        if name not in now:
            now[name] = datasets.file_checksums(name)
        recorded = record["dataset"].get("sha256", {})
        changed = [file for file, digest in now[name].items() if recorded.get(file, digest) != digest]
        if changed:
            identifier = record["run_id"]
            raise StoreError(
                f"the run {identifier} on '{name}' was made from another {', '.join(changed)} than there is now, and "
                f"says nothing of it. Give the new data a name of its own, or delete {store.record_path(identifier)} "
                "and all others of that set to run them again."
            )


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
