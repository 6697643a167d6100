"""Tables from run records: data frames in, data frames and Markdown out; nothing is read or written here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro.pipe_table import pipe_table

POINTS = 0.3
"""Accuracies match within this many percentage points ..."""
RELATIVE = 0.01
"""... other scores within this share of the published value ..."""
STANDARD_ERRORS = 2
"""... or, either of them, within this many standard errors of our mean."""
ROUNDING = 1e-9
"""What the order of a sum can make of equal scores, and more: differences up to it are none."""
ONE_SEED = "one seed"
"""What stands for a verdict where a single seed of several is recorded and does not match."""

_PERCENT = {"accuracy", "top1_accuracy"}
_EMPTY = "–"


def in_paper_units(metric: str, value: float) -> float:
    """Return a score as the paper prints it: a share of rows in percent, an error as it is."""
    return 100 * value if metric in _PERCENT else value


def higher_is_better(metric: str) -> bool:
    """Tell whether a larger score is a better one: so for shares of rows, not for errors."""
    return metric in _PERCENT


def metric_title(metric: str) -> str:
    """Name a metric with its unit, for headings."""
    return f"{metric.replace('_', ' ')}{' %' if metric in _PERCENT else ''}"


def format_score(metric: str, value: float) -> str:
    """Format a score in the paper's units with the paper's digits; errors from 10 on with as many digits in all."""
    if metric in _PERCENT:
        return f"{value:.2f}"
    return f"{value:.6g}" if abs(value) >= 10 else f"{value:.5f}"


@dataclass(frozen=True)
class Verdict:
    """Whether a mean matches the published value, by which rule, and by how much it differs (ours - published)."""

    matched: bool
    rule: str
    difference: float


def judge(metric: str, mean: float, sd: float, n: int, published: float) -> Verdict:
    """Compare our mean with the published value, both in the paper's units.

    Parameters
    ----------
    metric : str
    mean, sd : float
        Mean and sample standard deviation over `n` seeds; `sd` is NaN for one seed.
    n : int
    published : float

    Returns
    -------
    Verdict
        ``rule`` names the first rule that holds, or says by how much all are missed.
    """
    difference = mean - published
    if metric in _PERCENT:
        near, rule = abs(difference) <= POINTS + 1e-9, f"within {POINTS} points"
    else:
        near, rule = abs(difference) <= RELATIVE * abs(published) * (1 + 1e-9), f"within {RELATIVE:.0%}"
    if near:
        return Verdict(True, rule, difference)
    if n > 1 and abs(difference) <= STANDARD_ERRORS * sd / math.sqrt(n):
        return Verdict(True, "within two standard errors", difference)
    better = (difference > 0) == (metric in _PERCENT)
    return Verdict(False, "better than published" if better else "worse than published", difference)


def summarise(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Average runs over seeds.

    Parameters
    ----------
    runs : DataFrame
        One row a run, with `by`, ``seed``, ``metric``, ``test``, ``validation`` (as recorded), ``best_round``,
        ``n_trees``, ``train_seconds`` and ``rounds`` (trained).
    by : sequence of str
        Columns that tell the groups.

    Returns
    -------
    DataFrame
        One row a group in order of appearance: ``metric``, ``n_seeds``, ``mean`` and ``sd`` of the test score,
        ``validation_mean``, ``validation_sd`` (in the paper's units; sd of one seed is NaN), ``best_round``,
        ``n_trees``, ``train_seconds``, ``seconds_a_round``.
    """
    scaled = runs.assign(
        seconds_a_round=runs["train_seconds"] / runs["rounds"],
        test=[in_paper_units(m, v) for m, v in zip(runs["metric"], runs["test"], strict=True)],
        validation=[in_paper_units(m, v) for m, v in zip(runs["metric"], runs["validation"], strict=True)],
    )
    groups = scaled.groupby(list(by), sort=False)
    return groups.agg(
        metric=("metric", "first"),
        n_seeds=("seed", "nunique"),
        mean=("test", "mean"),
        sd=("test", "std"),
        validation_mean=("validation", "mean"),
        validation_sd=("validation", "std"),
        best_round=("best_round", "mean"),
        n_trees=("n_trees", "mean"),
        train_seconds=("train_seconds", "mean"),
        seconds_a_round=("seconds_a_round", "mean"),
    ).reset_index()


