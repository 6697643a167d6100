"""The toy problem of the ranking paper: losses over many seeds, and what the methods predict where, of one seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from hydra.utils import instantiate
from numpy.typing import NDArray
from omegaconf import OmegaConf

import datasets
from datasets.ranksvm_toy import BOUNDARIES
from repro import figures
from repro.fitting import fit_model
from repro.kinds.base import Evidence, Page, all_scores, image, rows_of
from repro.metrics import hamming_loss
from repro.pipe_table import pipe_table
from repro.plan import Cell

SIDE = 200
_LOSSES = ["hamming_loss", "label_ranking_loss"]
LEGEND = """\
Each seed draws 50 points of the unit square, trains on them and is scored on the same: what can be expressed, not what
is learned. Mean ± sample standard deviation over seeds; *all right*: share of seeds on which no label of any point is
wrong. Both are linear; Rank-SVM has a hard margin, Binary-SVM, whose labels 2 and 3 cannot be separated from the rest,
a C of {C:,g}. How label sets come from scores: `threshold`, the labels above a threshold that is fitted to the scores
by least squares; `size_hard_margin`, as many of the best labels as an SVM of the inputs says; `size_least_squares`, as
a linear regression of the inputs says, rounded. The paper has a size predictor for Rank-SVM, and does not say how
Binary-SVM's sets are made."""
PICTURE = """\
Predicted label sets of seed {seed}, whose points have the colours of their own sets; the lines part the true sets (that
x1 + x2 = 1 parts labels 2 and 3 is assumed). Drawn from models fitted once more."""


def pages(evidence: Evidence) -> list[Page]:
    """Make one table with its picture."""
    plan = evidence.plan
    table = toy_table(evidence.cells, all_scores(evidence.records), evidence.published())
    text = f"{toy_markdown(table)}\n\n{LEGEND.format(C=plan.table['C']['binary_svm'])}"
    recorded = set(evidence.runs["run_id"])
    seed = plan.table["picture_seed"]
    cells = [cell for cell in plan.cells if cell.seed == seed and cell.run_id in recorded]
    drawings = {}
    if cells:
        drawings = draw(cells)
        text = f"{text}\n\n{image(plan.name, 'predicted label sets')}\n\n{PICTURE.format(seed=seed)}"
    return [Page(plan.name, text, table, drawings)]


def toy_table(cells: pd.DataFrame, scores: Mapping[str, Mapping[str, float]], published: pd.DataFrame) -> pd.DataFrame:
    """Average losses over seeds.

    Parameters
    ----------
    cells : DataFrame
        Planned cells, with ``label_sets``.
    scores : mapping of str to mapping
        Of each recorded run, by ``run_id``, see `repro.kinds.base.all_scores`.
    published : DataFrame
        ``model``, ``label_set`` (empty: not told), ``value``.

    Returns
    -------
    DataFrame
        One row a model and way to label sets, in the order of the plan: ``n_seeds``; ``hamming_loss`` and its sample
        standard deviation ``hamming_loss_sd``; ``all_right``, the share of seeds with a loss of 0;
        ``label_ranking_loss``; ``published``; ``note``, why runs are missing.
    """
    losses = pd.DataFrame.from_dict(dict(scores), orient="index").reindex(columns=_LOSSES)
    joined = cells.merge(losses, left_on="run_id", right_index=True, how="left")
    told = {row["model"]: row for row in rows_of(published)}
    rows = []
    for key, own in joined.groupby(["model", "label_sets"], sort=False):
        model, label_sets = map(str, key)
        loss = own["hamming_loss"].dropna()
        paper = told.get(model)
        applies = paper is not None and (pd.isna(paper["label_set"]) or label_sets.startswith(paper["label_set"]))
        rows.append(
            {
                "model": model,
                "label_sets": label_sets,
                "n_seeds": len(loss),
                "hamming_loss": loss.mean(),
                "hamming_loss_sd": loss.std(),
                "all_right": (loss == 0).mean(),
                "label_ranking_loss": own["label_ranking_loss"].mean(),
                "published": paper["value"] if paper is not None and applies else np.nan,
                "note": "; ".join(own["gap"].dropna().unique()),
            }
        )
    return pd.DataFrame(rows)


def toy_markdown(table: pd.DataFrame) -> str:
    """Write a `toy_table` as a Markdown table."""
    head = ["model", "label sets", "n", "Hamming loss", "all right", "ranking loss", "published Hamming loss", "note"]
    rows = []
    for row in rows_of(table):
        loss, share, ranking = "–", "–", "–"
        if row["n_seeds"]:
            loss = f"{row['hamming_loss']:.3f}"
            loss += f" ± {row['hamming_loss_sd']:.3f}" if row["n_seeds"] > 1 else ""
            share, ranking = f"{100 * row['all_right']:.0f} %", f"{row['label_ranking_loss']:.3f}"
        published = "–" if pd.isna(row["published"]) else f"{row['published']:.2f}"
        rows.append([row["model"], row["label_sets"], row["n_seeds"], loss, share, ranking, published, row["note"]])
    return pipe_table(rows, head)


def draw(cells: Iterable[Cell]) -> dict[str, bytes]:
    """Draw what the models of these cells, of one data set and seed, predict where."""
    cells = list(cells)
    data = datasets.load(cells[0].dataset)
    points = data.split(cells[0].seed).train
    panels = dict(_fit_and_predict(cell, data, points) for cell in cells)
    columns = len({cell.settings["label_sets"] for cell in cells})
    return figures.label_regions(panels, data.X[points], data.y[points], data.target_names, BOUNDARIES, columns)


def _fit_and_predict(cell: Cell, data: datasets.Dataset, points: NDArray[np.int64]) -> tuple[str, NDArray[Any]]:
    """Return a panel's title and the label sets over the square, (SIDE, SIDE, n_labels)."""
    config = OmegaConf.create(cell.config)
    model = fit_model(config, data, data.split(cell.seed), instantiate(config.protocol)).model
    loss = hamming_loss(data.y[points], model.predict_labels(data.X[points]))
    middles = (np.arange(SIDE, dtype=np.float32) + 0.5) / SIDE
    x1, x2 = np.meshgrid(middles, middles)
    predicted = model.predict_labels(np.column_stack([x1.ravel(), x2.ravel()]))
    title = f"{cell.model}, {cell.settings['label_sets'].replace('_', ' ')}\nHamming loss {loss:.3f}"
    return title, np.asarray(predicted).reshape(SIDE, SIDE, -1)
