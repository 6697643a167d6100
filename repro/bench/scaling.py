"""How time and memory of Rank-SVM grow: records of fits and of epochs, and what was promised of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.bench.cell import was_busy
from repro.bench.checks import Check
from repro.bench.plan import BenchCell, Measured

OURS = "rank_svm"
AXES = {"rows": "rows", "labels": "labels", "labels a row": "pairs"}
"""First words of a variant that sets a size: the column of sizes that its figures are drawn over."""
N_DEGREES = 8
ALL_DEGREES_SECONDS = 15.0
TIGHT_SECONDS = 2.0
SPARSE_SECONDS = 3.0
LARGE_MB = 2e9 / 2**20
EPOCH_POWERS = {"rows": 2.0, "labels": 1.0}
POWER_TOLERANCE = 0.1


def solve_frame(measured: Measured) -> pd.DataFrame:
    """Summarise fits and epochs over their repeats.

    Returns
    -------
    DataFrame
        One row a group, shape, model and variant, in order of appearance: ``work``; ``axis`` (a key of `AXES`, else
        None); ``rows``, ``features``, ``labels``, ``pairs``; ``seconds`` (median of a fit, or of an epoch),
        ``fastest``, ``slowest``, ``repeats``; ``relative_gap`` (the largest), ``tol``, ``n_iter`` (median);
        ``above_mb``, what the fit added to the resident memory, and ``peak_mb`` (the largest of each); ``synthetic``,
        ``busy``.
    """
    cells: dict[tuple[str, ...], list[tuple[BenchCell, Mapping[str, Any]]]] = {}
    for cell, record in measured:
        key = (cell.group, cell.shape, cell.model.rpartition("/")[2], cell.variant)
        cells.setdefault(key, []).append((cell, record))
    names = ("group", "shape", "model", "variant")
    return pd.DataFrame([dict(zip(names, key, strict=True)) | _summary(own) for key, own in cells.items()])


def _summary(cells: Sequence[tuple[BenchCell, Mapping[str, Any]]]) -> dict[str, Any]:
    first = cells[0][0]
    measured = [record["measured"] for _, record in cells]
    data, is_fit = measured[0]["data"], first.work == "solve"
    axis = first.variant.rpartition(" ")[0]
    seconds = [one["fit_seconds" if is_fit else "epoch_seconds"] for one in measured]
    memory = [one["memory"] for one in measured if is_fit]
    return {
        "work": first.work,
        "axis": axis if axis in AXES else None,
        "rows": data["n_train"],
        "features": data["n_features"],
        "labels": data["n_outputs"],
        "pairs": measured[0]["n_pairs"],
        "seconds": float(np.median(seconds)),
        "fastest": min(seconds),
        "slowest": max(seconds),
        "repeats": len(seconds),
        "relative_gap": _over(max, (one["relative_gap"] for one in measured if is_fit)),
        "tol": first.config["estimator"].get("tol", math.nan),
        "n_iter": _over(np.median, (one["n_iter"] for one in measured if is_fit)),
        "above_mb": _over(max, (one["peak"] - one["data"] for one in memory)),
        "peak_mb": _over(max, (one["peak"] for one in memory)),
        "synthetic": data["synthetic"],
        "busy": any(was_busy(record) for _, record in cells),
    }


def _over(summary: Any, values: Iterable[float | None]) -> float:
    """Summarise what there is; NaN where there is nothing."""
    found = [value for value in values if value is not None]
    return float(summary(found)) if found else math.nan


def with_ratios(frame: pd.DataFrame) -> pd.DataFrame:
    """Add ``to_ours``: seconds over those of our own solver on the same rows."""
    keys = ["work", "shape", "variant"]
    ours = frame[frame["model"] == OURS].drop_duplicates(keys).set_index(keys)["seconds"].rename("ours")
    joined = frame.join(ours, on=keys)
    return joined.assign(to_ours=joined["seconds"] / joined["ours"]).drop(columns="ours")


def power_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Fit powers of sizes to seconds and memory: least squares of logarithms.

    Returns
    -------
    DataFrame
        One row a kind of work, axis and model measured at three sizes or more: ``work``, ``axis``, ``model``,
        ``smallest`` and ``largest`` size, ``n_sizes``, ``seconds_power``, ``memory_power`` (NaN for epochs).
    """
    columns = ["work", "axis", "model", "smallest", "largest", "n_sizes", "seconds_power", "memory_power"]
    rows = []
    for (work, axis, model), part in frame.groupby(["work", "axis", "model"], sort=False) if len(frame) else []:
        size = AXES[str(axis)]
        own = part.drop_duplicates(size)
        sizes = own[size].astype(float)
        if len(own) < 3:
            continue
        powers = [_power(sizes, own["seconds"]), _power(sizes, own["above_mb"])]
        rows.append([work, axis, model, sizes.min(), sizes.max(), len(own), *powers])
    return pd.DataFrame(rows, columns=columns)


