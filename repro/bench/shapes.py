"""The rows that a benchmark cell trains and predicts: real ones, or made up in the same shape."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

import datasets
from datasets.base import Split
from repro.bench.synthetic import KINDS

Array = NDArray[Any]


@dataclass(frozen=True)
class BenchData:
    """Rows of one shape.

    Attributes
    ----------
    X, y : ndarray
        Training rows; `X` may be a CSR array where it is made up.
    X_test, y_test : ndarray
    X_validation, y_validation : ndarray
        Empty for made-up rows.
    task : str
        See `repro.models.base.BoostedModel.fit`.
    n_outputs : int
    described : dict
        ``source``, ``synthetic``, ``sha256``, ``n_train``, ``n_test``, ``n_features``, ``n_outputs``, ``task``.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    X_validation: Array
    y_validation: Array
    task: str
    n_outputs: int
    described: dict[str, Any]


@functools.cache
def is_at_hand(dataset: str) -> bool:
    """Tell whether a data set can be loaded without a download."""
    try:
        datasets.load(dataset, download=False)
    except datasets.DatasetError:
        return False
    return True


def load(shape: Mapping[str, Any]) -> BenchData:
    """Load or make the rows that a file of ``conf/shape`` describes.

    Raises
    ------
    datasets.DatasetError
        If real data cannot be had.
    """
    return _make(shape) if shape["synthetic"] else _load(shape)


def _load(shape: Mapping[str, Any]) -> BenchData:
    data = datasets.load(shape["source"])
    split: Split = data.split(0)
    validation = split.validation if len(np.intersect1d(split.train, split.validation)) == 0 else split.validation[:0]
    X, y = data.X[split.train], data.y[split.train]
    described = {"source": data.source, "synthetic": data.timing_only, "sha256": dict(data.sha256)}
    parts = (X, y, data.X[split.test], data.y[split.test], data.X[validation], data.y[validation])
    return _bench_data(parts, data.task, data.n_outputs, described)


def _make(shape: Mapping[str, Any]) -> BenchData:
    maker, task = KINDS[shape["source"]]
    n, n_test, n_outputs = shape["rows"], shape["test_rows"], shape["outputs"]
    X, y = maker(n + n_test, shape["features"], n_outputs, shape["seed"], **shape.get("options", {}))
    first = X[:1000]
    parts_of_X = (first.data, first.indices, first.indptr) if issparse(first) else (first,)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in (*parts_of_X, y[:1000])))
    described = {
        "source": f"made up by repro.bench.synthetic.{shape['source']}, seed {shape['seed']}",
        "synthetic": True,
        "sha256": {"first 1,000 rows": digest.hexdigest()},
    }
    parts = (X[:n], y[:n], X[n:], y[n:], X[:0], y[:0])
    return _bench_data(parts, task, n_outputs, described)


def _bench_data(parts: tuple[Array, ...], task: str, n_outputs: int, described: dict[str, Any]) -> BenchData:
    X, y, X_test, y_test, X_validation, y_validation = parts
    sizes = {"task": task, "n_train": len(y), "n_test": len(y_test), "n_features": X.shape[1], "n_outputs": n_outputs}
    return BenchData(X, y, X_test, y_test, X_validation, y_validation, task, n_outputs, {**described, **sizes})
