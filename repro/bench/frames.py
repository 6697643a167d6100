"""From benchmark records to data frames: medians over repeats, ratios to the fastest peer and to the limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.bench.cell import was_busy
from repro.bench.limit import histogram_seconds
from repro.bench.measure import gradient_lanes
from repro.bench.plan import Measured

PEERS = ("xgboost", "xgboost_vector", "lightgbm", "catboost")
OURS = "gbdt_mo"
_KEYS = ["group", "shape", "model", "variant", "threads"]
_BYTES_A_GRADIENT = 4  # fixed-point numbers, 32 bits


def round_frame(measured: Measured) -> pd.DataFrame:
    """Summarise timed rounds over their repeats.

    Returns
    -------
    DataFrame
        One row a group, shape, model, variant and number of threads, in order of appearance: ``seconds`` (median of
        the rounds after each repeat's warm-up), ``fastest`` and ``slowest`` of them, ``n_rounds`` timed,
        ``rounds_a_cell``; ``construct_seconds``; ``predict_ms``, milliseconds a round over the test rows; ``peak_mb``,
        and ``above_mb``, what of it training added to what was resident; ``leaves`` a round; ``metric``, ``score``;
        ``entries`` a round, and seconds of each part a round as ``part_<name>`` where the model tells them; sizes of
        the data, ``synthetic``; ``busy``.
    """
    rows: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for cell, record in measured:
        if cell.work == "rounds":
            key = (cell.group, cell.shape, cell.model.rpartition("/")[2], cell.variant, cell.threads)
            rows.setdefault(key, []).append(record)
    return pd.DataFrame([dict(zip(_KEYS, key, strict=True)) | _summary(records) for key, records in rows.items()])


def _summary(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    measured = [record["measured"] for record in records]
    timed = np.concatenate([one["round_seconds"][1:] for one in measured])
    n_rounds = len(measured[0]["round_seconds"])
    data = measured[0]["data"]
    parts = {name: _median(measured, lambda one, name=name: one["parts"][name][1:]) for name in measured[0]["parts"]}
    leaves = measured[0]["n_leaves"]
    return {
        "seconds": float(np.median(timed)),
        "fastest": float(timed.min()),
        "slowest": float(timed.max()),
        "n_rounds": len(timed),
        "rounds_a_cell": n_rounds,
        "construct_seconds": _median(measured, lambda one: [one["construct_seconds"]]),
        "predict_ms": 1e3 * _median(measured, lambda one: one["predict_seconds"]) / n_rounds,
        "peak_mb": max(one["memory"]["peak"] for one in measured),
        "above_mb": max(one["memory"]["peak"] - one["memory"]["data"] for one in measured),
        "leaves": math.nan if leaves is None else leaves / n_rounds,
        "metric": measured[0]["metric"],
        "score": measured[0]["score"],
        "entries": _median(measured, lambda one: one["entries"][1:]),
        **{f"part_{name}": seconds for name, seconds in parts.items()},
        **{name: data[name] for name in ("n_train", "n_test", "n_features", "n_outputs", "task", "synthetic")},
        "histogram_pool_mb": measured[0]["histogram_pool_mb"],
        "busy": any(was_busy(record) for record in records),
    }


def _median(measured: Iterable[Mapping[str, Any]], values: Any) -> float:
    """Median of what `values` gives of all measurements together; NaN where there is nothing."""
    found = [value for one in measured for value in values(one) if value is not None]
    return float(np.median(found)) if found else math.nan


def limit_frame(measured: Measured) -> pd.DataFrame:
    """Take each shape's rates from the repeat that was fastest.

    Returns
    -------
    DataFrame
        One row a shape: the fields of `repro.bench.limit.Rates`, and ``adds``, the faster of the two cell rates.
    """
    names = ("adds_l1", "adds_l2", "adds_contiguous", "read_bytes")
    rows: dict[str, dict[str, Any]] = {}
    for cell, record in measured:
        if cell.work == "limit":
            rates = record["measured"]
            row = rows.setdefault(
                cell.shape, {"shape": cell.shape, "lanes": rates["lanes"]} | dict.fromkeys(names, 0.0)
            )
            row.update({name: max(row[name], rates[name]) for name in names})
    frame = pd.DataFrame(rows.values(), columns=["shape", "lanes", *names])
    return frame.assign(adds=frame[["adds_l1", "adds_l2"]].max(axis=1))


def compared(rounds: pd.DataFrame, limits: pd.DataFrame) -> pd.DataFrame:
    """Add to the rows of group ``rounds`` their ratios to the fastest peer and to the limit.

    Returns
    -------
    DataFrame
        With ``fastest_peer``, ``to_peer`` (seconds over the fastest peer's), ``limit_seconds`` (see
        `limit_seconds`; NaN where our own model or the rates are missing), ``to_limit`` (seconds over the limit) and
        ``histogram_to_limit`` (histogram seconds over the limit, ours only).
    """
    if rounds.empty:
        return rounds
    frame = rounds[rounds["group"] == "rounds"].reset_index(drop=True)
    limits_of = {
        (row["shape"], row["threads"]): limit_seconds(row, limits)
        for row in frame.to_dict("records")
        if row["model"] == OURS
    }
    columns: dict[str, list[Any]] = {name: [] for name in ("fastest_peer", "to_peer", "limit_seconds")}
    for row in frame.to_dict("records"):
        peers = frame[
            (frame["shape"] == row["shape"]) & (frame["threads"] == row["threads"]) & frame["model"].isin(PEERS)
        ]
        best = peers.loc[peers["seconds"].idxmin()] if len(peers) else None
        columns["fastest_peer"].append(None if best is None else best["model"])
        columns["to_peer"].append(math.nan if best is None else row["seconds"] / best["seconds"])
        columns["limit_seconds"].append(limits_of.get((row["shape"], row["threads"]), math.nan))
    frame = frame.assign(**columns)
    return frame.assign(
        to_limit=frame["seconds"] / frame["limit_seconds"],
        histogram_to_limit=frame.get("part_histogram", math.nan) / frame["limit_seconds"],
    )


def predict_frame(measured: Measured, rounds: pd.DataFrame) -> pd.DataFrame:
    """Compare prediction over the test rows.

    Parameters
    ----------
    measured
        Cells with their records.
    rounds : DataFrame
        See `round_frame`; where a model has no prediction cells, its few rounds of group ``rounds`` stand in.

    Returns
    -------
    DataFrame
        ``shape``, ``model``, ``threads``, ``n_test``, ``rounds`` of the model, ``predict_ms`` a round (the median whole
        prediction over the number of rounds), ``to_peer`` (over the fastest peer's), ``busy``.
    """
    rows = [
        {
            "shape": cell.shape,
            "model": cell.model,
            "threads": int(threads),
            "n_test": record["measured"]["data"]["n_test"],
            "rounds": record["measured"]["rounds"],
            "predict_ms": 1e3 * float(np.median(seconds)) / record["measured"]["rounds"],
            "busy": was_busy(record),
        }
        for cell, record in measured
        if cell.work == "predict"
        for threads, seconds in record["measured"]["predict_seconds"].items()
    ]
    known = {(row["shape"], row["model"]) for row in rows}
    for row in rounds[rounds["group"] == "rounds"].to_dict("records") if len(rounds) else []:
        if (row["shape"], row["model"]) not in known:
            names = ("shape", "model", "threads", "n_test", "predict_ms", "busy")
            rows.append({name: row[name] for name in names} | {"rounds": row["rounds_a_cell"]})
    frame = pd.DataFrame(rows, columns=["shape", "model", "threads", "n_test", "rounds", "predict_ms", "busy"])
    fastest = frame[frame["model"].isin(PEERS)].groupby(["shape", "threads"])["predict_ms"].min().rename("fastest")
    joined = frame.merge(fastest, on=["shape", "threads"], how="left")
    return joined.assign(to_peer=joined["predict_ms"] / joined["fastest"]).drop(columns="fastest")


def limit_seconds(row: Mapping[Any, Any], limits: pd.DataFrame) -> float:
    """Give the least seconds of a round's histograms on this machine.

    Parameters
    ----------
    row : mapping
        Of a `round_frame` of our own model.
    limits : DataFrame
        See `limit_frame`.

    Returns
    -------
    float
        See `repro.bench.limit.histogram_seconds`; more threads add faster, but do not read faster. NaN without rates.
    """
    own = limits[limits["shape"] == row["shape"]]
    if own.empty or math.isnan(row["entries"]):
        return math.nan
    rates = own.iloc[0]
    return histogram_seconds(
        entries=row["entries"],
        rows=row["entries"] / row["n_features"],
        lanes=gradient_lanes(row["task"], row["n_outputs"]),
        adds_per_second=rates["adds"] * row["threads"],
        read_bytes_per_second=rates["read_bytes"],
    )


def part_frame(rounds: pd.DataFrame) -> pd.DataFrame:
    """Give the share of a round that each part takes, for our model.

    Returns
    -------
    DataFrame
        ``shape``, ``threads``, ``seconds``, then shares that add up to one: ``histogram``, ``split``, ``partition``,
        ``gradient`` (with rounding), ``leaf``, ``rest``.
    """
    if "part_histogram" not in rounds:
        return pd.DataFrame()
    own = rounds[(rounds["group"] == "rounds") & (rounds["model"] == OURS)]
    shares = pd.DataFrame(
        {
            "shape": own["shape"],
            "threads": own["threads"],
            "seconds": own["seconds"],
            "histogram": own["part_histogram"],
            "split": own["part_split"],
            "partition": own["part_partition"],
            "gradient": own["part_gradient"] + own["part_rounding"],
            "leaf": own["part_leaf"],
        }
    )
    names = ["histogram", "split", "partition", "gradient", "leaf"]
    shares[names] = shares[names].div(own["seconds"], axis=0)
    return shares.assign(rest=1 - shares[names].sum(axis=1)).reset_index(drop=True)


def growth_frame(rounds: pd.DataFrame, group: str = "growth", base: str = "base") -> pd.DataFrame:
    """Compare each variant of a group with its base: ``variant``, ``seconds``, ``leaves``, ``ratio``."""
    if rounds.empty or base not in set(rounds.loc[rounds["group"] == group, "variant"]):
        return pd.DataFrame(columns=["variant", "seconds", "leaves", "ratio", "busy"])
    own = rounds[rounds["group"] == group]
    first = float(own.loc[own["variant"] == base, "seconds"].iloc[0])
    return own[["variant", "seconds", "leaves", "busy"]].assign(ratio=own["seconds"] / first).reset_index(drop=True)


def sparse_frame(rounds: pd.DataFrame, published: pd.DataFrame, published_full: pd.DataFrame) -> pd.DataFrame:
    """Compare top-k splits with the full split of the same shape, beside Tables VI and VIII.

    Parameters
    ----------
    rounds : DataFrame
        See `round_frame`.
    published : DataFrame
        Table VI: ``dataset``, ``top_k``, ``top_k_mode``, ``seconds``.
    published_full : DataFrame
        Table VIII: ``dataset``, ``hessian``, ``seconds_a_round``.

    Returns
    -------
    DataFrame
        ``shape``, ``mode``, ``k``, ``seconds``, ``to_full`` (over the full split's), ``published``, ``busy``.
    """
    paper = published_seconds(published, published_full)
    rows = []
    own = rounds[rounds["group"] == "sparse"].to_dict("records") if len(rounds) else []
    full = {row["shape"]: row["seconds"] for row in own if row["variant"] == "full"}
    for row in own:
        mode, _, k = row["variant"].partition(" ")
        rows.append(
            {
                "shape": row["shape"],
                "mode": mode,
                "k": int(k) if k else row["n_outputs"],
                "seconds": row["seconds"],
                "to_full": row["seconds"] / full[row["shape"]] if row["shape"] in full else math.nan,
                "published": paper.get((row["shape"], row["variant"]), math.nan),
                "busy": row["busy"],
            }
        )
    return pd.DataFrame(rows, columns=["shape", "mode", "k", "seconds", "to_full", "published", "busy"])


def published_seconds(published: pd.DataFrame, published_full: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Give Table VI's and Table VIII's seconds a round by data set and variant; see `sparse_frame`."""
    seconds = {
        (row["dataset"], f"{row['top_k_mode']} {row['top_k']}"): row["seconds"] for row in published.to_dict("records")
    }
    diagonal = published_full[published_full["hessian"] == "diagonal"]
    return seconds | {(row["dataset"], "full"): row["seconds_a_round"] for row in diagonal.to_dict("records")}


def needed_mb(row: Mapping[Any, Any]) -> dict[str, float]:
    """Give what training must hold, in MiB: ``bins`` (a byte each), ``gradients`` (32 bits each), ``pool``."""
    lanes = gradient_lanes(row["task"], row["n_outputs"])
    return {
        "bins": row["n_train"] * row["n_features"] / 2**20,
        "gradients": row["n_train"] * lanes * _BYTES_A_GRADIENT / 2**20,
        "pool": float(row["histogram_pool_mb"]),
    }
