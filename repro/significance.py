"""Statistical comparison of methods over the seeds of a data set: data frames in, data frames out.

Sources
-------
- Zhang and Jung, arXiv:1909.04373, Appendix C: confidence from Student's t over ten random trials.
- Student, "The probable error of a mean", Biometrika 6 (1908): the same statement for paired differences.
- Nadeau and Bengio, "Inference for the generalization error", Machine Learning 52 (2003): the corrected variance.
- Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
- Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

LEVEL = 0.95
"""Of confidence intervals; 1 - LEVEL is the level of significance."""
DIGITS = 10
"""Scores that agree so far are equal: their differences would otherwise be ranked by rounding errors."""
_ENUMERATED = 13  # up to so many differences, all signs are enumerated: 2**13 sums of ranks
_KEY = ["dataset", "protocol"]


@dataclass(frozen=True)
class TTest:
    """Student's t on paired differences.

    Attributes
    ----------
    n : int
        Number of differences.
    mean, sd : float
        Their mean and sample standard deviation.
    t : float
        Infinite where all differences are the same and not zero, 0 where all are zero.
    confidence : float
        P(T <= t) with n - 1 degrees of freedom: the paper's confidence that the first method is better.
    p : float
        Two-sided.
    low, high : float
        `LEVEL` confidence interval of the mean.
    """

    n: int
    mean: float
    sd: float
    t: float
    confidence: float
    p: float
    low: float
    high: float


def paired_t(differences: ArrayLike, test_over_train: float = 0.0) -> TTest:
    """Test whether paired differences have mean zero.

    Parameters
    ----------
    differences : array_like of shape (n,)
        First method minus second, one value a seed.
    test_over_train : float
        Number of test rows over number of training rows. Random splits of one data set overlap, so their scores are
        not independent; Nadeau and Bengio replace the variance factor 1 / n by 1 / n + test_over_train. 0: the
        uncorrected test, which is the paper's.

    Raises
    ------
    ValueError
        If there are fewer than two differences, or one is not finite.
    """
    values = _checked_differences(differences, "a t test")
    n = len(values)
    mean, sd = float(values.mean()), math.sqrt(_variance(values))
    error = sd * math.sqrt(1 / n + test_over_train)
    t = mean / error if error > 0 else float(np.sign(mean)) * math.inf if mean else 0.0
    reach = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * error
    return TTest(
        n=n,
        mean=mean,
        sd=sd,
        t=t,
        confidence=float(stats.t.cdf(t, n - 1)),
        p=float(2 * stats.t.sf(abs(t), n - 1)),
        low=mean - reach,
        high=mean + reach,
    )


def unpaired_confidence(first: ArrayLike, second: ArrayLike) -> float:
    """Return P(T <= t) of the two-sample test with pooled variance, as if the trials of two methods were unrelated.

    Raises
    ------
    ValueError
        If a method has fewer than two scores, or one is not finite.
    """
    a, b = _checked(first), _checked(second)
    if min(len(a), len(b)) < 2:
        raise ValueError(f"a t test needs at least 2 scores a method, not {len(a)} and {len(b)}")
    degrees = len(a) + len(b) - 2
    pooled = ((len(a) - 1) * _variance(a) + (len(b) - 1) * _variance(b)) / degrees
    difference = round(float(a.mean() - b.mean()), DIGITS)
    if pooled == 0:
        return float(np.sign(difference) / 2 + 0.5)
    return float(stats.t.cdf(difference / math.sqrt(pooled * (1 / len(a) + 1 / len(b))), degrees))


def implied_sd(difference: float, confidence: float, n: int, *, paired: bool) -> float:
    """Return the standard deviation that a published difference of means and its confidence imply.

    Parameters
    ----------
    difference : float
        Of the means, positive where the first method is better.
    confidence : float
        Between 0 and 1, on the side of 0.5 that the difference is on.
    n : int
        Trials a method.
    paired : bool
        Whether the differences of pairs were tested (their standard deviation is returned) or two samples (that of
        one method is, taken as equal for both).

    Raises
    ------
    ValueError
        If no standard deviation gives that confidence.
    """
    if not 0 < confidence < 1 or (difference > 0) != (confidence > 0.5) or difference == 0:
        raise ValueError(f"no spread gives a difference of {difference:g} the confidence {confidence:g}")
    if paired:
        return float(difference * math.sqrt(n) / stats.t.ppf(confidence, n - 1))
    return float(difference / math.sqrt(2 / n) / stats.t.ppf(confidence, 2 * n - 2))


def same_variance_p(first_sd: float, second_sd: float, degrees: int) -> float:
    """Return the two-sided p value of the F test that two standard deviations, each of `degrees`, are of equal ones."""
    ratio = (first_sd / second_sd) ** 2
    return float(2 * min(stats.f.cdf(ratio, degrees, degrees), stats.f.sf(ratio, degrees, degrees)))


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test.

    Attributes
    ----------
    statistic : float
        The smaller of the two sums of ranks.
    p : float
        Two-sided.
    effect : float
        Matched-pairs rank-biserial correlation, (R+ - R-) / (R+ + R-): 1 where the first method always wins.
    """

    statistic: float
    p: float
    effect: float


