"""Plans of benchmarks: which cells, with which settings, in which order."""

import functools
import json
from typing import Any

import pandas as pd
import pytest

from repro.bench.plan import BenchCell, BenchError, is_benchmark, make_bench_plan
from repro.provenance import ROOT
from repro.report import main as report

SHAPES = ("mnist", "caltech101", "mnist_inpainting", "nus_wide")
# Rows, test rows, features, outputs (Fig. 5); depth, leaves, bins, minimum of samples, gain threshold (the authors').
SETTINGS = {
    "mnist": (50_000, 10_000, 784, 10, 8, 192, 8, 16, 1e-3),
    "caltech101": (6_073, 2_604, 324, 101, 9, 384, 32, 16, 1e-3),
    "mnist_inpainting": (50_000, 10_000, 200, 24, 7, 96, 16, 4, 1e-6),
    "nus_wide": (161_789, 107_859, 128, 81, 8, 192, 64, 4, 1e-6),
}


def estimator(cell: BenchCell) -> dict[str, Any]:
    found: dict[str, Any] = cell.config["estimator"]
    return found


@functools.cache
def whole() -> frozenset[str]:
    return frozenset(cell.run_id for cell in make_bench_plan().cells)


def test_all_methods_have_the_authors_settings() -> None:
    for cell in make_bench_plan(groups=["rounds"]).cells:
        data, own = cell.config["dataset"], estimator(cell)
        found = (
            data["rows"],
            data["test_rows"],
            data["features"],
            data["outputs"],
            own["max_depth"],
            own["max_leaves"],
        )
        expected = SETTINGS[cell.shape]
        if cell.model == "catboost":  # its default depth, with all leaves of a symmetric tree
            expected = (*expected[:4], 6, 64, *expected[6:])
        assert (*found, own["max_bins"], own["min_samples_leaf"], own["min_split_gain"]) == expected
        assert (own["learning_rate"], own["reg_lambda"]) == (0.1, 1.0)


def test_a_repeat_goes_round_all_models_before_the_next_starts() -> None:
    cells = [cell for cell in make_bench_plan(groups=["rounds"]).cells if cell.shape == "mnist"]
    models = ["gbdt_mo", "gbdt_so", "xgboost", "xgboost_vector", "lightgbm", "catboost", "external/released_library"]
    assert [(cell.repeat, cell.threads, cell.model) for cell in cells] == [
        (repeat, threads, model) for repeat in (0, 1) for threads in (1, 2) for model in models
    ]


def test_at_least_five_rounds_are_timed() -> None:
    cells = make_bench_plan(groups=["rounds"]).cells
    for shape in SHAPES:
        own = [cell for cell in cells if (cell.shape, cell.model, cell.threads) == (shape, "gbdt_mo", 1)]
        assert sum(cell.config["rounds"] - 1 for cell in own) >= 5


def test_sparse_cells_are_those_of_table_6() -> None:
    cells = [cell for cell in make_bench_plan(groups=["sparse"]).cells if cell.repeat == 0]
    found = {shape: [cell.variant for cell in cells if cell.shape == shape] for shape in SHAPES}
    ks = {
        "mnist": (2, 4, 8),
        "mnist_inpainting": (4, 8, 16),
        "caltech101": (8, 16, 32, 64),
        "nus_wide": (8, 16, 32, 64),
    }
    modes = ("restricted", "unrestricted")
    assert found == {shape: ["full", *(f"{mode} {k}" for k in own for mode in modes)] for shape, own in ks.items()}
    depths = {cell.shape: estimator(cell)["max_depth"] for cell in cells}
    assert depths == {"mnist": 8, "mnist_inpainting": 7, "caltech101": 8, "nus_wide": 8}
    k4 = next(cell for cell in cells if cell.variant == "unrestricted 4")
    assert (estimator(k4)["top_k"], estimator(k4)["top_k_mode"]) == (4, "unrestricted")


def test_growth_doubles_one_size_at_a_time() -> None:
    cells = [cell for cell in make_bench_plan(groups=["growth"]).cells if cell.repeat == 0]
    sizes = {
        cell.variant: (
            cell.config["dataset"]["rows"],
            cell.config["dataset"]["features"],
            cell.config["dataset"]["outputs"],
            estimator(cell)["max_bins"],
        )
        for cell in cells
    }
    base = sizes.pop("base")
    for place, doubled in enumerate(("rows", "features", "outputs", "bins")):
        expected = list(base)
        expected[place] *= 2
        assert sizes[doubled] == tuple(expected)
    assert len({estimator(cell)["max_leaves"] for cell in cells}) == 1


def test_time_to_score_takes_each_methods_row_of_table_9() -> None:
    cells = {cell.model: estimator(cell) for cell in make_bench_plan(groups=["score_mnist"]).cells}
    found = {model: (own["learning_rate"], own["max_depth"]) for model, own in cells.items()}
    assert found == {"lightgbm": (0.25, 6), "gbdt_mo": (0.1, 8)}
    rates = {
        (cell.model, estimator(cell)["learning_rate"]) for cell in make_bench_plan(groups=["score_inpainting"]).cells
    }
    assert rates == {(model, rate) for model in ("lightgbm", "gbdt_mo") for rate in (0.05, 0.1, 0.25, 0.5)}


