"""The significance report and Table XII: from runs to Markdown, CSV rows and the critical-difference diagram."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from repro import figures, ranks, significance, tables
from repro.pipe_table import pipe_table

REFERENCE = "gbdt_mo"
TRIALS = 10
"""Random splits behind each value of Table XII."""
ALPHA = round(1 - significance.LEVEL, 10)
_EMPTY = "–"

LEGEND = f"""\
Every number compares {REFERENCE} with another method on the same splits, seed by seed. *Advantage* is the mean
difference, positive where {REFERENCE} is better (points of accuracy, or RMSE saved), with its
{significance.LEVEL:.0%} interval after Nadeau and Bengio (2003): random splits of one data set overlap, so the
variance factor 1/n becomes 1/n + test rows / training rows. *d* is the mean difference over the standard deviation
of the differences, *won* counts seeds (ties not). *Confidence* is the paper's: P(T <= t), Student's t on the paired
differences without that correction, which makes it too sure. *p* is the corrected test's, two-sided; *Holm* adjusts
it for the number of methods on the data set, **bold** where below {ALPHA:g}. *Wilcoxon* is the two-sided p of the
signed-rank test, with the rank-biserial correlation in brackets; it takes the seeds as independent too. Data sets
with a fixed split and one seed have no spread to test."""

RANKS_LEGEND = """\
Mean ranks over data sets (1 is best) of each method's mean score; the critical-difference diagram joins methods
that Nemenyi's test does not tell apart. Few data sets, some made from the same images, make these tests weak."""


@dataclass(frozen=True)
class Content:
    """What a table's files hold.

    Attributes
    ----------
    markdown : str
    table : DataFrame
        Rows of the CSV file.
    drawings : mapping of str to bytes
        By file ending.
    about : mapping
        What the sidecar says besides.
    """

    markdown: str
    table: pd.DataFrame
    drawings: Mapping[str, bytes] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)


