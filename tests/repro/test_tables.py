"""Means, verdicts and tables on made-up runs whose answers are worked out by hand."""

import math
from typing import Any

import pandas as pd
import pytest

from repro import tables


def runs_of(scores: dict[str, list[float]], metric: str = "accuracy") -> pd.DataFrame:
    """One run a score; the key is the model, the position the seed."""
    rows = [
        {
            "run_id": f"{model}{seed}",
            "seed": seed,
            "metric": metric,
            "test": score,
            "validation": score - 0.1,
            "best_round": 10.0 + seed,
            "n_trees": 20,
            "train_seconds": 1.0 + seed,
            "rounds": 20,
        }
        for model, values in scores.items()
        for seed, score in enumerate(values)
    ]
    return pd.DataFrame(rows)


def cells_of(n_seeds: int, *models: str, gaps: dict[str, str] | None = None, **names: str) -> pd.DataFrame:
    rows: list[dict[str, Any]] = [
        {
            "dataset": names.get("dataset", "yeast"),
            "model": model,
            "protocol": names.get("protocol", "paper"),
            "seed": seed,
            "run_id": f"{model}{seed}",
            "gap": (gaps or {}).get(f"{model}{seed}"),
        }
        for model in models
        for seed in range(n_seeds)
    ]
    return pd.DataFrame(rows).astype({"gap": object})


PUBLISHED = pd.DataFrame(
    [
        {"dataset": "yeast", "model": "a", "metric": "accuracy", "value": 62.29},
        {"dataset": "yeast", "model": "c", "metric": "accuracy", "value": 60.0},
    ]
)


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("accuracy", 57.494, "57.49"),
        ("rmse", 0.260253, "0.26025"),
        ("rmse", 9331.91608, "9331.92"),
        ("rmse", -10.0, "-10"),
        ("rmse", float("nan"), "nan"),
    ],
)
def test_scores_have_the_digits_of_the_paper(metric: str, value: float, text: str) -> None:
    assert tables.format_score(metric, value) == text


def test_mean_and_sample_deviation_in_the_papers_units() -> None:
    # 0.60, 0.62, 0.64: mean 0.62; squared deviations 4e-4 + 0 + 4e-4 over n - 1 = 2 give a deviation of 0.02.
    runs = runs_of({"a": [0.60, 0.62, 0.64]}).assign(model="a")
    (row,) = tables.summarise(runs, ["model"]).to_dict("records")
    assert row["mean"] == pytest.approx(62.0)
    assert row["sd"] == pytest.approx(2.0)
    assert row["validation_mean"] == pytest.approx(52.0)
    assert row["n_seeds"] == 3
    assert row["best_round"] == pytest.approx(11.0)
    assert row["train_seconds"] == pytest.approx(2.0)


def test_one_seed_has_no_deviation_and_errors_stay_as_they_are() -> None:
    runs = runs_of({"a": [0.244]}, metric="rmse").assign(model="a")
    (row,) = tables.summarise(runs, ["model"]).to_dict("records")
    assert row["mean"] == pytest.approx(0.244)
    assert math.isnan(row["sd"])


@pytest.mark.parametrize(
    ("metric", "mean", "sd", "n", "published", "matched", "rule"),
    [
        ("accuracy", 62.59, math.nan, 1, 62.29, True, "within 0.3 points"),
        ("accuracy", 61.99, math.nan, 1, 62.29, True, "within 0.3 points"),
        ("accuracy", 62.60, math.nan, 1, 62.29, False, "better than published"),
        ("accuracy", 61.98, 0.0, 10, 62.29, False, "worse than published"),
        # the standard error of ten seeds with deviation 1.5811 is 0.5: two of them reach 1.0 and no further
        ("accuracy", 61.30, 1.5811389, 10, 62.29, True, "within two standard errors"),
        ("accuracy", 61.28, 1.5811389, 10, 62.29, False, "worse than published"),
        ("top1_accuracy", 44.0, math.nan, 1, 44.21, True, "within 0.3 points"),
        ("rmse", 0.24635, math.nan, 1, 0.24392, True, "within 1%"),
        ("rmse", 0.24637, math.nan, 1, 0.24392, False, "worse than published"),
        ("rmse", 0.24147, math.nan, 1, 0.24392, False, "better than published"),
        ("rmse", 0.2416, 0.0103, 10, 0.24392, True, "within 1%"),
        ("rmse", 0.2400, 0.0103, 10, 0.24392, True, "within two standard errors"),
    ],
)
def test_verdict(metric: str, mean: float, sd: float, n: int, published: float, matched: bool, rule: str) -> None:
    verdict = tables.judge(metric, mean, sd, n, published)
    assert (verdict.matched, verdict.rule) == (matched, rule)
    assert verdict.difference == pytest.approx(mean - published)


