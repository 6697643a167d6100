"""The benchmark's whole way on tiny data: processes, records, report, publishing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from repro.bench import suite
from repro.bench.__main__ import main
from repro.bench.cell import bench_store, pin
from repro.bench.plan import BenchPlan, make_bench_plan
from repro.bench.report import BenchReportError, check_one_machine, publish_bench, write_report
from repro.report import main as report
from tests.repro.bench_records import limit, rounds

TINY = ["bench.most_rounds=3", "bench.groups.rounds.repeats=1", "bench.groups.limit.repeats=1"]
ONE_THREAD = ["bench.groups.rounds.threads=[1]", "bench.groups.inference.threads=[1]"]


def plan_of(records: Any, kind: str = "bench", narrowed: tuple[str, ...] = ()) -> BenchPlan:
    cells = tuple(cell for cell, _ in records)
    return BenchPlan(kind, kind, cells, narrowed, "results/runs", {cell.shape: cell.shape for cell in cells})


@pytest.fixture
def stored(tmp_path: Path) -> tuple[list[Any], Path]:
    parts = {"histogram": 0.5, "split": 0.2}
    records = [
        limit("mnist", 1e9),
        *(rounds("mnist", "gbdt_mo", [2, 1], threads=n, parts=parts, entries=1e8) for n in (1, 2)),
        *(rounds("mnist", "lightgbm", [4, 3], threads=n) for n in (1, 2)),
    ]
    store = bench_store(tmp_path)
    for _, record in records:
        store.write(record)
    return records, tmp_path


def test_measures_records_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run of the real processes: ours, a peer, and a program that is not here."""
    monkeypatch.delenv("GBDTMO_RELEASED_LIB", raising=False)
    narrowed = ["--datasets", "digits", "--models", "gbdt_mo,lightgbm,external/released_library", "--busy"]
    settings = [f"runs_dir={tmp_path}", *TINY, *ONE_THREAD]
    assert main([*settings, *narrowed, "--groups", "limit,rounds,inference"]) == 1
    assert "5 to run" in capsys.readouterr().err
    text = (tmp_path / "tables/bench.md").read_text()
    for part in ("GBDTMO_RELEASED_LIB is not set", "digits, 1,257 × 64 → 10", "## Inference", "## This machine"):
        assert part in text
    records = sorted((tmp_path / "bench/records").iterdir())
    assert len(records) == 5
    assert json.loads(records[0].read_text())["provenance"]["n_cpus"] == len(os.sched_getaffinity(0))
    header = (tmp_path / "tables/bench.csv").read_text().partition("\n")[0]
    assert header.startswith("section,group,shape,model")

    assert main(["experiment=figure5", *settings, *narrowed]) == 1
    assert "0 to run" in capsys.readouterr().err
    assert sorted((tmp_path / "bench/records").iterdir()) == records
    assert (tmp_path / "tables/figure5.svg").read_text().startswith("<?xml")
    assert (tmp_path / "tables/figure5.png").read_bytes().startswith(b"\x89PNG")


def test_a_failed_cell_is_a_gap_with_its_reason(tmp_path: Path) -> None:
    plan = make_bench_plan(
        shapes=["many_outputs"],
        models=["gbdt_mo"],
        groups=["memory"],
        overrides=["bench.most_rounds=2", "dataset.rows=40", "dataset.max_bins=1"],
    )
    said: list[str] = []
    assert suite.run_bench(plan, tmp_path, say=said.append) == list(plan.cells)
    assert "max_bins" in said[-1]
    path = write_report(plan, tmp_path, tmp_path)[0]
    assert "max_bins" in path.read_text()


def test_every_kind_of_work_leaves_a_record(tmp_path: Path) -> None:
    plan = make_bench_plan(
        shapes=["projection", "mnist_table9"],
        models=["gbdt_mo", "lightgbm"],
        groups=["row", "score_mnist"],
        overrides=[
            "bench.most_rounds=3",
            "bench.groups.row.repeats=1",
            "bench.groups.score_mnist.threads=[1]",
            "dataset.source=digits",
            "dataset.synthetic=false",
        ],
    )
    assert suite.run_bench(plan, tmp_path, say=lambda _: None) == []
    text = write_report(plan, tmp_path, tmp_path)[0].read_text()
    assert "Time to LightGBM's best test score" in text
    assert "scikit-learn's validation" in text


