"""Bin edges of a column.  Bin ``b`` holds the values above edge ``b - 1``, up to and with edge ``b``."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def _distinct(column: FloatArray) -> tuple[FloatArray, IntArray]:
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    return values, counts.astype(np.int64)


def _midpoint(low: float, high: float) -> float:
    """A number that separates two distinct values: low <= result < high, even for neighbouring floats."""
    middle = 0.5 * low + 0.5 * high
    return middle if middle < high else low


def quantile_edges(column: FloatArray, max_bins: int) -> FloatArray:
    """Midpoints between all distinct values where they fit; else bins of about equally many rows."""
    values, counts = _distinct(column)
    pairs = list(pairwise(values))
    if len(values) <= max_bins:
        return np.array([_midpoint(a, b) for a, b in pairs])
    total, passed, target = counts.sum(), 0, counts.sum() / max_bins
    edges: list[float] = []
    for (low, high), count in zip(pairs, counts, strict=False):
        passed += count
        if passed >= target and len(edges) < max_bins - 1:
            edges.append(_midpoint(low, high))
            target = passed + (total - passed) / (max_bins - len(edges))
    return np.array(edges)


def released_edges(column: FloatArray, max_bins: int) -> FloatArray:
    """The edges the released program makes (measured, see the golden cases ``authors_binning_*``)."""
    values, counts = _distinct(column)
    if len(values) == 2:
        return np.array([np.average(values, weights=counts)])
    if len(values) <= max_bins:
        return 0.5 * values[:-1] + 0.5 * values[1:]
    total, passed, target = counts.sum(), 0, len(values) / max_bins
    edges: list[float] = []
    for value, count in zip(values, counts, strict=True):
        passed += count
        if passed >= target and len(edges) < max_bins - 1:
            edges.append(value)
            target = passed + (total - passed) / (max_bins - len(edges))
    return np.array(edges)


def make_edges(X: FloatArray, max_bins: int, binning: str) -> list[FloatArray]:
    rule = {"quantile": quantile_edges, "released": released_edges}[binning]
    return [rule(column, max_bins) for column in X.T]


def to_bins(X: FloatArray, edges: list[FloatArray]) -> IntArray:
    """Bin numbers (n, m); a missing value gets the number after the column's last bin."""
    bins = np.empty(X.shape, dtype=np.int64)
    for j, cuts in enumerate(edges):
        bins[:, j] = np.searchsorted(cuts, X[:, j], side="left")
        bins[np.isnan(X[:, j]), j] = len(cuts) + 1
    return bins
