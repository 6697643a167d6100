"""Scores of a side, value of a candidate split, and the values of a leaf.

Equations 15 to 22 of the GBDT-MO paper, with the L1 shrinkage of the released program.
"""

from dataclasses import dataclass

import numpy as np

from tests.oracle.binning import FloatArray


@dataclass(frozen=True)
class Rules:
    """What a split search and a tree need to know; the names are the estimators'."""

    learning_rate: float = 0.1
    max_depth: int = 6
    max_leaves: int | None = None
    min_samples_leaf: int = 20
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    min_split_gain: float = 0.0
    top_k: int | None = None
    top_k_mode: str = "restricted"
    node_cache: int = 16
    constant_hessian: bool = False

    def outputs_used(self, d: int) -> int:
        return d if self.top_k is None else min(self.top_k, d)


@dataclass(frozen=True)
class Side:
    """Sums over the rows of one side of a split (or of a whole node); H is a diagonal (d,) or a matrix (d, d)."""

    G: FloatArray
    H: FloatArray

    @property
    def is_exact(self) -> bool:
        return self.H.ndim == 2


def sum_rows(g: FloatArray, h: FloatArray) -> Side:
    """Sums over rows; in extended precision, so that two sides with the same gradients in another order tie exactly."""
    return Side(*(a.sum(axis=0, dtype=np.longdouble).astype(np.float64) for a in (g, h)))


def soft(G: FloatArray, alpha: float) -> FloatArray:
    """Shrink towards zero by alpha."""
    return np.sign(G) * np.maximum(np.abs(G) - alpha, 0)


def _divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    positive = denominator > 0
    return np.where(positive, numerator / np.where(positive, denominator, 1.0), 0.0)


def output_scores(side: Side, rules: Rules) -> FloatArray:
    """soft(G_j)^2 / (H_j + lambda) of each output."""
    return _divide(soft(side.G, rules.reg_alpha) ** 2, side.H + rules.reg_lambda)


def sum_in_lanes(x: FloatArray) -> float:
    """The order in which outputs are added: eight lanes, then pairwise."""
    a = [0.0] * 8
    for j, value in enumerate(x):
        a[j % 8] += float(value)
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))


def sum_largest(x: FloatArray, k: int) -> float:
    total = 0.0
    for value in sorted(x.tolist(), reverse=True)[:k]:
        total += value
    return total


def newton_step(side: Side, rules: Rules) -> FloatArray:
    """Equation 13's solution of (H + lambda I) x = G; with lambda = 0 its limit, since H is singular."""
    if rules.reg_lambda > 0:
        return np.linalg.solve(side.H + rules.reg_lambda * np.eye(len(side.G)), side.G)
    return np.linalg.pinv(side.H, hermitian=True) @ side.G


def node_value(side: Side, rules: Rules) -> float:
    """Objective of a side: over all outputs, or over its own k best."""
    d = len(side.G)
    if side.is_exact:  # equation 14
        return float(side.G @ newton_step(side, rules))
    k = rules.outputs_used(d)
    if k < d:
        return sum_largest(output_scores(side, rules), k)
    if rules.constant_hessian:  # one denominator for all outputs: divide once
        total = np.array([sum_in_lanes(soft(side.G, rules.reg_alpha) ** 2)])
        return float(_divide(total, side.H[:1] + rules.reg_lambda)[0])
    return sum_in_lanes(output_scores(side, rules))


def split_value(left: Side, right: Side, rules: Rules) -> float:
    d = len(left.G)
    k = rules.outputs_used(d)
    if k < d and rules.top_k_mode == "restricted":  # equation 22: one set for both sides
        return sum_largest(output_scores(left, rules) + output_scores(right, rules), k)
    return node_value(left, rules) + node_value(right, rules)  # equations 16 and 21


def averaged_gain(value: float, parent: float, d: int, rules: Rules) -> float:
    return 0.5 * (value - parent) / rules.outputs_used(d)


def leaf_values(side: Side, rules: Rules) -> FloatArray:
    """-learning_rate * soft(G) / (H + lambda); with top_k only the k outputs of largest score (ties: lowest index)."""
    d = len(side.G)
    if side.is_exact:
        return -rules.learning_rate * newton_step(side, rules)
    values = -rules.learning_rate * _divide(soft(side.G, rules.reg_alpha), side.H + rules.reg_lambda)
    order = np.argsort(-output_scores(side, rules), kind="stable")
    values[order[rules.outputs_used(d) :]] = 0.0
    return values
