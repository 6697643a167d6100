"""The published numbers under results/paper are the ones of the paper's summary."""

import re
from pathlib import Path

import pandas as pd
import pytest
from configs import compose_config

COLUMNS = {
    "MNIST": "mnist",
    "Yeast": "yeast",
    "Caltech101": "caltech101",
    "NUS-WIDE": "nus_wide",
    "MNIST-inpaint": "mnist_inpainting",
    "MNIST-inpainting": "mnist_inpainting",
    "Student-por": "student_por",
    "friedman1": "friedman1",
    "random projection": "random_projection",
}
ROWS = {
    "XGBoost": "xgboost",
    "LightGBM": "lightgbm",
    "GBDT-sparse": "gbdt_sparse",
    "GBDT-SO": "gbdt_so",
    "GBDT-MO": "gbdt_mo",
}
SIZES = {"Train": "n_train", "Test": "n_test", "Features": "n_features", "Outputs": "n_outputs", "Problem": "task"}
TASKS = {"classification": "multiclass", "regression": "regression", "multi-label": "multilabel"}
HESSIANS = {"Diagonal": "diagonal", "Exact": "exact"}
RANKING_METRICS = {
    "Precision": "average_precision",
    "Ranking Loss": "label_ranking_loss",
    "Hamming Loss": "hamming_loss",
    "One-Error": "one_error",
}


@pytest.fixture(scope="module")
def paper(shared: Path) -> str:
    return (shared / "seeds" / "gbdt_mo.txt").read_text()


@pytest.fixture(scope="module")
def ranking_paper(shared: Path) -> str:
    return (shared / "seeds" / "rank_svm.txt").read_text()


def read(project_root: Path, table: int | str) -> pd.DataFrame:
    name = f"table{table}" if isinstance(table, int) else table
    return pd.read_csv(project_root / "results" / "paper" / f"{name}.csv", dtype=str)


