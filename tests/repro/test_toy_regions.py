"""The toy problem of the ranking paper: its table on made-up losses, and what the methods really do on a few seeds."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf
from test_tables import cells_of

from repro import figures
from repro.kinds import toy_regions
from repro.plan import Plan, make_plan
from repro.report import write_tables
from repro.run import run_cell
from repro.store import RunStore


def losses(values: dict[str, float]) -> dict[str, dict[str, float]]:
    return {name: {"hamming_loss": loss, "label_ranking_loss": 0.5} for name, loss in values.items()}


def test_losses_are_averaged_and_stand_beside_the_published_ones() -> None:
    cells = pd.concat(
        [
            cells_of(3, "a").assign(label_sets="size_small"),
            cells_of(2, "b", gaps={"b1": "not run"}).assign(label_sets="threshold"),
        ]
    )
    measured = losses({"a0": 0.0, "a1": 0.3, "a2": 0.0, "b0": 0.1})
    published = pd.DataFrame(
        [
            {"model": "a", "label_set": "size", "value": 0.0},
            {"model": "b", "label_set": math.nan, "value": 0.08},
        ]
    )
    table = toy_regions.toy_table(cells, measured, published).set_index("model")
    # 0, 0.3, 0: squared deviations 0.01 + 0.04 + 0.01 over n - 1 = 2 give a deviation of sqrt(0.03).
    assert table.loc["a", "hamming_loss"] == pytest.approx(0.1)
    assert table.loc["a", "hamming_loss_sd"] == pytest.approx(math.sqrt(0.03))
    assert table.loc["a", "all_right"] == pytest.approx(2 / 3)
    assert table.loc[["a", "b"], "published"].tolist() == [0.0, 0.08]
    assert table.loc[["a", "b"], "n_seeds"].tolist() == [3, 1]
    assert table.loc["b", "note"] == "not run"
    lines = toy_regions.toy_markdown(table.reset_index()).splitlines()
    first, second = ([part.strip() for part in line.strip("|").split("|")] for line in lines[2:])
    assert first == ["a", "size_small", "3", "0.100 ± 0.173", "67 %", "0.500", "0.00", ""]
    assert second == ["b", "threshold", "1", "0.100", "0 %", "0.500", "0.08", "not run"]


def test_a_published_value_stands_beside_its_own_way_to_label_sets_alone() -> None:
    cells = pd.concat([cells_of(1, "a").assign(label_sets=name) for name in ("threshold", "size_x")])
    published = pd.DataFrame([{"model": "a", "label_set": "size", "value": 0.0}])
    table = toy_regions.toy_table(cells, losses({"a0": 0.2}), published)
    assert table["published"].isna().tolist() == [True, False]


def test_without_runs_there_is_a_table_of_gaps() -> None:
    cells = cells_of(1, "a", gaps={"a0": "not run"}).assign(label_sets="threshold")
    published = pd.DataFrame([{"model": "a", "label_set": math.nan, "value": 0.08}])
    table = toy_regions.toy_table(cells, {}, published)
    assert (table["n_seeds"].item(), table["note"].item()) == (0, "not run")
    assert "| – " in toy_regions.toy_markdown(table)


def toy_plan(**narrowed: Any) -> Plan:
    return make_plan("ranksvm_toy", **narrowed)


def test_every_method_runs_on_many_seeds() -> None:
    plan = toy_plan()
    rows = {(cell.model, cell.settings["label_sets"]) for cell in plan.cells}
    ways = ("threshold", "size_hard_margin", "size_least_squares")
    assert rows == {(model, way) for model in ("binary_svm", "rank_svm") for way in ways}
    assert len(plan.cells) == 50 * len(rows)
    assert len({cell.run_id for cell in plan.cells}) == len(plan.cells)
    for cell in plan.cells:
        assert cell.identity["params"]["label_set"] == cell.settings["label_sets"].partition("_")[0]


@pytest.fixture(scope="module")
def run_store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Three seeds of every method."""
    store = RunStore(tmp_path_factory.mktemp("toy"))
    store.prepare()
    for cell in toy_plan(seeds=3).cells:
        store.write(run_cell(OmegaConf.create(cell.config)))
    return store


def test_ranking_with_a_size_predictor_is_right_where_binary_decomposition_cannot_be(
    run_store: RunStore, tmp_path: Path
) -> None:
    """The published .00 and .08, and why it needs both: the ranking and the predictor of the size."""
    written = write_tables(toy_plan(seeds=3), run_store, tmp_path)
    assert [path.name for path in written] == ["ranksvm_toy.md", "ranksvm_toy.png", "ranksvm_toy.svg"]
    table = pd.read_csv(tmp_path / "ranksvm_toy.csv").set_index(["model", "label_sets"])
    assert (table["n_seeds"] == 3).all()
    loss, ranking = table["hamming_loss"], table["label_ranking_loss"]
    assert loss["rank_svm", "size_hard_margin"] == 0
    assert table.loc[("rank_svm", "size_hard_margin"), "all_right"] == 1
    assert (ranking["rank_svm"] == 0).all()
    assert 0.03 < loss["binary_svm", "threshold"] < 0.13
    assert loss["rank_svm", "threshold"] > 0.1
    assert 0 < loss["rank_svm", "size_least_squares"] < loss["rank_svm", "threshold"]
    text = (tmp_path / "ranksvm_toy.md").read_text()
    assert "Predicted label sets of seed 0" in text


def test_the_picture_is_left_out_without_its_seed(run_store: RunStore, tmp_path: Path) -> None:
    plan = toy_plan(overrides=["seed=1"])
    (text, *drawings) = write_tables(plan, run_store, tmp_path)
    assert not drawings
    assert "png" not in text.read_text()


def test_the_picture_has_a_panel_a_method(run_store: RunStore) -> None:
    cells = [cell for cell in toy_plan(seeds=1).cells if cell.model == "rank_svm"]
    svg = toy_regions.draw(cells)["svg"].decode()
    for words in ("rank_svm, threshold", "rank_svm, size hard margin", "0.000", "label1, label2"):
        assert words in svg


def test_a_region_has_the_colour_of_its_set() -> None:
    """Lower left: label a; the rest: none. The picture's rows go down, x2 goes up."""
    predicted = np.zeros((2, 2, 2), int)
    predicted[0, 0, 0] = 1
    drawn = figures.label_regions({"t": predicted}, np.array([[0.9, 0.9]]), np.array([[1, 1]]), ["a", "b"], [], 1)
    svg = drawn["svg"].decode()
    for words in ("no label", ">a<", "a, b"):
        assert words in svg
    assert ">b<" not in svg
