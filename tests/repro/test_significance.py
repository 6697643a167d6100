"""The tests on worked examples from elsewhere, each with its source, and what they say where nothing can be tested."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import make_moons
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.svm import SVC

from repro import ranks, significance

# Hours of sleep gained by ten patients under two soporifics: Student, Biometrika 6 (1908), p. 20, and R's `sleep`.
SLEEP_1 = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
SLEEP_2 = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])

# Demšar, JMLR 7 (2006), Table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets. The 13th row's last two
# print as 0.975 both but are ranked 2 and 3 there, so that the third is a little larger here.
DEMSAR = pd.DataFrame(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)

# Hollander and Wolfe, Nonparametric Statistical Methods (1973), p. 140: seconds to round first base in three ways; the
# example of R's friedman.test.
ROUNDING = np.array(
    [
        *[5.40, 5.50, 5.55, 5.85, 5.70, 5.75, 5.20, 5.60, 5.50, 5.55, 5.50, 5.40, 5.90, 5.85, 5.70, 5.45, 5.55, 5.60],
        *[5.40, 5.40, 5.35, 5.45, 5.50, 5.35, 5.25, 5.15, 5.00, 5.85, 5.80, 5.70, 5.25, 5.20, 5.10, 5.65, 5.55, 5.45],
        *[5.60, 5.35, 5.45, 5.05, 5.00, 4.95, 5.50, 5.50, 5.40, 5.45, 5.55, 5.50, 5.55, 5.55, 5.35, 5.45, 5.50, 5.55],
        *[5.50, 5.45, 5.25, 5.65, 5.60, 5.40, 5.70, 5.65, 5.55, 6.30, 6.30, 6.25],
    ]
).reshape(22, 3)


def test_the_papers_confidence_on_students_example() -> None:
    """Student gives .9985 for the second soporific being better; R's t.test the statistic, p and interval."""
    test = significance.paired_t(SLEEP_2 - SLEEP_1)
    assert test.confidence == pytest.approx(0.9985, abs=1e-4)
    assert test.t == pytest.approx(4.0621, abs=5e-5)
    assert test.p == pytest.approx(0.002833, abs=5e-7)
    assert (test.low, test.high) == pytest.approx((0.7001142, 2.4598858), abs=5e-8)
    assert (test.n, test.mean) == (10, pytest.approx(1.58))


def test_without_pairs_on_the_same_example() -> None:
    """R: t.test(extra ~ group, data = sleep, var.equal = TRUE) gives a two-sided p of 0.07919 at 18 degrees."""
    assert significance.unpaired_confidence(SLEEP_2, SLEEP_1) == pytest.approx(1 - 0.07919 / 2, abs=5e-6)


def test_the_corrected_test_on_scikit_learns_example() -> None:
    """The page "Statistical comparison of models using grid search" prints these, one-sided, for RBF over linear."""
    X, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    rbf, linear = (
        cross_val_score(SVC(kernel=kernel, random_state=0), X, y, scoring="roc_auc", cv=folds)
        for kernel in ("rbf", "linear")
    )
    corrected = significance.paired_t(rbf - linear, test_over_train=10 / 90)
    assert (corrected.t, 1 - corrected.confidence) == pytest.approx((0.750, 0.227), abs=5e-4)
    plain = significance.paired_t(rbf - linear)
    assert (plain.t, 1 - plain.confidence) == pytest.approx((2.611, 0.005), abs=5e-4)


def test_the_correction_step_by_step() -> None:
    """Nadeau and Bengio (2003), eq. 3: s² (1/J + n2/n1) for J splits, with Student-por's 195 and 454 rows."""
    differences = [0.3, -0.1, 0.4, 0.2, 0.1]
    mean = sum(differences) / 5
    variance = sum((d - mean) ** 2 for d in differences) / 4
    error = (variance * (1 / 5 + 195 / 454)) ** 0.5
    test = significance.paired_t(differences, 195 / 454)
    assert test.t == pytest.approx(mean / error)
    quantile = 2.776445  # of t with 4 degrees at 0.975, as tabulated
    assert (test.low, test.high) == pytest.approx((mean - quantile * error, mean + quantile * error), abs=1e-6)


