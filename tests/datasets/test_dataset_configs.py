"""What conf/dataset says of the paper's sets is what the paper's tables say."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

import datasets
from repro.plan import make_plan
from repro.run import run_cell
from tests.repro.configs import compose_config, names

Rows = list[dict[str, str]]


def table(project_root: Path, name: str) -> Rows:
    with (project_root / f"results/paper/{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@cache
def dataset_config(name: str) -> dict[str, Any]:
    config = OmegaConf.to_container(compose_config(f"dataset={name}").dataset, resolve=True)
    assert isinstance(config, dict)
    return {str(key): value for key, value in config.items()}


def test_rates_and_depths_are_table_ix(project_root: Path) -> None:
    rows = [row for row in table(project_root, "table9") if row["dataset"] in names("dataset")]
    assert {row["dataset"] for row in rows} >= {"mnist", "yeast", "caltech101", "mnist_inpainting", "student_por"}
    for row in rows:
        expected = {"learning_rate": float(row["learning_rate"]), "max_depth": int(row["max_depth"])}
        assert dataset_config(row["dataset"])["table9"][row["model"]] == expected, row


def test_thresholds_samples_and_bins_are_table_xi(project_root: Path) -> None:
    for row in table(project_root, "table11"):
        if row["dataset"] in names("dataset"):
            config = dataset_config(row["dataset"])
            assert config["min_split_gain"] == float(row["min_split_gain"])
            assert config["min_samples_leaf"] == int(row["min_samples_leaf"])
            assert config["max_bins"] == int(row["max_bins"])


@pytest.mark.parametrize("name", [name for name in names("dataset") if name != "yeast_scripts"])
def test_a_file_is_named_as_its_set(name: str) -> None:
    assert dataset_config(name)["name"] == name
    assert name in datasets.names()


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("friedman1", 5),
        ("random_projection", 5),
        ("nus_wide", 1),
        ("scene", 1),
        ("wq", 10),
        ("caltech101", 10),
        ("yeast_genes", 1),
        ("ranksvm_toy", 50),
    ],
)
def test_seeds_are_those_of_the_set(name: str, seeds: int) -> None:
    assert dataset_config(name)["seeds"] == seeds


def test_a_set_made_up_for_timing_is_never_scored(shared: Path, monkeypatch) -> None:
    marked = {name for name in names("dataset") if dataset_config(name).get("timing_only")}
    assert marked == {"nus_wide_shape"}
    monkeypatch.setenv("GBDTMO_DATA", str(shared / "data"))
    with pytest.raises(datasets.TimingOnlyError, match="'nus_wide_shape' were made up for timing"):
        run_cell(compose_config("dataset=nus_wide_shape", "model=lightgbm", "dataset.timing_only=false"))


def test_vector_leaves_get_two_seeds_of_caltech101() -> None:
    plan = make_plan("table5", datasets=["caltech101"], models=["xgboost_vector", "xgboost", "gbdt_mo"])
    seeds = {model: sorted({c.seed for c in plan.cells if c.model == model}) for model in ("xgboost_vector", "gbdt_mo")}
    assert seeds == {"xgboost_vector": [0, 1], "gbdt_mo": list(range(10))}
