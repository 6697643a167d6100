"""Figure 2: what the three kinds of split choose on four samples and three outputs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gbdtmo_core import GBDTMORegressor, Tree
from repro import figures
from repro.kinds.base import Evidence, Page, image, rows_of
from repro.pipe_table import pipe_table

TOP_K = 2
X = np.array([[1.0], [2.0], [3.0], [4.0]])
Y = np.array([[6.0, 1.0, 3.0], [1.0, 4.0, 5.0], [2.0, 3.0, 1.0], [1.0, 1.0, 1.0]])
"""Targets for which each kind parts the samples elsewhere; with base score 0 they are the negative gradients."""
KINDS = {
    "non-sparse": {"top_k": None},
    "restricted": {"top_k": TOP_K, "top_k_mode": "restricted"},
    "unrestricted": {"top_k": TOP_K, "top_k_mode": "unrestricted"},
}
LEGEND = f"""\
One tree of depth 1 for squared error on the targets shown, first scores 0, `reg_lambda` 1, learning rate 1. The line is
the chosen split; below stands what each side's leaf adds; the outputs it keeps are shaded. A sparse leaf keeps
{TOP_K} of 3. *restricted*: both sides are scored on one set of outputs [eq. 22]; each leaf then keeps its own best.
*unrestricted*: each side is scored on its own best outputs [eq. 21]."""


def pages(evidence: Evidence) -> list[Page]:
    """Make one figure, a panel a kind."""
    name = evidence.plan.name
    trees = {kind: stump(**parameters) for kind, parameters in KINDS.items()}  # type: ignore[arg-type]
    table = leaf_frame(trees)
    drawn = figures.split_panels(trees, Y)
    rows = [
        [row["kind"], row["samples"], *(f"{row[f'output_{j}'] + 0.0:.3g}" for j in (1, 2, 3))] for row in rows_of(table)
    ]
    text = pipe_table(rows, ["split", "samples", "output 1", "2", "3"])
    text = f"{image(name, 'the three kinds of split')}\n\n{text}\n\n{LEGEND}"
    return [Page(name, text, table, drawn, about={"leaves": rows_of(table)})]


def stump(*, top_k: int | None, top_k_mode: str = "restricted") -> Tree:
    """Grow a tree of depth 1 on the four samples."""
    estimator = GBDTMORegressor(
        n_estimators=1,
        learning_rate=1.0,
        max_depth=1,
        min_samples_leaf=1,
        reg_lambda=1.0,
        base_score=0.0,
        top_k=top_k,
        top_k_mode=top_k_mode,
    )
    return estimator.fit(X, Y).trees_[0]


def leaf_frame(trees: dict[str, Tree]) -> pd.DataFrame:
    """Write each leaf: ``kind``, the ``samples`` in it, the ``threshold``, and in ``output_<j>`` what it adds."""
    rows = []
    for kind, tree in trees.items():
        ends = tree.apply(X)
        for leaf in (tree.left[0], tree.right[0]):
            inside = ", ".join(str(number) for number in np.flatnonzero(ends == leaf) + 1)
            row = {"kind": kind, "samples": inside, "threshold": tree.threshold[0]}
            rows.append(row | {f"output_{j}": value for j, value in enumerate(tree.value[leaf], start=1)})
    return pd.DataFrame(rows)