def test_signed_ranks_on_hollander_and_wolfe() -> None:
    """Depression scores (1973, p. 29) as in R's wilcox.test: V = 40, one-sided p = 0.01953, of 9 pairs (sum 45)."""
    before = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    after = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    test = significance.signed_rank(before - after)
    assert test.statistic == 45 - 40
    assert test.p == pytest.approx(2 * 0.01953, abs=1e-5)
    assert test.effect == pytest.approx((40 - 5) / 45)


def test_signed_ranks_above_the_enumeration() -> None:
    """Darwin's maize, crossed less self-fertilised, in eighths of an inch; R and SciPy's manual: 24 and 0.04126."""
    darwin = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    test = significance.signed_rank(darwin)
    assert test.statistic == 24
    assert test.p == pytest.approx(0.04126, abs=5e-6)


def test_signed_ranks_with_zeros_as_demsar_splits_them() -> None:
    """Demšar, Section 3.1.3: R+ = 93 and R- = 12, below the critical 21 of 14 pairs at 0.05."""
    test = significance.signed_rank(DEMSAR["C4.5+m"] - DEMSAR["C4.5"])
    assert test.statistic == 12
    assert test.effect == pytest.approx((93 - 12) / 105)
    assert test.p < 0.05


def test_signed_ranks_with_ties_and_zeros_are_exact() -> None:
    differences = np.array([0, 1, 1, -2, 3, 0, 4, -1, 2, 5]) / 10
    ranks = stats.rankdata(np.abs(differences))
    observed = abs((ranks * np.sign(differences)).sum())
    signs = itertools.product([-1, 1], repeat=10)
    extreme = [abs((ranks * np.sign(differences) * sign).sum()) >= observed - 1e-9 for sign in signs]
    assert significance.signed_rank(differences).p == pytest.approx(np.mean(extreme))


def test_rounding_errors_make_no_order() -> None:
    """0.3 - 0.2 and 0.2 - 0.1 differ in the last bits: still a tie."""
    test = significance.signed_rank([0.3 - 0.2, 0.2 - 0.1, -0.1, -(0.4 - 0.3)])
    assert (test.p, test.effect) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_nemenyis_critical_values_are_demsars(alpha: float, expected: list[float]) -> None:
    """Demšar, Table 5(a), for 2 to 10 methods; without the root of 2 the first would be 2.772. Its last digits vary."""
    assert [ranks.critical_value(k, alpha) for k in range(2, 11)] == pytest.approx(expected, abs=1.1e-3)