def scored(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Join cells with their runs, and give them the columns that `repro.significance.compare` takes."""
    recorded = cells.merge(runs.drop(columns=["seed"]), on="run_id", how="inner")
    return recorded.assign(
        score=[tables.in_paper_units(m, v) for m, v in zip(recorded["metric"], recorded["test"], strict=True)],
        higher_is_better=[tables.higher_is_better(m) for m in recorded["metric"]],
    )


def compared_with_gaps(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Compare the recorded runs with the reference; a method without any run gets an empty row that says why.

    Parameters
    ----------
    cells : DataFrame
        Planned cells: ``dataset``, ``model``, ``protocol``, ``seed``, ``run_id``, ``gap``.
    runs : DataFrame
        Recorded runs with ``run_id``, ``metric``, ``test``, ``n_train``, ``n_test``.
    """
    keys = ["dataset", "protocol", "model"]
    others = cells[cells["model"] != REFERENCE]
    planned = others.groupby(keys, sort=False)["gap"].agg(_reasons).reset_index()
    table = planned.merge(significance.compare(scored(cells, runs), REFERENCE), on=keys, how="left")
    counts = ["n", "wins", "losses"]
    table[counts] = table[counts].fillna(0).astype(int)
    notes = zip(table["note"].fillna(""), table["gap"], strict=True)
    table["note"] = ["; ".join(note for note in both if note) for both in notes]
    return table.drop(columns="gap")


def _reasons(gaps: pd.Series) -> str:
    return "; ".join(dict.fromkeys(gaps.dropna()))


def significance_content(cells: pd.DataFrame, runs: pd.DataFrame, scores: pd.DataFrame) -> Content:
    """Make the report: every method against the reference on each data set, then all methods over data sets.

    Parameters
    ----------
    cells, runs : DataFrame
        See `compared_with_gaps`.
    scores : DataFrame
        The paper's scores: ``dataset``, ``model``, ``metric``, ``value``. Its methods are ranked too.
    """
    compared = compared_with_gaps(cells, runs)
    rankings = _rankings(pd.concat([scored(cells, runs), _as_runs(scores)], ignore_index=True))
    sections = [_findings(compared)]
    for protocol, group in compared.groupby("protocol", sort=False):
        sections += [f"## {protocol} protocol, seed by seed", _compared_markdown(group)]
    sections.append(LEGEND)
    for protocol, (means, ranking) in rankings.items():
        sections += [f"## {_titled(protocol)}, over data sets", _ranking_markdown(means, ranking)]
    drawings = {}
    if rankings:
        sections += ["![critical-difference diagram](significance.svg)", RANKS_LEGEND]
        panels = {
            _titled(protocol): (ranking.ranks, ranking.nemenyi, ranking.critical_difference)
            for protocol, (_, ranking) in rankings.items()
        }
        drawings = figures.critical_differences(panels, ALPHA)
    about = {"over_datasets": {protocol: _ranking_dict(*both) for protocol, both in rankings.items()}}
    return Content("\n\n".join(sections), compared, drawings, about)


_PUBLISHED = "published"


def _as_runs(scores: pd.DataFrame) -> pd.DataFrame:
    """Give the paper's scores the columns of runs, as if of one seed and a protocol of their own."""
    return scores.assign(
        protocol=_PUBLISHED,
        seed=0,
        score=scores["value"],
        higher_is_better=[tables.higher_is_better(metric) for metric in scores["metric"]],
        n_train=1,
        n_test=1,
    )


def _titled(protocol: str) -> str:
    return "Published values (Table V)" if protocol == _PUBLISHED else f"{protocol} protocol"


def _rankings(runs: pd.DataFrame) -> dict[str, tuple[ranks.MeanScores, ranks.Ranking]]:
    """Rank each protocol's methods, where there is enough to rank."""
    rankings = {}
    for protocol, group in runs.groupby("protocol", sort=False):
        means = ranks.mean_scores(group)
        n, k = means.scores.shape
        if n > 1 and k > 2 and REFERENCE in means.scores:
            rankings[str(protocol)] = means, ranks.rank_over_datasets(means.scores, REFERENCE)
    return rankings


def _findings(compared: pd.DataFrame) -> str:
    """Count what the tests tell, by the corrected test and by the paper's."""
    lines = []
    for protocol, group in compared.groupby("protocol", sort=False):
        tested = group[group["corrected_p_holm"].notna()]
        ahead = tested["difference"] > 0
        better, worse, naive_better, naive_worse = (
            int(((tested[p] < ALPHA) & side).sum()) for p in ("corrected_p_holm", "p") for side in (ahead, ~ahead)
        )
        lines.append(
            f"- {protocol} protocol: of {len(tested)} comparisons with more than one seed, {REFERENCE} is "
            f"significantly better in {better} and worse in {worse} by the corrected test after Holm; the uncorrected "
            f"test alone would say {naive_better} and {naive_worse}."
        )
    return "\n".join(lines)


def _compared_markdown(group: pd.DataFrame) -> str:
    head = ["data set", "against", "n", "advantage", "d", "won", "confidence", "p", "Holm", "Wilcoxon", "note"]
    rows = []
    for row in _dicts(group):
        start = [_with_metric(row), row["model"], str(row["n"])]
        if math.isnan(row["corrected_p"]):
            rows.append([*start, _signed(row, "difference"), *[_EMPTY] * 6, row["note"]])
            continue
        adjusted = probability(row["corrected_p_holm"])
        rows.append(
            [
                *start,
                f"{_signed(row, 'difference')} [{_signed(row, 'corrected_low')}, {_signed(row, 'corrected_high')}]",
                _EMPTY if math.isnan(row["effect"]) else f"{row['effect']:+.2f}",
                f"{row['wins']} of {row['n']}",
                probability(row["confidence"]),
                probability(row["corrected_p"]),
                f"**{adjusted}**" if row["corrected_p_holm"] < ALPHA else adjusted,
                f"{probability(row['wilcoxon_p'])} ({row['rank_biserial']:+.2f})",
                row["note"],
            ]
        )
    return pipe_table(rows, head)


def _with_metric(row: Mapping[str, Any]) -> str:
    if pd.isna(row["metric"]):
        return str(row["dataset"])
    unit = " %" if tables.higher_is_better(row["metric"]) else ""
    return f"{row['dataset']} ({str(row['metric']).replace('_', ' ')}{unit})"


def _signed(row: Mapping[str, Any], key: str) -> str:
    if math.isnan(row[key]):
        return _EMPTY
    text = tables.format_score(row["metric"], row[key])
    return text if text.startswith("-") else f"+{text}"


def probability(value: float) -> str:
    """Format a probability with three digits behind the point, and say so where it is nearer to 0 or 1."""
    if math.isnan(value):
        return _EMPTY
    if 0 < value < 0.0005:
        return "<0.001"
    if 0.9995 <= value < 1:
        return ">0.999"
    return f"{value:.3f}"


def _equals(p: float) -> str:
    text = probability(p)
    return text if text[0] in "<>" else f"= {text}"


def _ranking_markdown(means: ranks.MeanScores, ranking: ranks.Ranking) -> str:
    k = len(ranking.ranks)
    lines = [
        f"{k} methods on {ranking.n} data sets. Friedman χ² = {ranking.chi2:.2f} ({k - 1} degrees of freedom, "
        f"p {_equals(ranking.chi2_p)}); Iman and Davenport F = {ranking.f:.2f} ({k - 1} and "
        f"{(k - 1) * (ranking.n - 1)}, p {_equals(ranking.f_p)}); Kendall's W = {ranking.kendall_w:.2f}. "
        f"Critical difference of Nemenyi's test at {ALPHA:g}: {ranking.critical_difference:.2f}."
    ]
    if ranking.f_p >= ALPHA:
        lines.append("The ranks do not differ significantly, so that what follows tells no two methods apart.")
    lines += [f"Left out: {model}, without {', '.join(gaps)}." for model, gaps in means.left_out.items()]
    if max(means.n_seeds.values()) > 1:
        lines.append(f"Seeds that all share: {', '.join(f'{name} {n}' for name, n in means.n_seeds.items())}.")
    control = {row["model"]: row for row in _dicts(ranking.control)}
    nemenyi = ranking.nemenyi[REFERENCE].to_dict()
    rows = []
    for model, rank in ranking.ranks.to_dict().items():
        tests = [_EMPTY] * 4
        if own := control.get(model):
            p_values = (nemenyi[model], own["p"], own["p_holm"])
            tests = [f"{own['difference']:+.2f}", *(probability(p) for p in p_values)]
        rows.append([str(model), f"{rank:.2f}", *tests])
    head = ["method", "mean rank", f"behind {REFERENCE}", "p Nemenyi", f"p against {REFERENCE}", "Holm"]
    return "\n\n".join([" ".join(lines), pipe_table(rows, head)])


def _ranking_dict(means: ranks.MeanScores, ranking: ranks.Ranking) -> dict[str, Any]:
    return {
        "n_seeds": means.n_seeds,
        "left_out": means.left_out,
        "n_datasets": ranking.n,
        "mean_ranks": {str(model): float(rank) for model, rank in ranking.ranks.items()},
        "friedman_chi2": ranking.chi2,
        "friedman_p": ranking.chi2_p,
        "iman_davenport_f": None if math.isinf(ranking.f) else ranking.f,
        "iman_davenport_p": ranking.f_p,
        "kendall_w": ranking.kendall_w,
        "critical_difference": ranking.critical_difference,
        "nemenyi_p": {str(m): {str(o): float(p) for o, p in row.items()} for m, row in ranking.nemenyi.iterrows()},
        "against_control": _dicts(ranking.control),
    }


def confidence_content(
    cells: pd.DataFrame, runs: pd.DataFrame, published: pd.DataFrame, scores: pd.DataFrame
) -> Content:
    """Make Table XII: the paper's confidence beside ours, and what its values tell about pairs.

    Parameters
    ----------
    cells, runs : DataFrame
        See `compared_with_gaps`.
    published : DataFrame
        ``dataset``, ``model``, ``confidence``, as far as known.
    scores : DataFrame
        Table V: ``dataset``, ``model``, ``metric``, ``value``. Only its cells are compared.
    """
    compared = compared_with_gaps(cells, runs).drop(columns="metric")
    compared = compared.merge(scores[["dataset", "model", "metric", "value"]], on=["dataset", "model"], how="inner")
    known = published[["dataset", "model", "confidence"]].rename(columns={"confidence": "published"})
    compared = compared.merge(known, on=["dataset", "model"], how="left")
    own = compared["dataset"].map(scores[scores["model"] == REFERENCE].set_index("dataset")["value"])
    signs = [1 if tables.higher_is_better(metric) else -1 for metric in compared["metric"]]
    compared["published_difference"] = (signs * (own - compared["value"])).round(10)
    compared = compared.assign(**_implied(compared))
    sections = [_confidence_markdown(compared), CONFIDENCE_LEGEND]
    if compared["implied_pair_sd"].notna().any():
        sections += ["## Were pairs used?", _pairs_markdown(compared), PAIRS_LEGEND]
    columns = [*_CONFIDENCE_COLUMNS, *_IMPLIED_COLUMNS, "note"]
    return Content("\n\n".join(sections), compared[columns])


_CONFIDENCE_COLUMNS = ["dataset", "model", "protocol", "metric", "published", "published_difference", "difference", "n"]
_CONFIDENCE_COLUMNS += ["confidence", "unpaired_confidence", "corrected_confidence", "sd", "model_sd"]
_IMPLIED_COLUMNS = ["implied_pair_sd", "pair_p", "implied_model_sd", "model_p"]
CONFIDENCE_LEGEND = f"""\
Confidence that {REFERENCE} is better than the other method: P(T <= t) of Student's t over the random splits, as in
Appendix C of the paper. *Paired*, the choice taken here: t of the differences on the same split, n - 1 degrees of
freedom. *Unpaired*: the two-sample t with pooled variance, 2n - 2 degrees. *Corrected*: paired, with Nadeau and
Bengio's variance, since the splits overlap. Differences are positive where {REFERENCE} is better. {_EMPTY} under
*published*: not among the two values that our source of Table XII states. The paper's values were made under the
paper protocol."""
PAIRS_LEGEND = f"""\
Table V's difference of means and Table XII's confidence together imply a standard deviation: of the paired
differences if pairs were used, of a single method (taken as equal for both) if not. The values we measured stand
beside each, with the p value of an F test that both are the same: a small one speaks against that reading. {TRIALS}
trials throughout."""


def _implied(compared: pd.DataFrame) -> dict[str, list[float]]:
    """Return the standard deviations that the published values imply either way, ours for two samples, and F tests."""
    columns: dict[str, list[float]] = {name: [] for name in ["model_sd", *_IMPLIED_COLUMNS]}
    for row in _dicts(compared):
        pair_sd = model_sd = math.nan
        if not math.isnan(row["published"]) and row["published_difference"]:
            given = row["published_difference"], row["published"], TRIALS
            pair_sd, model_sd = (significance.implied_sd(*given, paired=paired) for paired in (True, False))
        own = math.sqrt((row["reference_sd"] ** 2 + row["other_sd"] ** 2) / 2)
        columns["model_sd"].append(own)
        columns["implied_pair_sd"].append(pair_sd)
        columns["pair_p"].append(significance.same_variance_p(row["sd"], pair_sd, TRIALS - 1))
        columns["implied_model_sd"].append(model_sd)
        columns["model_p"].append(significance.same_variance_p(own, model_sd, 2 * TRIALS - 2))
    return columns


def _confidence_markdown(compared: pd.DataFrame) -> str:
    head = ["data set", "against", "published difference", "published"]
    protocols = list(dict.fromkeys(compared["protocol"]))
    for protocol in protocols:
        head += [f"difference, {protocol} protocol", "paired", "unpaired", "corrected"]
    rows = []
    for (dataset, model), group in compared.groupby(["dataset", "model"], sort=False):
        by_protocol = {row["protocol"]: row for row in _dicts(group)}
        first = next(iter(by_protocol.values()))
        row = [str(dataset), str(model), _signed(first, "published_difference"), probability(first["published"])]
        for protocol in protocols:
            own = by_protocol.get(protocol)
            if own is None:
                row += [_EMPTY] * 4
                continue
            row += [_signed(own, "difference"), probability(own["confidence"])]
            row += [probability(own["unpaired_confidence"]), probability(own["corrected_confidence"])]
        rows.append([*row, "; ".join(dict.fromkeys(group["note"][group["note"] != ""]))])
    return pipe_table(rows, [*head, "note"])


def _pairs_markdown(compared: pd.DataFrame) -> str:
    head = [
        "data set",
        "against",
        "protocol",
        "sd of pairs: implied",
        "ours",
        "p",
        "sd of a method: implied",
        "ours",
        "p",
    ]
    rows = []
    for row in _dicts(compared[compared["implied_pair_sd"].notna()]):
        own = [str(row["dataset"]), str(row["model"]), str(row["protocol"])]
        for implied, ours, p in (("implied_pair_sd", "sd", "pair_p"), ("implied_model_sd", "model_sd", "model_p")):
            own += [tables.format_score(row["metric"], row[key]) for key in (implied, ours)] + [probability(row[p])]
        rows.append(own)
    return pipe_table(rows, head)


def _dicts(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
