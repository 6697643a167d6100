"""Put a summary of results/table5.csv into README.md, between its two table5 marks.

With ``--check``, change nothing and fail if the README does not hold that summary.
"""

import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- table5: begin.*? -->\n).*?(\n<!-- table5: end -->)", re.DOTALL)
_SEEDS = {"paper_mean": "paper_n_seeds", "holdout_mean": "holdout_n_seeds"}
LEGEND = """\
Accuracy in percent or RMSE, mean over the seeds (MNIST and inpainting: one), with n where these
are fewer than beside it.
*Paper protocol*: stopped on the test rows, as the published values
were, which is optimistic; ✓ marks what matches them, ✗ what misses. *Holdout*: stopped on validation rows, the
test rows used once. Standard deviations, rounds, seconds and the reasons of empty cells:
[results/table5.md](results/table5.md)."""


def summary(table: pd.DataFrame) -> str:
    """Return Markdown with three lines a data set (published, paper protocol, holdout) and a column a model."""
    models = list(dict.fromkeys(table["model"]))
    lines = ["| data set | | " + " | ".join(models) + " |", "|---|---|" + "---|" * len(models)]
    for dataset, rows in table.groupby("dataset", sort=False):
        cells = {row["model"]: row for _, row in rows.iterrows()}
        metric = next((metric for metric in rows["metric"] if isinstance(metric, str)), "")
        kinds = {"published": "published", "paper_mean": "paper protocol", "holdout_mean": "holdout"}
        for column, kind in kinds.items():
            if rows[column].notna().any():
                most = rows[_SEEDS[column]].max() if column in _SEEDS else 0
                scores = [_score(cells[model], column, metric, most) if model in cells else "" for model in models]
                lines.append(f"| {dataset} ({metric}) | {kind} | " + " | ".join(scores) + " |")
    return "\n".join([*lines, "", LEGEND])


def _score(row: "pd.Series[Any]", column: str, metric: str, most_seeds: int) -> str:
    if pd.isna(row[column]):
        return "–"
    text = f"{row[column]:.5f}" if metric == "rmse" else f"{row[column]:.2f}"
    if column in _SEEDS and row[_SEEDS[column]] < most_seeds:
        text += f" (n={row[_SEEDS[column]]})"
    marks = {"True": " ✓", "False": " ✗"}
    return text + marks.get(str(row["matched"]), "") if column == "paper_mean" else text


def main() -> None:
    readme = ROOT / "README.md"
    before = readme.read_text(encoding="utf-8")
    table = pd.read_csv(ROOT / "results/table5.csv", dtype={"matched": str})
    after, found = BLOCK.subn(lambda marks: marks[1] + summary(table) + marks[2], before)
    if found != 1:
        sys.exit(f"README.md has {found} blocks between table5 marks, expected one")
    if "--check" in sys.argv[1:]:
        sys.exit("README.md is older than results/table5.csv: run scripts/readme_table.py" if after != before else 0)
    readme.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
