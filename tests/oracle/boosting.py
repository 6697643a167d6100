"""Boosting rounds with the estimators' parameter names."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from tests.oracle.binning import FloatArray, IntArray, make_edges, to_bins
from tests.oracle.losses import LARGER_IS_BETTER, best_constant, evaluate, gradients
from tests.oracle.released import grow_released
from tests.oracle.splits import Rules
from tests.oracle.trees import Data, Tree, grow_complete

GROWTH = {"complete": grow_complete, "released": grow_released}


@dataclass
class Ensemble:
    """A fitted model.  ``rounds[r]`` holds (output, tree) pairs; output -1 means the tree serves all outputs."""

    edges: list[FloatArray]
    base_score: FloatArray
    rounds: list[list[tuple[int, Tree]]] = field(default_factory=list)
    staged: list[FloatArray] = field(default_factory=list)  # raw scores of the training rows after each round
    history: list[float] = field(default_factory=list)  # validation metric after each round
    best_iteration: int | IntArray = 0

    @property
    def trees(self) -> list[tuple[int, Tree]]:
        return [pair for one_round in self.rounds for pair in one_round]

    @property
    def n_bins(self) -> list[int]:
        return [len(cuts) + 1 for cuts in self.edges]

    def margins(self) -> FloatArray:
        """Smallest decision margin of each round."""
        return np.array([min(tree.margin for _, tree in one_round) for one_round in self.rounds])

    def unassigned_fraction(self) -> FloatArray:
        n = len(self.staged[0])
        return np.array([1 - sum(len(leaf.rows) for leaf in tree.leaves) / n for _, tree in self.trees])

    def staged_raw(self, X: ArrayLike) -> list[FloatArray]:
        """Raw scores (n, d) of any rows after each round."""
        bins = to_bins(np.asarray(X, dtype=np.float64), self.edges)
        f = np.tile(self.base_score, (len(bins), 1))
        stages = []
        for one_round in self.rounds:
            add_round(f, one_round, bins, self.n_bins)
            stages.append(f.copy())
        return stages


def add_round(f: FloatArray, one_round: list[tuple[int, Tree]], bins: IntArray, n_bins: list[int]) -> None:
    for output, tree in one_round:
        if output < 0:
            f += tree.predict(bins, n_bins)
        else:
            f[:, output] += tree.predict(bins, n_bins)[:, 0]


def as_target(loss: str, y: ArrayLike, n_outputs: int | None) -> FloatArray:
    """Targets (n, d); class numbers become one-hot rows."""
    y = np.asarray(y)
    if loss == "softmax":
        return np.eye(n_outputs or int(y.max()) + 1)[y]
    return y.astype(np.float64).reshape(len(y), -1)


def grow_round(data: Data, rules: Rules, growth: str, tree_output: str) -> list[tuple[int, Tree]]:
    """One tree for all outputs, or one an output from the same gradients."""
    if tree_output == "multi":
        return [(-1, GROWTH[growth](data, rules))]
    parts = [Data(data.bins, data.n_bins, data.g[:, [j]], data.h[:, [j]]) for j in range(data.g.shape[1])]
    return [(j, GROWTH[growth](one, rules)) for j, one in enumerate(parts)]


def fit(
    X: ArrayLike,
    y: ArrayLike,
    *,
    loss: str = "squared_error",
    n_outputs: int | None = None,
    n_estimators: int = 100,
    max_bins: int = 255,
    hessian: str = "diagonal",
    tree_output: str = "multi",
    growth: str = "complete",
    binning: str = "quantile",
    base_score: float | None = None,
    early_stopping_rounds: int | None = None,
    eval_metric: str | None = None,
    eval_set: tuple[ArrayLike, ArrayLike] | None = None,
    **rules: object,
) -> Ensemble:
    """Boost ``n_estimators`` rounds.  ``rules`` are the remaining parameters, see :class:`Rules`."""
    X = np.asarray(X, dtype=np.float64)
    target = as_target(loss, y, n_outputs)
    constant = loss == "squared_error" or hessian == "constant"
    tree_rules = Rules(constant_hessian=constant, **rules)  # type: ignore[arg-type]
    edges = make_edges(X, max_bins, binning)
    start = best_constant(loss, target) if base_score is None else np.full(target.shape[1], float(base_score))
    model = Ensemble(edges, start)
    bins, f = to_bins(X, edges), np.tile(start, (len(X), 1))
    watch = Watch.make(model, loss, eval_metric, eval_set, target.shape[1])
    for _ in range(n_estimators):
        data = Data(bins, model.n_bins, *gradients(loss, f, target, hessian))
        model.rounds.append(grow_round(data, tree_rules, growth, tree_output))
        add_round(f, model.rounds[-1], bins, model.n_bins)
        model.staged.append(f.copy())
        if watch is not None:
            watch.look(model)
            if early_stopping_rounds is not None and len(model.rounds) - watch.best_round >= early_stopping_rounds:
                break
    stopping = watch is not None and early_stopping_rounds is not None
    model.best_iteration = watch.best_round if watch is not None and stopping else len(model.rounds)
    return model


@dataclass
class Watch:
    """Follows the validation metric."""

    metric: str | None
    loss: str
    bins: IntArray
    target: FloatArray
    f: FloatArray
    best: float = np.inf
    best_round: int = 0

    @classmethod
    def make(
        cls, model: Ensemble, loss: str, metric: str | None, eval_set: tuple[ArrayLike, ArrayLike] | None, d: int
    ) -> Watch | None:
        if eval_set is None:
            return None
        X, y = np.asarray(eval_set[0], dtype=np.float64), eval_set[1]
        return cls(metric, loss, to_bins(X, model.edges), as_target(loss, y, d), np.tile(model.base_score, (len(X), 1)))

    def look(self, model: Ensemble) -> None:
        add_round(self.f, model.rounds[-1], self.bins, model.n_bins)
        value = evaluate(self.metric, self.loss, self.f, self.target)
        model.history.append(value)
        cost = -value if self.metric in LARGER_IS_BETTER else value
        if cost < self.best:
            self.best, self.best_round = cost, len(model.rounds)


def fit_each_output(X: ArrayLike, y: ArrayLike, **params: object) -> list[Ensemble]:
    """Single-output regression: an independent model for each column of ``y``, each with its own early stopping."""
    y = np.asarray(y)
    eval_set = params.pop("eval_set", None)
    models = []
    for j in range(y.shape[1]):
        part = None if eval_set is None else (eval_set[0], np.asarray(eval_set[1])[:, j])  # type: ignore[index]
        models.append(fit(X, y[:, j], eval_set=part, **params))  # type: ignore[arg-type]
    return models