def signed_rank(differences: ArrayLike) -> SignedRank:
    """Test whether paired differences are symmetric about zero.

    The ranks of zero differences are split evenly between both sums, as Demšar does. Up to 13 differences, p is exact,
    also with ties and zeros, by going through all signs; above, as SciPy has it: exact up to 50 without ties or zeros,
    else a normal approximation.

    Raises
    ------
    ValueError
        If there are fewer than two differences, or one is not finite.
    """
    values = _checked_differences(differences, "a signed-rank test")
    n = len(values)
    if not values.any():
        return SignedRank(statistic=n * (n + 1) / 4, p=1.0, effect=0.0)
    ties = len(np.unique(np.abs(values))) < n or (values == 0).any()
    method: Any = "asymptotic" if ties else "auto"
    if n <= _ENUMERATED:
        method = stats.PermutationMethod(n_resamples=2**n)
    found = stats.wilcoxon(values, zero_method="zsplit", method=method)
    ranks = stats.rankdata(np.abs(values))
    return SignedRank(
        statistic=float(found.statistic),
        p=float(found.pvalue),
        effect=float((ranks * np.sign(values)).sum() / ranks.sum()),
    )


def _checked(values: ArrayLike) -> NDArray[np.float64]:
    checked = np.round(np.asarray(values, dtype=np.float64), DIGITS)
    if checked.ndim != 1 or not np.isfinite(checked).all():
        raise ValueError(f"expected a row of finite numbers, not {np.asarray(values).tolist()}")
    return checked


def _checked_differences(values: ArrayLike, test: str) -> NDArray[np.float64]:
    checked = _checked(values)
    if len(checked) < 2:
        raise ValueError(f"{test} needs the differences of at least 2 seeds, not of {len(checked)}: one has no spread")
    return checked


def _variance(values: NDArray[np.float64]) -> float:
    """Sample variance; of equal values exactly 0, which their rounded mean would miss."""
    return float(values.var(ddof=1)) if np.ptp(values) else 0.0


