"""A public view of a model's trees: plain arrays a node, as a reader, a plot or an export wants them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from gbdtmo_core._lib import BinMapper, Forest

_NO_LEAF = np.iinfo(np.int32).min  # GMO_NO_LEAF of gbdtmo.h


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree; node 0 is the root, children come after their parents, leaves are nodes.

    A row goes left if its value of the node's feature is <= the threshold; a missing value (NaN) goes left if
    ``missing_left``. Gains and numbers of training rows are not kept by training; `apply` counts rows of any data.

    Attributes
    ----------
    round : int
        Boosting round, from 1.
    output : int
        The output that the tree serves; -1: all.
    used : bool
        Whether prediction adds the tree; False after the best round.
    feature : int32 array of shape (n_nodes,)
        Column that the node tests; -1 in a leaf.
    threshold : float64 array of shape (n_nodes,)
        In the feature's units; NaN in a leaf. Infinite where the node parts missing from known values.
    missing_left : bool array of shape (n_nodes,)
        False in a leaf.
    left, right : int32 array of shape (n_nodes,)
        The children; -1 in a leaf.
    value : float64 array of shape (n_nodes, width)
        What a leaf adds to the raw scores, in their units, with the learning rate in it [eq. 15]; NaN in an inner node.
        width is n_outputs, or 1 where the tree serves one output.
    unassigned : bool array of shape (n_nodes,)
        Leaves that stand for nodes which released growth dropped; their value is 0.
    """

    round: int
    output: int
    used: bool
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]
    unassigned: NDArray[np.bool_]

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves, bool (n_nodes,)."""
        return self.feature < 0

    @property
    def depth(self) -> NDArray[np.int64]:
        """Edges from the root to each node, int64 (n_nodes,)."""
        depth = np.zeros(len(self.feature), np.int64)
        for node in np.flatnonzero(~self.is_leaf):  # parents come first
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        return depth

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Find the leaf of each row.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            NaN where missing.

        Returns
        -------
        int64 array of shape (n,)
            Number of the node in which each row ends.
        """
        rows = np.asarray(X)
        at = np.zeros(len(rows), np.int64)
        while True:
            inner = np.flatnonzero(self.feature[at] >= 0)
            if not len(inner):
                return at
            node = at[inner]
            value = rows[inner, self.feature[node]]
            goes_left = np.where(np.isnan(value), self.missing_left[node], value <= self.threshold[node])
            at[inner] = np.where(goes_left, self.left[node], self.right[node])


class Trees(Sequence[Tree]):
    """The trees of a model in the order of training; each is made when it is asked for."""

    def __init__(self, forest: Forest, mapper: BinMapper, used: NDArray[np.int64]) -> None:
        self._forest = forest
        self._mapper = mapper
        self._used = np.isin(np.arange(len(forest.n_leaves)), used)

    def __len__(self) -> int:
        return len(self._forest.n_leaves)

    @overload
    def __getitem__(self, index: int) -> Tree: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tree]: ...
    def __getitem__(self, index: int | slice) -> Tree | list[Tree]:
        if isinstance(index, slice):
            return [self._tree(number) for number in range(len(self))[index]]
        return self._tree(range(len(self))[index])

    def __repr__(self) -> str:
        return f"<{len(self)} trees, {np.count_nonzero(self._used)} of them used for prediction>"

    def __iter__(self) -> Iterator[Tree]:
        return map(self._tree, range(len(self)))

    def _tree(self, number: int) -> Tree:
        """Number the leaves of a tree after its inner nodes, and what stands for dropped nodes after the leaves."""
        forest, nodes = self._forest, slice(*self._forest.node_start[number : number + 2])
        children = np.column_stack([forest.left[nodes], forest.right[nodes]]).astype(np.int64)
        n_inner, n_leaves = len(children), int(forest.n_leaves[number])
        dropped = children == _NO_LEAF
        n_dropped = int(np.count_nonzero(dropped)) if n_inner else 1 - n_leaves
        children[children < 0] = n_inner - 1 - children[children < 0]
        children[dropped] = n_inner + n_leaves + np.arange(np.count_nonzero(dropped))
        output = int(forest.tree_output[number])
        width = forest.n_outputs if output < 0 else 1
        values = forest.leaf_values[slice(*forest.value_start[number : number + 2])].reshape(n_leaves, width)
        ends = n_leaves + n_dropped

        def with_leaves(inner: NDArray[Any], fill: Any) -> NDArray[Any]:
            return np.concatenate([inner, np.full(ends, fill, inner.dtype)])

        return Tree(
            round=int(forest.tree_round[number]) + 1,
            output=output,
            used=bool(self._used[number]),
            feature=with_leaves(forest.feature[nodes], -1),
            threshold=with_leaves(self._thresholds(nodes), np.nan),
            missing_left=with_leaves(forest.missing_left[nodes] != 0, False),
            left=with_leaves(children[:, 0].astype(np.int32), -1),
            right=with_leaves(children[:, 1].astype(np.int32), -1),
            value=np.vstack([np.full((n_inner, width), np.nan), values, np.zeros((n_dropped, width))]),
            unassigned=np.arange(n_inner + ends) >= n_inner + n_leaves,
        )

    def _thresholds(self, nodes: slice) -> NDArray[np.float64]:
        """The edge after each node's bin; a node whose bin is the last parts missing from known values."""
        start, bins = self._mapper.edge_start, self._forest.bin[nodes].astype(np.int64)
        feature = self._forest.feature[nodes]
        parts_values = bins < start[feature + 1] - start[feature]
        thresholds = np.full(len(bins), np.inf)
        thresholds[parts_values] = self._mapper.edges[start[feature][parts_values] + bins[parts_values]]
        return thresholds