def test_pinning_bounds_cores_and_threads() -> None:
    code = (
        "import os; from repro.bench.cell import pin; pin(1); "
        "print(len(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"]


def test_pinning_refuses_what_it_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.bench.cell._loaded_libraries", lambda: "")
    with pytest.raises(RuntimeError, match="1000 threads are to be measured"):
        pin(1000)
    monkeypatch.setattr("repro.bench.cell._loaded_libraries", lambda: "/usr/lib/libgomp.so.1")
    with pytest.raises(RuntimeError, match="OpenMP was loaded"):
        pin(1)


def test_a_busy_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "load_average", lambda: [1.5, 1.0, 1.0])
    with pytest.raises(suite.NotQuiet, match=r"load average is 1\.50"):
        suite.check_quiet(wait_seconds=0)
    monkeypatch.setattr(suite, "load_average", lambda: [0.2, 1.0, 1.0])
    suite.check_quiet(wait_seconds=0)


def test_busy_cells_are_measured_again_on_request(tmp_path: Path) -> None:
    cells = [rounds("mnist", "external/released_library", [1, 1], other_cpu=1.0)]
    store = bench_store(tmp_path)
    store.write(cells[0][1])
    said: list[str] = []
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("GBDTMO_RELEASED_LIB", raising=False)
        suite.run_bench(plan_of(cells), tmp_path, say=said.append)
        suite.run_bench(plan_of(cells), tmp_path, again=True, say=said.append)
    assert "0 not recorded" in said[0]
    assert "1 not recorded, 0 to run" in said[1]


def test_records_of_two_machines_are_not_compared(tmp_path: Path) -> None:
    records = [
        rounds("mnist", "gbdt_mo", [2, 1])[1],
        rounds("mnist", "lightgbm", [2, 1], cpu="another processor")[1],
    ]
    check_one_machine(records[:1])
    with pytest.raises(BenchReportError, match=r"2 machines .*another processor"):
        check_one_machine(records)


def test_publishing_writes_report_and_records(stored: tuple[list[Any], Path], tmp_path: Path) -> None:
    records, root = stored
    folder = tmp_path / "published"
    written = {path.name for path in publish_bench(plan_of(records), root, folder, {})}
    assert {"bench.md", "bench_records.jsonl"} <= written
    lines = [json.loads(line) for line in (folder / "bench_records.jsonl").read_text().splitlines()]
    assert [line["cell"]["model"] for line in lines] == [cell.model for cell, _ in records]
    sidecar = json.loads((folder / "bench.json").read_text())
    assert (sidecar["n_planned"], sidecar["n_recorded"], sidecar["gaps"]) == (5, 5, {})
    assert "| rounds faster than the fastest peer" in (folder / "bench.md").read_text()


def test_publishing_refuses_what_would_mislead(stored: tuple[list[Any], Path], tmp_path: Path) -> None:
    records, root = stored
    folder = tmp_path / "published"
    with pytest.raises(BenchReportError, match="narrowed"):
        publish_bench(plan_of(records, narrowed=("models gbdt_mo",)), root, folder, {})
    extra = rounds("mnist", "catboost", [4, 3])
    with pytest.raises(BenchReportError, match="1 cells have not been run"):
        publish_bench(plan_of([*records, extra]), root, folder, {})
    publish_bench(plan_of([*records, extra]), root, folder, {"mnist/catboost": "left out"})
    busy = rounds("mnist", "xgboost", [4, 3], other_cpu=0.9)
    bench_store(root).write(busy[1])
    with pytest.raises(BenchReportError, match=r"during 1 cells, among them rounds mnist xgboost"):
        publish_bench(plan_of([*records, busy]), root, folder, {})


def test_a_table_can_be_made_from_records_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(["table", "inference", f"runs_dir={tmp_path}"]) == 0
    assert "inference.md" in capsys.readouterr().out
    assert "0 of " in (tmp_path / "tables/inference.md").read_text()