def cells(paper: str, caption: str) -> dict[tuple[str, str], str]:
    """The cells of the first table after a caption, by row and column heading, without the empty ones."""
    lines = paper[paper.index(caption) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    end = next(i for i, line in enumerate(lines[start:], start) if not line.startswith("|"))
    head, _, *rows = [[part.strip() for part in line.strip("|").split("|")] for line in lines[start:end]]
    found = {(row[0], column): value for row in rows for column, value in zip(head[1:], row[1:], strict=True)}
    return {key: value for key, value in found.items() if value != "-"}


def dataset(column: str) -> str:
    return COLUMNS[re.sub(r" (top-1 )?(acc|RMSE|accuracy and time)$", "", column)]


@pytest.mark.parametrize(
    ("number", "caption", "value"),
    [
        (5, "**Real-world performance** [tab. V]", "value"),
        (3, "[tab. III], RMSE", "value"),
        (10, "[tab. X]:", "n_trees"),
    ],
)
def test_one_value_a_model_and_data_set(paper: str, project_root: Path, number: int, caption: str, value: str) -> None:
    expected = {(dataset(column), ROWS[row]): text for (row, column), text in cells(paper, caption).items()}
    table = read(project_root, number)
    assert dict(zip(zip(table["dataset"], table["model"], strict=True), table[value], strict=True)) == expected


def test_table4_sizes(paper: str, project_root: Path) -> None:
    """Without the thousands separators, and the star of features that were pre-processed."""
    expected = {
        (COLUMNS[row], SIZES[column]): TASKS.get(text, text.replace(",", "").rstrip("*"))
        for (row, column), text in cells(paper, "**Datasets** [tab. IV]").items()
    }
    table = read(project_root, 4).set_index("dataset")
    assert {(name, key): table.loc[name, key] for name in table.index for key in SIZES.values()} == expected


def test_table9_learning_rates_and_depths(paper: str, project_root: Path) -> None:
    expected = {(dataset(c), ROWS[r]): text for (r, c), text in cells(paper, "per method** [tab. IX]").items()}
    table = read(project_root, 9)
    ours = {(row.dataset, row.model): f"{row.learning_rate}/{row.max_depth}" for row in table.itertuples()}
    assert ours == expected


def test_table11_settings(paper: str, project_root: Path) -> None:
    names = {"Gain threshold": "min_split_gain", "Minimum samples": "min_samples_leaf", "Maximum bins": "max_bins"}
    expected = {(dataset(c), names[r]): text for (r, c), text in cells(paper, "maximum bins** [tab. XI]").items()}
    table = read(project_root, 11).set_index("dataset")
    assert {(name, key): table.loc[name, key] for name in table.index for key in names.values()} == expected


@pytest.mark.parametrize(
    ("number", "caption", "value"),
    [(6, "training time per configuration** [tab. VI]", "seconds"), (7, "performance** [tab. VII]", "value")],
)
def test_sparse_splits(paper: str, project_root: Path, number: int, caption: str, value: str) -> None:
    expected = {
        (dataset(column), row.removeprefix("k="), mode): part
        for (row, column), text in cells(paper, caption).items()
        for mode, part in zip(("restricted", "unrestricted"), text.split(" / "), strict=True)
    }
    table = read(project_root, number)
    ours = {(row["dataset"], row["top_k"], row["top_k_mode"]): row[value] for _, row in table.iterrows()}
    assert ours == expected


def test_table8_hessians(paper: str, project_root: Path) -> None:
    expected = {(dataset(c), HESSIANS[r]): text for (r, c), text in cells(paper, "diagonal** [tab. VIII]").items()}
    table = read(project_root, 8)
    ours = {(row.dataset, row.hessian): f"{row.value} / {row.seconds_a_round} s" for row in table.itertuples()}
    assert ours == expected
    for row in table.itertuples():
        estimator = compose_config(f"dataset={row.dataset}", f"model={row.model}").model.estimator
        assert estimator.get("hessian", "diagonal") == row.hessian


def test_table12_confidence(paper: str, project_root: Path) -> None:
    """The summary states two of the table's values, in words."""
    text = " ".join(paper.split())
    (student,) = re.findall(r"GBDT-SO on Student-por: (0\.\d+)", text)
    (yeast,) = re.findall(r"Yeast value against XGBoost is (0\.\d+) \[tab\. XII\]", text)
    table = read(project_root, 12)
    ours = {(row["dataset"], row["model"]): row["confidence"] for _, row in table.iterrows()}
    assert ours == {("student_por", "gbdt_so"): student, ("yeast", "xgboost"): yeast}


@pytest.mark.parametrize("name", ["mnist", "yeast", "mnist_inpainting", "student_por"])
def test_the_configs_take_tables_9_and_11(name: str, project_root: Path) -> None:
    settings = read(project_root, 11).set_index("dataset").loc[name]
    rates = read(project_root, 9).query("dataset == @name")
    for row in rates.itertuples():
        estimator = compose_config(f"dataset={name}", f"model={row.model}").model.estimator
        assert estimator.learning_rate == float(row.learning_rate)
        assert estimator.max_depth == int(row.max_depth)
        assert estimator.min_split_gain == float(settings["min_split_gain"])
        assert estimator.min_samples_leaf == int(settings["min_samples_leaf"])
        assert estimator.max_bins == int(settings["max_bins"])
    assert len(rates) >= 4


def gene_cells(paper: str) -> dict[tuple[str, str, str], str]:
    """The two halves of the gene table, four degrees each: by model, degree and metric."""
    found = {}
    for block in re.findall(r"^Metric\t.*\n(?:.+\n){4}", paper, re.MULTILINE):
        head, *rows = [line.split("\t") for line in block.splitlines()]
        degrees = [column.removeprefix("Deg ") for column in head[1:]]
        models = ["rank_svm"] * 4 + ["binary_svm"] * 4
        for name, *values in rows:
            for model, degree, value in zip(models, degrees, values, strict=True):
                found[model, degree, RANKING_METRICS[name]] = value
    return found


def test_gene_table_of_the_ranking_paper(ranking_paper: str, project_root: Path) -> None:
    table = read(project_root, "ranksvm")
    assert set(table["dataset"]) == {"yeast_genes"}
    ours = {(row["model"], row["degree"], row["metric"]): row["value"] for _, row in table.iterrows()}
    assert len(ours) == len(table)
    (boostexter,) = re.findall(r"^Boostexter \(1000 iterations\) yielded (.*)\.$", ranking_paper, re.MULTILINE)
    boosted = dict(re.findall(r"([A-Z][\w -]+?) = (0\.\d+)", boostexter))
    assert {RANKING_METRICS[name]: value for name, value in boosted.items()} == {
        metric: value for (model, _, metric), value in ours.items() if model == "boostexter"
    }
    cells_of_svms = gene_cells(ranking_paper)
    assert len(cells_of_svms) == 64
    assert cells_of_svms == {key: value for key, value in ours.items() if key[0] != "boostexter"}


def test_toy_losses_of_the_ranking_paper(ranking_paper: str, project_root: Path) -> None:
    binary, ranking = re.findall(r"Hamming Loss of \$(\d\.\d+)\$", ranking_paper)
    table = read(project_root, "ranksvm_toy").set_index("model")
    assert table["value"].to_dict() == {"binary_svm": binary, "rank_svm": ranking}
    assert set(table["metric"]) == {"hamming_loss"}
