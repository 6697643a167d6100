"""Quick stand-ins for `repro.run.run_cell`, and a sweep of them to be killed."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from repro import provenance, store
from repro.plan import make_plan
from repro.run import identity
from repro.store import RunStore
from repro.sweep import run_sweep
from repro.workers import die_with_parent

SCORES = (0.6, 0.62, 0.61, 0.65, 0.59, 0.63, 0.6, 0.64, 0.6, 0.66)


def record_of(config: DictConfig, **changes: Any) -> dict[str, Any]:
    """Make a whole record of a cell that was not really run."""
    own = identity(config)
    score = SCORES[config.seed % len(SCORES)]
    optimistic = config.protocol.name == "paper"
    record = {
        "schema": store.SCHEMA,
        "run_id": store.run_id(own),
        "identity": own,
        "config": OmegaConf.to_container(config, resolve=True),
        "scores": {
            "metric": "accuracy",
            "test": score,
            "validation": None if optimistic else score - 0.01,
            "optimistic": optimistic,
            "all": {"accuracy": score, "log_loss": 1.0},
        },
        "best_round": 10 + config.seed,
        "rounds": 40,
        "n_trees": 10 + config.seed,
        "n_leaves": 100,
        "unassigned_fraction": 0.0,
        "history": {"accuracy": [0.1 + 0.01 * i for i in range(40)]},
        "selected": {},
        "seconds": {"load": 0.1, "construct": 0.1, "train": 2.0 + config.seed, "predict": 0.1, "total": 3.0},
        "peak_memory_mb": 100.0,
        "dataset": {"source": "made up", "sha256": {}, "n_fit": 10, "n_validation": 0, "n_test": 5},
        "provenance": provenance.collect(config.n_jobs),
        "artifacts": {},
    }
    return {**record, **changes}


def quick(config: DictConfig, *, models_dir: Path) -> dict[str, Any]:
    """Answer at once, with a model file, and note every cell that is run although it is recorded."""
    record = record_of(config)
    runs = RunStore(models_dir.parent)
    with (runs.root / "executions.log").open("a") as log:
        log.write(f"{record['run_id']} {'twice' if runs.has(record['run_id']) else 'once'}\n")
    (models_dir / f"{record['run_id']}.bin").write_bytes(b"model")
    return {**record, "artifacts": {"model": f"models/{record['run_id']}.bin"}}


def slow(config: DictConfig, *, models_dir: Path) -> dict[str, Any]:
    """Take a quarter of a second."""
    time.sleep(0.25)
    return quick(config, models_dir=models_dir)


def endless(config: DictConfig, *, models_dir: Path) -> dict[str, Any]:
    """Compute until killed."""
    while True:
        sum(range(10_000))


def failing(config: DictConfig, *, models_dir: Path) -> dict[str, Any]:
    """Fail for seed 1."""
    if config.seed == 1:
        raise ValueError("seed 1 does not converge")
    return quick(config, models_dir=models_dir)


def dying(config: DictConfig, *, models_dir: Path) -> dict[str, Any]:
    """Be killed for seed 1, as by a system out of memory."""
    if config.seed == 1:
        print("allocating", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return quick(config, models_dir=models_dir)


def orphaned(config: DictConfig, *, models_dir: Path) -> dict[str, Any]:
    """For seed 1, kill the server that started the process, work on, and fail in one protocol."""
    if config.seed == 1:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(2)
        if config.protocol.name == "paper":
            raise ValueError("fails as an orphan")
    return quick(config, models_dir=models_dir)


def not_finite(config: DictConfig, *, models_dir: Path) -> dict[str, Any]:
    """Give a record that is no JSON."""
    return record_of(config, peak_memory_mb=float("nan"))


def endless_in_joblib(started: Path) -> None:
    """Compute until killed, in a worker of a parallel multirun."""
    die_with_parent()
    (started / str(os.getpid())).touch()
    while True:
        sum(range(10_000))


def main(root: str, runner: str, seeds: str, mirrored: str) -> None:
    """Sweep fake cells until done or killed."""
    runs = RunStore(root)
    mirror = None
    if mirrored == "mirrored":
        from repro.tracking import Mirror

        mirror = Mirror(runs)
    plan = make_plan("table5", datasets=["digits"], models=["gbdt_mo"], seeds=int(seeds))
    print("planned", flush=True)
    missing = run_sweep(plan, runs, runner=globals()[runner], processes=2, mirror=mirror)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    # By its own name, so that worker processes find the runner.
    import fake_cells

    fake_cells.main(*sys.argv[1:])
