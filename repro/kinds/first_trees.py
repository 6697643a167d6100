"""Figure 1: the trees of the first round, read from the models that records keep."""

from __future__ import annotations

import pandas as pd

import datasets
from gbdtmo_core import Tree, load_model
from repro import figures
from repro.kinds.base import Evidence, Page, image

LEGEND = """\
The trees of the first round, from the models of these records. A row goes left where its value is at most the
threshold. A leaf shows what it adds to the raw score of its class, or of all classes, in their order: {classes}."""


def pages(evidence: Evidence) -> list[Page]:
    """Make one figure: a model below the other."""
    plan = evidence.plan
    if not evidence.records:
        return [Page(plan.name, "No run is recorded.", pd.DataFrame())]
    (dataset,) = {record["identity"]["dataset"] for record in evidence.records}
    data = datasets.load(dataset)
    trees = {
        record["identity"]["model"]: first_trees(evidence, record["artifacts"]["model"]) for record in evidence.records
    }
    drawn = figures.tree_rows(trees, data.feature_names, data.target_names)
    table = pd.concat([node_frame(model, own, data) for model, own in trees.items()], ignore_index=True)
    text = f"{image(plan.name, 'first trees')}\n\n{LEGEND.format(classes=', '.join(data.target_names))}"
    return [Page(plan.name, text, table, drawn)]


def first_trees(evidence: Evidence, artefact: str) -> list[Tree]:
    """Return the trees of a kept model's first round."""
    return [tree for tree in load_model(evidence.root / artefact).trees_ if tree.round == 1]


def node_frame(model: str, trees: list[Tree], data: datasets.base.Dataset) -> pd.DataFrame:
    """Write trees as a table.

    Returns
    -------
    DataFrame
        One row a node: ``model``, ``tree``, ``output`` (empty: all), ``node``, ``feature``, ``threshold``, ``left``,
        ``right``, and a column an output with what a leaf adds.
    """
    rows = []
    for number, tree in enumerate(trees):
        outputs = data.target_names if tree.output < 0 else (data.target_names[tree.output],)
        for node in range(len(tree.feature)):
            row = {"model": model, "tree": number, "output": None if tree.output < 0 else outputs[0], "node": node}
            if tree.feature[node] >= 0:
                row |= {"feature": data.feature_names[tree.feature[node]], "threshold": tree.threshold[node]}
                row |= {"left": tree.left[node], "right": tree.right[node]}
            else:
                row |= dict(zip(outputs, tree.value[node], strict=True))
            rows.append(row)
    columns = ["model", "tree", "output", "node", "feature", "threshold", "left", "right", *data.target_names]
    return pd.DataFrame(rows).reindex(columns=columns).astype({"left": "Int64", "right": "Int64"})