def comparison(
    cells: pd.DataFrame, runs: pd.DataFrame, published: pd.DataFrame, *, judged: str = "paper"
) -> pd.DataFrame:
    """Set each data set and model beside the published value.

    Parameters
    ----------
    cells : DataFrame
        Planned cells: ``dataset``, ``model``, ``protocol``, ``seed``, ``run_id``, ``gap`` (why there is no record,
        else None); optionally ``seeds``, how many the data set has.
    runs : DataFrame
        Recorded runs with ``run_id``, see `summarise`.
    published : DataFrame
        ``dataset``, ``model``, ``metric``, ``value``; optionally ``seconds_a_round``.
    judged : str
        Protocol whose mean is judged against the published value: the one that value was made under.

    Returns
    -------
    DataFrame
        One row a data set and model in the order of the plan. For each protocol p: ``p_mean``, ``p_sd``, ``p_n_seeds``,
        ``p_best_round``, ``p_n_trees``, ``p_train_seconds``; further ``metric``, ``published``, ``difference``,
        ``matched``, ``rule``, ``note``. Where seconds a round are published, they stand in
        ``published_seconds_a_round`` and ours in ``p_seconds_a_round``.
    """
    recorded = cells.merge(runs.drop(columns=["seed"]), on="run_id", how="inner")
    summary = summarise(recorded, ["dataset", "model", "protocol"]) if len(recorded) else pd.DataFrame()
    values: dict[tuple[str, str], tuple[str | None, float]] = {
        (str(row["dataset"]), str(row["model"])): (str(row["metric"]), float(row["value"])) for row in _dicts(published)
    }
    in_paper = set(published["dataset"])
    speed = published.set_index(["dataset", "model"]).get("seconds_a_round")
    rows = []
    for key, planned in cells.groupby(["dataset", "model"], sort=False):
        dataset, model = map(str, key)
        metric, value = values.get((dataset, model), (None, math.nan))
        row = {"dataset": dataset, "model": model, "metric": metric, "published": value}
        for protocol in planned["protocol"].unique():
            row |= _protocol_columns(_group(summary, dataset, model, protocol), protocol, metric)
        row |= _judged_columns(row, judged, int(planned["seeds"].max()) if "seeds" in planned else 1)
        if speed is not None:
            row |= {"published_seconds_a_round": speed.get((dataset, model), math.nan)}
            for protocol in planned["protocol"].unique():
                group = _group(summary, dataset, model, protocol)
                row[f"{protocol}_seconds_a_round"] = math.nan if group is None else group["seconds_a_round"]
        row["note"] = "; ".join([*_unpublished(row, in_paper), *_gap_notes(planned)])
        rows.append(row)
    return pd.DataFrame(rows)


def _protocol_columns(group: Any, protocol: str, metric: str | None) -> dict[str, Any]:
    keys = ("mean", "sd", "n_seeds", "best_round", "n_trees", "train_seconds")
    if group is None:
        return {f"{protocol}_{key}": 0 if key == "n_seeds" else math.nan for key in keys}
    if metric not in (None, group["metric"]):
        raise ValueError(f"published as {metric}, recorded as {group['metric']}: {group.to_dict()}")
    return {"metric": group["metric"], **{f"{protocol}_{key}": group[key] for key in keys}}


