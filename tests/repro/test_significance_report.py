"""The report and Table XII from records: the same bytes each time, published records alone, no change by hand."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fake_cells import record_of
from omegaconf import OmegaConf

from repro import report, significance_report
from repro.plan import Cell, Plan, make_plan
from repro.published import PublishedStore, published_records, records_path
from repro.report import PublishError, publish, write_tables
from repro.store import RunStore, StoreError, unseal

METRICS = {"student_por": "rmse", "yeast": "accuracy", "mnist": "accuracy"}
FILES = ("md", "csv", "png", "svg")


@pytest.fixture(scope="module")
def table5() -> Plan:
    """Table V on three data sets, four models and three seeds, as if that were all of it."""
    models = ["gbdt_mo", "gbdt_so", "xgboost", "lightgbm"]
    narrow = make_plan("table5", datasets=list(METRICS), models=models, seeds=3)
    return Plan(narrow.experiment, narrow.table, narrow.cells)


@pytest.fixture(scope="module")
def experiment(table5: Plan) -> Plan:
    """The report on these runs."""
    narrow = make_plan("significance", datasets=["yeast"], models=["gbdt_mo"], seeds=1)
    assert {cell.run_id for cell in narrow.cells} <= {cell.run_id for cell in table5.cells}
    return Plan(narrow.experiment, narrow.table, table5.cells)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def record(cell: Cell) -> dict[str, Any]:
    """Make a record with a score of its own and the numbers of rows that the corrected test needs."""
    made = record_of(OmegaConf.create(cell.config))
    score = np.random.default_rng(int(cell.run_id[:8], 16)).normal(0.6, 0.02)
    sizes = {"n_fit": 700, "n_validation": 0} if cell.protocol == "paper" else {"n_fit": 560, "n_validation": 140}
    return {
        **made,
        "scores": {**made["scores"], "metric": METRICS[cell.dataset], "test": score},
        "dataset": {**made["dataset"], **sizes, "n_test": 300},
    }


def fill(plan: Plan, store: RunStore) -> None:
    for cell in plan.cells:
        store.write(record(cell))


def contents(folder: Path, name: str = "significance") -> dict[str, bytes]:
    return {ending: (folder / f"{name}.{ending}").read_bytes() for ending in FILES}


def test_the_report_agrees_with_scipy(experiment: Plan, store: RunStore, tmp_path: Path) -> None:
    from scipy import stats

    fill(experiment, store)
    paths = write_tables(experiment, store, tmp_path)
    assert [path.name for path in paths] == ["significance.md", "significance.png", "significance.svg"]
    table = pd.read_csv(tmp_path / "significance.csv").set_index(["dataset", "protocol", "model"])
    scores = {
        model: np.array([record(cell)["scores"]["test"] for cell in experiment.cells if cell_is(cell, model)])
        for model in ("gbdt_mo", "xgboost")
    }
    row = table.loc[("yeast", "holdout", "xgboost")]
    expected = stats.ttest_rel(scores["gbdt_mo"], scores["xgboost"])
    assert (row["t"], row["p"]) == pytest.approx((expected.statistic, expected.pvalue))
    one_sided = stats.ttest_rel(scores["gbdt_mo"], scores["xgboost"], alternative="greater")
    assert row["confidence"] == pytest.approx(1 - one_sided.pvalue)
    assert row["test_over_train"] == pytest.approx(300 / 700)  # the validation rows are training rows
    assert row["difference"] == pytest.approx(100 * (scores["gbdt_mo"] - scores["xgboost"]).mean())
    assert table.loc[("mnist", "paper", "gbdt_so"), "note"] == "one seed: no spread"


def cell_is(cell: Cell, model: str) -> bool:
    return (cell.dataset, cell.protocol, cell.model) == ("yeast", "holdout", model)


def test_the_same_records_make_the_same_bytes(experiment: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(experiment, store)
    write_tables(experiment, store, tmp_path / "first")
    write_tables(experiment, store, tmp_path / "second")
    assert contents(tmp_path / "first") == contents(tmp_path / "second")
    sidecar = json.loads((tmp_path / "first" / "significance.json").read_text())
    digests = {
        f"significance.{ending}": hashlib.sha256(content).hexdigest()
        for ending, content in contents(tmp_path / "first").items()
    }
    assert sidecar["sha256"] == digests
    assert sidecar["records_of"] == "table5"
    assert sidecar["over_datasets"]["paper"]["n_datasets"] == 3


DRAW = """
import hashlib, numpy as np, pandas as pd
from repro.figures import critical_differences
names = ["gbdt_mo", "gbdt_so", "xgboost", "lightgbm", "catboost"]
p = np.array([[1, .5, .01, .5, .5], [.5, 1, .5, .01, .5], [.01, .5, 1, .5, .01], [.5, .01, .5, 1, .5],
              [.5, .5, .01, .5, 1]])
