"""Medians, ratios and promises of the benchmark, from records with known numbers."""

import math

import pandas as pd
import pytest

from repro.bench import checks, frames
from repro.bench.cell import CpuWatch, was_busy
from repro.bench.scores import first_reached, score_frame, stopped
from repro.provenance import ROOT
from tests.repro.bench_records import limit, rounds, score

PAPER = ROOT / "results" / "paper"
# A round of 10 s: histograms 4, split 3, gradient and rounding 1 + 1, the rest unnamed.
OWN_PARTS = {"histogram": 4.0, "split": 3.0, "gradient": 1.0, "rounding": 1.0}


def measured() -> frames.Measured:
    return [
        limit("mnist", 2e9),
        limit("mnist", 4e9, repeat=1),
        rounds("mnist", "gbdt_mo", [99, 10, 10, 10], parts=OWN_PARTS, entries=1e9),
        rounds("mnist", "lightgbm", [99, 20, 40, 24], predict=0.8),
        rounds("mnist", "xgboost", [99, 50, 50, 50], predict=0.2),
        rounds("mnist", "lightgbm", [99, 22, 26, 21], repeat=1, predict=0.8),
    ]


def compared() -> pd.DataFrame:
    records = measured()
    return frames.compared(frames.round_frame(records), frames.limit_frame(records)).set_index("model")


def test_the_median_is_over_the_rounds_of_all_repeats_but_their_first() -> None:
    row = frames.round_frame(measured()).set_index("model").loc["lightgbm"]
    assert (row["seconds"], row["fastest"], row["slowest"], row["n_rounds"]) == (23.0, 20.0, 40.0, 6)
    assert row["predict_ms"] == pytest.approx(200)
    assert (row["above_mb"], row["peak_mb"], row["leaves"]) == (50.0, 150.0, 8.0)


def test_ratios_are_to_the_fastest_peer_and_to_the_limit() -> None:
    frame = compared()
    assert set(frame["fastest_peer"]) == {"lightgbm"}
    assert frame["to_peer"].to_dict() == pytest.approx({"gbdt_mo": 10 / 23, "lightgbm": 1.0, "xgboost": 50 / 23})
    # 1e9 entries x 8 numbers (4 outputs, gradient and Hessian) at 4e9 adds a second.
    assert frame["limit_seconds"].to_dict() == pytest.approx(dict.fromkeys(frame.index, 2.0))
    assert frame.loc["xgboost", "to_limit"] == pytest.approx(25)
    assert frame.loc["gbdt_mo", "histogram_to_limit"] == pytest.approx(2.0)
    assert math.isnan(frame.loc["lightgbm", "histogram_to_limit"])


def test_two_threads_halve_the_limit_of_adding() -> None:
    records = [limit("mnist", 4e9), rounds("mnist", "gbdt_mo", [9, 1], threads=2, parts=OWN_PARTS, entries=1e9)]
    frame = frames.compared(frames.round_frame(records), frames.limit_frame(records))
    assert frame["limit_seconds"].tolist() == pytest.approx([1.0])


def test_without_rates_or_peers_nothing_is_claimed() -> None:
    records = [rounds("mnist", "gbdt_mo", [9, 1], parts=OWN_PARTS, entries=1e9)]
    frame = frames.compared(frames.round_frame(records), frames.limit_frame(records))
    assert frame[["to_peer", "to_limit", "limit_seconds"]].isna().all(axis=None)


def test_shares_of_a_round_add_up_to_one() -> None:
    shares = frames.part_frame(frames.round_frame(measured())).iloc[0]
    expected = {"histogram": 0.4, "split": 0.3, "partition": 0.0, "gradient": 0.2, "leaf": 0.0, "rest": 0.1}
    assert {name: shares[name] for name in expected} == pytest.approx(expected)


