"""Which labels have to be ranked against each other at a price, and which are ranked by their biases alone.

Draw an arrow from label k to label l if some sample has k and lacks l. A bias can put k above l everywhere unless
arrows lead back from l to k. So pairs of labels cost something only within a strongly connected group; across groups
the multipliers of the dual are zero, and the biases of the groups, spread far enough, satisfy every pair. A label that
always or never occurs is the plainest case: a group of its own, with w = 0 (section 5 of the paper lets its bias be
infinite).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LabelGroups:
    """Strongly connected groups of labels.

    Attributes
    ----------
    group : int32 array of shape (q,)
        The group of each label.
    order : int64 array of shape (q,)
        Labels sorted by group.
    start : int32 array of shape (n_groups + 1,)
        Where each group starts in ``order``.
    above : bool array of shape (n_groups, n_groups)
        Whether some sample has a label of the first group and lacks one of the second.
    """

    group: NDArray[np.int32]
    order: NDArray[np.int64]
    start: NDArray[np.int32]
    above: NDArray[np.bool_]


def find_groups(relevant: NDArray[np.uint8]) -> LabelGroups:
    """The groups of the labels of ``relevant``, 0/1 of shape (n, q)."""
    present = relevant.astype(np.float64)
    arrows = present.T @ (1 - present) > 0
    n_groups, group = connected_components(arrows, directed=True, connection="strong")
    order = np.argsort(group, kind="stable")
    start = np.searchsorted(group[order], np.arange(n_groups + 1)).astype(np.int32)
    member = np.eye(n_groups)[group]
    above = member.T @ arrows @ member > 0
    np.fill_diagonal(above, False)
    return LabelGroups(group.astype(np.int32), order, start, above)


def separate_groups(groups: LabelGroups, scores: FloatArray, relevant: NDArray[np.uint8], margin: float) -> FloatArray:
    """Biases, one value a group, that rank all pairs across groups with a margin of at least ``margin``.

    They are 0 where the scores do so already, else as small as they can be, downwards from the topmost groups.

    Parameters
    ----------
    groups : LabelGroups
    scores : float64 array of shape (n, q)
        Of the training rows, with the biases within groups.
    relevant : 0/1 array of shape (n, q)
    margin : float

    Returns
    -------
    offsets : float64 array of shape (q,)
    """
    n_groups = len(groups.above)
    low, high = np.full((len(scores), n_groups), np.inf), np.full((len(scores), n_groups), -np.inf)
    for g in range(n_groups):
        of_group = groups.order[groups.start[g] : groups.start[g + 1]]
        has = relevant[:, of_group] == 1
        low[:, g] = np.where(has, scores[:, of_group], np.inf).min(axis=1)
        high[:, g] = np.where(has, -np.inf, scores[:, of_group]).max(axis=1)
    offsets = np.zeros(n_groups)
    waiting = groups.above.sum(axis=0)
    ready = [int(g) for g in np.flatnonzero(waiting == 0)]
    while ready:  # every group after all that are above it
        g = ready.pop()
        for h in np.flatnonzero(groups.above[g]):
            offsets[h] = min(offsets[h], offsets[g] + (low[:, g] - high[:, h]).min() - margin)
            waiting[h] -= 1
            if waiting[h] == 0:
                ready.append(int(h))
    return np.asarray(offsets[groups.group])
