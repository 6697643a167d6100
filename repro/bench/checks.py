"""What the core promises about its speed and memory, each promise beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from repro.bench.frames import OURS, needed_mb

RELEASED = "released_library"
FASTER_THAN_PEERS = {"mnist": 2.0, "caltech101": 2.0, "mnist_inpainting": 5.0, "nus_wide": 5.0}
FASTER_THAN_RELEASED = {"mnist": 15.0, "caltech101": 8.0, "mnist_inpainting": 20.0, "nus_wide": 30.0}
NEAR_LIMIT = ("mnist", "mnist_inpainting", "nus_wide")
"""Shapes whose histograms must be near the limit, and whose other parts must be small."""
HISTOGRAM_TO_LIMIT = 2.0
SHARE_OF_A_PART = 0.25
MEMORY_TO_NEEDED = 1.5
MEMORY_TO_VECTOR_LEAVES = 0.2
GROWTH = 2.2
ONE_ROW_MICROSECONDS = 15.0


@dataclass(frozen=True)
class Check:
    """One promise.

    Attributes
    ----------
    claim : str
    where : str
        Shape and threads.
    bound, measured : float
        In `unit`; `measured` is NaN where it could not be measured.
    at_most : bool
        Whether `bound` is the largest value that holds, else the smallest.
    unit : str
    note : str
    """

    claim: str
    where: str
    bound: float
    measured: float
    at_most: bool
    unit: str
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether it holds; None where nothing was measured."""
        if math.isnan(self.measured):
            return None
        return self.measured <= self.bound if self.at_most else self.measured >= self.bound


def check_frame(checks: Iterable[Check]) -> pd.DataFrame:
    """Return one row a check, with ``holds``."""
    names = [field.name for field in fields(Check)]
    rows = [{name: getattr(check, name) for name in names} | {"holds": check.holds} for check in checks]
    return pd.DataFrame(rows, columns=[*names, "holds"])


def speed_checks(frame: pd.DataFrame, reference: pd.DataFrame) -> Iterator[Check]:
    """Compare our rounds with the fastest peer's and with the released program's.

    Parameters
    ----------
    frame : DataFrame
        See `repro.bench.frames.compared`.
    reference : DataFrame
        Seconds measured elsewhere: ``dataset``, ``model``, ``threads``, ``quantity``, ``value``.
    """
    for row in _ours(frame):
        where = _where(row)
        if row["shape"] in FASTER_THAN_PEERS:
            bound = FASTER_THAN_PEERS[row["shape"]]
            note = f"fastest peer {row['fastest_peer']}"
            yield Check("rounds faster than the fastest peer", where, bound, 1 / row["to_peer"], False, "×", note)
        if row["shape"] in FASTER_THAN_RELEASED:
            seconds, note = released_seconds(frame, reference, row["shape"], row["threads"])
            bound = FASTER_THAN_RELEASED[row["shape"]]
            measured = seconds / row["seconds"]
            yield Check("rounds faster than the released program", where, bound, measured, False, "×", note)


def released_seconds(frame: pd.DataFrame, reference: pd.DataFrame, shape: str, threads: int) -> tuple[float, str]:
    """Give the released program's seconds a round, and how they were had.

    Measured where a compiled copy took part; else the seconds measured on another machine times the ratio of LightGBM's
    seconds here and there.
    """
    here = frame[(frame["shape"] == shape) & (frame["threads"] == threads)]
    own = here.loc[here["model"] == RELEASED, "seconds"]
    if len(own):
        return float(own.iloc[0]), "released program measured"
    there = reference[(reference["dataset"] == shape) & (reference["threads"] == threads)]
    known = there[there["quantity"] == "seconds_a_round"].set_index("model")["value"]
    lightgbm = here.loc[here["model"] == "lightgbm", "seconds"]
    if not len(lightgbm) or not {RELEASED, "lightgbm"} <= set(known.index):
        return math.nan, "neither measured nor to be scaled"
    scaled = float(known[RELEASED] * lightgbm.iloc[0] / known["lightgbm"])
    return scaled, f"released program's {known[RELEASED]:g} s of another machine, scaled by LightGBM's time in both"


def part_checks(frame: pd.DataFrame, parts: pd.DataFrame) -> Iterator[Check]:
    """Compare histogram time with the limit, and the other parts with a quarter of a round."""
    for row in _ours(frame):
        if row["shape"] in NEAR_LIMIT:
            claim = "histogram time over the limit of its adds"
            yield Check(claim, _where(row), HISTOGRAM_TO_LIMIT, row["histogram_to_limit"], True, "×")
    for row in parts.to_dict("records"):
        if row["shape"] in NEAR_LIMIT:
            for name in ("split", "partition", "gradient", "leaf", "rest"):
                yield Check(f"share of a round: {name}", _where(row), SHARE_OF_A_PART, row[name], True, "")