def test_figure_5_and_the_inference_table_share_the_benchmarks_cells() -> None:
    for name in ("figure5", "inference"):
        plan = make_bench_plan(name)
        assert plan.kind == name
        assert {cell.run_id for cell in plan.cells} <= whole()


def test_narrowing_keeps_the_cells_and_is_told() -> None:
    plan = make_bench_plan(shapes=["mnist"], models=["lightgbm"], groups=["rounds"])
    assert {(cell.shape, cell.model) for cell in plan.cells} == {("mnist", "lightgbm")}
    assert {cell.run_id for cell in plan.cells} <= whole()
    assert plan.narrowed == ("shapes mnist", "models lightgbm", "groups rounds")
    assert make_bench_plan(overrides=["runs_dir=elsewhere"]).narrowed == ()


def test_another_library_or_code_makes_other_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    def ids(model: str) -> list[str]:
        return [cell.run_id for cell in make_bench_plan(shapes=["mnist"], models=[model], groups=["rounds"]).cells]

    before = {model: ids(model) for model in ("gbdt_mo", "lightgbm")}
    monkeypatch.setattr("repro.bench.plan.library_versions", lambda: {"lightgbm": "0.0"})
    assert ids("lightgbm") != before["lightgbm"]
    assert ids("gbdt_mo") == before["gbdt_mo"]
    monkeypatch.setattr("repro.bench.plan._core_digest", lambda: "another")
    assert ids("gbdt_mo") != before["gbdt_mo"]


def test_the_released_library_is_told_by_its_content_not_its_place(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "some.so"
    path.write_bytes(b"first")
    monkeypatch.setenv("GBDTMO_RELEASED_LIB", str(path))
    identities = []
    for content in (b"first", b"second"):
        path = path.with_name(content.decode())
        path.write_bytes(content)
        monkeypatch.setenv("GBDTMO_RELEASED_LIB", str(path))
        cells = make_bench_plan(shapes=["mnist"], models=["external/released_library"], groups=["rounds"]).cells
        identities.append(cells[0].identity)
        assert str(tmp_path) not in json.dumps(cells[0].identity)
    assert identities[0]["code"]["library"] != identities[1]["code"]["library"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"experiment": "table5"}, "no benchmark; there are bench, figure5, inference"),
        ({"shapes": ["nothing"]}, "no shape named nothing; there are .*mnist"),
        ({"models": ["nothing"]}, "no model named nothing; there are .*lightgbm"),
        ({"groups": ["nothing"]}, "no group named nothing; there are limit, rounds"),
        ({"shapes": ["projection"], "groups": ["sparse"]}, "nothing of bench is left"),
        ({"overrides": ["dataset.no_such=1"]}, "no_such"),
        ({"overrides": ["bench.most_rounds=1"]}, "most_rounds must be at least 2"),
        ({"overrides": ["bench.most_rounds=abc"]}, "most_rounds must be at least 2"),
        ({"experiment": "figure5", "overrides": ["bench.only=[nothing]"]}, "no group named nothing"),
    ],
)
def test_wrong_requests_name_what_there_is(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BenchError, match=message):
        make_bench_plan(**arguments)


def test_only_benchmarks_are_benchmarks() -> None:
    assert [name for name in ("bench", "figure5", "inference", "table5", "nothing") if is_benchmark(name)] == [
        "bench",
        "figure5",
        "inference",
    ]


def test_a_benchmark_without_records_is_not_published(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    assert report(["publish", "bench", f"runs_dir={tmp_path}"]) == 1
    assert "have not been run" in capsys.readouterr().err


def test_table6_times_ten_rounds_of_every_split_of_table_vi() -> None:
    cells = make_bench_plan("table6").cells
    found: dict[str, list[str]] = {}
    for cell in cells:
        found.setdefault(cell.config["dataset"]["name"], []).append(cell.variant)
        assert cell.config["rounds"] == 10
    published = pd.read_csv(ROOT / "results/paper/table6.csv")
    expected = {
        name: {f"{row.top_k_mode} {row.top_k}" for row in part.itertuples()}
        for name, part in published.groupby("dataset")
    }
    assert {name: set(variants) - {"full"} for name, variants in found.items()} == expected
    assert all(variants[0] == "full" for variants in found.values())
    depths = {cell.config["dataset"]["name"]: estimator(cell)["max_depth"] for cell in cells}
    assert depths == {"mnist": 8, "mnist_inpainting": 7, "caltech101": 8, "nus_wide": 8}
    assert {c.config["dataset"]["source"] for c in cells if c.shape == "nus_wide_labels"} == {"nus_wide_shape"}
