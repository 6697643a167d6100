"""NUS-WIDE, from files generated in the layout of Mulan's: the features are 368 MB and not here."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import rar_files
import rarfile
from numpy.typing import NDArray

import datasets
from datasets import FormatError, _rar, nus_wide, nus_wide_shape
from datasets.nus_wide import CONCEPTS, MEMBERS

SIZES = (700, 300)


@pytest.fixture(scope="module")
def official(shared: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    with np.load(shared / "data/nus_wide/nus_wide_labels81.npz") as arrays:
        return arrays["train"], arrays["test"]


@pytest.fixture
def labels(monkeypatch, official) -> NDArray[np.uint8]:
    """The first official labels, and a loader that expects no more than them."""
    parts = [part[:size] for part, size in zip(official, SIZES, strict=True)]
    use(monkeypatch, *parts)
    return np.concatenate(parts)


def use(monkeypatch, train: NDArray[np.uint8], test: NDArray[np.uint8]) -> None:
    monkeypatch.setattr(nus_wide, "N_TRAIN", len(train))
    monkeypatch.setattr(nus_wide, "N_TEST", len(test))
    monkeypatch.setattr(nus_wide, "LABELS_SHA256", hashlib.sha256(train.tobytes() + test.tobytes()).hexdigest())


def features(n: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((n, 128)).astype(np.float32) / 11


def write(folder: Path, X: NDArray[np.float32], y: NDArray[np.uint8], *, concepts=CONCEPTS, picture=True) -> None:
    """Write both files; a column that names the picture comes first."""
    header = "@relation nus-wide-full-cVLADplus\n\n" + ("@attribute imageID string\n" if picture else "")
    header += "".join(f"@attribute Att{i} numeric\n" for i in range(X.shape[1]))
    header += "".join(f"@attribute {concept} {{0,1}}\n" for concept in concepts) + "\n@data\n"
    (folder / "nus_wide").mkdir(parents=True, exist_ok=True)
    for member, rows in zip(MEMBERS, (range(SIZES[0]), range(SIZES[0], len(X))), strict=True):
        with (folder / "nus_wide" / member).open("w") as stream:
            stream.write(header)
            for row in rows:
                name = [f"{row:04d}_2124494179.jpg"] if picture else []
                stream.write(",".join([*name, *map(str, X[row].tolist()), *map(str, y[row].tolist())]) + "\n")


@pytest.fixture
def own(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("GBDTMO_DATA", str(tmp_path / "own"))
    return tmp_path / "own"


@pytest.mark.parametrize("picture", [True, False])
def test_values_and_official_split(own: Path, labels, picture: bool) -> None:
    X = features(1000)
    write(own, X, labels, picture=picture, concepts=[{"cityscape": "cityspace"}.get(c, c) for c in CONCEPTS])
    data = datasets.load("nus_wide", download=False)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, labels)
    assert data.target_names == CONCEPTS
    assert set(data.sha256) == set(MEMBERS)
    assert not data.timing_only
    split = data.split(0)
    assert split.train.tolist() == list(range(700))
    assert split.test.tolist() == list(range(700, 1000))
    order = np.arange(700)
    np.random.RandomState(0).shuffle(order)
    assert split.fit.tolist() == order[:560].tolist()
    assert split.validation.tolist() == order[560:].tolist()


def test_labels_are_taken_by_name(own: Path, labels) -> None:
    order = np.random.default_rng(1).permutation(81)
    write(own, features(1000), labels[:, order], concepts=[CONCEPTS[i] for i in order])
    np.testing.assert_array_equal(datasets.load("nus_wide", download=False).y, labels)


def test_what_is_not_nus_wide_is_refused(own: Path, labels) -> None:
    X = features(1000)
    other = labels.copy()
    other[5, 7] ^= 1
    write(own, X, other)
    with pytest.raises(FormatError, match="labels are not the official ones"):
        datasets.load("nus_wide", download=False)
    write(own, X[:-1], labels[:-1])
    with pytest.raises(FormatError, match=r"\(700, 299\) rows of 128 features; expected \(700, 300\) of 128"):
        datasets.load("nus_wide", download=False)
    write(own, X[:, :100], labels)
    with pytest.raises(FormatError, match="line 3: attribute 'imageID' holds texts"):
        datasets.load("nus_wide", download=False)
    write(own, X, labels, concepts=[*CONCEPTS[:-2], "door", "gate"])
    with pytest.raises(FormatError, match=r"line 212: 2 of the 81 concepts are no attributes: window, zebra"):
        datasets.load("nus_wide", download=False)


def test_the_archive_serves_as_well(own: Path, labels, monkeypatch) -> None:
    """Members that are not packed need no program to open them."""
    monkeypatch.setattr(_rar, "can_open", lambda: True)
    X = features(1000)
    write(own, X, labels)
    members = {}
    for member in MEMBERS:
        path = own / "nus_wide" / member
        members[f"nuswide-cVLADplus/{member}"] = path.read_bytes()
        path.unlink()
    (own / "nus_wide/nuswide-cVLADplus.rar").write_bytes(rar_files.stored(**members))
    data = datasets.load("nus_wide", download=False)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, labels)
    assert set(data.sha256) == {"nuswide-cVLADplus.rar"}


def test_damaged_archives_are_refused(own: Path, labels, monkeypatch) -> None:
    monkeypatch.setattr(_rar, "can_open", lambda: True)
    path = own / "nus_wide/nuswide-cVLADplus.rar"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"<html>not found</html>")
    with pytest.raises(FormatError, match=r"no readable RAR archive .*replace or remove it"):
        datasets.load("nus_wide", download=False)
    path.write_bytes(rar_files.stored(readme=b"nothing"))
    with pytest.raises(FormatError, match=rf"holds 0 files named {MEMBERS[0]}"):
        datasets.load("nus_wide", download=False)
    whole = rar_files.stored(**{MEMBERS[0]: b"@relation r\n@attribute a numeric\n@data\n1\n"})
    path.write_bytes(whole.replace(b"@data\n1", b"@data\n2"))
    with pytest.raises(FormatError, match="no readable RAR archive"):
        datasets.load("nus_wide", download=False)


def test_without_a_program_the_archive_is_not_downloaded(tmp_path: Path, monkeypatch) -> None:
    """370 MB that cannot be opened are of no use; the message says what to install, or what to put where."""

    def none(**_: bool) -> None:
        raise rarfile.RarCannotExec("no program")

    monkeypatch.setattr(rarfile, "tool_setup", none)
    with pytest.raises(datasets.MissingDataError) as caught:
        datasets.load("nus_wide", cache_dir=tmp_path)
    for part in (*MEMBERS, "nuswide-cVLADplus.rar", "unrar", "GBDTMO_DATA"):
        assert part in str(caught.value)


def test_memory_stays_under_twice_the_arrays(own: Path, official, monkeypatch) -> None:
    parts = official[0][: SIZES[0]], official[1][:9_300]
    use(monkeypatch, *parts)
    write(own, features(10_000), np.concatenate(parts))
    tracemalloc.start()
    try:
        data = datasets.load("nus_wide", download=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * (data.X.nbytes + data.y.nbytes)


def test_official_labels_have_the_checksum(official) -> None:
    assert [part.shape for part in official] == [(161_789, 81), (107_859, 81)]
    nus_wide.require_official_labels(np.concatenate(official), "here")


def test_concepts_are_those_of_the_labels(shared: Path) -> None:
    with np.load(shared / "data/nus_wide/nus_wide_labels81.npz") as arrays:
        assert tuple(arrays["concepts"].tolist()) == CONCEPTS
    named = datasets.mulan.read_label_names(shared / "data/nus_wide/nus-wide-cvladplus.xml")
    assert tuple(nus_wide.ALSO_CALLED.get(name, name) for name in named) == CONCEPTS


def test_shape_has_the_official_labels_and_is_marked(shared: Path, monkeypatch, official) -> None:
    monkeypatch.setenv("GBDTMO_DATA", str(shared / "data"))
    data = datasets.load("nus_wide_shape", download=False)
    assert data.timing_only
    assert data.X.shape == (269_648, 128)
    np.testing.assert_array_equal(data.y, np.concatenate(official))
    assert "made up" in data.source
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1, rtol=1e-5)
    split = data.split(0)
    assert [len(part) for part in (split.train, split.fit, split.validation, split.test)] == [
        161_789, 129_431, 32_358, 107_859,
    ]  # fmt: skip


def test_shape_carries_a_signal(official) -> None:
    """Least squares on the made-up features finds more than the most frequent label does, on rows it has not seen."""
    labels = official[0][:20_000]
    X, y = nus_wide_shape.make_features(labels), labels.astype(float)
    weights, *_ = np.linalg.lstsq(X[:10_000], y[:10_000], rcond=None)
    best = (X[10_000:] @ weights).argmax(axis=1)
    found = y[10_000:][np.arange(10_000), best].mean()
    assert y[10_000:].mean(axis=0).max() + 0.05 < found < 0.9
