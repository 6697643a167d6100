"""What the published tables say at a glance: cells matched, and the findings that are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pandas as pd

from repro import tables
from repro.page.records import RecordFile
from repro.page.sources import Results

RELEASED = "gbdt_mo_released"
COMPLETE = "gbdt_mo"


@dataclass(frozen=True)
class Tally:
    """How many published values of a table were run, matched and missed; the rest has too few seeds to judge."""

    name: str
    published: int
    run: int
    matched: int
    missed: int

    @property
    def undecided(self) -> int:
        """Run with one seed of several, and not matched."""
        return self.run - self.matched - self.missed


def tally(results: Results, name: str, paper: str) -> Tally | None:
    """Count a table's verdicts; None if it is not published or judges nothing."""
    table, values = results.frame(name), results.frame(f"paper/{paper}")
    if table is None or values is None or not {"matched", "published", "paper_n_seeds"} <= set(table.columns):
        return None
    judged = table[table["published"].notna() & (table["paper_n_seeds"] > 0)]
    verdicts = judged["matched"].astype(str)
    matched, missed = int((verdicts == "True").sum()), int((verdicts == "False").sum())
    return Tally(name, len(values), len(judged), matched, missed)


def without(results: Results, dataset: str) -> int:
    """Count the values of Table V that do not need this data set."""
    values = results.frame("paper/table5")
    return 0 if values is None else int((values["dataset"] != dataset).sum())


def not_run(results: Results) -> dict[str, int]:
    """Count, by data set, the values of Table V that no run stands beside."""
    table, values = results.frame("table5"), results.frame("paper/table5")
    if values is None:
        return {}
    run = set()
    if table is not None:
        recorded = table[table["paper_n_seeds"] > 0]
        run = set(zip(recorded["dataset"], recorded["model"], strict=True))
    left = values[[key not in run for key in zip(values["dataset"], values["model"], strict=True)]]
    return {str(name): int(n) for name, n in left["dataset"].value_counts(sort=False).items()}


def missed(results: Results, name: str) -> list[dict[str, str]]:
    """Describe the missed cells of a table."""
    table = results.frame(name)
    if table is None:
        return []
    return [
        {
            "dataset": row["dataset"],
            "model": row["model"],
            "published": tables.format_score(row["metric"], row["published"]),
            "ours": tables.format_score(row["metric"], row["paper_mean"]),
            "rule": row["rule"],
            "anchor": _anchor(results, name, row["dataset"], row["model"], "paper"),
        }
        for row in _rows(table)
        if str(row["matched"]) == "False"
    ]


