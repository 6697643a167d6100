"""Caltech101: the raw pictures give the grey images, and the HOG values are those of their definition."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import datasets
from datasets import FormatError, caltech101
from datasets.base import Dataset


@pytest.fixture(scope="module")
def sample(shared: Path) -> Path:
    """Three categories of the raw pictures."""
    return shared / "data/caltech101/101_ObjectCategories_sample"


@pytest.fixture(scope="module")
def gray(shared: Path) -> dict[str, NDArray[np.uint8]]:
    """File name to image, for all 8,677."""
    with np.load(shared / "data/caltech101/gray64.npz") as arrays:
        return dict(zip(arrays["files"].tolist(), arrays["images"], strict=True))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def data(shared: Path, cache: Path) -> Dataset:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GBDTMO_DATA", str(shared / "data"))
        return datasets.load("caltech101", cache_dir=cache, download=False)


def archive(sample: Path, path: Path) -> Path:
    """Pack the sample as Caltech does, with pictures of no category and files that are no pictures."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as packed:
        for picture in sorted(sample.rglob("*.jpg"), reverse=True):
            packed.add(picture, f"101_ObjectCategories/{picture.parent.name}/{picture.name}")
        packed.add(picture, "101_ObjectCategories/BACKGROUND_Google/image_0001.jpg")
        packed.addfile(tarfile.TarInfo("101_ObjectCategories/yin_yang/._image_0001.jpg"))
        packed.addfile(tarfile.TarInfo("101_ObjectCategories/BACKGROUND_Google/tmp"))
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as outer:
            outer.writestr("caltech-101/101_ObjectCategories.tar.gz", stream.getvalue())
    else:
        path.write_bytes(stream.getvalue())
    return path


@pytest.mark.parametrize("name", ["caltech-101.zip", "101_ObjectCategories.tar.gz"])
def test_raw_pictures_give_the_grey_images(sample: Path, gray, tmp_path: Path, name: str) -> None:
    images, labels, categories = caltech101.read_archive(archive(sample, tmp_path / name))
    assert categories.tolist() == ["inline_skate", "wild_cat", "yin_yang"]
    assert np.bincount(labels).tolist() == [31, 34, 60]
    files = [file for file in gray if file.split("/")[0] in categories]
    assert files == sorted(files)
    np.testing.assert_array_equal(images, [gray[file] for file in files])


def test_incomplete_archive_is_refused(sample: Path, tmp_path: Path) -> None:
    path = archive(sample, tmp_path / "101_ObjectCategories.tar.gz")
    found = datasets.fetch.Found(path, "0" * 64, "here")
    with pytest.raises(FormatError, match="125 pictures of 3 categories; expected 8677 of 101"):
        caltech101._describe(found, caltech101.hog_values)


