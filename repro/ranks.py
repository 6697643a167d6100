"""Statistical comparison of methods over data sets, by their ranks: data frames in, data frames out.

Source: Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006): Friedman, Iman and
Davenport, Nemenyi, Holm against a control, and the critical difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from repro.significance import DIGITS, LEVEL, check_runs, holm


@dataclass(frozen=True)
class MeanScores:
    """Scores of methods on data sets, ready to be ranked.

    Attributes
    ----------
    scores : DataFrame
        A row a data set, a column a model; higher is better (errors are negated). Means over the seeds that all these
        models have, since the splits differ in difficulty.
    n_seeds : dict of str to int
        How many seeds these are on each data set.
    left_out : dict of str to list of str
        Models that lack a data set, and which: ranks need every cell.
    """

    scores: pd.DataFrame
    n_seeds: dict[str, int]
    left_out: dict[str, list[str]]


def mean_scores(runs: pd.DataFrame) -> MeanScores:
    """Average the scores of one protocol so that methods can be ranked over data sets.

    Parameters
    ----------
    runs : DataFrame
        See `compare`, of one protocol.

    Raises
    ------
    ValueError
        If the models that have every data set share no seed of one, or see `compare`.
    """
    check_runs(runs)
    datasets, models = list(dict.fromkeys(runs["dataset"])), list(dict.fromkeys(runs["model"]))
    have = set(zip(runs["dataset"], runs["model"], strict=True))
    left_out = {model: gaps for model in models if (gaps := [d for d in datasets if (d, model) not in have])}
    kept = [model for model in models if model not in left_out]
    rows, n_seeds = {}, {}
    for dataset, group in runs[runs["model"].isin(kept)].groupby("dataset", sort=False):
        seeds = group.pivot(index="seed", columns="model", values="score").dropna()
        if seeds.empty:
            raise ValueError(f"{dataset}: no seed is recorded for all of {', '.join(kept)}")
        sign = 1 if group["higher_is_better"].iloc[0] else -1
        rows[dataset] = (sign * seeds.mean()).round(DIGITS)
        n_seeds[str(dataset)] = len(seeds)
    return MeanScores(pd.DataFrame(rows).T.reindex(columns=kept), n_seeds, left_out)


@dataclass(frozen=True)
class Ranking:
    """Friedman's test over data sets and what follows it (Demšar 2006).

    Attributes
    ----------
    n : int
        Number of data sets.
    ranks : Series
        Mean rank of each model, best first; 1 is best.
    chi2, chi2_p : float
        Friedman's statistic, corrected for ties, and its p value.
    f, f_p : float
        Iman and Davenport's statistic, less conservative, and its p value; infinite where all data sets agree.
    kendall_w : float
        Agreement of the data sets, 0 to 1: the effect size.
    critical_difference : float
        Mean ranks further apart than this differ by Nemenyi's test.
    nemenyi : DataFrame
        p value of each pair of models.
    control : DataFrame
        ``model``, ``difference`` (its mean rank minus the control's), ``z``, ``p``, ``p_holm``.
    """

    n: int
    ranks: pd.Series
    chi2: float
    chi2_p: float
    f: float
    f_p: float
    kendall_w: float
    critical_difference: float
    nemenyi: pd.DataFrame
    control: pd.DataFrame


def critical_value(k: int, alpha: float = 1 - LEVEL) -> float:
    """Return Nemenyi's q: the studentized range's quantile for `k` models and infinite degrees, over the root of 2."""
    return float(stats.studentized_range.ppf(1 - alpha, k, np.inf) / math.sqrt(2))


def rank_over_datasets(scores: pd.DataFrame, control: str) -> Ranking:
    """Rank models over data sets and test the ranks.

    Parameters
    ----------
    scores : DataFrame
        A row a data set, a column a model; higher is better. Equal scores share their mean rank.
    control : str
        Column that the others are compared with.

    Raises
    ------
    ValueError
        If there are fewer than two data sets or three models, a score is not finite, or the control is missing.
    """
    n, k = scores.shape
    if n < 2 or k < 3:
        raise ValueError(f"Friedman's test needs at least 2 data sets and 3 models, not {n} and {k}")
    if not np.isfinite(scores.to_numpy(dtype=float)).all():
        raise ValueError(f"every model needs a finite score on every data set:\n{scores}")
    if control not in scores:
        raise ValueError(f"{control} is not among {', '.join(map(str, scores.columns))}")
    from scikit_posthocs import posthoc_nemenyi_friedman  # loads seaborn, which sweeps need not wait for

    losses = -scores
    ranks = losses.rank(axis=1).mean()
    if (losses.nunique(axis=1) == 1).all():
        chi2, chi2_p = 0.0, 1.0
    else:
        chi2, chi2_p = map(float, stats.friedmanchisquare(*losses.to_numpy().T))
    rest = n * (k - 1) - chi2
    f = (n - 1) * chi2 / rest if rest > 1e-9 else math.inf
    return Ranking(
        n=n,
        ranks=ranks.sort_values(kind="stable"),
        chi2=chi2,
        chi2_p=chi2_p,
        f=f,
        f_p=float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
        kendall_w=chi2 / (n * (k - 1)),
        critical_difference=critical_value(k) * math.sqrt(k * (k + 1) / (6 * n)),
        nemenyi=posthoc_nemenyi_friedman(losses),
        control=_against_control(ranks, control, math.sqrt(k * (k + 1) / (6 * n))),
    )


def _against_control(ranks: pd.Series, control: str, error: float) -> pd.DataFrame:
    others = ranks.drop(control)
    z = (others - ranks[control]) / error
    p = 2 * stats.norm.sf(np.abs(z))
    return pd.DataFrame(
        {"model": others.index, "difference": (z * error).to_numpy(), "z": z.to_numpy(), "p": p, "p_holm": holm(p)}
    )