drawn = critical_differences({"a": (pd.Series([1.5, 1.5, 2, 4, 4.5], names), pd.DataFrame(p, names, names), 2.0)}, 0.05)
print({ending: hashlib.sha256(content).hexdigest() for ending, content in drawn.items()})
"""


def test_the_diagram_does_not_depend_on_the_order_of_sets(project_root: Path) -> None:
    """Texts hash anew in each process, so that sets of them have another order."""
    drawn = {
        subprocess.run(
            [sys.executable, "-c", DRAW],
            cwd=project_root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(drawn) == 1


def test_the_diagram_names_every_method(experiment: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(experiment, store)
    write_tables(experiment, store, tmp_path)
    drawing = (tmp_path / "significance.svg").read_text()
    ranks = json.loads((tmp_path / "significance.json").read_text())["over_datasets"]["holdout"]["mean_ranks"]
    assert len(ranks) == 4
    for model, rank in ranks.items():
        assert f"{model} ({rank:.2f})" in drawing


def test_what_is_published_comes_from_published_records(
    experiment: Plan, table5: Plan, store: RunStore, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    with pytest.raises(PublishError, match="significance has no recorded run; publish table5 first"):
        publish(experiment, store, results, {})
    fill(table5, store)
    publish(table5, store, results, {})
    written = publish(experiment, store, results, {})
    assert [path.name for path in written] == ["significance.md", "significance.png", "significance.svg"]
    assert not records_path(results, "significance").exists()
    before = contents(results)
    # A later run of one's own changes what is made of it, not what is published.
    changed = record(experiment.cells[0])
    store.write({**changed, "scores": {**changed["scores"], "test": 0.123}})
    publish(experiment, store, results, {})
    assert contents(results) == before
    write_tables(experiment, store, tmp_path / "own")
    assert contents(tmp_path / "own")["csv"] != before["csv"]


@pytest.mark.parametrize("name", ["significance", "table12"])
def test_without_any_run_there_is_a_report_of_gaps(name: str, store: RunStore, tmp_path: Path) -> None:
    narrow = make_plan(name, datasets=["yeast"], models=["gbdt_mo", "xgboost"], seeds=1)
    paths = write_tables(narrow, store, tmp_path)
    assert f"**{name}**: 0 of 4 runs recorded." in paths[0].read_text()
    assert (pd.read_csv(tmp_path / f"{name}.csv")["n"] == 0).all()
    assert "not run" in paths[0].read_text()


def test_records_that_cannot_be_compared_are_named(experiment: Plan, store: RunStore, tmp_path: Path) -> None:
    fill(experiment, store)
    wrong = record(experiment.cells[0])
    store.write({**wrong, "dataset": {**wrong["dataset"], "n_test": 7}})
    with pytest.raises(
        PublishError, match="significance cannot be made from these records: student_por paper: runs of"
    ):
        write_tables(experiment, store, tmp_path)
    assert not (tmp_path / "significance.md").exists()


def test_reasons_published_with_the_records_hold(
    experiment: Plan, table5: Plan, store: RunStore, tmp_path: Path
) -> None:
    fill(table5, store)
    for cell in table5.cells:
        if (cell.dataset, cell.model) == ("mnist", "xgboost"):
            store.record_path(cell.run_id).unlink()
    publish(table5, store, tmp_path, {"mnist/xgboost": "takes a week"})
    publish(experiment, store, tmp_path, {})
    gaps = json.loads((tmp_path / "significance.json").read_text())["gaps"]
    assert {gap["reason"] for gap in gaps} == {"takes a week"}
    text = (tmp_path / "significance.md").read_text()
    assert "Left out: xgboost, without mnist. Seeds that all share: student_por 3, yeast 3, mnist 1." in text
    table = pd.read_csv(tmp_path / "significance.csv").set_index(["dataset", "protocol", "model"])
    assert table.loc[("mnist", "paper", "xgboost"), ["n", "note"]].tolist() == [0, "takes a week"]


def test_own_records_come_before_published_ones(table5: Plan, store: RunStore) -> None:
    published, own = record(table5.cells[0]), record(table5.cells[1])
    newer = {**published, "n_trees": 99}
    store.write(newer)
    store.write(own)
    both = PublishedStore(store.root, [published], local=True)
    assert both.read(published["run_id"])["n_trees"] == 99
    assert both.has(own["run_id"])
    alone = PublishedStore(store.root, [published])
    assert alone.read(published["run_id"]) == published
    assert not alone.has(own["run_id"])


def test_a_published_record_changed_by_hand_is_noticed(
    experiment: Plan, table5: Plan, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    fill(table5, store)
    publish(table5, store, tmp_path, {})
    path = records_path(tmp_path, "table5")
    lines = path.read_text().splitlines()
    line = json.loads(lines[4])
    line["scores"]["test"] += 0.001
    path.write_text("\n".join([*lines[:4], json.dumps(line), *lines[5:]]) + "\n")
    with pytest.raises(StoreError, match=r"line 5 of .*table5_records\.jsonl was changed after it was written"):
        publish(experiment, store, tmp_path, {})
    assert not (tmp_path / "significance.md").exists()
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    assert report.main(["table", "significance", "dataset=yeast", "model=gbdt_mo", f"runs_dir={store.root}"]) == 1
    assert "was changed after it was written" in capsys.readouterr().err


def test_the_committed_records_are_as_they_were_published(project_root: Path) -> None:
    files = sorted((project_root / "results").glob("*_records.jsonl"))
    assert records_path(project_root / "results", "table5") in files
    for path in files:
        for line in path.read_text("utf-8").splitlines():
            unseal(json.loads(line), path.name, "")


@pytest.mark.parametrize("name", ["significance", "table12"])
def test_the_committed_reports_are_made_from_the_committed_records(project_root: Path, name: str) -> None:
    results = project_root / "results"
    sidecar = json.loads((results / f"{name}.json").read_text())
    for file, digest in sidecar["sha256"].items():
        assert hashlib.sha256((results / file).read_bytes()).hexdigest() == digest
    recorded = {record["run_id"] for record in published_records(results, sidecar["records_of"])}
    assert set(sidecar["runs"]) <= recorded


def runs_with(sd_of_pairs: float, common_sd: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ten splits of Student-por whose scores share most of their spread."""
    rng = np.random.default_rng(3)
    shared, own = rng.normal(0.24, common_sd, 10), rng.normal(0, 1, 10)
    own = (own - own.mean()) / own.std(ddof=1) * sd_of_pairs + 0.00016
    rows = [
        {"run_id": f"{model}{seed}", "model": model, "seed": seed, "test": score}
        for model, scores in (("gbdt_mo", shared), ("gbdt_so", shared + own))
        for seed, score in enumerate(scores)
    ]
    cells = pd.DataFrame(rows)[["run_id", "model", "seed"]].assign(dataset="student_por", protocol="paper", gap=None)
    runs = pd.DataFrame(rows)[["run_id", "seed", "test"]].assign(metric="rmse", n_train=454, n_test=195)
    return cells, runs


