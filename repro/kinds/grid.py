"""A grid of settings, chosen on validation rows: a table and a heat map a data set and model."""

from repro import figures, tables
from repro.kinds.base import Evidence, Page, image


def pages(evidence: Evidence) -> list[Page]:
    """Make a page for each data set and model."""
    made = []
    settings = evidence.plan.setting_names
    for key, part in evidence.cells.groupby(["dataset", "model"], sort=False):
        dataset, model = map(str, key)
        table = tables.grid(part, evidence.runs, settings)
        name = f"{evidence.plan.experiment}_{dataset}_{model}"
        text = (
            f"{model} on {dataset}, mean ± sd over seeds. The setting in bold has the best mean validation score; test "
            f"scores took no part in the choice.\n\n{tables.grid_markdown(table, settings)}"
        )
        drawings = {}
        if len(settings) == 2 and table["n_seeds"].any():
            drawings = figures.surfaces({f"{dataset}, {model}": table}, settings)
            text = f"{text}\n\n{image(name, f'validation scores of {model} on {dataset}')}"
        made.append(Page(name, text, table, drawings, part))
    return made