def _power(sizes: pd.Series, values: pd.Series) -> float:
    if values.isna().any() or (values <= 0).any():
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def scaling_checks(frame: pd.DataFrame, powers: pd.DataFrame) -> Iterator[Check]:
    """Set what was promised of our solver beside what was measured; a time counts with the gap that it ends at."""
    if frame.empty:
        return
    ours = frame[(frame["model"] == OURS) & (frame["work"] == "solve")]
    degrees, tight = ours[ours["group"] == "degrees"], ours[ours["group"] == "tight"]
    sparse, large = ours[ours["group"] == "sparse"], ours[ours["group"] == "large"]
    every = float(degrees["seconds"].sum()) if len(degrees) == N_DEGREES else math.nan
    yield Check("all eight degrees in", "1,500 genes", ALL_DEGREES_SECONDS, every, True, "s", "5 s is aimed at")
    yield from _gap_check("degrees", "1,500 genes", degrees)
    yield Check("degree 8 in", "1,500 genes, 1e-6", TIGHT_SECONDS, _over(max, tight["seconds"]), True, "s")
    yield from _gap_check("degree 8", "1,500 genes, 1e-6", tight)
    for row in sparse.to_dict("records"):
        where = f"{row['rows']:,} × {row['features']:,}, {row['labels']} labels, sparse, {row['variant']}"
        note = f"{row['pairs']:,} pairs, made up"
        yield Check("linear kernel in", where, SPARSE_SECONDS, row["seconds"], True, "s", note)
        yield from _gap_check("linear kernel", where, sparse[sparse["variant"] == row["variant"]])
    for row in large.to_dict("records"):
        where = f"{row['rows']:,} × {row['features']}, {row['labels']} labels, dense"
        note = f"{row['seconds']:.3g} s; 2 GB, the whole process"
        yield Check("peak memory", where, LARGE_MB, row["peak_mb"], True, "MiB", note)
        yield from _gap_check("ten thousand rows", where, large)
    yield from _epoch_checks(powers)


def _gap_check(what: str, where: str, cells: pd.DataFrame) -> Iterator[Check]:
    if len(cells):
        note = "largest relative gap over the one asked for"
        measured = _over(max, cells["relative_gap"] / cells["tol"])
        yield Check(f"certificate of {what}", where, 1.0, measured, True, "×", note)


def _epoch_checks(powers: pd.DataFrame) -> Iterator[Check]:
    epochs = powers[powers["work"] == "epochs"]
    for axis, power in EPOCH_POWERS.items():
        own = epochs[epochs["axis"] == axis].to_dict("records")
        for row in own:
            where = f"{row['smallest']:,.0f} to {row['largest']:,.0f} {axis}"
            note = f"O(n² Q): {power:g}"
            claim = f"power of the {axis} in an epoch's time"
            yield Check(claim, where, power + POWER_TOLERANCE, row["seconds_power"], True, "", note)


def panels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return what the picture draws: ``panel``, ``model``, ``size``, ``value``, in order."""
    drawn = [
        ("seconds over rows", "solve", "rows", "seconds"),
        ("seconds over labels", "solve", "labels", "seconds"),
        ("seconds over pairs", "solve", "labels a row", "seconds"),
        ("peak MiB above data over rows", "solve", "rows", "above_mb"),
        ("seconds an epoch over rows", "epochs", "rows", "seconds"),
        ("seconds an epoch over labels", "epochs", "labels", "seconds"),
    ]
    rows = []
    for panel, work, axis, quantity in drawn if len(frame) else []:
        own = frame[(frame["work"] == work) & (frame["axis"] == axis)].sort_values(AXES[axis], kind="stable")
        rows += [
            {"panel": panel, "model": row["model"], "size": row[AXES[axis]], "value": row[quantity]}
            for row in own.to_dict("records")
            if row[quantity] > 0
        ]
    return pd.DataFrame(rows, columns=["panel", "model", "size", "value"])