def test_table12_tells_pairs_from_samples(project_root: Path) -> None:
    """Made so that the published difference and confidence result with pairs; without, they would lie near 0.5."""
    paper = project_root / "results" / "paper"
    published, scores = pd.read_csv(paper / "table12.csv"), pd.read_csv(paper / "table5.csv")
    content = significance_report.confidence_content(*runs_with(0.0032, 0.011), published, scores)
    (row,) = content.table.to_dict("records")
    assert row["published"] == 0.561
    assert row["published_difference"] == pytest.approx(0.00016)
    assert row["difference"] == pytest.approx(0.00016)
    assert row["confidence"] == pytest.approx(0.561, abs=2e-3)
    assert row["unpaired_confidence"] < 0.52
    assert row["implied_pair_sd"] == pytest.approx(0.0032, abs=1e-5)
    assert row["pair_p"] > 0.9
    assert row["model_p"] < 0.001
    assert "## Were pairs used?" in content.markdown


def test_table12_asks_nothing_of_values_it_does_not_know(project_root: Path) -> None:
    scores = pd.read_csv(project_root / "results" / "paper" / "table5.csv")
    nothing = pd.DataFrame({"dataset": ["yeast"], "model": ["gbdt_so"], "confidence": [0.5]})
    content = significance_report.confidence_content(*runs_with(0.0032, 0.011), nothing, scores)
    assert "Were pairs used?" not in content.markdown
    assert content.table["pair_p"].isna().all()


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.500"), (0.0004, "<0.001"), (0.0, "0.000"), (0.9996, ">0.999"), (1.0, "1.000")]
)
def test_probabilities_near_the_ends_say_so(value: float, text: str) -> None:
    assert significance_report.probability(value) == text


def test_what_the_document_says_stands_in_the_report(project_root: Path) -> None:
    document = (project_root / "docs" / "significance.md").read_text()
    said = document.partition("## What came out")[2].partition("\n## ")[0]
    report = (project_root / "results" / "significance.md").read_text()
    numbers = re.findall(r"\b\d+\.\d+\b", said)
    assert len(numbers) >= 6
    for number in numbers:
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", report), number
    for better, worse, plain_better, plain_worse in re.findall(
        r"better in (\d+) and worse in (\d+) by the corrected test .* would say (\d+) and (\d+)", report
    ):
        assert worse == "0"
        assert re.search(rf"\b{plain_better} and (worse in )?{plain_worse}\b", said)
        assert re.search(rf"\b{better}\b", said)
