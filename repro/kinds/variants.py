"""Published cells with one thing changed: other settings of a method, other inputs of a data set."""

import pandas as pd

from repro import tables
from repro.kinds.base import LEGEND, Evidence, Page


def pages(evidence: Evidence) -> list[Page]:
    """Make one table: a row a data set, model and setting, beside the published value of that data set and model.

    ``table.published_as`` says whose published values a data set of another name is set beside.
    """
    settings = evidence.plan.setting_names
    labels = evidence.cells[settings].apply(lambda row: ", ".join(f"{name} {row[name]}" for name in settings), axis=1)
    cells = evidence.cells.assign(model=evidence.cells["model"] + ", " + labels)
    names = {name: name for name in cells["dataset"]} | evidence.plan.table.get("published_as", {})
    published = _for_each(evidence.published(), names, dict(zip(cells["model"], evidence.cells["model"], strict=True)))
    table = tables.comparison(cells, evidence.runs, published)
    return [Page(evidence.plan.name, f"{tables.comparison_markdown(table)}\n\n{LEGEND}", table)]


def _for_each(published: pd.DataFrame, names: dict[str, str], models: dict[str, str]) -> pd.DataFrame:
    """Give the published value of each data set and model to all that stands for them."""
    datasets = pd.DataFrame(names.items(), columns=["row_dataset", "dataset"])
    rows = pd.DataFrame(models.items(), columns=["row_model", "model"])
    found = published.merge(datasets, on="dataset").merge(rows, on="model")
    return found.assign(dataset=found["row_dataset"], model=found["row_model"])
