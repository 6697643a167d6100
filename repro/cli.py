"""Runs one cell, or several by Hydra's multirun.

``python -m repro.cli dataset=yeast model=gbdt_mo protocol=holdout seed=3``
"""

from __future__ import annotations

import logging
import os

import hydra
from omegaconf import DictConfig

from repro.job import complete, mistakes_in_one_line
from repro.provenance import ROOT
from repro.run import identity, run_cell
from repro.store import RunStore, run_id
from repro.tracking import SWEEP_VARIABLE, Mirror
from repro.workers import die_with_parent

log = logging.getLogger(__name__)


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(config: DictConfig) -> float:
    """Run the cell if it is not recorded, mirror it to MLflow, and return its score.

    That is the score on validation rows where the protocol has some, since a Hydra sweeper may choose by it.
    """
    with mistakes_in_one_line():
        die_with_parent()  # a worker of a parallel multirun must not outlive the sweep
        store = RunStore(ROOT / config.runs_dir)
        store.prepare()
        ran = complete(config, store, run_cell)
        identifier = run_id(identity(config))
        Mirror(store, sweep=os.environ.get(SWEEP_VARIABLE)).try_sync([identifier])
        record = store.read(identifier)
        scores = record["scores"]
        log.info(
            "%s %s: %s %.5f%s%s, record %s",
            "ran" if ran else "already recorded",
            " ".join(str(record["identity"][key]) for key in ("dataset", "model", "protocol", "seed")),
            scores["metric"],
            scores["test"],
            " (optimistic: fitting or stopping saw these rows)" if scores["optimistic"] else "",
            "" if record["best_round"] is None else f" at round {record['best_round']}",
            store.record_path(identifier),
        )
        return float(scores["test"] if scores["validation"] is None else scores["validation"])


if __name__ == "__main__":
    main()
