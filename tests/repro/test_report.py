"""Tables on disk with their provenance, and what may be published over what."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fake_cells import record_of
from omegaconf import OmegaConf

import datasets
from repro import report
from repro.plan import Cell, Plan, make_plan
from repro.report import PublishError, publish, write_tables
from repro.store import RunStore, StoreError


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Yeast, two models, both protocols, three seeds, as if that were the whole experiment."""
    narrow = make_plan("table5", datasets=["yeast"], models=["gbdt_mo", "xgboost_vector"], seeds=3)
    return Plan(narrow.experiment, narrow.table, narrow.cells)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def record(cell: Cell, **changes: Any) -> dict[str, Any]:
    return record_of(OmegaConf.create(cell.config), **changes)


def fill(plan: Plan, store: RunStore, leave_out: int = 0) -> None:
    for cell in plan.cells[: len(plan.cells) - leave_out]:
        store.write(record(cell))


def test_tables_are_written_with_their_provenance(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(plan, store)
    (path,) = write_tables(plan, store, tmp_path / "out")
    assert path == tmp_path / "out" / "table5.md"
    sidecar = json.loads((tmp_path / "out" / "table5.json").read_text())
    assert sidecar["n_planned"] == sidecar["n_recorded"] == 12
    assert sidecar["gaps"] == []
    assert sidecar["runs"] == [cell.run_id for cell in plan.cells]
    assert len(sidecar["provenance"]["commit"]) == 1
    assert sidecar["data"] == {"yeast": {"source": "made up", "sha256": {}}}
    for name, digest in sidecar["sha256"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    table = pd.read_csv(tmp_path / "out" / "table5.csv").set_index("model")
    # The scores of the first three seeds are 0.60, 0.62 and 0.61.
    assert table.loc["gbdt_mo", "paper_mean"] == pytest.approx(61.0)
    assert table.loc["gbdt_mo", "paper_sd"] == pytest.approx(1.0)
    assert table.loc["gbdt_mo", "published"] == 62.29
    # Off by 1.29 points, more than two standard errors of 1 / sqrt(3).
    assert not table.loc["gbdt_mo", "matched"]
    assert table.loc["gbdt_mo", "holdout_best_round"] == pytest.approx(11.0)
    assert table.loc["xgboost_vector", "note"] == "the paper has no such cell"
    assert "61.00 ± 1.00 (n=3)" in path.read_text()


def test_gaps_give_the_reason(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(plan, store, leave_out=2)
    store.write_failure(plan.cells[-1].identity, ValueError("diverged\nin round 3"))
    write_tables(plan, store, tmp_path)
    gaps = json.loads((tmp_path / "table5.json").read_text())["gaps"]
    assert [(gap["seeds"], gap["reason"]) for gap in gaps] == [([1], "not run"), ([2], "failed: ValueError: diverged")]
    note = pd.read_csv(tmp_path / "table5.csv")["note"].iloc[-1]
    assert "holdout seed 1: not run; holdout seed 2: failed: ValueError: diverged" in note
    store.write_missing_dataset("yeast", "get it there")
    write_tables(plan, store, tmp_path)
    assert "data not available: get it there" in (tmp_path / "table5.md").read_text()


def test_without_any_run_there_is_a_table_of_gaps(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    (path,) = write_tables(plan, store, tmp_path)
    assert "0 of 12 runs recorded" in path.read_text()


def test_a_finished_table_is_published_with_compact_records(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(plan, store)
    written = publish(plan, store, tmp_path / "results", {})
    assert [path.name for path in written] == ["table5.md", "table5_records.jsonl"]
    lines = [json.loads(line) for line in written[1].read_text().splitlines()]
    assert [line["run_id"] for line in lines] == [cell.run_id for cell in plan.cells]
    assert lines[0]["cell"] == {"dataset": "yeast", "model": "gbdt_mo", "protocol": "paper", "seed": 0}
    whole = record(plan.cells[0])
    assert "history" not in lines[0]
    assert lines[0]["scores"] == whole["scores"]
    assert lines[0]["config"] == whole["config"]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_narrowed_table_is_not_published(store: RunStore, tmp_path: Path) -> None:
    narrow = make_plan("table5", datasets=["digits"], models=["gbdt_mo"], seeds=1)
    fill(narrow, store)
    with pytest.raises(PublishError, match=r"narrowed table is not published: dataset: digits \(of "):
        publish(narrow, store, tmp_path / "results", {})
    assert not (tmp_path / "results").exists()


def test_a_partial_table_needs_a_reason(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(plan, store, leave_out=6)
    with pytest.raises(PublishError) as error:
        publish(plan, store, tmp_path / "results", {})
    assert str(error.value).splitlines() == [
        "6 of 12 cells of table5 have not been run:",
        "  yeast: 12 cells, 6 recorded, 6 not run (xgboost_vector)",
        "Run the whole experiment, or say why they are missing:",
        """  make publish EXPERIMENT=table5 ARGS="--gap 'yeast/xgboost_vector=reason'\"""",
    ]
    assert not (tmp_path / "results").exists()
    publish(plan, store, tmp_path / "results", {"yeast/xgboost_vector": "takes a week"})
    assert "takes a week" in (tmp_path / "results" / "table5.md").read_text()
    # The published reason need not be given again.
    publish(plan, store, tmp_path / "results", {})
    assert "takes a week" in (tmp_path / "results" / "table5.md").read_text()


def test_an_old_note_is_no_reason_once_the_data_is_here(
    plan: Plan, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(plan, store, leave_out=6)
    store.write_missing_dataset("yeast", "get it there")

    def missing(name: str, **_: object) -> None:
        raise datasets.MissingDataError(name)

    monkeypatch.setattr(datasets, "load", missing)
    publish(plan, store, tmp_path / "results", {})
    assert "data not available: get it there" in (tmp_path / "results" / "table5.md").read_text()
    monkeypatch.setattr(datasets, "load", lambda name, **_: None)
    with pytest.raises(PublishError, match="6 recorded, 6 not run"):
        publish(plan, store, tmp_path / "results", {})


def test_a_part_is_added_to_what_is_published(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    """A fresh clone has no records but the published lines; those stay as they are, byte for byte."""
    fill(plan, store)
    publish(plan, store, tmp_path / "at_once", {})
    publish(plan, part_of(store, plan.cells[:6], tmp_path / "first"), tmp_path / "parts", {"yeast": "takes a week"})
    lines = (tmp_path / "parts" / "table5_records.jsonl").read_bytes()
    publish(plan, part_of(store, plan.cells[6:], tmp_path / "second"), tmp_path / "parts", {})
    assert (tmp_path / "parts" / "table5_records.jsonl").read_bytes().startswith(lines)
    for name in ("table5.md", "table5.csv", "table5_records.jsonl"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "at_once" / name).read_bytes()


def part_of(store: RunStore, cells: Sequence[Cell], root: Path) -> RunStore:
    part = RunStore(root)
    for cell in cells:
        part.record_path(cell.run_id).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(store.record_path(cell.run_id), part.record_path(cell.run_id))
    return part


def with_curves(plan: Plan) -> Plan:
    cells = [replace(cell, config={**cell.config, "curves": True}) for cell in plan.cells]
    return Plan(plan.experiment, plan.table, cells)


def test_curves_are_not_taken_from_published_lines(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    """Lines leave them out, so that a figure made from lines would lose its curves."""
    fill(plan, store)
    results = tmp_path / "results"
    publish(with_curves(plan), store, results, {})
    store.record_path(plan.cells[-1].run_id).unlink()
    with pytest.raises(PublishError, match="1 of 12 cells of table5 have not been run"):
        publish(with_curves(plan), store, results, {})


def test_a_partial_run_never_overwrites_a_published_cell(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    """Once a cell's settings change, its published record is of another run, and the cell has to be run again."""
    fill(plan, store)
    results = tmp_path / "results"
    publish(plan, store, results, {})
    before = contents(results)
    changed = Plan(plan.experiment, plan.table, [*plan.cells[:-1], replace(plan.cells[-1], run_id="0" * 16)])
    with pytest.raises(PublishError, match=r"1 cells published in table5_records\.jsonl have no record here"):
        publish(changed, store, results, {"yeast": "whatever"})
    assert contents(results) == before


def test_nothing_recorded_is_not_published(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    with pytest.raises(PublishError, match="no recorded run"):
        publish(plan, store, tmp_path / "results", {"yeast": "not now"})


def test_a_grid_shows_the_test_score_of_the_chosen_setting_alone(store: RunStore, tmp_path: Path) -> None:
    grid = make_plan("grid", datasets=["digits"], models=["gbdt_mo"], seeds=1)
    for position, cell in enumerate(grid.cells):
        whole = record(cell)
        scores = {**whole["scores"], "validation": 0.9 - abs(position - 9) / 100, "test": 0.5 + position / 1000}
        store.write({**whole, "scores": scores})
    path, *drawings = write_tables(grid, store, tmp_path)
    assert path.name == "grid_digits_gbdt_mo.md"
    before = {file: file.read_bytes() for file in (path, path.with_suffix(".csv"), *drawings)}
    write_tables(grid, store, tmp_path)
    assert {file: file.read_bytes() for file in before} == before
    table = pd.read_csv(tmp_path / "grid_digits_gbdt_mo.csv")
    assert len(table) == 28
    chosen = table[table["chosen"]]
    assert chosen.index.tolist() == [9]
    assert (chosen["learning_rate"].item(), chosen["max_depth"].item()) == (0.1, 6)
    assert chosen["validation_mean"].item() == pytest.approx(90.0)
    assert chosen["test_mean"].item() == pytest.approx(50.9)
    assert table["test_mean"].notna().sum() == 1


def test_a_grid_has_a_heat_map_that_its_sidecar_knows(store: RunStore, tmp_path: Path) -> None:
    grid = make_plan("grid", datasets=["digits"], models=["gbdt_mo"], seeds=1)
    fill(grid, store)
    write_tables(grid, store, tmp_path)
    digests = json.loads((tmp_path / "grid_digits_gbdt_mo.json").read_text())["sha256"]
    assert sorted(digests) == [f"grid_digits_gbdt_mo.{ending}" for ending in ("csv", "md", "png", "svg")]
    for name, digest in digests.items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
    assert "](grid_digits_gbdt_mo.png)" in (tmp_path / "grid_digits_gbdt_mo.md").read_text()


@pytest.mark.parametrize(
    ("experiment", "fixed"), [("table7", "split=restricted-2"), ("table9", "model.estimator.max_depth=5")]
)
def test_a_setting_that_is_fixed_by_hand_still_gives_a_table(
    experiment: str, fixed: str, store: RunStore, tmp_path: Path
) -> None:
    narrow = make_plan(experiment, datasets=["yeast"], models=["gbdt_mo"], seeds=1, overrides=[fixed])
    fill(narrow, store)
    write_tables(narrow, store, tmp_path)
    (row,) = pd.read_csv(tmp_path / f"{experiment}.csv").to_dict("records")
    assert row["split"] == "restricted-2" if experiment == "table7" else row["chosen_max_depth"] == 5


def test_a_table_of_other_records_reads_the_published_ones(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(plan, store)
    results = tmp_path / "results"
    publish(plan, store, results, {})
    derived = Plan("table10", {**make_plan("table10").table}, plan.cells, runs_dir=str(tmp_path / "empty"))
    (path,) = publish(derived, RunStore(tmp_path / "empty"), results, {})
    # The records of seeds 0 to 2 have 10, 11 and 12 trees; the paper's GBDT-MO on Yeast has 85.1.
    assert "| 85.1 " in path.read_text()
    assert "11.0 ± 1.0 (n=3)" in path.read_text()
    assert not (results / "table10_records.jsonl").exists()
    assert json.loads((results / "table10.json").read_text())["runs"] == [cell.run_id for cell in plan.cells]


def test_a_published_record_that_was_edited_by_hand_is_refused(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(plan, store)
    results = tmp_path / "results"
    publish(plan, store, results, {})
    lines = (results / "table5_records.jsonl").read_text().replace('"seed":1', '"seed":7')
    (results / "table5_records.jsonl").write_text(lines)
    derived = Plan("table10", {**make_plan("table10").table}, plan.cells, runs_dir=str(tmp_path / "empty"))
    with pytest.raises(StoreError, match="was changed after it was written"):
        publish(derived, RunStore(tmp_path / "empty"), results, {})


def test_a_figure_without_runs_is_published_with_its_drawing(store: RunStore, tmp_path: Path) -> None:
    written = publish(make_plan("figure2"), store, tmp_path, {})
    assert [path.name for path in written] == ["figure2.md", "figure2.png", "figure2.svg"]
    sidecar = json.loads((tmp_path / "figure2.json").read_text())
    assert (sidecar["n_planned"], sidecar["runs"]) == (0, [])
    assert {"figure2.png", "figure2.svg"} < set(sidecar["sha256"])
    before = {name: (tmp_path / name).read_bytes() for name in sidecar["sha256"]}
    publish(make_plan("figure2"), store, tmp_path, {})
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_table4_names_the_data_it_shows_and_why_a_set_is_missing(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = datasets.load

    def only_digits(name: str, **_: object) -> Any:
        if name == "mnist":
            raise datasets.MissingDataError("get it there")
        return load("digits")

    monkeypatch.setattr(datasets, "load", only_digits)
    write_tables(make_plan("table4"), store, tmp_path)
    table = pd.read_csv(tmp_path / "table4.csv").set_index("dataset")
    assert table.loc["mnist", "note"] == "get it there"
    assert table.loc["yeast", ["n_train", "n_test", "n_features"]].tolist() == [1257, 540, 64]
    assert "mnist" not in json.loads((tmp_path / "table4.json").read_text())["data"]
    assert "1,257 (1,038)" in (tmp_path / "table4.md").read_text()


def test_sizes_that_are_published_are_not_lost_where_the_data_is_not(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = datasets.load("digits")
    monkeypatch.setattr(datasets, "load", lambda *_, **__: digits)
    publish(make_plan("table4"), store, tmp_path, {})
    before = contents(tmp_path)

    def without_mnist(name: str, **_: object) -> Any:
        if name == "mnist":
            raise datasets.MissingDataError("get it there")
        return digits

    monkeypatch.setattr(datasets, "load", without_mnist)
    with pytest.raises(PublishError, match="table4 is published with mnist, which cannot be had here"):
        publish(make_plan("table4"), store, tmp_path, {})
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["table4", "table5"])
def test_a_published_table_that_lost_its_sidecar_is_not_replaced(
    plan: Plan, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What was published, and the reasons of its gaps, would not be known."""
    digits = datasets.load("digits")
    monkeypatch.setattr(datasets, "load", lambda *_, **__: digits)
    fill(plan, store)
    published = plan if name == "table5" else make_plan("table4")
    publish(published, store, tmp_path / "results", {})
    (tmp_path / "results" / f"{name}.json").unlink()
    before = contents(tmp_path / "results")
    with pytest.raises(PublishError, match=rf"{name}\.json is missing"):
        publish(published, store, tmp_path / "results", {})
    assert contents(tmp_path / "results") == before


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{}", b'{"gaps":"x"}', b"[]"])
def test_a_damaged_sidecar_is_told_of(plan: Plan, store: RunStore, tmp_path: Path, content: bytes) -> None:
    fill(plan, store)
    publish(plan, store, tmp_path, {})
    (tmp_path / "table5.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"table5\.json.*make publish EXPERIMENT=table5"):
        publish(plan, store, tmp_path, {})


def test_an_interrupted_publication_changes_nothing(
    plan: Plan, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(plan, store)
    publish(plan, store, tmp_path / "results", {})
    before = contents(tmp_path / "results")
    synced = []

    def full(_: int) -> None:
        synced.append(1)
        if len(synced) == len(before):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="Nothing was changed"):
        publish(plan, store, tmp_path / "results", {})
    assert contents(tmp_path / "results") == before


@pytest.mark.parametrize("text", ["yeast", "=reason", "yeast/xgboost="])
def test_a_reason_without_its_cell_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["publish", "table5", "--gap", text]) == 1
    assert "expected DATASET=reason or DATASET/MODEL=reason" in capsys.readouterr().err


def test_a_reason_for_a_cell_that_is_not_planned_is_refused(plan: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(plan, store)
    with pytest.raises(PublishError, match="yeast/xgbost is no cell of table5"):
        publish(plan, store, tmp_path / "results", {"yeast/xgbost": "takes a week"})


def test_variants_stand_beside_the_value_of_the_set_they_vary(store: RunStore, tmp_path: Path) -> None:
    plan = make_plan("table5_variants", datasets=["yeast", "yeast_scripts"], models=["gbdt_mo"], seeds=2)
    fill(plan, store)
    write_tables(plan, store, tmp_path)
    table = pd.read_csv(tmp_path / "table5_variants.csv").set_index(["dataset", "model"])
    rows = [(name, f"gbdt_mo, max_bins {bins}") for name in ("yeast", "yeast_scripts") for bins in (8, 32, 255)]
    assert list(table.index) == rows
    assert table["published"].tolist() == [62.29] * 6  # Table V
    assert table["paper_n_seeds"].tolist() == [2] * 6
    expected = [100 * record(cell)["scores"]["test"] for cell in plan.cells[:2]]
    assert table.loc[rows[0], "paper_mean"] == pytest.approx(sum(expected) / 2)


def test_a_grid_is_reported_for_the_set_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["publish", "grid"]) == 1
    assert "grid is one of each data set: say dataset=NAME, and model=NAME" in capsys.readouterr().err


def test_whoever_replaces_published_runs_is_told(
    plan: Plan, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "make_plan", lambda *_, **__: replace(plan, runs_dir=str(store.root)))
    fill(plan, store)
    assert report.main(["publish", "table5"]) == 0
    message = "of the 12 lines of table5_records.jsonl {} are new and {} replaced, {} of them with other scores"
    assert message.format(12, 0, 0) in capsys.readouterr().err
    assert report.main(["publish", "table5"]) == 0
    assert "replaced" not in capsys.readouterr().err
    other = record(plan.cells[1])
    store.write(record(plan.cells[0], rounds=7))
    store.write({**other, "scores": {**other["scores"], "test": 0.5}})
    assert report.main(["publish", "table5"]) == 0
    assert message.format(0, 2, 1) in capsys.readouterr().err
