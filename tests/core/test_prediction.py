"""Prediction from values: the same bits as one walk after the other over bins, however the rows lie in memory."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gbdtmo_core import GBDTMOClassifier, GBDTMORegressor, load_model
from tests.core.support import FloatArray, fit_core, staged_raw
from tests.oracle.binning import to_bins

N, M, D = 300, 6, 5
NO_LEAF = np.iinfo(np.int32).min
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "regression": ("squared_error", {}),
    "softmax": ("softmax", {"max_bins": 7}),
    "sigmoid": ("sigmoid", {"reg_alpha": 0.5}),
    "top_k": ("squared_error", {"top_k": 2}),
    "single": ("squared_error", {"tree_output": "single"}),
    "stopped": ("softmax", {"early_stopping_rounds": 2, "learning_rate": 1.0}),
    "single_stopped": ("squared_error", {"tree_output": "single", "early_stopping_rounds": 2, "learning_rate": 1.0}),
    "released": ("squared_error", {"growth": "released", "binning": "released", "node_cache": 2}),
    "no_splits": ("squared_error", {"min_split_gain": 1e9}),
}


def _rows(seed: int, n: int = N, *, missing: bool = True) -> FloatArray:
    """Continuous and few-valued columns; values are exact in float32, some missing."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-50, 50, size=(n, M)) / 8.0
    X[:, 1] = rng.integers(0, 3, size=n)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def _fit(name: str) -> Any:
    loss, params = SETTINGS[name]
    missing = params.get("growth") != "released"
    X, rng = _rows(1, missing=missing), np.random.default_rng(2)
    scores = np.nan_to_num(X) @ rng.normal(size=(M, D)) + rng.normal(size=(N, D))
    y: Any = {"squared_error": scores, "softmax": scores.argmax(axis=1), "sigmoid": (scores > 0).astype(int)}[loss]
    stops = "early_stopping_rounds" in params
    defaults = {"n_estimators": 12, "max_depth": 6, "min_samples_leaf": 2, "learning_rate": 0.3}
    eval_set = (X[200:], y[200:]) if stops else None
    return fit_core(loss, X[:200], y[:200], n_outputs=D, eval_set=eval_set, **{**defaults, **params})


def _walk(forest: Any, tree: int, bins: Any, missing_bin: Any) -> int:
    """The leaf of one row, or -1, as gmo_forest in gbdtmo.h defines it."""
    base, at = forest.node_start[tree], 0
    if base == forest.node_start[tree + 1]:
        return int(forest.n_leaves[tree]) - 1
    while at >= 0:
        node = base + at
        f = forest.feature[node]
        left = forest.missing_left[node] if bins[f] == missing_bin[f] else bins[f] <= forest.bin[node]
        at = int(forest.left[node] if left else forest.right[node])
    return -1 if at == NO_LEAF else -1 - at


def _slow_stages(model: Any, X: FloatArray) -> list[FloatArray]:
    """Raw scores after each round: each row walks on its bins through one tree after the other."""
    inner = model._model
    forest, mapper = inner.forest, inner.mapper
    edges = np.split(mapper.edges, mapper.edge_start[1:-1])
    bins, missing_bin = to_bins(X, edges), np.diff(mapper.edge_start) + 1
    rounds = np.broadcast_to(inner.best_rounds, len(inner.base_score))
    scores = np.tile(inner.base_score, (len(X), 1))
    stages = []
    for round_ in range(rounds.max()):
        for tree in np.flatnonzero(forest.tree_round == round_):
            output = forest.tree_output[tree]
            if round_ >= rounds[max(output, 0)]:
                continue
            outputs = slice(None) if output < 0 else slice(output, output + 1)
            values = forest.leaf_values[forest.value_start[tree] : forest.value_start[tree + 1]]
            for row, row_bins in zip(scores, bins, strict=True):
                leaf = _walk(forest, tree, row_bins, missing_bin)
                if leaf >= 0:
                    row[outputs] += values.reshape(forest.n_leaves[tree], -1)[leaf]
        stages.append(scores.copy())
    return stages


def _raw(model: Any, X: Any) -> FloatArray:
    return np.asarray(model.decision_function(X) if isinstance(model, GBDTMOClassifier) else model.predict(X))


def _assert_same_bits(actual: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.array(actual).view(np.int64), np.array(expected).view(np.int64))


