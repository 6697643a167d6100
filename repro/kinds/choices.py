"""Table IX: the setting that a grid search on validation rows chooses, beside the published choice."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from repro import figures, tables
from repro.kinds.base import Evidence, Page, image, rows_of
from repro.pipe_table import pipe_table

LEGEND = """\
Learning rate / depth. *ours*: best mean validation score over the seeds among all points of the grid; test scores took
no part in the choice. *like it*: points, itself included, whose validation score is not worse than the chosen one's by
more than two standard errors of the paired difference over seeds. Test scores are means over seeds of the `holdout`
protocol."""
_KEYS = ["learning_rate", "max_depth"]


def pages(evidence: Evidence) -> list[Page]:
    """Make one table, a row a data set and model, with the validation surfaces as heat maps."""
    plan, name = evidence.plan, evidence.plan.name
    params = {cell.run_id: cell.identity["params"] for cell in plan.cells}
    cells = evidence.cells.assign(
        **{key: [float(params[one][key]) for one in evidence.cells["run_id"]] for key in _KEYS}
    )
    published = {(row["dataset"], row["model"]): row for row in rows_of(evidence.published())}
    rows, surfaces, marks = [], {}, {}
    for key, part in cells.groupby(["dataset", "model"], sort=False):
        dataset, model = map(str, key)
        surface = tables.grid(part, evidence.runs, _KEYS)
        theirs = published.get((dataset, model))
        rows.append({"dataset": dataset, "model": model, **choice(surface, part, evidence.runs, theirs)})
        if surface["n_seeds"].any():
            surfaces[f"{dataset}, {model}"] = surface
            marks[f"{dataset}, {model}"] = None if theirs is None else (theirs["learning_rate"], theirs["max_depth"])
    table = pd.DataFrame(rows)
    text = choices_markdown(table)
    drawings = figures.surfaces(surfaces, _KEYS, marks) if surfaces else {}
    if drawings:
        text += f"\n\n{image(name, 'mean validation scores over rate and depth')}\n\nStar: ours; square: published."
    return [Page(name, f"{text}\n\n{LEGEND}", table, drawings)]


def choice(
    surface: pd.DataFrame, cells: pd.DataFrame, runs: pd.DataFrame, published: dict[str, Any] | None
) -> dict[str, Any]:
    """Describe the chosen point of a grid and the published one.

    Parameters
    ----------
    surface : DataFrame
        See `repro.tables.grid`.
    cells, runs : DataFrame
        What it was made from.
    published : dict or None
        ``learning_rate`` and ``max_depth``.

    Returns
    -------
    dict
        ``metric``, ``n_points`` (with all seeds), ``n_planned``, ``n_seeds`` and ``like_it``; with the prefixes
        ``chosen_`` and ``published_`` the setting and its mean ``validation`` and ``test`` score; ``note``.
    """
    blank = dict.fromkeys([*_KEYS, "validation", "test"], math.nan)
    row: dict[str, Any] = {"metric": None, "n_points": 0, "n_planned": len(surface), "n_seeds": 0, "like_it": math.nan}
    row |= {f"chosen_{key}": value for key, value in blank.items()}
    row |= {f"published_{key}": value for key, value in blank.items()}
    if published is not None:
        row |= {f"published_{key}": float(published[key]) for key in _KEYS}
    row["note"] = "; ".join(cells["gap"].dropna().unique())
    best = surface[surface["chosen"]]
    if best.empty:
        return row
    points = cells.merge(runs.drop(columns=["seed"]), on="run_id")
    row |= {"metric": best["metric"].iloc[0], "n_seeds": int(best["n_seeds"].iloc[0])}
    row["n_points"] = int((surface["n_seeds"] == row["n_seeds"]).sum())
    chosen = tuple(best[_KEYS].iloc[0])
    row["like_it"] = _like_it(points, chosen, row["metric"])
    for name, at in (("chosen", chosen), ("published", tuple(row[f"published_{key}"] for key in _KEYS))):
        own = points[(points[_KEYS[0]] == at[0]) & (points[_KEYS[1]] == at[1])]
        row |= {f"{name}_{key}": value for key, value in zip(_KEYS, at, strict=True)}
        row |= {
            f"{name}_{kind}": tables.in_paper_units(row["metric"], own[kind].mean()) for kind in ("validation", "test")
        }
    return row


def _like_it(points: pd.DataFrame, chosen: tuple[float, ...], metric: str) -> int:
    """Count the points that two standard errors of the paired difference cannot tell from the chosen one."""
    scores = points.pivot_table(index="seed", columns=_KEYS, values="validation").dropna(axis="columns")
    worse = scores.sub(scores[chosen], axis="index")
    if tables.higher_is_better(metric):
        worse = -worse
    errors = worse.std() / math.sqrt(len(worse))
    # Two seeds of accuracies in like steps can lie on the bound exactly, where rounding must not decide.
    return int((worse.mean() <= 2 * errors.fillna(0) + tables.ROUNDING).sum())


def choices_markdown(table: pd.DataFrame) -> str:
    """Write a row of `choice` a data set and model as a Markdown table."""
    rows = []
    for row in rows_of(table):
        metric = row["metric"]
        cells = [
            row["dataset"] if metric is None else f"{row['dataset']} ({tables.metric_title(metric)})",
            row["model"],
        ]
        cells += [_setting(row, "published"), _setting(row, "chosen")]
        for kind in ("validation", "test"):
            cells += [_score(metric, row[f"published_{kind}"]), _score(metric, row[f"chosen_{kind}"])]
        like_it = "–" if math.isnan(row["like_it"]) else f"{row['like_it']:.0f} of {row['n_points']}"
        rows.append([*cells, like_it, f"{row['n_points']} × {row['n_seeds']}", row["note"]])
    head = [
        "data set",
        "model",
        "published",
        "ours",
        "validation at published",
        "at ours",
        "test at published",
        "at ours",
    ]
    return pipe_table(rows, [*head, "like it", "points × seeds", "note"])


def _setting(row: dict[str, Any], name: str) -> str:
    if math.isnan(row[f"{name}_max_depth"]):
        return "–"
    return f"{row[f'{name}_learning_rate']:.2f} / {row[f'{name}_max_depth']:.0f}"


def _score(metric: str, value: float) -> str:
    return "–" if math.isnan(value) else tables.format_score(metric, value)