def holm(p_values: ArrayLike) -> list[float]:
    """Adjust p values for their number by Holm's step-down method; NaN stays NaN and does not count."""
    adjusted = np.asarray(p_values, dtype=np.float64).copy()
    order = np.argsort(adjusted)[: int((~np.isnan(adjusted)).sum())]  # NaN comes last
    stepped = adjusted[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return [float(value) for value in adjusted]


def compare(runs: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Compare every method with the reference on each data set, seed by seed.

    Parameters
    ----------
    runs : DataFrame
        One row a run: ``dataset``, ``protocol``, ``model``, ``seed``, ``metric``, ``higher_is_better``, ``score``,
        ``n_train`` (all rows that training saw, those it was stopped on among them), ``n_test``.
    reference : str
        A model.

    Returns
    -------
    DataFrame
        One row a data set, protocol and other model in order of appearance. Only seeds that both have are compared;
        ``n`` counts them and ``note`` names the others. ``reference_mean``, ``reference_sd``, ``mean`` and ``other_sd``
        are over those seeds. ``difference`` is positive where the reference is better, in
        the score's units; ``effect`` is it over the standard deviation ``sd`` of the pairs (Cohen's d_z), NaN for
        two pairs, whose deviation says nothing; ``wins`` and
        ``losses`` count seeds. ``confidence``, ``t``, ``p``, ``low``, ``high`` are the paper's test (see `paired_t`),
        with ``corrected_`` before them Nadeau and Bengio's; ``corrected_p_holm`` is adjusted for the number of models
        on that data set. ``unpaired_confidence`` is what the paper's would be without pairs. ``wilcoxon_statistic``,
        ``wilcoxon_p``, ``rank_biserial``: see `signed_rank`. With fewer than two common seeds all of these are NaN.

    Raises
    ------
    ValueError
        If a score is not finite, a seed is there twice, or metrics or numbers of rows do not agree.
    """
    check_runs(runs)
    rows: list[dict[str, Any]] = []
    for (dataset, protocol), group in runs.groupby(_KEY, sort=False):
        own = [_compare_one(group, reference, other) for other in dict.fromkeys(group["model"]) if other != reference]
        adjusted = holm([row.get("corrected_p", math.nan) for row in own])
        rows += [
            {"dataset": dataset, "protocol": protocol, **row, "corrected_p_holm": p}
            for row, p in zip(own, adjusted, strict=True)
        ]
    return pd.DataFrame(rows, columns=_COLUMNS)


_T_COLUMNS = ["t", "confidence", "p", "low", "high"]
_COLUMNS = [
    *[
        *_KEY,
        "model",
        "metric",
        "n",
        "reference_mean",
        "reference_sd",
        "mean",
        "other_sd",
        "difference",
        "sd",
        "effect",
        "wins",
        "losses",
    ],
    *_T_COLUMNS,
    "unpaired_confidence",
    "test_over_train",
    *(f"corrected_{name}" for name in _T_COLUMNS),
    *["corrected_p_holm", "wilcoxon_statistic", "wilcoxon_p", "rank_biserial", "note"],
]


def check_runs(runs: pd.DataFrame) -> None:
    """Refuse runs that cannot be compared, see `compare`."""
    bad = runs[~np.isfinite(runs["score"].astype(float))]
    if len(bad):
        raise ValueError(f"not a finite score: {_named(bad.iloc[0])}; its record must be looked at")
    twice = runs[runs.duplicated([*_KEY, "model", "seed"])]
    if len(twice):
        raise ValueError(f"two scores of one run: {_named(twice.iloc[0])}; give each seed once")
    for key, group in runs.groupby(_KEY, sort=False):
        if group["metric"].nunique() > 1 or group["higher_is_better"].nunique() > 1:
            raise ValueError(f"{' '.join(map(str, key))}: scores of {', '.join(group['metric'].unique())} together")
        sizes = group[["n_train", "n_test"]].drop_duplicates()
        if len(sizes) > 1:
            raise ValueError(
                f"{' '.join(map(str, key))}: runs of different numbers of training and test rows, "
                f"{sizes.to_numpy().tolist()}; they are not trials of one experiment"
            )


def _named(row: pd.Series) -> str:
    return f"{row['dataset']} {row['model']} {row['protocol']} seed {row['seed']} is {row['score']}"


def _compare_one(group: pd.DataFrame, reference: str, other: str) -> dict[str, Any]:
    """Compare two models on one data set and protocol."""
    pairs = group[group["model"].isin([reference, other])].pivot(index="seed", columns="model", values="score")
    pairs = pairs.reindex(columns=[reference, other])
    common = pairs.dropna()
    sign = 1 if group["higher_is_better"].iloc[0] else -1
    differences = (sign * (common[reference] - common[other])).round(DIGITS).to_numpy()
    ratio = float(group["n_test"].iloc[0] / group["n_train"].iloc[0])
    return {
        "model": other,
        "metric": group["metric"].iloc[0],
        "n": len(common),
        "reference_mean": common[reference].mean(),
        "reference_sd": common[reference].std(),
        "mean": common[other].mean(),
        "other_sd": common[other].std(),
        "difference": differences.mean() if len(common) else math.nan,
        "wins": int((differences > 0).sum()),
        "losses": int((differences < 0).sum()),
        "test_over_train": ratio,
        **(_tests(differences, common[reference], common[other], sign, ratio) if len(common) > 1 else {}),
        "note": "; ".join(_notes(pairs, differences)),
    }


def _tests(
    differences: NDArray[np.float64], first: pd.Series, second: pd.Series, sign: int, ratio: float
) -> dict[str, Any]:
    plain, corrected, ranks = paired_t(differences), paired_t(differences, ratio), signed_rank(differences)
    return {
        "sd": plain.sd,
        "effect": plain.mean / plain.sd if plain.sd and len(differences) > 2 else math.nan,
        **{name: getattr(plain, name) for name in _T_COLUMNS},
        **{f"corrected_{name}": getattr(corrected, name) for name in _T_COLUMNS},
        "unpaired_confidence": unpaired_confidence(sign * first, sign * second),
        "wilcoxon_statistic": ranks.statistic,
        "wilcoxon_p": ranks.p,
        "rank_biserial": ranks.effect,
    }


def _notes(pairs: pd.DataFrame, differences: NDArray[np.float64]) -> Iterator[str]:
    for model in pairs.columns:
        missing = [str(seed) for seed in pairs.index[pairs[model].isna()]]
        if missing and len(missing) < len(pairs):
            yield f"{model} has no seed {', '.join(missing)}"
        elif missing:
            yield f"no run of {model}"
    if len(differences) == 1:
        yield "one seed: no spread"
    elif len(differences) and not differences.any():
        yield "all differences are zero"
    elif len(differences) and (differences == differences[0]).all():
        yield "all differences are the same"
