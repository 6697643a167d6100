"""The yeast genes: one set of arrays, whichever of the public forms they come from."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest
import rar_files
import rarfile

import datasets
from datasets import FormatError, _rar, yeast_genes
from datasets.base import Dataset


@pytest.fixture
def genes(shared: Path, monkeypatch) -> Dataset:
    monkeypatch.setenv("GBDTMO_DATA", str(shared / "data"))
    return datasets.load("yeast_genes", download=False)


def test_published_statistics(genes: Dataset) -> None:
    """1,500 and 917 genes, 4.2 ± 1.6 labels a gene (the paper's section 6); 4.237 and 198 distinct sets (Mulan)."""
    split = genes.split(0)
    assert split.train.tolist() == list(range(1_500))
    assert split.test.tolist() == list(range(1_500, 2_417))
    assert len(split.validation) == 300
    sizes = genes.y.sum(axis=1)
    assert sizes.mean() == pytest.approx(4.237, abs=5e-4)
    assert round(float(sizes.std()), 1) == 1.6
    assert len(np.unique(genes.y, axis=0)) == 198
    np.testing.assert_allclose(np.linalg.norm(genes.X.astype(np.float64), axis=1), 1, atol=2e-6)


def test_first_rows(genes: Dataset) -> None:
    """As read off the files by eye: the first training row, the first test row."""
    np.testing.assert_array_equal(genes.X[0, :3], np.array([0.0937, 0.139771, 0.062774], np.float32))
    assert np.flatnonzero(genes.y[0]).tolist() == [2, 3]
    np.testing.assert_array_equal(genes.X[1_500, :3], np.array([0.004168, -0.170975, -0.156748], np.float32))
    assert [genes.target_names[k] for k in np.flatnonzero(genes.y[1_500])] == ["Class7", "Class8", "Class12", "Class13"]
    assert genes.source == "GBDTMO_DATA"
    assert set(genes.sha256) == set(yeast_genes.MEMBERS)


def test_values_are_the_published_ones(genes: Dataset) -> None:
    digest = hashlib.sha256(genes.X.tobytes() + genes.y.tobytes()).hexdigest()
    assert digest == yeast_genes.VALUES_SHA256


def test_arff_files_are_the_known_ones(shared: Path) -> None:
    """The MD5 sums by which others check Mulan's two files."""
    known = ["a1c8eeb7cbaf8ae140c5106ff84db332", "c85f3dfd6508efa5402762849e1f9dc4"]
    contents = [(shared / "data" / file.path).read_bytes() for file in yeast_genes.ARFF_FILES]
    assert [hashlib.md5(content).hexdigest() for content in contents] == known
    assert [hashlib.sha256(content).hexdigest() for content in contents] == [f.sha256 for f in yeast_genes.ARFF_FILES]


def test_the_wheel_gives_the_same_arrays(genes: Dataset, tmp_path: Path, monkeypatch) -> None:
    """Downloaded by pip; skips where no package index has it."""
    monkeypatch.delenv("GBDTMO_DATA")
    monkeypatch.setattr(_rar, "can_open", lambda: False)
    try:
        data = datasets.load("yeast_genes", cache_dir=tmp_path / "wheel")
    except datasets.MissingDataError as error:
        if "No matching distribution" not in str(error):
            raise
        pytest.skip("pip finds no wheel river 0.26.1; is a package index reachable?")
    assert data.source == "PyPI wheel river==0.26.1 > river/datasets/yeast.csv.gz"
    assert data.sha256 == {"yeast.csv.gz": yeast_genes.CSV_FILE.sha256}
    np.testing.assert_array_equal(data.X, genes.X)
    np.testing.assert_array_equal(data.y, genes.y)
    again = datasets.load("yeast_genes", cache_dir=tmp_path / "wheel", download=False)
    assert again.source == "cache"


def test_the_wheels_test_rows_come_first(tmp_path: Path, monkeypatch) -> None:
    for name, value in (("N_TEST", 1), ("FEATURES", ("a", "b")), ("LABELS", ("k",))):
        monkeypatch.setattr(yeast_genes, name, value)
    path = tmp_path / "set.csv.gz"
    path.write_bytes(gzip.compress(b"a,b,k\n0.5,9,1\n1,2,0\n3,-0.25,1\n"))
    X, y = yeast_genes.read_csv(path)
    assert X.tolist() == [[1, 2], [3, -0.25], [0.5, 9]]
    assert y.tolist() == [[0], [1], [1]]
    assert (X.dtype, y.dtype) == (np.float32, np.uint8)


@pytest.fixture
def rar_folder(shared: Path, tmp_path: Path, monkeypatch) -> Path:
    """A folder of one's own that holds the archive alone; its stored files need no program that unpacks."""
    monkeypatch.setattr(_rar, "can_open", lambda: True)
    own = tmp_path / "own"
    (own / "yeast_ml").mkdir(parents=True)
    members = {member: (shared / "data/yeast_ml" / member).read_bytes() for member in yeast_genes.MEMBERS}
    (own / "yeast_ml/yeast.rar").write_bytes(rar_files.stored(**members))
    monkeypatch.setenv("GBDTMO_DATA", str(own))
    return own


def test_the_archive_gives_the_same_arrays(genes: Dataset, rar_folder: Path) -> None:
    data = datasets.load("yeast_genes", download=False)
    assert set(data.sha256) == {"yeast.rar"}
    np.testing.assert_array_equal(data.X, genes.X)
    np.testing.assert_array_equal(data.y, genes.y)


def test_other_values_are_refused(rar_folder: Path) -> None:
    """The archive's own checksum is not known, so what it holds is compared."""
    path = rar_folder / "yeast_ml/yeast.rar"
    with rarfile.RarFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    changed = members["yeast-test.arff"].replace(b"0.004168", b"0.004169", 1)
    path.write_bytes(rar_files.stored(**{**members, "yeast-test.arff": changed}))
    with pytest.raises(FormatError, match=r"yeast\.rar: not the published values: SHA-256 expected 51eea6d5"):
        datasets.load("yeast_genes", download=False)


def test_where_to_get_it() -> None:
    with pytest.raises(datasets.MissingDataError) as caught:
        datasets.load("yeast_genes", download=False)
    for part in ("yeast_ml/yeast-train.arff", "yeast_ml/yeast-test.arff", "river==0.26.1", "GBDTMO_DATA"):
        assert part in str(caught.value)
