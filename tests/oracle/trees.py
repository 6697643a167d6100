"""Search for the best split of a node and best-first growth in which every node that is not split becomes a leaf."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tests.oracle.binning import FloatArray, IntArray
from tests.oracle.splits import Rules, averaged_gain, leaf_values, node_value, output_scores, split_value, sum_rows

BoolArray = NDArray[np.bool_]


@dataclass
class Data:
    """What one tree is grown on: bin numbers (n, m), bins of each column, gradients (n, d), Hessians (n, d[, d])."""

    bins: IntArray
    n_bins: list[int]
    g: FloatArray
    h: FloatArray


@dataclass(frozen=True)
class Split:
    feature: int
    bin: int
    missing_left: bool
    gain: float


@dataclass
class Node:
    rows: IntArray
    depth: int
    split: Split | None = None
    left: Node | None = None
    right: Node | None = None
    values: FloatArray | None = None  # of a leaf; a dropped node (released growth) has neither values nor children


@dataclass
class Tree:
    """A grown tree.

    ``margin`` is the smallest relative distance of any decision from going the other way; ``ties`` counts the choices
    among exact equals.
    """

    root: Node
    n_outputs: int
    margin: float = np.inf
    ties: int = 0
    leaves: list[Node] = field(default_factory=list)

    def decide(self, distance: float, scale: float) -> None:
        self.margin = min(self.margin, abs(distance) / max(scale, 1e-300))

    def choose(self, values: list[float]) -> None:
        """Note a choice of the largest value; exact ties are settled by order, so rounding cannot turn them."""
        best = max(values)
        self.ties += values.count(best) > 1
        below = [value for value in values if value < best]
        if below:
            self.decide(best - max(below), best)

    def predict(self, bins: IntArray, n_bins: list[int]) -> FloatArray:
        out = np.zeros((len(bins), self.n_outputs))
        stack = [(self.root, np.arange(len(bins)))]
        while stack:
            node, rows = stack.pop()
            if node.split is not None and node.left is not None and node.right is not None:
                left = goes_left(bins[rows, node.split.feature], n_bins[node.split.feature], node.split)
                stack += [(node.left, rows[left]), (node.right, rows[~left])]
            elif node.values is not None:
                out[rows] = node.values
        return out


def goes_left(column: IntArray, n_bins: int, split: Split) -> BoolArray:
    missing = column == n_bins
    return np.where(missing, split.missing_left, column <= split.bin)


def candidates(data: Data, rows: IntArray) -> Iterator[tuple[int, int, bool, BoolArray]]:
    """(feature, bin, missing goes left, mask of the rows that go left), in the order in which ties are decided."""
    for feature, n_bins in enumerate(data.n_bins):
        column = data.bins[rows, feature]
        missing = column == n_bins
        for b in range(n_bins):
            last = b == n_bins - 1
            if not last or missing.any():
                yield feature, b, False, column <= b
            if not last and missing.any():
                yield feature, b, True, (column <= b) | missing


def best_split(data: Data, rows: IntArray, rules: Rules, tree: Tree, min_rows: int) -> Split | None:
    """The first candidate of largest value, if that is above zero; ``min_rows`` rows must be on either side."""
    best: tuple[int, int, bool] | None = None
    best_value = 0.0
    values: list[float] = []
    for feature, b, missing_left, left in candidates(data, rows):
        if min(left.sum(), (~left).sum()) < min_rows:
            continue
        sides = [sum_rows(data.g[rows[mask]], data.h[rows[mask]]) for mask in (left, ~left)]
        value = split_value(sides[0], sides[1], rules)
        values.append(value)
        if value > best_value:
            best_value, best = value, (feature, b, missing_left)
    if best is None:
        return None
    tree.choose(values)
    parent = node_value(sum_rows(data.g[rows], data.h[rows]), rules)
    return Split(*best, averaged_gain(best_value, parent, tree.n_outputs, rules))


def part(data: Data, node: Node, split: Split) -> None:
    """Give a node its two children; unseen missing values follow the larger one (tie: left)."""
    column, n_bins = data.bins[node.rows, split.feature], data.n_bins[split.feature]
    left = goes_left(column, n_bins, split)
    if not (column == n_bins).any():
        split = Split(split.feature, split.bin, bool(2 * left.sum() >= len(left)), split.gain)
    node.split = split
    node.left = Node(node.rows[left], node.depth + 1)
    node.right = Node(node.rows[~left], node.depth + 1)


def make_leaf(data: Data, node: Node, rules: Rules, tree: Tree) -> None:
    side = sum_rows(data.g[node.rows], data.h[node.rows])
    node.values = leaf_values(side, rules)
    tree.leaves.append(node)
    k = rules.outputs_used(tree.n_outputs)
    if k < tree.n_outputs:
        scores = np.sort(output_scores(side, rules))[::-1]
        tree.decide(scores[k - 1] - scores[k], scores[0])


def _worth_splitting(data: Data, node: Node, rules: Rules, tree: Tree) -> Split | None:
    if node.depth >= rules.max_depth:
        return None
    split = best_split(data, node.rows, rules, tree, rules.min_samples_leaf)
    if split is None:
        return None
    scale = node_value(sum_rows(data.g[node.rows], data.h[node.rows]), rules) / tree.n_outputs + abs(split.gain)
    tree.decide(split.gain - rules.min_split_gain, scale)
    return split if split.gain > rules.min_split_gain else None


def grow_complete(data: Data, rules: Rules) -> Tree:
    """Algorithm 5 of the paper, without a node cache."""
    root = Node(np.arange(len(data.bins)), depth=0)
    tree = Tree(root, data.g.shape[1])
    frontier = [(root, _worth_splitting(data, root, rules, tree))]  # in order of creation
    budget = np.inf if rules.max_leaves is None else rules.max_leaves
    while True:
        open_nodes = [(node, split) for node, split in frontier if split is not None]
        if not open_nodes or len(frontier) >= budget:
            break
        if budget < np.inf:  # else the order of splits changes nothing
            tree.choose([split.gain for _, split in open_nodes])
        node, split = max(open_nodes, key=lambda entry: entry[1].gain)  # the first of equals
        part(data, node, split)
        frontier = [entry for entry in frontier if entry[0] is not node]
        frontier += [(child, _worth_splitting(data, child, rules, tree)) for child in (node.left, node.right) if child]
    for node, _ in frontier:
        make_leaf(data, node, rules, tree)
    return tree