def test_friedman_and_what_follows_on_demsars_example() -> None:
    """Demšar, Sections 3.2.2 and 3.2.4: chi² 9.28, F 3.69, critical difference 1.25 at 0.05 and 1.12 at 0.10."""
    ranking = ranks.rank_over_datasets(DEMSAR, "C4.5")
    expected = {"C4.5+m+cf": 1.964, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5": 3.143}
    assert ranking.ranks.index.tolist() == list(expected)
    assert ranking.ranks.tolist() == pytest.approx(list(expected.values()), abs=5e-4)
    # He takes no account of ties: three pairs and once all four, in 14 rows of four.
    uncorrected = ranking.chi2 * (1 - (3 * (2**3 - 2) + (4**3 - 4)) / (14 * (4**3 - 4)))
    assert uncorrected == pytest.approx(9.28, abs=5e-3)
    assert 13 * uncorrected / (14 * 3 - uncorrected) == pytest.approx(3.69, abs=5e-3)
    assert ranking.f == pytest.approx(13 * ranking.chi2 / (14 * 3 - ranking.chi2))
    assert ranking.critical_difference == pytest.approx(1.25, abs=5e-3)
    # "At p=0.10, CD is 1.12 and we can identify two groups": C4.5 is worse than both with +m; at 0.05 nothing is.
    p = ranking.nemenyi["C4.5"].drop("C4.5")
    assert set(p.index[p < 0.10]) == {"C4.5+m", "C4.5+m+cf"}
    assert (p > 0.05).all()
    # Holm against C4.5: z 2.416, 2.342 and 0.512, p 0.016, 0.019 and 0.607; the first two are rejected at 0.05.
    control = ranking.control.set_index("model").loc[["C4.5+m+cf", "C4.5+m", "C4.5+cf"]]
    assert (-control["z"]).tolist() == pytest.approx([2.416, 2.342, 0.512], abs=1e-3)
    assert control["p"].tolist() == pytest.approx([0.016, 0.019, 0.607], abs=2e-3)
    assert (control["p_holm"] < 0.05).tolist() == [True, True, False]


def test_friedman_with_ties_on_hollander_and_wolfe() -> None:
    """R's friedman.test: chi² = 11.143, p = 0.003805. Kendall's W is chi² over 22 · 2."""
    ranking = ranks.rank_over_datasets(pd.DataFrame(-ROUNDING, columns=["a", "b", "c"]), "a")
    assert ranking.chi2 == pytest.approx(11.143, abs=5e-4)
    assert ranking.chi2_p == pytest.approx(0.003805, abs=5e-7)
    assert ranking.kendall_w == pytest.approx(0.2532, abs=5e-5)
    assert ranking.ranks.index[0] == "c"


def test_holm_steps_down_and_skips_what_is_unknown() -> None:
    """0.01, 0.02 and 0.04 times 3, 2 and 1, made monotone."""
    assert significance.holm([0.04, math.nan, 0.01, 0.02]) == pytest.approx([0.04, math.nan, 0.03, 0.04], nan_ok=True)
    assert all(math.isnan(p) for p in significance.holm([math.nan]))


@pytest.mark.parametrize(
    ("difference", "confidence", "paired", "sd"),
    [
        (0.00016, 0.561, True, 0.0032),
        (0.00016, 0.561, False, 0.0023),
        (-0.65, 0.067, True, 1.25),
        (-0.65, 0.067, False, 0.93),
    ],
)
def test_the_spread_that_published_values_imply(difference: float, confidence: float, paired: bool, sd: float) -> None:
    """Put back into the definition of t, it gives the published confidence."""
    found = significance.implied_sd(difference, confidence, 10, paired=paired)
    assert found == pytest.approx(sd, rel=0.01)
    t = difference / (found * math.sqrt(1 / 10 if paired else 2 / 10))
    assert stats.t.cdf(t, 9 if paired else 18) == pytest.approx(confidence)


@pytest.mark.parametrize(("difference", "confidence"), [(0.1, 0.4), (-0.1, 0.6), (0.0, 0.6), (0.1, 1.0)])
def test_no_spread_makes_a_confidence_on_the_wrong_side(difference: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="no spread gives a difference"):
        significance.implied_sd(difference, confidence, 10, paired=True)


def test_equal_variances() -> None:
    """The 0.975 quantile of F with 9 and 9 degrees is 4.026 in every table."""
    assert significance.same_variance_p(math.sqrt(4.026), 1, 9) == pytest.approx(0.05, abs=1e-4)
    assert significance.same_variance_p(1, math.sqrt(4.026), 9) == pytest.approx(0.05, abs=1e-4)


def test_all_differences_zero() -> None:
    for ratio in (0.0, 0.4):
        test = significance.paired_t(np.zeros(10), ratio)
        assert (test.t, test.confidence, test.p, test.low, test.high) == (0, 0.5, 1, 0, 0)
    assert significance.signed_rank(np.zeros(10)) == significance.SignedRank(statistic=27.5, p=1.0, effect=0.0)
    assert significance.unpaired_confidence([1, 1], [1, 1]) == 0.5


@pytest.mark.parametrize(("value", "confidence"), [(0.2, 1.0), (-0.2, 0.0)])
@pytest.mark.parametrize("n", [3, 5])
def test_the_same_difference_everywhere(value: float, confidence: float, n: int) -> None:
    """The mean of three times 0.2 is not 0.2 in floating point."""
    test = significance.paired_t([value] * n)
    assert significance.unpaired_confidence([value] * n, [0.0] * n) == confidence
    assert (test.t, test.confidence, test.p) == (math.copysign(math.inf, value), confidence, 0)
    assert test.low == test.high == pytest.approx(value)


@pytest.mark.parametrize("test", [significance.paired_t, significance.signed_rank])
@pytest.mark.parametrize(
    ("differences", "message"),
    [([], "at least 2 seeds, not of 0"), ([0.1], "at least 2 seeds, not of 1"), ([0.1, math.nan], "finite numbers")],
)
def test_what_cannot_be_tested_is_refused(test, differences: list[float], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        test(differences)


def runs_of(scores: dict[str, list[float]], dataset: str = "yeast", metric: str = "accuracy") -> pd.DataFrame:
    """One run a score; the position is the seed, None: no such run."""
    return pd.DataFrame(
        [
            {
                "dataset": dataset,
                "protocol": "paper",
                "model": model,
                "seed": seed,
                "metric": metric,
                "higher_is_better": metric == "accuracy",
                "score": score,
                "n_train": 1038,
                "n_test": 446,
            }
            for model, values in scores.items()
            for seed, score in enumerate(values)
            if score is not None
        ]
    )


def test_models_are_compared_seed_by_seed() -> None:
    first, second = SLEEP_2 + 60, SLEEP_1 + 60
    (row,) = significance.compare(runs_of({"ours": list(first), "other": list(second)}), "ours").to_dict("records")
    assert (row["dataset"], row["protocol"], row["model"], row["n"]) == ("yeast", "paper", "other", 10)
    assert row["confidence"] == pytest.approx(0.9985, abs=1e-4)
    assert row["unpaired_confidence"] == pytest.approx(0.9604, abs=1e-4)
    assert (row["difference"], row["effect"]) == pytest.approx((1.58, 1.58 / 1.229995), abs=1e-5)
    assert (row["wins"], row["losses"]) == (9, 0)
    # Corrected: the same t by the root of the two variance factors.
    assert row["corrected_t"] == pytest.approx(row["t"] * math.sqrt(0.1 / (0.1 + 446 / 1038)))
    assert row["note"] == ""


def test_an_error_is_better_where_it_is_smaller() -> None:
    up = significance.compare(runs_of({"ours": [2, 3, 5], "other": [1, 1, 1]}), "ours").iloc[0]
    down = significance.compare(runs_of({"ours": [2, 3, 5], "other": [1, 1, 1]}, metric="rmse"), "ours").iloc[0]
    assert down["difference"] == -up["difference"] == pytest.approx(-7 / 3)
    assert down["confidence"] == pytest.approx(1 - up["confidence"])
    assert down["unpaired_confidence"] == pytest.approx(1 - up["unpaired_confidence"])
    assert down["corrected_low"] == pytest.approx(-up["corrected_high"])
    assert down["p"] == up["p"]


def test_unequal_seeds_are_compared_where_both_are() -> None:
    runs = runs_of({"ours": [0.5, 0.6, 0.8, 0.9], "other": [0.4, None, 0.5, 0.8]})
    (row,) = significance.compare(runs, "ours").to_dict("records")
    assert (row["n"], row["note"]) == (3, "other has no seed 1")
    assert row["difference"] == pytest.approx(0.5 / 3)
    assert row["t"] == pytest.approx(significance.paired_t([0.1, 0.3, 0.1]).t)


@pytest.mark.parametrize(
    ("ours", "other", "note"),
    [
        ([0.5], [0.4], "one seed: no spread"),
        ([0.5, None], [None, 0.4], "ours has no seed 1; other has no seed 0"),
        ([0.5, None], [0.6, 0.4], "ours has no seed 1; one seed: no spread"),
        ([None, None], [0.6, 0.4], "no run of ours"),
    ],
)
def test_too_few_common_seeds_leave_the_tests_open(
    ours: list[float | None], other: list[float | None], note: str
) -> None:
    (row,) = significance.compare(runs_of({"ours": ours, "other": other}), "ours").to_dict("records")  # type: ignore[dict-item]
    assert row["note"] == note
    assert all(math.isnan(row[key]) for key in ("t", "p", "corrected_p", "corrected_p_holm", "wilcoxon_p", "effect"))


def test_equal_scores_say_so() -> None:
    (row,) = significance.compare(runs_of({"ours": [0.5, 0.6], "other": [0.5, 0.6]}), "ours").to_dict("records")
    assert (row["note"], row["confidence"], row["wilcoxon_p"]) == ("all differences are zero", 0.5, 1.0)
    assert math.isnan(row["effect"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": math.nan}, "not a finite score: yeast ours paper seed 0 is nan"),
        ({"seed": 1}, "two scores of one run: yeast ours paper seed 1"),
        ({"metric": "rmse"}, "scores of rmse, accuracy together"),
        ({"n_test": 1}, "different numbers of training and test rows"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(change: dict[str, object], message: str) -> None:
    runs = runs_of({"ours": [0.5, 0.6], "other": [0.4, 0.5]}).astype({"metric": object})
    for column, value in change.items():
        runs.loc[0, column] = value
    with pytest.raises(ValueError, match=message):
        significance.compare(runs, "ours")


def test_holm_counts_the_models_of_one_data_set() -> None:
    rng = np.random.default_rng(0)
    scores = {"ours": list(rng.normal(1, 1, 10)), "b": list(rng.normal(0, 1, 10)), "c": list(rng.normal(0.5, 1, 10))}
    both = pd.concat([runs_of(scores), runs_of({**scores, "one": [0.5]}, dataset="other")])
    table = significance.compare(both, "ours").set_index(["dataset", "model"])
    p = table.loc["yeast", "corrected_p"]
    assert table.loc["yeast", "corrected_p_holm"].tolist() == pytest.approx(significance.holm(p.tolist()))
    assert table.loc[("other", "b"), "corrected_p_holm"] == table.loc[("yeast", "b"), "corrected_p_holm"]


def test_mean_scores_use_the_seeds_all_models_have() -> None:
    runs = pd.concat(
        [
            runs_of({"a": [0.5, 0.7], "b": [0.4, None], "c": [0.1, 0.2]}),
            runs_of({"a": [2.0], "b": [3.0]}, dataset="por", metric="rmse"),
        ]
    )
    means = ranks.mean_scores(runs)
    assert means.left_out == {"c": ["por"]}
    assert means.n_seeds == {"yeast": 1, "por": 1}
    assert means.scores.to_dict("index") == {"yeast": {"a": 0.5, "b": 0.4}, "por": {"a": -2.0, "b": -3.0}}


def test_mean_scores_without_a_common_seed_are_refused() -> None:
    with pytest.raises(ValueError, match="yeast: no seed is recorded for all of a, b"):
        ranks.mean_scores(runs_of({"a": [0.5, None], "b": [None, 0.4]}))  # type: ignore[list-item]


def test_ranks_that_all_data_sets_agree_on() -> None:
    ranking = ranks.rank_over_datasets(pd.DataFrame([[3, 2, 1], [9, 5, 4]], columns=list("abc")), "a")
    assert (ranking.kendall_w, ranking.f, ranking.f_p) == (pytest.approx(1.0), math.inf, 0.0)


def test_ranks_where_all_scores_are_the_same() -> None:
    ranking = ranks.rank_over_datasets(pd.DataFrame(np.ones((3, 3)), columns=list("abc")), "a")
    assert (ranking.chi2, ranking.chi2_p, ranking.f, ranking.f_p) == (0, 1, 0, 1)
    assert (ranking.control["p_holm"] == 1).all()


@pytest.mark.parametrize(
    ("scores", "control", "message"),
    [
        ([[1, 2, 3]], "a", "at least 2 data sets and 3 models, not 1 and 3"),
        ([[1, 2], [1, 2]], "a", "at least 2 data sets and 3 models, not 2 and 2"),
        ([[1, 2, math.nan], [1, 2, 3]], "a", "a finite score on every data set"),
        ([[1, 2, 3], [1, 2, 3]], "d", "d is not among a, b, c"),
    ],
)
def test_ranks_that_cannot_be_tested_are_refused(scores: list[list[float]], control: str, message: str) -> None:
    frame = pd.DataFrame(scores, columns=list("abc")[: len(scores[0])])
    with pytest.raises(ValueError, match=message):
        ranks.rank_over_datasets(frame, control)