def _judged_columns(row: dict[str, Any], protocol: str, seeds: int) -> dict[str, Any]:
    """Judge a mean; one seed of several that a data set has is too little to call the value missed."""
    n = row.get(f"{protocol}_n_seeds", 0)
    if not n or math.isnan(row["published"]):
        return {"difference": math.nan, "matched": None, "rule": None}
    verdict = judge(row["metric"], row[f"{protocol}_mean"], row[f"{protocol}_sd"], n, row["published"])
    if n == 1 < seeds and not verdict.matched:
        return {"difference": verdict.difference, "matched": None, "rule": ONE_SEED}
    return {"difference": verdict.difference, "matched": verdict.matched, "rule": verdict.rule}


def _dicts(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def _group(summary: pd.DataFrame, dataset: Any, model: Any, protocol: Any) -> Any:
    if summary.empty:
        return None
    chosen = (summary["dataset"] == dataset) & (summary["model"] == model) & (summary["protocol"] == protocol)
    return summary[chosen].iloc[0] if chosen.any() else None


def _unpublished(row: dict[str, Any], in_paper: set[str]) -> list[str]:
    if not math.isnan(row["published"]):
        return []
    return ["the paper has no such cell"] if row["dataset"] in in_paper else ["the paper has no such data set"]


def _gap_notes(planned: pd.DataFrame) -> list[str]:
    """Say for each protocol and reason which seeds are missing."""
    notes = []
    missing = planned[planned["gap"].notna()]
    totals = planned.groupby("protocol")["seed"].count()
    for key, group in missing.groupby(["protocol", "gap"], sort=False):
        protocol, reason = map(str, key)
        seeds = ", ".join(str(seed) for seed in group["seed"])
        which = f"{protocol}" if len(group) == totals[protocol] else f"{protocol} seed {seeds}"
        notes.append(f"{which}: {reason}")
    # A reason that holds for every protocol is said once.
    reasons = {note.partition(": ")[2] for note in notes}
    if len(missing) == len(planned) and len(reasons) == 1:
        return [reasons.pop()]
    return notes


def comparison_markdown(table: pd.DataFrame) -> str:
    """Write a `comparison` as a Markdown table."""
    protocols = [column.removesuffix("_mean") for column in table.columns if column.endswith("_mean")]
    timed = "published_seconds_a_round" in table
    head = ["data set", "model", "published", *["published s a round"] * timed]
    for protocol in protocols:
        head += [f"{protocol} protocol"]
        if protocol == protocols[0]:
            head += ["against published"]
        head += ["best round", "train s", *["s a round"] * timed]
    rows = []
    for row in _dicts(table):
        cells = [_with_metric(row), row["model"], _score(row, "published")]
        cells += [_number(row["published_seconds_a_round"], 4)] if timed else []
        for protocol in protocols:
            cells += [_mean_and_sd(row, protocol)]
            cells += [_verdict(row)] if protocol == protocols[0] else []
            cells += [_number(row[f"{protocol}_best_round"], 0), _number(row[f"{protocol}_train_seconds"], 1)]
            cells += [_number(row[f"{protocol}_seconds_a_round"], 4)] if timed else []
        rows.append([*cells, str(row["note"]).replace("|", "\\|").replace("\n", " ")])
    return pipe_table(rows, [*head, "note"])


def _with_metric(row: dict[str, Any]) -> str:
    if pd.isna(row["metric"]):
        return str(row["dataset"])
    return f"{row['dataset']} ({metric_title(row['metric'])})"


def _score(row: dict[str, Any], key: str) -> str:
    return _EMPTY if math.isnan(row[key]) else format_score(row["metric"], row[key])


def _mean_and_sd(row: dict[str, Any], protocol: str) -> str:
    if not row[f"{protocol}_n_seeds"]:
        return _EMPTY
    text = format_score(row["metric"], row[f"{protocol}_mean"])
    if not math.isnan(row[f"{protocol}_sd"]):
        text += f" ± {format_score(row['metric'], row[f'{protocol}_sd'])}"
    return f"{text} (n={row[f'{protocol}_n_seeds']})"


def _verdict(row: dict[str, Any]) -> str:
    if row["matched"] is None and row["rule"] != ONE_SEED:
        return _EMPTY
    if row["metric"] in _PERCENT:
        difference = f"{row['difference']:+.2f} points"
    else:
        difference = f"{row['difference'] / row['published']:+.1%}"
    if row["matched"] is None:
        return f"{difference} ({ONE_SEED})"
    mark = "✓ matched" if row["matched"] else "✗ **missed**"
    return f"{mark}: {difference}, {row['rule']}"


def _number(value: float, digits: int) -> str:
    return _EMPTY if math.isnan(value) else f"{value:.{digits}f}"


def grid(cells: pd.DataFrame, runs: pd.DataFrame, settings: Sequence[str]) -> pd.DataFrame:
    """Choose among settings by the mean validation score.

    Parameters
    ----------
    cells : DataFrame
        Planned cells of one data set and model: `settings`, ``seed``, ``run_id``, ``gap``.
    runs : DataFrame
        Recorded runs, see `summarise`; every one with a validation score.
    settings : sequence of str
        Columns of `cells` that tell the settings.

    Returns
    -------
    DataFrame
        One row a setting in the order of the plan: `settings`, ``metric``, ``n_seeds``, ``validation_mean``,
        ``validation_sd``, ``best_round``, ``train_seconds``, ``chosen``, ``test_mean``, ``test_sd``, ``note``. The test
        score is given for the chosen setting alone and takes no part in the choice. Ties go to the first setting; one
        that lacks seeds cannot be chosen.
    """
    recorded = cells.merge(runs.drop(columns=["seed"]), on="run_id", how="inner")
    rows = cells[list(settings)].drop_duplicates().reset_index(drop=True)
    if recorded.empty:
        return rows.assign(metric=None, n_seeds=0, chosen=False, note=cells["gap"].iloc[0])
    table = rows.merge(summarise(recorded, settings), on=list(settings), how="left")
    planned = cells.groupby(list(settings), sort=False)["seed"].count().to_numpy()
    table["n_seeds"] = table["n_seeds"].fillna(0).astype(int)
    whole = table[table["n_seeds"] == planned]
    gaps = cells.groupby(list(settings), sort=False)["gap"].first().to_numpy()
    table["note"] = [gap if isinstance(gap, str) else "" for gap in gaps]
    table["chosen"] = False
    if len(whole):
        metric = whole["metric"].iloc[0]
        score = whole["validation_mean"]
        # Means of the same scores in another order differ in the last digit: that is no better score.
        equals = (score - (score.max() if metric in _PERCENT else score.min())).abs() <= ROUNDING
        best = equals.idxmax()
        table.loc[best, "chosen"] = True
        if equals.sum() > 1:
            table.loc[best, "note"] = f"the first of {equals.sum()} settings with this score"
    for key in ("mean", "sd"):
        table[f"test_{key}"] = table[key].where(table["chosen"])
    return table.drop(columns=["mean", "sd", "n_trees", "seconds_a_round"])


def grid_markdown(table: pd.DataFrame, settings: Sequence[str]) -> str:
    """Write a `grid` as a Markdown table, the chosen setting in bold."""
    head = [*(name.replace("_", " ") for name in settings), "validation", "best round", "train s", "test", "note"]
    rows = []
    for row in _dicts(table):
        cells = [str(row[name]) for name in settings]
        if row["n_seeds"]:
            cells += [_plain(row, "validation"), _number(row["best_round"], 0), _number(row["train_seconds"], 2)]
            cells += [_plain(row, "test") if row["chosen"] else ""]
        else:
            cells += [_EMPTY] * 3 + [""]
        if row["chosen"]:
            cells = [f"**{cell}**" for cell in cells]
        rows.append([*cells, row["note"]])
    return pipe_table(rows, head)


def _plain(row: dict[str, Any], kind: str) -> str:
    text = format_score(row["metric"], row[f"{kind}_mean"])
    if not math.isnan(row[f"{kind}_sd"]):
        text += f" ± {format_score(row['metric'], row[f'{kind}_sd'])}"
    return text
