"""What is computed from data files is kept whole, found again, and computed anew where it is damaged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from datasets._derived import Arrays, cached, digest_of

KEY = {"file": "abc", "layout": 1}


class Maker:
    """Computes some arrays and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Arrays:
        self.calls += 1
        return {"X": np.arange(6, dtype=np.float32).reshape(2, 3), "names": np.array(["a", "b"])}


def only_file(cache: Path) -> Path:
    (path,) = [path for path in cache.rglob("*") if path.is_file()]
    return path


def check(arrays: Arrays) -> None:
    assert arrays["X"].dtype == np.float32
    assert arrays["X"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["names"].tolist() == ["a", "b"]
    assert set(arrays) == {"X", "names"}


def test_computed_once(tmp_path: Path) -> None:
    make = Maker()
    for _ in range(2):
        check(cached("set", KEY, make, cache_dir=tmp_path))
    assert make.calls == 1


@pytest.mark.parametrize("other", [{**KEY, "layout": 2}, {**KEY, "file": "abd"}, {"file": "abc"}])
def test_another_key_is_another_result(tmp_path: Path, other: dict[str, str | int]) -> None:
    make = Maker()
    cached("set", KEY, make, cache_dir=tmp_path)
    cached("set", other, make, cache_dir=tmp_path)
    assert make.calls == 2


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip_a_bit_of_the_values(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.find(np.float32(5).tobytes())] ^= 1
    path.write_bytes(content)


def replace_an_array(path: Path) -> None:
    """Write a sound file whose values are not those of its checksum."""
    with np.load(path) as file:
        arrays = dict(file)
    arrays["X"] = arrays["X"] + 1
    np.savez(path, **arrays)


def name_an_unknown_compression(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.rfind(b"PK\x01\x02") + 10] ^= 1
    path.write_bytes(content)


def say_it_is_encrypted(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[content.rfind(b"PK\x01\x02") + 8] ^= 1
    path.write_bytes(content)


def leave_out_the_checksum(path: Path) -> None:
    np.savez(path, **Maker()())


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        empty,
        flip_a_bit_of_the_values,
        replace_an_array,
        name_an_unknown_compression,
        say_it_is_encrypted,
        leave_out_the_checksum,
    ],
)
def test_damage_is_told_and_repaired(tmp_path: Path, caplog, damage: Callable[[Path], None]) -> None:
    make = Maker()
    cached("set", KEY, make, cache_dir=tmp_path)
    path = only_file(tmp_path)
    damage(path)
    with caplog.at_level(logging.WARNING):
        check(cached("set", KEY, make, cache_dir=tmp_path))
    assert f"{path} in the cache is damaged" in caplog.text
    caplog.clear()
    check(cached("set", KEY, make, cache_dir=tmp_path))
    assert make.calls == 2
    assert caplog.text == ""
    assert only_file(tmp_path) == path


def test_unusable_cache_costs_time_alone(tmp_path: Path, caplog) -> None:
    (tmp_path / "a file").write_text("")
    make = Maker()
    check(cached("set", KEY, make, cache_dir=tmp_path / "a file"))
    assert "cannot keep" in caplog.text
    assert make.calls == 1


def test_interrupted_writing_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    def stop(stream, **arrays) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", stop)
    with pytest.raises(KeyboardInterrupt):
        cached("set", KEY, Maker(), cache_dir=tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_digest_tells_names_types_and_shapes_apart() -> None:
    values = np.arange(6, dtype=np.int32)
    variants = [{"a": values}, {"b": values}, {"a": values.reshape(2, 3)}, {"a": values.view(np.uint32)}, {}]
    assert len({digest_of(arrays) for arrays in variants}) == len(variants)
    assert digest_of({"a": values.reshape(2, 3).T}) == digest_of({"a": values.reshape(2, 3).T.copy()})