def test_damaged_archives_and_pictures_are_refused(sample: Path, tmp_path: Path) -> None:
    path = archive(sample, tmp_path / "101_ObjectCategories.tar.gz")
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(FormatError, match="is not the archive"):
        caltech101.read_archive(path)
    (tmp_path / "other.zip").write_bytes(b"no zip")
    with pytest.raises(FormatError, match="is not the archive"):
        caltech101.read_archive(tmp_path / "other.zip")
    picture = (sample / "yin_yang/image_0001.jpg").read_bytes()
    for content in (b"", b"no picture", picture[: len(picture) // 2]):
        with pytest.raises(FormatError, match="cannot be read"):
            caltech101.read_picture(io.BytesIO(content))


def hog_by_definition(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Dalal and Triggs (CVPR 2005), each pixel voting for one of nine orientations over 180 degrees.

    Differences across the border are 0; a block is divided by its norm, clipped at 0.2 and divided again.
    """
    values = image.astype(float)
    rows, columns = np.zeros((2, 64, 64))
    rows[1:-1] = values[2:] - values[:-2]
    columns[:, 1:-1] = values[:, 2:] - values[:, :-2]
    angle = np.degrees(np.arctan2(rows, columns)) % 180
    cells = np.zeros((4, 4, 9))
    for r in range(64):
        for c in range(64):
            cells[r // 16, c // 16, min(int(angle[r, c] // 20), 8)] += np.hypot(rows[r, c], columns[r, c]) / 256
    blocks = []
    for r in range(3):
        for c in range(3):
            block = cells[r : r + 2, c : c + 2]
            block = np.minimum(block / np.sqrt((block**2).sum() + 1e-10), 0.2)
            blocks.append((block / np.sqrt((block**2).sum() + 1e-10)).ravel())
    return np.concatenate(blocks)


def test_hog_by_its_definition(gray) -> None:
    images = np.array(
        [gray[file] for file in ("Faces/image_0001.jpg", "ant/image_0007.jpg", "yin_yang/image_0060.jpg")]
    )
    expected = [hog_by_definition(image) for image in images]
    np.testing.assert_allclose(caltech101.hog_values(images), expected, atol=1e-6)


def test_feature_names_follow_the_layout(gray) -> None:
    """An image with one vertical edge, between columns 40 and 41, is flat but for cells of column 2."""
    image = np.zeros((1, 64, 64), np.uint8)
    image[:, :, 41:] = 200
    values = dict(zip(caltech101.feature_names(), caltech101.hog_values(image)[0].tolist(), strict=True))
    # Blocks of column 0 end before cell column 2; in column 1 it is their right half, in column 2 their left one.
    expected = {f"b{i}{j}c{k}{m}o0" for i in range(3) for j, m in ((1, 1), (2, 0)) for k in range(2)}
    assert {name for name, value in values.items() if value > 0} == expected


def test_class_counts(data: Dataset) -> None:
    counts = dict(zip(data.target_names, np.bincount(data.y).tolist(), strict=True))
    known = {"airplanes": 800, "Motorbikes": 798, "Faces": 435, "Faces_easy": 435, "Leopards": 200, "inline_skate": 31}
    assert {name: counts[name] for name in known} == known
    assert min(counts.values()) == 31
    assert not any("background" in name.lower() for name in data.target_names)
    assert data.n_seeds_default == 10


def test_a_shrunken_linear_discriminant_scores_as_known(data: Dataset) -> None:
    """Elsewhere, scikit-image's HOG of the same grey images scored .641 on split 0, the mark of this layout."""
    split = data.split(0)
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(data.X[split.train], data.y[split.train])
    assert model.score(data.X[split.test], data.y[split.test]) == pytest.approx(0.641, abs=0.001)


def test_second_load_computes_nothing(data: Dataset, shared: Path, cache: Path, monkeypatch) -> None:
    monkeypatch.setenv("GBDTMO_DATA", str(shared / "data"))
    monkeypatch.setattr(caltech101, "_describe", None)
    second = datasets.load("caltech101", cache_dir=cache, download=False)
    assert np.array_equal(data.X, second.X)
    assert np.array_equal(data.y, second.y)
    assert data.sha256 == second.sha256
    assert set(data.sha256) == {"gray64.npz", "HOG values"}


def test_opencvs_hog_scores_as_known(shared: Path, monkeypatch, tmp_path: Path) -> None:
    """Elsewhere, OpenCV 4's HOG of the same grey images scored .677 on split 0."""
    pytest.importorskip("cv2", reason="OpenCV is not installed: pip install 'opencv-python-headless<5'")
    monkeypatch.setenv("GBDTMO_DATA", str(shared / "data"))
    data = datasets.load("caltech101_opencv", cache_dir=tmp_path, download=False)
    assert data.X.shape == (8_677, 324)
    split = data.split(0)
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(data.X[split.train], data.y[split.train])
    assert model.score(data.X[split.test], data.y[split.test]) == pytest.approx(0.677, abs=0.001)


@pytest.mark.parametrize("installed", [None, object()], ids=["no OpenCV", "OpenCV 5"])
def test_without_opencv_4_the_option_says_what_to_install(monkeypatch, installed: object) -> None:
    monkeypatch.setitem(sys.modules, "cv2", installed)
    with pytest.raises(datasets.MissingDataError, match="opencv-python-headless<5"):
        datasets.load("caltech101_opencv", download=False)
