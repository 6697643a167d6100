"""Sets of Mulan and MEKA: which columns are inputs and which outputs, and what published statistics say of them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import arff_files
import numpy as np
import pytest
import yaml
from arff_files import FIRST_ROW_LINE

import datasets
from datasets import FormatError, _arff_sets, mulan
from datasets.base import Dataset

NAN = float("nan")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return arff_files.write(
        tmp_path / "small.arff", "1.5,round,yes,0,1", "?,'has, comma',no,1,0", "2,?,?,1,1", '{1 "it\'s"}'
    )


def test_labels_go_by_the_columns_whatever_the_order_of_the_xml(small: Path, tmp_path: Path) -> None:
    table = mulan.read([small], xml=arff_files.write_xml(tmp_path / "small.xml", "blue", "red"))
    assert table.target_names == ("red", "blue")
    assert table.task == "multilabel"
    assert table.y.dtype == np.uint8
    assert table.y.tolist() == [[0, 1], [1, 0], [1, 1], [0, 0]]


def test_labels_may_stand_among_the_inputs(small: Path, tmp_path: Path) -> None:
    table = mulan.read([small], xml=arff_files.write_xml(tmp_path / "small.xml", "red"))
    assert table.target_names == ("red",)
    assert table.y.tolist() == [[0], [1], [1], [0]]
    assert table.feature_names[-1] == "blue"
    assert table.X[:, -1].tolist() == [1, 0, 1, 0]


def test_inputs_of_every_kind(small: Path, tmp_path: Path) -> None:
    """Two values make one column, more of them one column each; a missing value is missing in all its columns."""
    table = mulan.read([small], xml=arff_files.write_xml(tmp_path / "small.xml", "red", "blue"))
    names = ("size", "shape of it=round", "shape of it=has, comma", "shape of it=it's", "found=yes")
    assert table.feature_names == names
    assert table.X.dtype == np.float32
    rows = [[1.5, 1, 0, 0, 1], [NAN, 0, 1, 0, 0], [2, NAN, NAN, NAN, NAN], [0, 0, 0, 1, 0]]
    np.testing.assert_array_equal(table.X, rows)


def test_labels_declared_the_other_way_round(tmp_path: Path) -> None:
    """In a sparse row, what is not given is the first value declared: here that is 1."""
    header = "@relation 'r: -C 2'\n@attribute a {1,0}\n@attribute b {0,1}\n@attribute x numeric\n@data\n"
    path = arff_files.write(tmp_path / "a.arff", "1,0,5", "0,1,6", "{2 7}", header=header)
    assert mulan.read([path]).y.tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize(("count", "names"), [(2, ("a", "b")), (-2, ("c", "d")), (1, ("a",)), (-3, ("b", "c", "d"))])
def test_meka_counts_labels_from_either_end(tmp_path: Path, count: int, names: tuple[str, ...]) -> None:
    attributes = "".join(f"@attribute {name} {{0,1}}\n" for name in "abcd")
    path = arff_files.write(
        tmp_path / "a.arff", "0,0,1,1", header=f"@relation 'set: -C {count} -x'\n{attributes}@data\n"
    )
    table = mulan.read([path])
    assert table.target_names == names
    assert table.y.tolist() == [["abcd".index(name) // 2 for name in names]]
    assert set(table.feature_names) == set("abcd") - set(names)


def test_targets_are_the_last_columns_and_keep_their_digits(tmp_path: Path) -> None:
    header = "@relation r\n" + "".join(f"@attribute {name} numeric\n" for name in "abc") + "@data\n"
    path = arff_files.write(tmp_path / "a.arff", "1,0.1,1e-9", "2,3.000000001,7", header=header)
    table = mulan.read([path], n_targets=2)
    assert table.task == "regression"
    assert table.target_names == ("b", "c")
    assert table.y.tolist() == [[0.1, 1e-9], [3.000000001, 7]]
    assert table.X.tolist() == [[1], [2]]


def test_training_rows_come_before_test_rows(small: Path, tmp_path: Path) -> None:
    xml = arff_files.write_xml(tmp_path / "small.xml", "red", "blue")
    other = arff_files.write(tmp_path / "test.arff", "9,round,yes,1,1")
    table = mulan.read([small, other], xml=xml)
    assert table.rows == (4, 1)
    assert table.X[:, 0].tolist()[2:] == [2, 0, 9]


def refused(line: int, *parts: str):
    return pytest.raises(FormatError, match=rf"\.arff, line {line}: .*" + ".*".join(parts))


def test_wrong_label_counts_are_named(small: Path, tmp_path: Path) -> None:
    xml = arff_files.write_xml(tmp_path / "small.xml", "red", "blue", "green", "black")
    with refused(8, "lists 4 labels, but 2 of them are no attributes there: black, green"):
        mulan.read([small], xml=xml)
    with refused(8, "lists 3 labels, but some are equal"):
        mulan.read([small], xml=arff_files.write_xml(tmp_path / "small.xml", "red", "red", "blue"))
    for n_targets in (0, 5, -1):
        with refused(8, f"{n_targets} targets, but there are 5 attributes; expected 1 to 4"):
            mulan.read([small], n_targets=n_targets)
    with refused(2, "no MEKA option -C"):
        mulan.read([small])
    for count in (0, 5, -5):
        path = arff_files.write(
            tmp_path / "m.arff", header=arff_files.HEADER.replace("small set", f"small: -C {count}")
        )
        with refused(2, f"-C {count}, but there are 5 attributes; expected 1 to 4 labels"):
            mulan.read([path])


def test_outputs_that_are_none_are_named(small: Path, tmp_path: Path) -> None:
    with refused(6, "label 'found' should have the values {0,1}"):
        mulan.read([small], xml=arff_files.write_xml(tmp_path / "small.xml", "found"))
    with refused(8, "target 'blue' should be numeric"):
        mulan.read([small], n_targets=1)
    path = arff_files.write(tmp_path / "missing.arff", "1,round,yes,0,1", "% comment", "1,round,yes,?,1")
    with refused(FIRST_ROW_LINE + 2, "output 'red' is missing"):
        mulan.read([path], xml=arff_files.write_xml(tmp_path / "small.xml", "red", "blue"))


def test_other_faults_are_named(small: Path, tmp_path: Path) -> None:
    xml = arff_files.write_xml(tmp_path / "small.xml", "red", "blue")
    with refused(8, "no rows follow"):
        mulan.read([arff_files.write(tmp_path / "empty.arff")], xml=xml)
    with refused(FIRST_ROW_LINE, "too large for float32: 1e.39"):
        mulan.read([arff_files.write(tmp_path / "large.arff", "1e39,round,yes,0,1")], xml=xml)
    with refused(1, "no attribute 'colour' that could be ignored"):
        mulan.read([small], xml=xml, ignored=["colour"])
    with refused(7, "'red' is an output and cannot be ignored"):
        mulan.read([small], xml=xml, ignored=["red"])
    with refused(8, "all attributes are outputs or ignored"):
        mulan.read([small], xml=xml, ignored=["size", "shape of it", "found"])
    alike = arff_files.HEADER.replace("{0,1}", "numeric", 1).replace("red", "'shape of it=round'")
    with refused(8, "two inputs would be called 'shape of it=round'"):
        mulan.read([arff_files.write(tmp_path / "d.arff", header=alike)], n_targets=1)
    with pytest.raises(TypeError, match="should be a list of files, not the single"):
        mulan.read(str(small), n_targets=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="names no file"):
        mulan.read([], n_targets=1)
    with pytest.raises(TypeError, match="n_targets should be a whole number, not '1'"):
        mulan.read([small], n_targets="1")  # type: ignore[arg-type]
    other = arff_files.write(tmp_path / "b.arff", header=arff_files.HEADER.replace("{no,yes}", "{yes,no}"))
    with refused(6, "attribute 'found' is not as in line 6 of"):
        mulan.read([small, other], xml=xml)
    fewer = arff_files.write(tmp_path / "c.arff", header=arff_files.HEADER.replace("@attribute blue {0,1}\n", ""))
    with refused(7, "4 attributes, but .* has 5"):
        mulan.read([small, fewer], xml=xml)


def test_bad_xml_is_named(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "small.xml"
    for content, problem in (
        ("<labels>\n<label name='red'>\n</labels>", r"small\.xml, line 3: not XML"),
        ("<labels/>", "lists no labels"),
        ("<labels><label/></labels>", "without a name"),
        ('<?xml version="1.0" encoding="klingon"?><labels/>', r"small\.xml, line 1: its encoding cannot be read"),
        ('<?xml version="1.0" encoding="shift_jis"?><labels/>', r"small\.xml, line 1: its encoding cannot be read"),
    ):
        path.write_text(content)
        with pytest.raises(FormatError, match=problem):
            mulan.read([small], xml=path)
    path.unlink()
    with pytest.raises(FormatError, match=r"XML of the labels cannot be read: .*small\.xml"):
        mulan.read([small], xml=path)


def test_names_in_latin_1_are_those_of_the_xml(tmp_path: Path) -> None:
    path = arff_files.write(tmp_path / "a.arff")
    header = arff_files.HEADER.replace("red", "café")
    path.write_bytes((header + "1,round,yes,0,1\n").encode("latin-1"))
    xml = tmp_path / "a.xml"
    text = '<?xml version="1.0" encoding="iso-8859-1"?><labels><label name="café"/><label name="blue"/></labels>'
    xml.write_bytes(text.encode("latin-1"))
    assert mulan.read([path], xml=xml).target_names == ("café", "blue")


def test_labels_may_be_written_as_numbers(tmp_path: Path) -> None:
    """Whatever else stands in the block."""
    xml = arff_files.write_xml(tmp_path / "a.xml", "red", "blue")
    header = arff_files.HEADER.replace("{round, 'has, comma', \"it's\"}", "numeric").replace("{no,yes}", "numeric")
    for first in ("1,2,3,1.0,0", "?,2,3,1.0,0"):
        table = mulan.read([arff_files.write(tmp_path / "a.arff", first, "1,2,3,0,1.0", header=header)], xml=xml)
        assert table.y.tolist() == [[1, 0], [0, 1]]
    with refused(FIRST_ROW_LINE, "attribute 'red' is '0.5', expected one of 0, 1"):
        mulan.read([arff_files.write(tmp_path / "a.arff", "1,2,3,0.5,0", header=header)], xml=xml)


def test_labels_in_a_hierarchy_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "tree.xml"
    path.write_text("<labels xmlns='x'><label name='a'><label name='b'/></label><label name='c'></label></labels>")
    assert mulan.read_label_names(path) == ["a", "b", "c"]


def write_large(path: Path, *, sparse: bool) -> None:
    random = np.random.default_rng(0)
    header = "@relation 'large: -C 20'\n" + "".join(f"@attribute l{i} {{0,1}}\n" for i in range(20))
    header += "".join(f"@attribute x{i} numeric\n" for i in range(100))
    rows = 10_000
    labels, numbers = random.integers(0, 2, (rows, 20)), random.standard_normal((rows, 100)).astype(np.float32)
    with path.open("w") as stream:
        stream.write(header + "@data\n")
        for y, x in zip(labels.tolist(), numbers.tolist(), strict=True):
            row = [*map(str, y), *(f"{value:.7g}" for value in x)]
            text = ",".join(f"{i} {value}" for i, value in enumerate(row[:20]))
            stream.write(f"{{{text}}}\n" if sparse else ",".join(row) + "\n")


@pytest.mark.parametrize("sparse", [False, True])
def test_memory_stays_under_twice_the_arrays(tmp_path: Path, sparse: bool) -> None:
    path = tmp_path / "large.arff"
    write_large(path, sparse=sparse)
    tracemalloc.start()
    try:
        table = mulan.read([path])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    kept = table.X.nbytes + table.y.nbytes
    assert kept > 4_000_000
    assert peak < 2 * kept


# Rows (training rows first), inputs, outputs; mean labels a row as Mulan and MEKA publish it.
KNOWN = {
    "wq": ((1_060,), 16, 14, None),
    "enb": ((768,), 8, 2, None),
    "osales": ((639,), 401, 12, None),
    "scene": ((1_211, 1_196), 294, 6, 1.074),
    "delicious": ((12_920, 3_185), 500, 983, 19.020),
    "imdb": ((120_919,), 1_001, 28, 2.000),
}


@pytest.fixture(scope="module", params=KNOWN)
def known(request: pytest.FixtureRequest, shared: Path) -> Dataset:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GBDTMO_DATA", str(shared / "data"))
        return datasets.load(request.param, download=False)


def test_known_sizes_and_label_counts(known: Dataset) -> None:
    rows, inputs, outputs, labels_a_row = KNOWN[known.name]
    assert (*known.X.shape, known.n_outputs) == (sum(rows), inputs, outputs)
    if labels_a_row is None:
        assert known.task == "regression"
    else:
        assert known.task == "multilabel"
        assert known.y.sum() / len(known.y) == pytest.approx(labels_a_row, abs=5e-4)
    if len(rows) == 2:
        split = known.split(3)
        assert split.train.tolist() == list(range(rows[0]))
        assert split.test.tolist() == list(range(rows[0], sum(rows)))
        assert len(split.validation) == rows[0] - int(0.8 * rows[0])
        assert sorted([*split.fit, *split.validation]) == split.train.tolist()
    assert bool(np.isnan(known.X).any()) == (known.name == "osales")


def first_row(dataset: Dataset) -> dict[str, float]:
    return dict(zip(dataset.feature_names, dataset.X[0].tolist(), strict=True))


def test_first_rows(known: Dataset) -> None:
    """As read off the files by eye."""
    row, y = first_row(known), dict(zip(known.target_names, known.y[0].tolist(), strict=True))
    if known.name == "enb":
        assert (row["Relative_compactness"], row["X1"], y) == (pytest.approx(0.98), 514.5, {"Y1": 15.55, "Y2": 21.33})
    elif known.name == "wq":
        assert row["std_temp"] == pytest.approx(0.662302529581739)
        assert list(y.values()) == [3, 0, 0, 0, 0, 3, 1, 0, 5, 5, 5, 1, 3, 3]
    elif known.name == "osales":
        assert (row["Cat_1"], row["Date_1"], row["Quan_1"]) == (2, 2485, 918600)
        assert np.isnan(row["Quan_5"])
    elif known.name == "scene":
        assert row["Att1"] == pytest.approx(0.646467)
        assert [name for name, value in y.items() if value] == ["Beach", "Mountain"]
    elif known.name == "delicious":  # {60 1,248 1,279 1,316 1,490 1,577 1,591 1,815 1,...,1408 1}, 500 words first
        assert np.flatnonzero(known.X[0]).tolist() == [60, 248, 279, 316, 490]
        labels = [577, 591, 815, 1044, 1075, 1121, 1218, 1318, 1319, 1334, 1408]
        assert np.flatnonzero(known.y[0]).tolist() == [label - 500 for label in labels]
    else:  # {4 1,25 1,30 1,32 1,34 1,48 1,...,1014 1}, 28 labels first
        assert [name for name, value in y.items() if value] == ["Music", "Game-Show"]
        columns = np.flatnonzero(known.X[0])
        assert [*columns[:4], columns[-1]] == [30 - 28, 32 - 28, 34 - 28, 48 - 28, 1014 - 28]


def test_imputed_sales_have_column_means_where_values_are_missing(shared: Path, monkeypatch) -> None:
    monkeypatch.setenv("GBDTMO_DATA", str(shared / "data"))
    given, imputed = (datasets.load(name, download=False) for name in ("osales", "osales_imputed"))
    assert np.array_equal(given.y, imputed.y)
    replaced = 0
    for column, result in zip(given.X.T.tolist(), imputed.X.T.tolist(), strict=True):
        known = [value for value in column if value == value]
        mean = sum(known) / len(known)
        for value, filled in zip(column, result, strict=True):
            assert filled == (value if value == value else pytest.approx(mean, rel=1e-6))
            replaced += value != value
    assert replaced == np.isnan(given.X).sum() > 0


def test_descriptions_name_no_set_twice_and_are_checked(tmp_path: Path, monkeypatch) -> None:
    assert len(set(datasets.names())) == len(datasets.names())
    monkeypatch.setattr(_arff_sets, "FOLDER", tmp_path)
    file = {"path": "mine/a.arff", "sha256": None}
    for content, problem in (
        ({"files": [file], "targets": 2}, r"unknown keys \['targets'\]; known are .*n_targets"),
        ({"files": [{**file, "url": "x"}]}, r"unknown keys \['url'\]"),
        ({"files": [{"path": "mine/a.arff"}]}, "KeyError: 'sha256'"),
        ({"files": []}, "expected one file, or one of training rows"),
        ({"files": [file] * 3}, "expected one file, or one of training rows"),
        ({"n_targets": 1}, "KeyError: 'files'"),
        ([], "expected keys and values, not list"),
        ({"files": "mine/a.arff"}, "files should be a list, each of its files with path and sha256"),
        ({"files": ["mine/a.arff"]}, "files should be a list, each of its files with path and sha256"),
        ({"files": [file, file]}, "files has one file twice"),
        ({"files": [{**file, "path": 5}]}, "path should be text, not 5"),
        ({"files": [{**file, "rows": "20"}]}, "rows should be a whole number from 1, not '20'"),
        ({"files": [{**file, "sha256": "A" * 64}]}, "sha256 should be 64 hex digits in lower case"),
        ({"files": [{**file, "origins": "https://a"}]}, "origins should be a list of texts"),
        ({"files": [file], "n_targets": True}, "n_targets should be a whole number from 1, not True"),
        ({"files": [file], "n_targets": "1"}, "n_targets should be a whole number from 1, not '1'"),
        ({"files": [file], "n_targets": 1, "xml": file}, "xml lists labels and n_targets counts targets"),
        ({"files": [file], "xml": "a.xml"}, "expected a file with path and sha256, not 'a.xml'"),
        ({"files": [file], "ignored": "size"}, "ignored should be a list of texts, not 'size'"),
        ({"files": [file], "other_form": [file, {**file, "path": "b"}]}, "other_form has 2 files and files 1"),
        ({"files": [file], "other_form": [{**file, "rows": 4}]}, "other_form has rows"),
    ):
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
        with pytest.raises(FormatError, match=rf"mine\.yaml: .*{problem}"):
            datasets.load("mine", download=False)


def test_a_description_that_is_no_yaml_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_arff_sets, "FOLDER", tmp_path)
    (tmp_path / "mine.yaml").write_text("files: [")
    with pytest.raises(FormatError, match=r"mine\.yaml: ParserError: "):
        datasets.load("mine", download=False)


def test_one_name_is_no_list_of_attributes(small: Path) -> None:
    with pytest.raises(TypeError, match="ignored should be a list of attributes, not the single 'size'"):
        mulan.read([small], n_targets=1, ignored="size")


def test_labels_and_targets_at_once_are_refused(small: Path) -> None:
    with pytest.raises(ValueError, match="give one of them"):
        mulan.read([small], n_targets=1, xml=small)


def test_checksums_are_none_where_the_files_are_not_or_the_code_fixes_them(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("GBDTMO_DATA", raising=False)
    monkeypatch.setenv("GBDTMO_CACHE", str(tmp_path))
    assert datasets.file_checksums("scene") == {}
    assert datasets.file_checksums("digits") == {}


def test_a_file_of_ones_own(tmp_path: Path, monkeypatch, small: Path) -> None:
    """A description is all that a set of one's own needs; rows that are missing are told."""
    monkeypatch.setattr(_arff_sets, "FOLDER", tmp_path)
    monkeypatch.setenv("GBDTMO_DATA", str(tmp_path))
    arff_files.write_xml(tmp_path / "small.xml", "red", "blue")
    content = {
        "files": [{"path": "small.arff", "sha256": None, "rows": 4}],
        "xml": {"path": "small.xml", "sha256": None},
        "ignored": ["size"],
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    data = datasets.load("mine", download=False)
    assert (data.name, data.X.shape, data.y.shape, data.source) == ("mine", (4, 4), (4, 2), "GBDTMO_DATA")
    assert set(data.sha256) == {"small.arff", "small.xml"}
    assert datasets.file_checksums("mine") == data.sha256
    content["files"][0]["rows"] = 5
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(FormatError, match=r"small\.arff, line 13: the file ends after 4 rows, .* has 5"):
        datasets.load("mine", download=False)