@pytest.mark.parametrize("name", SETTINGS)
def test_same_bits_as_slow_walks_over_bins(name: str) -> None:
    model = _fit(name)
    X = _rows(3, 60, missing=name != "released")
    expected = _slow_stages(model, X)
    _assert_same_bits(_raw(model, X), expected[-1])
    _assert_same_bits(staged_raw(model, X), expected)
    for row, score in zip(X, expected[-1], strict=True):
        _assert_same_bits(_raw(model, row[np.newaxis])[0], score)


LAYOUTS: dict[str, Any] = {
    "float32": lambda X: X.astype(np.float32),
    "by_columns": np.asfortranarray,
    "by_columns_float32": lambda X: np.asfortranarray(X, np.float32),
    "every_second_column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "every_third_row": lambda X: np.repeat(X, 3, axis=0)[::3],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "misaligned": lambda X: np.frombuffer(b"?" + X.tobytes(), X.dtype, offset=1).reshape(X.shape),
    "list": lambda X: X.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_layout_of_rows_does_not_matter(layout: str, n_jobs: int) -> None:
    """With rows enough for several threads and blocks."""
    model = _fit("regression")
    X = np.tile(_rows(4), (30, 1))
    expected = model.predict(X)
    _assert_same_bits(expected[:N], _slow_stages(model, X[:N])[-1])
    _assert_same_bits(expected, np.tile(expected[:N], (30, 1)))
    model.set_params(n_jobs=n_jobs)
    rows = LAYOUTS[layout](X)
    _assert_same_bits(model.predict(rows), expected)
    _assert_same_bits(list(model.staged_predict(rows))[-1], expected)


def test_float32_values_are_compared_exactly() -> None:
    """An edge between two neighbouring float64 is below one float32 and not below the other."""
    low = np.float32(0.1)
    high = np.nextafter(low, np.float32(1))
    X = np.array([[low], [high]] * 4, np.float32)
    y = np.array([0.0, 1.0] * 4)
    model = GBDTMORegressor(n_estimators=1, learning_rate=1.0, min_samples_leaf=1, reg_lambda=0.0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X[:2]), [0, 1])
    edge = model._model.mapper.edges[0]
    between = np.array([[edge], [np.nextafter(edge, 1)]])
    np.testing.assert_array_equal(model.predict(between), [0, 1])


def test_deep_trees() -> None:
    """Steps that grow: splits part off the last rows, one after the other."""
    X = np.arange(64.0)[:, np.newaxis]
    y = 1.7 ** np.arange(64)
    model = GBDTMORegressor(n_estimators=1, max_depth=64, max_leaves=64, min_samples_leaf=1, reg_lambda=0.0)
    model.fit(X, np.column_stack([y, -y]))
    assert _depth(model._model.forest) > 15
    _assert_same_bits(model.predict(X), _slow_stages(model, X)[-1])


def _depth(forest: Any) -> int:
    """Of a forest's only tree."""
    depth = np.ones(len(forest.feature), int)
    for node in range(len(depth)):
        for child in (forest.left[node], forest.right[node]):
            if child > 0:
                depth[child] = depth[node] + 1
    return int(depth.max())


@pytest.mark.parametrize("d", [1, 5000])
def test_few_and_many_outputs(d: int) -> None:
    rng = np.random.default_rng(5)
    X, y = _rows(6, 40), rng.normal(size=(40, d))
    model = GBDTMORegressor(n_estimators=3, max_depth=3, min_samples_leaf=2).fit(X, y)
    _assert_same_bits(list(model.staged_predict(X)), _slow_stages(model, X))


def test_threads_of_the_caller_may_share_a_model() -> None:
    model = _fit("softmax")
    parts = [_rows(seed, 50) for seed in range(20)]
    expected = [_raw(model, part) for part in parts]
    fresh = pickle.loads(pickle.dumps(model))
    with ThreadPoolExecutor(8) as pool:
        _assert_same_bits(list(pool.map(lambda part: _raw(fresh, part), parts)), expected)


def test_copies_of_a_model_that_has_predicted_stand_alone(tmp_path: Path) -> None:
    model, X = _fit("single_stopped"), _rows(7)
    expected = model.predict(X)
    model.save_model(tmp_path / "model")
    others = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), load_model(tmp_path / "model")]
    del model
    for other in others:
        _assert_same_bits(other.predict(X), expected)


def test_a_refitted_estimator_predicts_with_its_new_trees() -> None:
    model, X = _fit("regression"), _rows(8)
    before = model.predict(X)
    model.fit(X, before[:, ::-1])
    _assert_same_bits(model.predict(X), _slow_stages(model, X)[-1])
    assert not np.array_equal(model.predict(X), before)
