"""Statistical comparison of methods over the test rows of one split: data frames in, data frames out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from repro import significance


def compare_rows(losses: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Compare every method with the reference on the test rows of one split, row by row.

    The rows are independent draws; the two fitted models are not drawn at all. So this tells whether the one model is
    better than the other on new rows, not whether the method is on new training rows.

    Parameters
    ----------
    losses : DataFrame
        One row a test row: ``dataset``, ``model``, ``row`` (its number) and ``loss``, less of which is better.
    reference : str
        A model.

    Returns
    -------
    DataFrame
        One row a data set and other model in order of appearance: ``n`` rows, ``reference_mean``, ``mean``; their
        ``difference``, positive where the reference loses less, with the interval ``low`` to ``high`` and ``p`` of the
        paired t test; ``wins`` and ``losses`` of the reference; ``wilcoxon_statistic``, ``wilcoxon_p``,
        ``rank_biserial``, see `repro.significance.signed_rank`; ``p_holm`` and ``wilcoxon_p_holm``, adjusted for the
        number of models on that data set.

    Raises
    ------
    ValueError
        If a loss is not finite, a row is there twice, or the models of a data set were not scored on the same rows.
    """
    rows: list[dict[str, Any]] = []
    for dataset, group in losses.groupby("dataset", sort=False):
        others = [model for model in dict.fromkeys(group["model"]) if model != reference]
        if len(others) == group["model"].nunique():
            continue
        own = [_compare_losses(group, reference, other) for other in others]
        for name in ("p", "wilcoxon_p"):
            for row, adjusted in zip(own, significance.holm([row[name] for row in own]), strict=True):
                row[f"{name}_holm"] = adjusted
        rows += [{"dataset": dataset, **row} for row in own]
    return pd.DataFrame(rows, columns=_ROW_COLUMNS)


_ROW_COLUMNS = ["dataset", "model", "n", "reference_mean", "mean", "difference", "low", "high", "p", "p_holm"]
_ROW_COLUMNS += ["wins", "losses", "wilcoxon_statistic", "wilcoxon_p", "wilcoxon_p_holm", "rank_biserial"]


def _compare_losses(group: pd.DataFrame, reference: str, other: str) -> dict[str, Any]:
    pair = group[group["model"].isin([reference, other])]
    if pair.duplicated(["model", "row"]).any():
        raise ValueError(f"{group['dataset'].iloc[0]}: a row was scored twice for {reference} or {other}")
    pairs = pair.pivot(index="row", columns="model", values="loss")
    if not np.isfinite(pairs.to_numpy(dtype=float)).all():
        raise ValueError(
            f"{group['dataset'].iloc[0]}: {reference} and {other} have no finite losses of the same rows; their "
            "records must be looked at"
        )
    differences = (pairs[other] - pairs[reference]).round(significance.DIGITS).to_numpy()
    t, ranks = significance.paired_t(differences), significance.signed_rank(differences)
    return {
        "model": other,
        "n": t.n,
        "reference_mean": pairs[reference].mean(),
        "mean": pairs[other].mean(),
        "difference": t.mean,
        "low": t.low,
        "high": t.high,
        "p": t.p,
        "wins": int((differences > 0).sum()),
        "losses": int((differences < 0).sum()),
        "wilcoxon_statistic": ranks.statistic,
        "wilcoxon_p": ranks.p,
        "rank_biserial": ranks.effect,
    }