def test_growth_is_over_the_base() -> None:
    records = [
        rounds("projection", "gbdt_mo", [9, seconds], group="growth", variant=variant)
        for variant, seconds in (("base", 2.0), ("rows", 4.0), ("bins", 5.0))
    ]
    growth = frames.growth_frame(frames.round_frame(records))
    assert dict(zip(growth["variant"], growth["ratio"], strict=True)) == {"base": 1.0, "rows": 2.0, "bins": 2.5}
    held = checks.check_frame(checks.growth_checks(growth, frames.round_frame(records)))
    assert held["holds"].tolist() == [True, False]


def test_sparse_splits_are_over_the_full_one_beside_table_6() -> None:
    records = [
        rounds("mnist", "gbdt_mo", [9, seconds], group="sparse", variant=variant)
        for variant, seconds in (("full", 2.0), ("restricted 2", 1.0), ("unrestricted 4", 3.0), ("restricted 4", 2.5))
    ]
    published = (pd.read_csv(PAPER / f"table{number}.csv") for number in (6, 8))
    sparse = frames.sparse_frame(frames.round_frame(records), *published)
    assert sparse[["mode", "k", "to_full"]].to_numpy().tolist() == [
        ["full", 4, 1.0],
        ["restricted", 2, 0.5],
        ["unrestricted", 4, 1.5],
        ["restricted", 4, 1.25],
    ]
    assert sparse["published"].tolist() == [0.79, 0.619, 0.758, 0.737]  # Tables VIII and VI
    held = checks.check_frame(checks.sparse_checks(sparse))
    assert held[["where", "measured"]].to_numpy().tolist() == [
        ["mnist, k = 2, restricted", 0.5],
        ["mnist, k = 4, unrestricted", 1.5],
        ["mnist, k = 4, restricted", 1.25],
        ["mnist, k = 4, restricted", 2.5 / 3.0],
    ]


def test_memory_is_over_what_must_be_held_and_over_vector_leaves() -> None:
    sizes = {"n_train": 2**20, "n_features": 10, "n_outputs": 4, "task": "multilabel"}
    records = [
        rounds("nus_wide", "gbdt_mo", [9, 1], memory=(100, 142), data=sizes),  # bins 10, gradients 16, pool 16
        rounds("many", "gbdt_mo", [9, 1], group="memory", memory=(100, 130)),
        rounds("many", "xgboost_vector", [9, 1], group="memory", memory=(100, 200)),
    ]
    found = checks.check_frame(checks.memory_checks(frames.round_frame(records)))
    assert found["measured"].tolist() == pytest.approx([1.0, 0.3])
    assert found["holds"].tolist() == [True, False]


def test_predictions_are_a_round_and_over_the_fastest_peer() -> None:
    records = measured()
    predictions = frames.predict_frame(records, frames.round_frame(records)).set_index("model")
    assert predictions["predict_ms"].to_dict() == pytest.approx({"gbdt_mo": 125, "lightgbm": 200, "xgboost": 50})
    assert predictions["to_peer"].to_dict() == pytest.approx({"gbdt_mo": 2.5, "lightgbm": 4.0, "xgboost": 1.0})


@pytest.mark.parametrize(
    ("models", "expected", "note"),
    [
        ({"released_library": 7.0, "lightgbm": 9.0}, 7.0, "measured"),
        ({"lightgbm": 0.652}, 4.64, "scaled"),  # twice as slow as LightGBM's .326 s there, so twice 2.32 s
        ({}, math.nan, "neither"),
    ],
)
def test_the_released_program_is_measured_or_scaled(models: dict[str, float], expected: float, note: str) -> None:
    records = [rounds("mnist", model, [9, seconds]) for model, seconds in {"gbdt_mo": 1.0, **models}.items()]
    frame = frames.compared(frames.round_frame(records), frames.limit_frame(records))
    reference = pd.read_csv(frames.__file__.replace("repro/bench/frames.py", "results/paper/speed_reference.csv"))
    seconds, why = checks.released_seconds(frame, reference, "mnist", 1)
    assert seconds == pytest.approx(expected, nan_ok=True)
    assert note in why
    found = checks.check_frame(checks.speed_checks(frame, reference))
    assert len(found) == 2
    assert found["bound"].tolist() == [2.0, 15.0]