def test_comparison_sets_ours_beside_the_published_value() -> None:
    runs = runs_of({"a": [0.60, 0.62, 0.64], "b": [0.5, 0.5, 0.5]})
    table = tables.comparison(cells_of(3, "a", "b", "c"), runs, PUBLISHED).set_index("model")
    assert table.loc["a", "paper_mean"] == pytest.approx(62.0)
    assert table.loc["a", "published"] == 62.29
    assert table.loc["a", "difference"] == pytest.approx(-0.29)
    assert table.loc["a", "matched"] is True
    assert table.loc["b", "matched"] is None
    assert table.loc["b", "note"] == "the paper has no such cell"
    assert table.loc["c", "paper_n_seeds"] == 0
    assert table.loc["c", "published"] == 60.0


def test_missing_cells_say_why() -> None:
    gaps = {"a1": "failed: ValueError: x", **{f"c{seed}": "not run" for seed in range(3)}}
    cells = cells_of(3, "a", "c", gaps=gaps)
    table = tables.comparison(cells, runs_of({"a": [0.6, 0.62, 0.64]}).iloc[[0, 2]], PUBLISHED).set_index("model")
    assert table.loc["a", "note"] == "paper seed 1: failed: ValueError: x"
    assert table.loc["a", "paper_n_seeds"] == 2
    assert table.loc["c", "note"] == "not run"


def test_a_set_that_the_paper_lacks_says_so() -> None:
    cells = cells_of(1, "a", dataset="digits")
    table = tables.comparison(cells, runs_of({"a": [0.9]}), PUBLISHED)
    assert table.loc[0, "note"] == "the paper has no such data set"


def test_holdout_scores_stand_beside_but_are_not_judged() -> None:
    both = pd.concat(
        [cells_of(2, "a"), cells_of(2, "a", protocol="holdout").assign(run_id=["h0", "h1"])], ignore_index=True
    )
    runs = runs_of({"a": [0.6229, 0.6229], "h": [0.55, 0.57]})
    (row,) = tables.comparison(both, runs, PUBLISHED).to_dict("records")
    assert row["holdout_mean"] == pytest.approx(56.0)
    assert row["difference"] == pytest.approx(0.0)


def test_another_metric_than_the_published_one_is_refused() -> None:
    with pytest.raises(ValueError, match="published as accuracy, recorded as rmse"):
        tables.comparison(cells_of(1, "a"), runs_of({"a": [0.2]}, metric="rmse"), PUBLISHED)


def test_markdown_marks_matched_and_missed_cells() -> None:
    runs = runs_of({"a": [0.62, 0.63], "c": [0.50, 0.50]})
    text = tables.comparison_markdown(tables.comparison(cells_of(2, "a", "b", "c"), runs, PUBLISHED))
    lines = {line.split("|")[2].strip(): line for line in text.splitlines()}
    assert "62.50 ± 0.71 (n=2)" in lines["a"]
    assert "✓ matched: +0.21 points, within 0.3 points" in lines["a"]
    assert "✗ **missed**: -10.00 points, worse than published" in lines["c"]
    assert "–" in lines["b"]
    assert len({line.count("|") for line in text.splitlines()}) == 1


