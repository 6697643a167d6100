"""Growth as the authors' released program does it: nodes that do not fit its bounds are dropped and predict zero."""

import numpy as np

from tests.oracle.splits import Rules, node_value, sum_rows
from tests.oracle.trees import Data, Node, Split, Tree, best_split, make_leaf, part


class _Pending:
    """Nodes that wait to be split, largest gain first, at most ``size`` of them; what does not fit is lost."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.entries: list[tuple[Node, Split]] = []

    def push(self, node: Node, split: Split, tree: Tree) -> None:
        if len(self.entries) == self.size:
            last = self.entries[-1][1].gain
            tree.choose([split.gain, last])
            if split.gain <= last:
                return
            self.entries.pop()
        self.entries.append((node, split))
        self.entries.sort(key=lambda entry: -entry[1].gain)  # stable: equal gains keep their order

    def pop(self, tree: Tree) -> tuple[Node, Split]:
        tree.choose([split.gain for _, split in self.entries])
        return self.entries.pop(0)


def _handle_child(data: Data, child: Node, rules: Rules, tree: Tree, pending: _Pending) -> None:
    if len(child.rows) < rules.min_samples_leaf:
        return
    if child.depth < rules.max_depth:
        split = best_split(data, child.rows, rules, tree, min_rows=0)
        if split is not None:
            parent = node_value(sum_rows(data.g[child.rows], data.h[child.rows]), rules)
            scale = parent / tree.n_outputs + abs(split.gain)
            tree.decide(split.gain - rules.min_split_gain, scale)
            if split.gain > rules.min_split_gain:
                pending.push(child, split, tree)
                return
    make_leaf(data, child, rules, tree)


def grow_released(data: Data, rules: Rules) -> Tree:
    root = Node(np.arange(len(data.bins)), depth=0)
    tree = Tree(root, data.g.shape[1])
    split = best_split(data, root.rows, rules, tree, min_rows=0)
    if split is None:
        make_leaf(data, root, rules, tree)
        return tree
    pending = _Pending(rules.node_cache)
    pending.entries.append((root, split))  # the root is split whatever its gain
    budget = np.inf if rules.max_leaves is None else rules.max_leaves
    while pending.entries:
        node, split = pending.pop(tree)
        part(data, node, split)
        for child in (node.left, node.right):
            if len(tree.leaves) >= budget:
                return tree
            assert child is not None
            _handle_child(data, child, rules, tree, pending)
    return tree
