"""The report page: whole, self-contained, each number beside its record, and made from nothing changed by hand."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean

import pandas as pd
import pytest
from configs import compose_config
from fake_cells import record_of
from markdown_it import MarkdownIt
from omegaconf import OmegaConf

from repro.page import findings
from repro.page.build import make_page
from repro.page.links import RowLinks
from repro.page.markup import prose_html
from repro.page.numbers import Numbers
from repro.page.records import record_file
from repro.page.records import row as described_run
from repro.page.sources import PageError, read_results
from repro.plan import Plan, make_plan
from repro.published import published_records
from repro.report import publish
from repro.sidecar import read_sidecar
from repro.store import RunStore, StoreError, seal
from repro.tables import in_paper_units

PAPERS = ("https://arxiv.org/", "https://proceedings.neurips.cc/")
PROTOCOLS = ("paper", "holdout")
SPLITS = ("full", "restricted-2")
LOADING = {
    ("img", "src"),
    ("link", "href"),
    ("script", "src"),
    ("iframe", "src"),
    ("object", "data"),
    ("source", "src"),
}


@dataclass
class Cell:
    """A table's cell: its text, where it links to, its class, and the table's section."""

    section: str
    text: str = ""
    href: str = ""
    kind: str = ""


@dataclass
class Parsed(HTMLParser):
    """What the tests ask of a page."""

    ids: list[str] = field(default_factory=list)
    hrefs: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    rows: list[list[Cell]] = field(default_factory=list)
    under: dict[str, list[list[str]]] = field(default_factory=dict)
    """The texts of each row after an anchor, until the next one."""
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._section, self._open, self._anchors = "", False, [""]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
            if tag in ("div", "section"):
                self._section = given["id"]
            self.under[given["id"]] = []
            self._anchors = [*self._anchors, given["id"]] if self._fresh() else [given["id"]]
        self.loads += [given[name] for of, name in LOADING if of == tag and name in given]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append(Cell(self._section, kind=given.get("class", "")))
            self._open = True
        elif tag == "a":
            self.hrefs.append(given["href"])
            if self._open:
                self.rows[-1][-1].href = given["href"]

    def _fresh(self) -> bool:
        """Tell whether nothing stands between the last anchor and here."""
        return self._anchors != [""] and not self.under.get(self._anchors[-1])

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open = False
        if tag == "tr" and self.rows[-1]:
            for anchor in self._anchors:
                self.under.setdefault(anchor, []).append([cell.text for cell in self.rows[-1]])

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._open:
            self.rows[-1][-1].text += data


def parse(page: str) -> Parsed:
    parsed = Parsed()
    parsed.feed(page)
    return parsed


@pytest.fixture(scope="module")
def published(project_root: Path) -> str:
    return make_page(project_root / "results", project_root / "docs" / "findings.md")


@pytest.fixture(scope="module")
def parsed(published: str) -> Parsed:
    return parse(published)


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> Path:
    """Table V of two data sets, published from made-up runs."""
    root = tmp_path_factory.mktemp("page")
    narrow = make_plan("table5", datasets=["yeast", "student_por"], models=["gbdt_mo", "xgboost"], seeds=3)
    plan = Plan(narrow.experiment, narrow.table, narrow.cells)
    store = RunStore(root / "runs")
    for cell in plan.cells:
        record = record_of(OmegaConf.create(cell.config))
        metric = "rmse" if cell.dataset == "student_por" else "accuracy"
        scores = {**record["scores"], "metric": metric, "all": {metric: record["scores"]["test"]}}
        rows = {"n_fit": 454, "n_validation": 0, "n_test": 195} if cell.dataset == "student_por" else {}
        store.write({**record, "scores": scores, "dataset": {**record["dataset"], **rows}})
    results = root / "results"
    publish(plan, store, results, {})
    shutil.copytree(project_root / "results" / "paper", results / "paper")
    (root / "docs").mkdir()
    text = "# Found\n\nSee `table5`, [its cells](../results/table5.md) and [speed](speed.md).\n\n## Yeast\n\nText.\n"
    (root / "docs" / "findings.md").write_text(text)
    return root


@pytest.fixture
def folder(made_up: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(made_up / "results", tmp_path / "results"))


def test_the_committed_page_is_up_to_date(published: str, project_root: Path) -> None:
    committed = (project_root / "results" / "report.html").read_text("utf-8")
    assert committed == published, "run make report"


def test_links_lead_somewhere(parsed: Parsed, project_root: Path) -> None:
    assert len(parsed.ids) == len(set(parsed.ids))
    inside = {href[1:] for href in parsed.hrefs if href.startswith("#")}
    assert inside <= set(parsed.ids)
    outside = {href for href in parsed.hrefs if not href.startswith("#")}
    files = {href.partition("#")[0] for href in outside if not href.startswith(PAPERS)}
    assert all((project_root / "results" / file).exists() for file in files), sorted(files)


def test_nothing_is_loaded(published: str, parsed: Parsed) -> None:
    assert parsed.loads
    assert all(address.startswith("data:image/") for address in parsed.loads)
    style = re.search(r"<style>(.*?)</style>", published, re.DOTALL)
    assert style is not None
    assert not re.search(r"url\(|@import", style[1])
    assert "<script" not in published
    assert "default-src 'none'" in published


def test_every_published_table_is_there(parsed: Parsed, project_root: Path) -> None:
    for path in (project_root / "results").glob("*.md"):
        assert path.stem in parsed.ids
        lines = [line for line in path.read_text().splitlines() if line.startswith("|") and not line.startswith("|:-")]
        expected = [[re.sub(r"\*\*|`", "", text).strip() for text in line.strip("|").split(" | ")] for line in lines]
        own = [[cell.text for cell in row] for row in parsed.rows if row[0].section == path.stem]
        assert own == expected, path


def test_drawings_are_there(parsed: Parsed, project_root: Path) -> None:
    drawings = {path.stem for path in (project_root / "results").glob("*.svg")}
    assert len(parsed.loads) == len(drawings)
    assert "significance" in drawings


def test_means_link_to_the_runs_they_are_of(parsed: Parsed, project_root: Path) -> None:
    """The mean of the scores that stand at the anchor is the number that leads there."""
    table = pd.read_csv(project_root / "results" / "table5.csv").set_index(["dataset", "model"])
    checked = 0
    for row in parsed.rows:
        if row[0].section != "table5" or len(row) < 10 or row[0].text == "data set":
            continue
        expected = table.loc[(row[0].text.partition(" (")[0], row[1].text)]
        for cell, protocol in ((row[3], "paper"), (row[7], "holdout")):
            if not cell.href:
                assert cell.text == "–"
                continue
            head, *runs = parsed.under[cell.href[1:]]
            assert f"{row[1].text}, {protocol}" in head[0]
            assert len(runs) == expected[f"{protocol}_n_seeds"]
            scale = 100 if expected["metric"] == "accuracy" else 1
            assert scale * fmean(float(run[1]) for run in runs) == pytest.approx(expected[f"{protocol}_mean"], abs=1e-3)
            checked += 1
        if row[2].text != "–":
            assert row[2].href == "paper/table5.csv"
    assert checked > 60


def test_lines_are_those_of_the_file(parsed: Parsed, project_root: Path) -> None:
    rows = [row for row in parsed.rows if row[-1].href.startswith("table5_records.jsonl#L")]
    lines = (project_root / "results" / "table5_records.jsonl").read_text().splitlines()
    assert len(rows) == len(lines)
    for row in rows:
        assert json.loads(lines[int(row[-1].text) - 1])["run_id"] == row[-2].text
        assert row[-1].href.endswith(f"#L{row[-1].text}")


def test_benchmark_numbers_link_to_their_cells(parsed: Parsed) -> None:
    ours = next(row for row in parsed.rows if row[0].section == "figure5" and row[0].text == "gbdt_mo")
    assert [cell.href for cell in ours[1:3]] == [f"#records/bench/mnist/gbdt_mo/rounds/_/{n}" for n in (1, 2)]
    assert ours[7].href == "#records/bench/mnist/gbdt_mo/rounds/_"


GRID = {"protocol": "holdout", "model.estimator.learning_rate": "0.05", "model.estimator.max_depth": "4"}
SPARSE = {"group": "sparse", "shape": "mnist", "model": "gbdt_mo", "variant": "restricted 2", "threads": 2}
POINT = "yeast/gbdt_mo/holdout/0.05/4"


@pytest.mark.parametrize(
    ("cells", "head", "row", "expected"),
    [
        pytest.param(
            [{"dataset": "mnist", "model": "gbdt_mo", "protocol": p, "split": s} for p in PROTOCOLS for s in SPLITS],
            ["data set", "split", "published", "paper protocol", "against published", "holdout protocol", "best round"],
            ["mnist (accuracy %)", "restricted-2", "97.54", "97.60 (n=1)", "✓ matched: +0.06 points", "97.40", "310"],
            [
                None,
                None,
                "paper.csv",
                *["mnist/gbdt_mo/paper/restricted-2"] * 2,
                *["mnist/gbdt_mo/holdout/restricted-2"] * 2,
            ],
            id="a kind of split in the model's place",
        ),
        pytest.param(
            [SPARSE, {**SPARSE, "variant": "full"}, {**SPARSE, "shape": "nus_wide"}],
            ["data set", "split", "threads", "s a round", "/ full", "published, 8 threads"],
            ["mnist", "restricted 2", "2", "0.101", "1.02", "0.619"],
            [None, None, None, *["mnist/gbdt_mo/sparse/restricted-2/2"] * 2, "paper.csv"],
            id="seconds of a split",
        ),
        pytest.param(
            [{**SPARSE, "shape": "nus_wide_labels"}, {**SPARSE, "variant": "full"}],
            ["data set", "split", "threads", "s a round", "published, 8 threads"],
            ["nus_wide*", "restricted 2", "2", "0.544", "1.25"],
            [None, None, None, "nus_wide_labels/gbdt_mo/sparse/restricted-2/2", "paper.csv"],
            id="a shape called by the data set whose labels it has",
        ),
        pytest.param(
            [
                {"dataset": "yeast", "model": "gbdt_mo", "protocol": "paper", "model.estimator.max_bins": b}
                for b in "48"
            ],
            ["data set", "model", "published", "paper protocol"],
            ["yeast (accuracy %)", "gbdt_mo, max_bins 4", "62.29", "60.85 ± 1.89 (n=10)"],
            [None, None, "paper.csv", "yeast/gbdt_mo/paper/4"],
            id="a setting beside the model",
        ),
        pytest.param(
            [{"dataset": "yeast", "model": m, **GRID} for m in ("gbdt_mo", "gbdt_so")],
            ["learning rate", "max depth", "validation", "best round", "test", "note"],
            ["**0.05**", "**4**", "**59.02 ± 1.20**", "**30**", "**58.80**", "seed 3 failed"],
            [None, None, *["yeast"] * 3, None],
            id="a point of a grid, of any model",
        ),
        pytest.param(
            [{"dataset": "yeast", "model": "gbdt_mo", **GRID, "model.estimator.max_depth": d} for d in ("4", "5")],
            ["learning rate", "max depth", "validation", "best round", "test"],
            ["0.05", "4", "59.02 ± 1.20", "30", ""],
            [None, None, POINT, POINT, None],
            id="a point of a grid",
        ),
        pytest.param(
            [{"dataset": "yeast", "model": "xgboost", "protocol": p} for p in PROTOCOLS],
            ["data set", "model", "n", "paper", "holdout", "difference"],
            ["yeast (accuracy %)", "xgboost", "10", "60.83", "59.37", "+1.46 ± 0.30"],
            [None, None, "yeast/xgboost", "yeast/xgboost/paper", "yeast/xgboost/holdout", "yeast/xgboost"],
            id="what a protocol is worth",
        ),
        pytest.param(
            [
                {"dataset": "genes", "model": m, "protocol": p, "model.estimator.degree": d}
                for m in ("rank_svm", "binary_svm")
                for p in ("published_fit", "cross_validated")
                for d in ("2", "3")
            ],
            [
                "model",
                "degree",
                "published",
                "published_fit protocol",
                "published_fit less published",
                "cross_validated protocol",
                "chosen",
            ],
            ["rank_svm", "2", "0.703", "0.717", "✗ +0.014", "0.768", "C 1.0"],
            [
                None,
                None,
                "paper.csv",
                *["genes/rank_svm/published_fit/2"] * 2,
                *["genes/rank_svm/cross_validated/2"] * 2,
            ],
            id="a degree of the kernel under a protocol whose name begins like published values",
        ),
        pytest.param(
            [{"dataset": "genes", "model": m, "protocol": "holdout"} for m in ("gbdt_mo", "rank_svm")],
            ["against", "n", "ranking loss less that of rank_svm", "won"],
            ["gbdt_mo", "917", "+0.0100 [+0.0010, +0.0200]", "300 of 500"],
            [None, *["genes"] * 3],
            id="a difference from the method that the column names",
        ),
        pytest.param(
            [{"dataset": "yeast", "model": m, "protocol": p} for m in ("gbdt_mo", "xgboost") for p in PROTOCOLS],
            ["method", "mean rank", "behind gbdt_mo"],
            ["xgboost", "4.50", "+2.83"],
            [None, *["yeast/xgboost"] * 2],
            id="a rank",
        ),
    ],
)
def test_where_a_number_leads(
    cells: list[dict[str, str]], head: list[str], row: list[str], expected: list[str | None]
) -> None:
    file = record_file("any", [{"cell": cell, "identity": {"dataset": "any"}} for cell in cells])
    wanted = [path if path in (None, "paper.csv") else f"#records/any/{path}" for path in expected]
    assert RowLinks(file, "paper.csv", "", head).of(row) == wanted


@pytest.mark.parametrize(
    ("head", "row", "paper", "expected"),
    [
        (["data set", "split", "published, 8 threads"], ["mnist", "full", "0.790"], "table6", "table8"),
        (["data set", "split", "published, 8 threads"], ["mnist", "restricted 2", "0.619"], "table6", "table6"),
        (["data set", "against", "published difference"], ["mnist", "x", "+0.22"], "table12", "table5"),
        (["data set", "against", "published"], ["mnist", "x", "0.561"], "table12", "table12"),
    ],
)
def test_published_values_lead_to_the_table_that_has_them(
    head: list[str], row: list[str], paper: str, expected: str
) -> None:
    cells = [{**SPARSE, "variant": variant} for variant in ("full", "restricted 2")]
    file = record_file("any", [{"cell": cell, "identity": {"dataset": "any"}} for cell in cells])
    assert RowLinks(file, f"paper/{paper}.csv", "", head).of(row)[-1] == f"paper/{expected}.csv"


def test_parts_of_a_round_are_results(parsed: Parsed) -> None:
    rows = [row for row in parsed.rows if row[0].section == "bench" and len(row) > 8 and row[0].text == "mnist"]
    shares = [cell for row in rows for cell in row if cell.text.endswith(" %")]
    assert len(shares) >= 12
    assert all(cell.href.startswith("#records/bench/mnist/gbdt_mo/rounds/") for cell in shares)


def test_values_at_fixed_rounds_stand_with_their_run() -> None:
    curve = {"accuracy": {"10": 0.75, "20": 0.875}, "log_loss": {"10": 1.5}}
    described = described_run({**record_of(compose_config("seed=0")), "cell": {"seed": 0}, "at_rounds": curve}, 1)
    assert (described["accuracy after 10"], described["accuracy after 20"]) == ("0.75", "0.875")
    assert described["log_loss after 10"] == "1.5"


def test_differences_link_to_both_sides(parsed: Parsed) -> None:
    row = next(row for row in parsed.rows if row[0].section == "significance" and row[0].text.startswith("yeast"))
    assert row[1].text == "gbdt_so"
    assert row[3].href == "#records/table5/yeast"


def test_the_same_files_make_the_same_bytes(made_up: Path, project_root: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from repro.page.build import make_page; root = Path(sys.argv[1]); "
        "sys.stdout.write(make_page(root / 'results', root / 'docs' / 'findings.md'))"
    )
    made = [
        subprocess.run(
            [sys.executable, "-c", code, str(made_up)],
            cwd=project_root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert made[0] == made[1]
    assert made[0].startswith(b"<!DOCTYPE html>")


def test_what_is_not_published_is_named(made_up: Path) -> None:
    page = parse(make_page(made_up / "results", made_up / "docs" / "findings.md"))
    text = "".join(page.texts)
    assert "table3" not in page.ids
    assert "Table III: synthetic data sets: make reproduce-table3" in text
    assert "Ours has not been published yet." in text


def test_findings_link_on(made_up: Path) -> None:
    page = parse(make_page(made_up / "results", made_up / "docs" / "findings.md"))
    assert "../docs/speed.md" in page.hrefs
    assert "../results/table5.md" not in page.hrefs  # it is on the page
    assert "findings/yeast" in page.ids


def test_paragraphs_of_findings_name_the_tables_of_their_numbers(project_root: Path) -> None:
    tables = {path.stem for path in (project_root / "results").glob("*.md")}
    tokens = MarkdownIt().enable("table").parse((project_root / "docs" / "findings.md").read_text())
    above: set[str] = set()
    n_checked = 0
    for at, token in enumerate(tokens):
        if token.type not in ("paragraph_open", "table_open"):
            continue
        if token.type == "paragraph_open":
            children = tokens[at + 1].children or []
            above = {Path(str(child.attrs.get("href", ""))).stem for child in children} & tables
            text = tokens[at + 1].content
            if not re.search(r"\.\d|\d %", text):
                continue
        else:  # the paragraph above says where a table is from
            text = tokens[at - 2].content
        assert above, text
        n_checked += 1
    assert n_checked > 50


@pytest.fixture(scope="module")
def numbers(project_root: Path) -> Numbers:
    return Numbers(read_results(project_root / "results"))


@pytest.mark.parametrize(
    ("number", "tables", "said", "around", "address"),
    [
        ("59.30", ["table5"], "GBDT-MO has 59.30 on Caltech101", [], "#records/table5/caltech101"),
        ("59.30", ["table5"], "GBDT-MO has 59.30", ["Caltech101: better than published"], "#records/table5/caltech101"),
        ("2.4", ["table5"], "2.4 on digits, 2.7 on Yeast", ["Yeast"], "#records/table5"),  # two sets: which is open
        (".2476", ["ablation"], "digits_inpainting (RMSE)", [], "#records/ablation/digits_inpainting"),
        ("57.49", ["table5"], "59.30 (published 57.49) on Caltech101", [], "paper/table5.csv"),
        (".9830", ["released"], "published .9830 on MNIST", [], "paper/table5.csv"),  # 98.30 %
        ("57.49", ["table5"], "published 57.49 on Yeast", [], "#records/table5/yeast"),  # another set's value
        ("24 %", ["released"], "24 % of MNIST's rows", [], "#records/released/mnist/gbdt_mo_released/paper"),
        (".00", ["ranksvm_toy"], "Rank-SVM published", [], "paper/ranksvm_toy.csv"),
        (".5972", ["figure4"], "the anchor: .5972 on Caltech101", [], None),
        (".26720", ["table7"], "gives .26720 (hand runs)", ["Inpainting"], None),
        ("1.0", [], "1.0 on Yeast", [], None),
    ],
)
def test_a_number_of_the_findings_leads_to_what_it_is_from(
    numbers: Numbers, number: str, tables: list[str], said: str, around: list[str], address: str | None
) -> None:
    assert numbers.address(number, tables, said, around) == address


def test_numbers_of_prose_are_linked_where_a_table_is_named(numbers: Numbers) -> None:
    text = "It has 1.5 of *60.85* and\n12 rounds; by a hand run .7. It has 3 % and 4.5. [table5]\n\nAlone 1.5."
    text = f"# Found\n\n## Yeast\n\n{text}\n\n[table5]: ../results/table5.md\n"
    page = str(prose_html(text, "../docs", ["table5"], numbers))
    links = re.findall(r'<a href="([^"]*)" class="number">([^<]*)</a>', page)
    assert links == [("#records/table5/yeast", number) for number in ("1.5", "60.85", "3 %", "4.5")]
    words = "Yeast It has 1.5 of 60.85 and 12 rounds; by a hand run .7. It has 3 % and 4.5. table5 Alone 1.5."
    assert " ".join(re.sub("<[^>]*>", "", page).split()) == words


def test_every_decimal_of_the_findings_is_a_link_or_has_no_record(numbers: Numbers, project_root: Path) -> None:
    text = (project_root / "docs" / "findings.md").read_text()
    page = str(prose_html(text, "../docs", [*read_results(project_root / "results").tables], numbers))
    assert len(re.findall('class="number"', page)) > 400
    bare = re.sub("<[^>]+>", "", re.sub("<a .*?</a>", "#", page, flags=re.DOTALL)).replace("\n", " ")
    for left in re.finditer(r"(?<![\w.,/])\d*\.\d+(?!\w|\.\d)", bare):
        around = bare[max(0, left.start() - 150) : left.end() + 150]
        assert re.search("anchor|hand run", around), around


def test_rows_without_a_leaf_are_those_of_the_ablation(project_root: Path, parsed: Parsed) -> None:
    """Worked out from the records, which its table was made from in another way."""
    results = read_results(project_root / "results")
    table = pd.read_csv(project_root / "results" / "ablation.csv").query("protocol == 'paper'").set_index("dataset")
    rows = findings.dropped_rows(results)
    assert [row["dataset"] for row in rows] == list(table.index)
    for row in rows:
        own = table.loc[row["dataset"]]
        assert row["share"] == pytest.approx(own["unassigned"])
        for side in ("released", "complete"):
            assert row[side]["rounds"] == f"{own[f'{side}_best_round']:.0f}"
            assert row[side]["anchor"] in parsed.ids


def test_counts_and_findings(made_up: Path) -> None:
    """Made-up scores have the mean 0.61: far from any RMSE; and 61.0 ± 1.0 over three seeds, off by 1.29 and 1.94."""
    results = read_results(made_up / "results")
    assert findings.tally(results, "table5", "table5") == findings.Tally("table5", 28, 4, 0, 4)
    assert findings.without(results, "nus_wide") == 23
    assert findings.not_run(results)["yeast"] == 3
    assert [cell["rule"] for cell in findings.missed(results, "table5")] == ["worse than published"] * 4
    models, rows = findings.optimism(results, "table5")
    assert models == ["gbdt_mo", "xgboost"]
    assert {row["dataset"]: row["cells"]["gbdt_mo"]["text"] for row in rows} == {
        "yeast": "+0.00",
        "student_por": "+0.00000",
    }
    (split,) = [row for row in findings.split_sums(results) if row["dataset"] == "student_por"]
    assert (sum(split["published"]), sum(split["ours"])) == (613, 649)
    assert findings.promises(results) is None
    hessians = {row["dataset"]: row["published"] for row in findings.hessians(results)}
    assert hessians == {"mnist": "-0.13", "yeast": "+0.60"}


def test_a_record_changed_by_hand_is_refused(folder: Path, made_up: Path) -> None:
    path = folder / "table5_records.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    assert '"test":0.62' in lines[1]
    path.write_text("".join([lines[0], lines[1].replace('"test":0.62', '"test":0.63'), *lines[2:]]))
    with pytest.raises(StoreError, match=r"line 2 of .*table5_records\.jsonl was changed"):
        make_page(folder, made_up / "docs" / "findings.md")


@pytest.mark.parametrize("ending", ["md", "csv"])
def test_a_table_changed_by_hand_is_refused(folder: Path, made_up: Path, ending: str) -> None:
    path = folder / f"table5.{ending}"
    path.write_text(path.read_text().replace("61.0", "62.0"))
    with pytest.raises(PageError, match=rf"table5\.{ending} was changed .*make publish EXPERIMENT=table5"):
        make_page(folder, made_up / "docs" / "findings.md")


def test_a_table_without_its_records_is_refused(folder: Path, made_up: Path) -> None:
    sidecar = read_sidecar(folder / "table5.json")
    sidecar["runs"].append("f" * 16)
    (folder / "table5.json").write_text(json.dumps(seal(sidecar)))
    with pytest.raises(PageError, match=r"table5\.md was made from 25 runs, and table5_records\.jsonl lacks some"):
        make_page(folder, made_up / "docs" / "findings.md")


def other_line(lines: list[str]) -> list[str]:
    """Add a whole and sealed line of another table."""
    record = json.loads(lines[0])
    del record["digest"]
    record["cell"]["dataset"] = "digits"
    return [*lines, json.dumps(seal(record)) + "\n"]


@pytest.mark.parametrize("change", [lambda lines: lines[1:], other_line], ids=["one less", "one more"])
def test_records_that_are_not_those_published_with_the_table_are_refused(folder: Path, made_up: Path, change) -> None:
    """As a publication leaves them that is killed before its last file."""
    path = folder / "table5_records.jsonl"
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
    with pytest.raises(PageError, match=r"table5_records\.jsonl was changed after it was published: table5\.json has"):
        make_page(folder, made_up / "docs" / "findings.md")


def test_records_that_no_table_names_are_refused(folder: Path, made_up: Path) -> None:
    shutil.copy(folder / "table5_records.jsonl", folder / "table6_records.jsonl")
    with pytest.raises(PageError, match=r"no table names .*table6_records\.jsonl"):
        make_page(folder, made_up / "docs" / "findings.md")


@pytest.mark.parametrize(
    "change", [{"sha256": {}}, {"runs": []}, {"n_recorded": 1}, {"gaps": [{}]}, {"written": "yesterday"}]
)
def test_a_sidecar_changed_by_hand_is_refused(folder: Path, made_up: Path, change: dict[str, object]) -> None:
    path = folder / "table5.json"
    before = json.loads(path.read_text())
    assert all(before[key] != value for key, value in change.items())
    path.write_text(json.dumps({**before, **change}))
    with pytest.raises(StoreError, match=r"table5\.json was changed .*make publish EXPERIMENT=table5"):
        make_page(folder, made_up / "docs" / "findings.md")


def test_a_line_without_its_digest_is_refused(folder: Path, made_up: Path) -> None:
    path = folder / "table5_records.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    record = json.loads(first)
    del record["digest"]
    path.write_text("".join([json.dumps(record) + "\n", *rest]))
    with pytest.raises(StoreError, match=r"line 1 of .*table5_records\.jsonl carries no digest"):
        make_page(folder, made_up / "docs" / "findings.md")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-700], r"line 24 of .*table5_records\.jsonl is not whole JSON"),
        (lambda text: text.replace(b"\n", b"\n\n", 1), "line 2 of .* is not whole JSON"),
        (lambda text: b"[]\n" + text, "line 1 of .* holds a list, not an object"),
        (lambda text: text + text.split(b"\n")[0] + b"\n", "line 25 of .* holds the same cell as line 1"),
        (lambda text: text.replace(b'"test":0.62', b'"test":NaN', 1), "is not whole JSON .NaN is no JSON number"),
        (lambda text: b"\xff" + text, "cannot read"),
    ],
    ids=["cut off", "empty line", "a list", "doubled", "not finite", "not UTF-8"],
)
def test_damaged_lines_are_refused(folder: Path, made_up: Path, damage: Callable[[bytes], bytes], message: str) -> None:
    path = folder / "table5_records.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StoreError, match=message):
        make_page(folder, made_up / "docs" / "findings.md")


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_damaged_sidecar_is_refused(folder: Path, made_up: Path, text: str) -> None:
    (folder / "table5.json").write_text(text)
    with pytest.raises(StoreError, match=r"table5\.json.*make publish EXPERIMENT=table5"):
        make_page(folder, made_up / "docs" / "findings.md")


def test_a_drawing_that_nothing_names_is_left_out(folder: Path, made_up: Path) -> None:
    before = make_page(folder, made_up / "docs" / "findings.md")
    (folder / "table5_more.svg").write_text("<svg/>")
    assert make_page(folder, made_up / "docs" / "findings.md") == before


@pytest.mark.parametrize("content", [b"", b"\xff"], ids=["empty", "not UTF-8"])
def test_published_values_that_cannot_be_read_are_named(folder: Path, made_up: Path, content: bytes) -> None:
    (folder / "paper" / "table5.csv").write_bytes(content)
    with pytest.raises(PageError, match=r"cannot read .*table5\.csv.*Restore the committed file"):
        make_page(folder, made_up / "docs" / "findings.md")


@pytest.mark.parametrize("content", [None, b"\xff"], ids=["not there", "not UTF-8"])
def test_findings_that_cannot_be_read_are_named(folder: Path, tmp_path: Path, content: bytes | None) -> None:
    prose = tmp_path / "findings.md"
    if content:
        prose.write_bytes(content)
    with pytest.raises(PageError, match=r"cannot read .*findings\.md.*Restore the committed file"):
        make_page(folder, prose)


def test_an_image_that_is_not_published_stays_text() -> None:
    assert "a picture" in str(prose_html("# Found\n\nSee ![a picture](none.png).\n", "../docs", []))


def test_a_table_without_sidecar_is_refused(folder: Path, made_up: Path) -> None:
    (folder / "table5.json").unlink()
    with pytest.raises(PageError, match=r"has no table5\.json"):
        make_page(folder, made_up / "docs" / "findings.md")


@pytest.mark.parametrize("name", ["figure3", "figure4"])
def test_published_lines_hold_the_curves_at_the_rounds_shown(project_root: Path, name: str) -> None:
    """Where no seed has stopped, the mean over the lines is the mean curve of the CSV."""
    curves = pd.read_csv(project_root / "results" / f"{name}.csv")
    test = curves[(curves["part"] == "test") & (curves["n_running"] == curves["n_seeds"])]
    expected = test.set_index(["dataset", "model", "metric", "round"])["value"]
    found: dict[tuple[str, str, str, int], list[float]] = {}
    for record in published_records(project_root / "results", name):
        cell = record["cell"]
        for metric, values in record["at_rounds"].items():
            for number, value in values.items():
                key = (cell["dataset"], cell["model"], metric, int(number))
                found.setdefault(key, []).append(value)
    compared = {key: fmean(values) for key, values in found.items() if key in expected.index}
    assert len(compared) > 15
    for key, value in compared.items():
        assert in_paper_units(key[2], value) == pytest.approx(expected[key], abs=1e-7), key