def optimism(results: Results, name: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Say what stopping on the test rows is worth: the paper protocol's mean less the holdout's, better is positive.

    Returns
    -------
    tuple
        The models, and a row a data set: ``dataset``, ``metric``, ``n`` (seeds) and ``cells``, a text and an anchor
        a model (None where a protocol is missing).
    """
    table = results.frame(name)
    if table is None or not {"paper_mean", "holdout_mean"} <= set(table.columns):
        return [], []
    models = list(dict.fromkeys(table["model"]))
    found: dict[str, dict[str, Any]] = {}
    for row in _rows(table):
        if pd.isna(row["paper_mean"]) or pd.isna(row["holdout_mean"]):
            continue
        gain = row["paper_mean"] - row["holdout_mean"]
        if not tables.higher_is_better(row["metric"]):
            gain = -gain
        own = found.setdefault(
            row["dataset"],
            {"metric": tables.metric_title(row["metric"]), "n": row["paper_n_seeds"], "cells": dict.fromkeys(models)},
        )
        own["cells"][row["model"]] = {
            "text": _signed(row["metric"], gain),
            "anchor": _anchor(results, name, row["dataset"], row["model"]),
        }
    return models, [{"dataset": dataset, **own} for dataset, own in found.items()]


def _signed(metric: str, value: float) -> str:
    text = tables.format_score(metric, abs(value))
    return f"-{text}" if value < 0 and float(text) else f"+{text}"


def dropped_rows(results: Results) -> list[dict[str, Any]]:
    """Set the released program's growth beside complete trees: rows without a leaf, rounds, score; a row a data set."""
    if "ablation" not in results.records:
        return []
    theirs, ours = (_by_dataset(results.records["ablation"], model) for model in (RELEASED, COMPLETE))
    return [
        {
            "dataset": dataset,
            "share": own["share"],
            "dropped": f"{own['share']:.1%}",
            "released": own,
            "complete": ours[dataset],
        }
        for dataset, own in theirs.items()
        if dataset in ours
    ]


def _by_dataset(file: RecordFile, model: str) -> dict[str, dict[str, Any]]:
    """Average a model's runs under the paper protocol over the seeds, by data set."""
    found = {}
    for group in file.groups:
        if group.key["model"] == model and group.key["protocol"] == "paper":
            records = [record for _, record in group.runs]
            metric = records[0]["scores"]["metric"]
            score = tables.in_paper_units(metric, fmean(record["scores"]["test"] for record in records))
            found[group.key["dataset"]] = {
                "share": fmean(record["unassigned_fraction"] or 0.0 for record in records),
                "score": f"{tables.format_score(metric, score)} ({tables.metric_title(metric)})",
                "rounds": f"{fmean(record['best_round'] for record in records):.0f}",
                "anchor": file.anchor(group.path),
            }
    return found


def split_sums(results: Results) -> list[dict[str, Any]]:
    """List the data sets whose published training and test rows do not add up to the rows there are."""
    values, records = results.frame("paper/table4"), results.records.get("table5")
    if values is None or records is None:
        return []
    here: dict[str, tuple[int, int]] = {}
    for group in records.groups:
        if group.key["protocol"] == "paper":
            dataset = group.runs[0][1]["dataset"]
            here[group.key["dataset"]] = (dataset["n_fit"] + dataset["n_validation"], dataset["n_test"])
    rows = []
    for row in _rows(values):
        train, test = here.get(row["dataset"], (0, 0))
        if row["dataset"] in here and row["n_train"] + row["n_test"] != train + test:
            rows.append(
                {
                    "dataset": row["dataset"],
                    "published": (row["n_train"], row["n_test"]),
                    "ours": (train, test),
                    "anchor": records.anchor((row["dataset"],)),
                }
            )
    return rows


def hessians(results: Results) -> list[dict[str, str]]:
    """Set the exact Hessian less the diagonal one beside the published difference, a row a data set with both."""
    values, table = results.frame("paper/table8"), results.frame("table8")
    if values is None:
        return []
    published = _differences(values, "value")
    ours = {} if table is None else _differences(table, "paper_mean")
    holdout = {} if table is None else _differences(table, "holdout_mean")
    names = dict.fromkeys([*published, *ours])
    return [
        {
            "dataset": name,
            "published": published.get(name, "–"),
            "paper": ours.get(name, "–"),
            "holdout": holdout.get(name, "–"),
            "anchor": results.records["table8"].anchor((name,)) if name in ours else "",
        }
        for name in names
    ]


def _differences(table: pd.DataFrame, column: str) -> dict[str, str]:
    found = {}
    for dataset, own in table.groupby("dataset", sort=False):
        scores = own.set_index("model")[column]
        if {"gbdt_mo", "gbdt_mo_exact"} <= set(scores.dropna().index):
            difference = scores["gbdt_mo_exact"] - scores["gbdt_mo"]
            found[str(dataset)] = f"{difference:+.2f}"
    return found


def first_words(results: Results, name: str) -> list[str]:
    """Return the points that a published table's Markdown begins with, before its first heading."""
    if name not in results.tables:
        return []
    start = results.tables[name].markdown.partition("\n## ")[0]
    return [line.removeprefix("- ") for line in start.splitlines() if line.startswith("- ")]


def promises(results: Results) -> tuple[int, int] | None:
    """Return how many promises of the benchmark hold, and of how many."""
    table = results.frame("bench")
    if table is None:
        return None
    checks = table[table["section"] == "checks"]
    held = checks[checks["quantity"] == "holds"]["value"].astype(str)
    return int((held == "True").sum()), int((checks["quantity"] == "bound").sum())


def _anchor(results: Results, name: str, dataset: str, model: str, protocol: str = "") -> str:
    facts = {"dataset": frozenset([dataset]), "model": frozenset([model])}
    if protocol:
        facts["protocol"] = frozenset([protocol])
    return results.records[name].anchor_of(facts)


def _rows(frame: pd.DataFrame) -> list[Mapping[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