def test_published_seconds_a_round_stand_beside_ours() -> None:
    published = PUBLISHED.assign(seconds_a_round=[0.0011, 0.5])
    runs = runs_of({"a": [0.62, 0.63], "c": [0.60, 0.60]}).assign(rounds=[10, 20, 10, 20])
    table = tables.comparison(cells_of(2, "a", "b"), runs, published).set_index("model")
    assert table.loc["a", "published_seconds_a_round"] == 0.0011
    assert table.loc["a", "paper_seconds_a_round"] == pytest.approx((1 / 10 + 2 / 20) / 2)
    assert table.loc["b", ["published_seconds_a_round", "paper_seconds_a_round"]].isna().all()
    lines = tables.comparison_markdown(table.reset_index()).splitlines()
    assert [part.strip() for part in lines[0].split("|")[3:-2]] == [
        *("published", "published s a round", "paper protocol", "against published", "best round", "train s"),
        "s a round",
    ]
    assert "| 0.0011 " in lines[2]
    assert "| 0.1000 " in lines[2]


def grid_cells(n_seeds: int) -> pd.DataFrame:
    return pd.concat(
        [cells_of(n_seeds, model).assign(rate=rate) for model, rate in (("a", "0.1"), ("b", "0.2"), ("c", "0.5"))],
        ignore_index=True,
    )


def test_grid_is_chosen_on_validation_whatever_the_test_score() -> None:
    runs = runs_of({"a": [0.9, 0.9], "b": [0.5, 0.5], "c": [0.7, 0.7]})
    runs["validation"] = [0.6, 0.7, 0.6, 0.8, 0.6, 0.7]
    table = tables.grid(grid_cells(2), runs, ["rate"])
    assert list(table["chosen"]) == [False, True, False]
    assert table.loc[1, "test_mean"] == pytest.approx(50.0)
    assert table["test_mean"].isna().tolist() == [True, False, True]
    assert "90.00" not in tables.grid_markdown(table, ["rate"])


def test_grid_takes_the_smallest_error_and_the_first_of_equals() -> None:
    runs = runs_of({"a": [0.9], "b": [0.5], "c": [0.7]}, metric="rmse")
    runs["validation"] = [0.3, 0.2, 0.2]
    table = tables.grid(grid_cells(1), runs, ["rate"])
    assert list(table["chosen"]) == [False, True, False]
    assert list(table["note"]) == ["", "the first of 2 settings with this score", ""]


def test_grid_takes_no_order_of_a_sum_for_a_better_score() -> None:
    """375 right of three times 208, each way: the means differ in the last digit, and the later one is the larger."""
    runs = runs_of({"a": [0.5] * 3, "b": [0.5] * 3, "c": [0.5] * 3})
    runs["validation"] = [0.0] * 3 + [right / 208 for right in (110, 126, 139, 114, 127, 134)]
    table = tables.grid(grid_cells(3), runs, ["rate"])
    assert table.loc[1, "validation_mean"] < table.loc[2, "validation_mean"]
    assert list(table["chosen"]) == [False, True, False]
    assert table.loc[1, "note"] == "the first of 2 settings with this score"


def test_grid_does_not_choose_a_setting_that_lacks_seeds() -> None:
    cells = grid_cells(2)
    cells.loc[cells["run_id"] == "b1", "gap"] = "not run"
    runs = runs_of({"a": [0.5, 0.5], "b": [0.9, 0.9], "c": [0.4, 0.4]})
    table = tables.grid(cells, runs[runs["run_id"] != "b1"], ["rate"])
    assert list(table["chosen"]) == [True, False, False]
    assert list(table["note"]) == ["", "not run", ""]


def test_grid_without_runs_says_why() -> None:
    cells = grid_cells(1).assign(gap="not run")
    table = tables.grid(cells, runs_of({"a": [0.5]}).iloc[:0], ["rate"])
    assert list(table["note"]) == ["not run"] * 3
    assert "not run" in tables.grid_markdown(table, ["rate"])


def test_one_seed_of_several_is_no_miss() -> None:
    runs = runs_of({"a": [0.60], "c": [0.60]})
    several = tables.comparison(cells_of(1, "a", "c").assign(seeds=10), runs, PUBLISHED)
    assert several["matched"].tolist() == [None, True]
    text = tables.comparison_markdown(several)
    assert "| -2.29 points (one seed) |" in " ".join(text.split())
    assert "missed" not in text
    only = tables.comparison_markdown(tables.comparison(cells_of(1, "a").assign(seeds=1), runs, PUBLISHED))
    assert "✗ **missed**: -2.29 points, worse than published" in only