@pytest.mark.parametrize(
    ("value", "at_most", "holds"),
    [(2.0, True, True), (2.1, True, False), (2.0, False, True), (1.9, False, False), (math.nan, True, None)],
)
def test_a_promise_holds_at_its_bound(value: float, at_most: bool, holds: bool | None) -> None:
    assert checks.Check("claim", "where", 2.0, value, at_most, "×").holds is holds


def test_a_run_stops_25_rounds_after_its_best() -> None:
    rising = [0.1, 0.5, 0.4, *[0.3] * 23]
    assert stopped([*rising, 0.5, 0.9], "accuracy") == 2  # the 25th round after it brings nothing better
    assert stopped([*rising[:-1], 0.6], "accuracy") == 26
    assert stopped([3.0, 1.0, 1.0, 2.0], "rmse") == 2


def test_a_score_is_reached_when_it_is_as_good() -> None:
    assert first_reached([0.1, 0.5, 0.6], "accuracy", 0.5) == 2
    assert first_reached([3.0, 2.0, 1.0], "rmse", 1.5) == 3
    assert first_reached([3.0, 2.0], "rmse", 1.5) is None


def test_time_to_the_best_score_of_lightgbms_run() -> None:
    records = [
        score("score_mnist", "lightgbm", [0.5, 0.8, 0.7], step=10.0),
        score("score_mnist", "gbdt_mo", [0.2, 0.6, 0.7, 0.85], step=1.0),
    ]
    frame = score_frame(records).set_index("model")
    assert frame["goal"].tolist() == [0.8, 0.8]
    assert (frame.loc["lightgbm", "round"], frame.loc["lightgbm", "seconds"]) == (2, 20.0)
    assert (frame.loc["gbdt_mo", "round"], frame.loc["gbdt_mo", "seconds"]) == (4, 4.0)
    check = next(checks.score_checks(score_frame(records)))
    assert (check.measured, check.holds) == (pytest.approx(0.2), True)


def test_each_models_rate_is_chosen_on_validation_rows() -> None:
    """The rate that is best on the test rows is not chosen."""
    records = [
        score("score_inpainting", "lightgbm", [3.0, 2.0], validation=[3.0, 2.5], variant="rate 0.1"),
        score("score_inpainting", "lightgbm", [1.0, 0.5], validation=[3.0, 2.9], variant="rate 0.5"),
        score("score_inpainting", "gbdt_mo", [4.0, 2.1], validation=[4.0, 2.0], variant="rate 0.1"),
    ]
    frame = score_frame(records).set_index("model")
    assert frame["variant"].to_dict() == {"lightgbm": "rate 0.1", "gbdt_mo": "rate 0.1"}
    assert frame["goal"].tolist() == [2.0, 2.0]
    assert math.isnan(frame.loc["gbdt_mo", "seconds"])
    assert next(checks.score_checks(score_frame(records))).holds is None


@pytest.mark.parametrize(
    ("other", "seconds", "busy"), [(0.1, 100.0, False), (0.2, 100.0, True), (0.5, 0.2, False), (1.0, 1.0, True)]
)
def test_a_cell_is_busy_when_others_worked_long_and_hard(other: float, seconds: float, busy: bool) -> None:
    assert was_busy({"other_cpu": other, "seconds": {"total": seconds}}) is busy


def test_own_work_does_not_count_as_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, own, wall = iter([100.0, 116.0]), iter([7.0, 12.0]), iter([0.0, 10.0])
    monkeypatch.setattr(CpuWatch, "_busy", staticmethod(lambda: next(busy)))
    monkeypatch.setattr(CpuWatch, "_own", staticmethod(lambda: next(own)))
    monkeypatch.setattr("repro.bench.cell.time.perf_counter", lambda: next(wall))
    assert CpuWatch().other_cores() == pytest.approx(1.1)  # 16 s of work, 5 of them our own, in 10 s
