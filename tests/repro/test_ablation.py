"""Released growth beside complete growth, and one protocol beside the other, on made-up runs worked out by hand."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from configs import compose_config
from fake_cells import record_of
from omegaconf import OmegaConf
from test_tables import cells_of, runs_of

from repro import report
from repro.kinds import ablation, protocol_cost
from repro.kinds.base import paired
from repro.plan import Plan, make_plan
from repro.run import hyperparameters
from repro.store import RunStore

COMPLETE, RELEASED = "gbdt_mo", "gbdt_mo_released"


def growth_runs(complete: list[float], released: list[float], metric: str = "accuracy") -> pd.DataFrame:
    """Runs of both kinds of growth, a seed a score; released ones have 5 leaves a tree and 10 %, 20 %, ... left out."""
    runs = runs_of({COMPLETE: complete, RELEASED: released}, metric)
    shares = [0.0] * len(complete) + [0.1 * (seed + 1) for seed in range(len(released))]
    leaves = [200.0] * len(complete) + [100.0] * len(released)
    return runs.assign(unassigned_fraction=shares, n_leaves=leaves)


def record(run_id: str, **curves: list[float]) -> dict[str, Any]:
    return {"run_id": run_id, "history": {f"test.{metric}": curve for metric, curve in curves.items()}}


def test_released_growth_stands_beside_complete_growth() -> None:
    runs = growth_runs([0.70, 0.74, 0.78], [0.69, 0.71, 0.73])
    (row,) = ablation.ablation(
        cells_of(3, COMPLETE, RELEASED), runs, [record(run_id) for run_id in runs["run_id"]], [10]
    ).to_dict("records")
    assert (row["dataset"], row["protocol"], row["metric"], row["n_seeds"]) == ("yeast", "paper", "accuracy", 3)
    assert row["unassigned"] == pytest.approx(0.2)
    assert [row["complete_mean"], row["released_mean"]] == pytest.approx([74, 71])
    # -1, -3 and -5 points: a mean of -3, a deviation of 2, over the root of 3.
    assert row["difference"] == pytest.approx(-3)
    assert row["standard_error"] == pytest.approx(2 / math.sqrt(3))
    # 20 trees each.
    assert [row["complete_leaves"], row["released_leaves"]] == [10, 5]
    assert [row["complete_best_round"], row["released_best_round"]] == [11, 11]
    # Without curves there is nothing round by round.
    assert all(math.isnan(row[key]) for key in ("complete_reach", "released_reach", "complete_at_10", "released_at_10"))


def test_rounds_are_compared_where_curves_are_recorded() -> None:
    runs = growth_runs([0.8, 0.8], [0.6, 0.9])
    records = [
        record("gbdt_mo0", accuracy=[0.5, 0.6, 0.8]),
        record("gbdt_mo1", accuracy=[0.5, 0.7, 0.8]),
        record("gbdt_mo_released0", accuracy=[0.3, 0.4, 0.5, 0.6]),
        record("gbdt_mo_released1", accuracy=[0.3, 0.8, 0.6, 0.9]),
    ]
    table = ablation.ablation(cells_of(2, COMPLETE, RELEASED), runs, records, [2, 4, 5])
    (row,) = table.to_dict("records")
    # Seed 0: 0.6 after 2 and 4 rounds. Seed 1: 0.8 after 3 and 2.
    assert [row["complete_reach"], row["released_reach"]] == [2.5, 3]
    assert [row["complete_at_2"], row["released_at_2"]] == pytest.approx([65, 60])
    assert row["released_at_4"] == pytest.approx(75)
    assert math.isnan(row["complete_at_4"])
    assert math.isnan(row["released_at_5"])
    lines = ablation.rounds_markdown(table, [2, 4, 5]).splitlines()
    expected = ["yeast (accuracy %)", "paper", "65.00 / 60.00", "– / 75.00", "–"]
    assert [cell.strip() for cell in lines[-1].strip("|").split("|")] == expected
    summary = ablation.summary_markdown(table).splitlines()[-1]
    assert [cell.strip() for cell in summary.strip("|").split("|")] == [
        "yeast (accuracy %)", "paper", "2", "15.0 %", "10 / 5", "80.00 / 75.00", "-5.00 ± 15.00", "10 / 10", "2 / 3"
    ]  # fmt: skip


def test_a_lesser_error_is_reached_from_above() -> None:
    assert ablation.rounds_to_lesser([0.5, 0.3, 0.2], [0.6, 0.4, 0.35, 0.3], metric="rmse") == [2, 4]
    # A curve that dips below what it ends with had been good enough before.
    assert ablation.rounds_to_lesser([0.7, 0.6], [0.5, 0.9], metric="accuracy") == [1, 2]


def test_only_seeds_that_both_have_are_compared_and_gaps_are_told() -> None:
    runs = growth_runs([0.2, 0.3], [0.25], "rmse")
    cells = cells_of(2, COMPLETE, RELEASED, gaps={"gbdt_mo_released1": "not run"})
    table = ablation.ablation(cells, runs, [record(run_id) for run_id in runs["run_id"]], [10])
    (row,) = table.to_dict("records")
    assert row["n_seeds"] == 1
    assert row["complete_mean"] == pytest.approx(0.2)
    assert row["difference"] == pytest.approx(0.05)
    assert math.isnan(row["standard_error"])
    assert row["note"] == "not run"
    assert "| +0.05000 " in ablation.summary_markdown(table)


def test_without_any_run_there_is_a_row_of_dashes() -> None:
    cells = cells_of(1, COMPLETE, RELEASED, gaps={"gbdt_mo0": "not run", "gbdt_mo_released0": "not run"})
    table = ablation.ablation(cells, growth_runs([0.5], [0.5]).iloc[:0], [], [10])
    line = ablation.summary_markdown(table).splitlines()[-1]
    assert [cell.strip() for cell in line.strip("|").split("|")] == ["yeast", "paper", "0", *["–"] * 6, "not run"]
    assert ablation.rounds_markdown(table, [10]).splitlines()[-1].count("–") == 1
    # So there is beside rows that have runs.
    both = pd.concat([cells_of(1, COMPLETE, RELEASED, dataset="scene"), cells.assign(run_id=["c", "r"])])
    runs = growth_runs([0.5], [0.5])
    table = ablation.ablation(both, runs, [record(run_id) for run_id in runs["run_id"]], [10])
    assert [line.split("|")[1].strip() for line in ablation.summary_markdown(table).splitlines()[2:]] == [
        "scene (accuracy %)", "yeast"
    ]  # fmt: skip


def protocol_runs(paper: list[float], holdout: list[float], metric: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    runs = runs_of({"p": paper, "h": holdout}, metric)
    cells = pd.concat(
        [cells_of(len(paper), "p"), cells_of(len(holdout), "h", protocol="holdout")], ignore_index=True
    ).assign(model="m")
    return cells, runs


def test_the_cost_of_a_protocol_is_a_difference_of_pairs() -> None:
    cells, runs = protocol_runs([0.60, 0.62, 0.64], [0.57, 0.61, 0.59], "accuracy")
    table = protocol_cost.protocol_cost(cells, runs)
    (row,) = table.to_dict("records")
    # 3, 1 and 5 points: a mean of 3, a deviation of 2.
    assert [row["paper_mean"], row["holdout_mean"]] == pytest.approx([62, 59])
    assert row["difference"] == pytest.approx(3)
    assert row["standard_error"] == pytest.approx(2 / math.sqrt(3))
    assert row["relative"] == pytest.approx(3 / 59)
    # Validation scores of `runs_of` are less by 0.1.
    assert row["optimism"] == pytest.approx(-10)
    assert row["optimism_error"] == pytest.approx(0)
    line = protocol_cost.protocol_cost_markdown(table).splitlines()[-1]
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "yeast (accuracy %)", "m", "3", "62.00", "59.00", "+3.00 ± 1.15", "+5.1", "-10.00 ± 0.00", "11 / 11"
    ]  # fmt: skip


def test_one_seed_and_no_seed_have_no_error() -> None:
    cells, runs = protocol_runs([0.2], [0.25], "rmse")
    (row,) = protocol_cost.protocol_cost(cells, runs).to_dict("records")
    assert row["difference"] == pytest.approx(-0.05)
    assert math.isnan(row["standard_error"])
    gap = cells.assign(gap=["not run", None])
    table = protocol_cost.protocol_cost(gap, runs[runs["run_id"] == "h0"])
    (row,) = table.to_dict("records")
    assert (row["n_seeds"], row["note"]) == (0, "not run")
    table = protocol_cost.protocol_cost(pd.concat([cells, gap.assign(run_id=["x", "y"], model="other")]), runs)
    dashes = protocol_cost.protocol_cost_markdown(table).splitlines()[-1]
    assert [cell.strip() for cell in dashes.strip("|").split("|")] == [
        "yeast", "other", "0", *["–"] * 6, "not run"
    ]  # fmt: skip


def test_pairs_are_in_the_same_order() -> None:
    runs = runs_of({"a": [0.1, 0.2, 0.3], "b": [0.4, 0.5, 0.6]}).assign(model=list("aaabbb"))
    one, other = paired(runs.iloc[[2, 0, 1, 3, 5]], "model", "a", "b")
    assert one["score"].tolist() == pytest.approx([30, 10])
    assert other["score"].tolist() == pytest.approx([60, 40])


@pytest.mark.parametrize(
    ("dataset", "nodes"), [("digits", 16), ("caltech101", 16), ("digits_inpainting", 48), ("scene", 48)]
)
def test_the_node_cache_is_that_of_the_loss(dataset: str, nodes: int) -> None:
    assert hyperparameters(compose_config(f"dataset={dataset}", "model=gbdt_mo_released"))["node_cache"] == nodes


def test_both_kinds_of_growth_differ_in_nothing_else() -> None:
    plan = make_plan("ablation", seeds=1)
    params = {(c.dataset, c.protocol, c.model): c.identity["params"] for c in plan.cells}
    for (dataset, protocol, model), own in params.items():
        if model == RELEASED:
            changed = {key: value for key, value in own.items() if key not in ("growth", "binning", "node_cache")}
            assert changed == params[dataset, protocol, COMPLETE]


@pytest.mark.parametrize(
    ("other", "datasets"), [("figure4", ["mnist", "caltech101"]), ("table3", ["friedman1", "random_projection"])]
)
def test_runs_of_figures_are_not_run_twice(other: str, datasets: list[str]) -> None:
    own = {cell.run_id for cell in make_plan("ablation", datasets=datasets).cells}
    theirs = {cell.run_id for cell in make_plan(other, datasets=datasets, models=[COMPLETE]).cells}
    assert theirs <= own


def test_the_cost_of_a_protocol_is_read_from_table5() -> None:
    plan = make_plan("protocol_cost")
    assert plan.table["records_of"] == "table5"
    assert [cell.run_id for cell in plan.cells] == [cell.run_id for cell in make_plan("table5").cells]


def test_pages_are_made_from_records(tmp_path: Path) -> None:
    narrow = make_plan("ablation", datasets=["yeast"], seeds=2)
    plan = Plan(narrow.experiment, narrow.table, narrow.cells)
    store = RunStore(tmp_path / "runs")
    for cell in plan.cells:
        share = 0.25 if cell.model == RELEASED else 0.0
        history = {"test.accuracy": [0.1, 0.5] if cell.model == RELEASED else [0.4, 0.6]}
        store.write(record_of(OmegaConf.create(cell.config), unassigned_fraction=share, history=history))
    (path,) = report.write_tables(plan, store, tmp_path / "out")
    text = path.read_text()
    table = pd.read_csv(path.with_suffix(".csv"))
    assert table["unassigned"].tolist() == [0.25, 0.25]
    assert table["difference"].tolist() == [0, 0]
    assert (table["complete_reach"].tolist(), table["released_reach"].tolist()) == ([2, 2], [2, 2])
    assert "25.0 %" in text
    report.write_tables(plan, store, tmp_path / "again")
    assert (tmp_path / "again" / "ablation.md").read_text() == text