def memory_checks(rounds: pd.DataFrame) -> Iterator[Check]:
    """Compare peak memory with what must be held, and with XGBoost's vector leaves."""
    if rounds.empty:
        return
    for row in rounds.to_dict("records"):
        if row["model"] == OURS and row["group"] in ("rounds", "pool") and row["shape"] == "nus_wide":
            needed = needed_mb(row)
            measured = row["above_mb"] / sum(needed.values())
            note = f"{row['above_mb']:.0f} MB of " + ", ".join(f"{name} {size:.0f}" for name, size in needed.items())
            claim = "peak memory over bins + gradients + histogram pool"
            yield Check(claim, _where(row), MEMORY_TO_NEEDED, measured, True, "×", note)
    own = rounds[rounds["group"] == "memory"].set_index("model")["above_mb"]
    if {OURS, "xgboost_vector"} <= set(own.index):
        measured = own[OURS] / own["xgboost_vector"]
        note = f"{own[OURS]:.0f} of {own['xgboost_vector']:.0f} MB"
        claim = "peak memory over that of XGBoost's vector leaves"
        yield Check(claim, "5,000 × 50 → 200", MEMORY_TO_VECTOR_LEAVES, measured, True, "×", note)


def growth_checks(growth: pd.DataFrame, rounds: pd.DataFrame) -> Iterator[Check]:
    """Compare the time of doubled sizes with the base's; hundreds and thousands of outputs must work at all."""
    for row in growth.to_dict("records"):
        if row["variant"] != "base":
            yield Check(f"time of doubled {row['variant']}", "random projection", GROWTH, row["ratio"], True, "×")
    many = rounds[rounds["group"] == "many_outputs"].to_dict("records") if len(rounds) else []
    for row in many:
        yield Check("seconds a round, any", f"2,000 rows, {row['variant']}", math.inf, row["seconds"], True, "s")


def sparse_checks(sparse: pd.DataFrame) -> Iterator[Check]:
    """A split must not take longer than one that the paper says takes longer.

    It gives seconds of top-k splits of both kinds (Table VI), and of a full split on MNIST alone (Table VIII).
    """
    if sparse.empty:
        return
    known = sparse[sparse["published"].notna()].to_dict("records")
    full = {row["shape"]: row for row in known if row["mode"] == "full"}
    unrestricted = {(row["shape"], row["k"]): row for row in known if row["mode"] == "unrestricted"}
    for row in known:
        if row["mode"] == "full":
            continue
        rivals = {"top-k split over the full split": full.get(row["shape"])}
        if row["mode"] == "restricted":
            rivals["restricted split over the unrestricted"] = unrestricted.get((row["shape"], row["k"]))
        for claim, rival in rivals.items():
            if rival and row["published"] < rival["published"]:
                where = f"{row['shape']}, k = {row['k']}, {row['mode']}"
                yield Check(claim, where, 1.0, row["seconds"] / rival["seconds"], True, "×")


def inference_checks(predictions: pd.DataFrame, one_row: pd.DataFrame) -> Iterator[Check]:
    """Compare prediction with the fastest peer's, and the cost of one row with scikit-learn's validation."""
    for row in _ours(predictions):
        if row["shape"] in FASTER_THAN_PEERS:
            note = f"{row['predict_ms']:.3g} ms a round"
            claim = "prediction over the fastest peer's"
            yield Check(claim, _where(row), 1.0, row["to_peer"], True, "×", note)
    for row in one_row.to_dict("records"):
        where = f"one row, {row['n_trees']} trees"
        claim = "predict beyond scikit-learn's validation"
        yield Check(claim, where, ONE_ROW_MICROSECONDS, row["beyond"], True, "µs")


def score_checks(scores: pd.DataFrame) -> Iterator[Check]:
    """Compare the times to the best test score of LightGBM's run."""
    if scores.empty:
        return
    for group, part in scores.groupby("group", sort=False):
        models = part.set_index("model")
        if {OURS, "lightgbm"} <= set(models.index):
            seconds, goal = models["seconds"], float(models["goal"][OURS])
            ours, theirs = float(seconds[OURS]), float(seconds["lightgbm"])
            note = f"{goal:.5g} after {ours:.1f} s, LightGBM after {theirs:.1f} s"
            yield Check(
                "time to LightGBM's best score over LightGBM's",
                str(group).removeprefix("score_"),
                1.0,
                ours / theirs,
                True,
                "×",
                note,
            )


def _ours(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    return [row for row in frame.to_dict("records") if row["model"] == OURS] if len(frame) else []


def _where(row: Mapping[Any, Any]) -> str:
    threads = row["threads"]
    return f"{row['shape']}, {threads} thread{'s' if threads > 1 else ''}"
