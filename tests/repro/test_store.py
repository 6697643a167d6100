"""Run records: whole or not at all, and never another run's."""

import errno
import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from configs import compose_config
from fake_cells import record_of

from repro.store import RunStore, StoreError, owner, run_id, seal, unseal, write_atomically, write_together


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    made = RunStore(tmp_path / "runs")
    made.prepare()
    return made


@pytest.fixture
def record() -> dict[str, Any]:
    return record_of(compose_config())


def test_run_id_is_the_hash_of_the_canonical_identity() -> None:
    identity = {"seed": 1, "dataset": "a", "params": {"y": 2, "x": 0.5}}
    text = b'{"dataset":"a","params":{"x":0.5,"y":2},"seed":1}'
    assert run_id(identity) == hashlib.sha256(text).hexdigest()[:16]


@pytest.mark.parametrize("change", [{"seed": 2}, {"params": {"x": 0.25}}, {"dataset": "b"}])
def test_run_id_tells_identities_apart(change: dict[str, Any]) -> None:
    identity = {"seed": 1, "dataset": "a", "params": {"x": 0.5}}
    assert run_id(identity) != run_id({**identity, **change})


def test_a_written_record_is_read_back(store: RunStore, record: dict[str, Any]) -> None:
    store.write(record)
    assert store.has(record["run_id"])
    assert store.read(record["run_id"]) == record
    assert list(store.records()) == [record]


def change_by_hand(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["scores"].update(test=0.99),
        lambda record: record["history"]["accuracy"].pop(),
        lambda record: record["provenance"].update(dirty=not record["provenance"]["dirty"]),
        lambda record: record.update(remark="better"),
        lambda record: record.pop("artifacts"),
        lambda record: record.update(digest="0" * 64),
    ],
)
def test_a_record_changed_by_hand_is_refused(
    store: RunStore, record: dict[str, Any], change: Callable[[dict[str, Any]], None]
) -> None:
    store.write(record)
    path = store.record_path(record["run_id"])
    change_by_hand(path, change)
    with pytest.raises(StoreError, match=r"was changed after it was written.*Delete it to run the cell again") as error:
        store.read(record["run_id"])
    assert str(path) in str(error.value)


def test_another_layout_of_the_same_record_is_read(store: RunStore, record: dict[str, Any]) -> None:
    store.write(record)
    path = store.record_path(record["run_id"])
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2, sort_keys=True))
    assert store.read(record["run_id"]) == record


def test_a_record_without_its_digest_is_refused(store: RunStore, record: dict[str, Any]) -> None:
    store.write(record)
    change_by_hand(store.record_path(record["run_id"]), lambda record: record.pop("digest"))
    with pytest.raises(StoreError, match="carries no digest"):
        store.read(record["run_id"])


def test_numbers_as_keys_keep_the_digest() -> None:
    """JSON turns them into text, which sorts in another order."""
    sealed = seal({"a": {2: 1, 10: 1}})
    assert unseal(json.loads(json.dumps(sealed)), "it", "") == {"a": {"2": 1, "10": 1}}


def test_writing_leaves_only_the_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new" / "a.txt", "one")
    write_atomically(tmp_path / "new" / "a.txt", "two")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.txt"]
    assert (tmp_path / "new" / "a.txt").read_text() == "two"


def test_a_full_disk_leaves_the_old_file_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomically(tmp_path / "a.txt", "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"a\.txt: No space left on device.*run the same command again"):
        write_atomically(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("full_at", [1, 2, 3])
def test_files_that_belong_together_are_all_written_or_none(tmp_path: Path, monkeypatch, full_at: int) -> None:
    before = {tmp_path / name: f"old {name}" for name in "abc"}
    write_together(before)
    calls = []

    def full(_: int) -> None:
        calls.append(1)
        if len(calls) == full_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=rf"cannot write .*{'abc'[full_at - 1]}: No space left .* Nothing was changed"):
        write_together(dict.fromkeys(before, "new"))
    assert {path: path.read_text() for path in tmp_path.iterdir()} == before


def test_a_folder_in_the_place_of_a_file_is_found_before_anything_is_changed(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "old")
    (tmp_path / "b").mkdir()
    with pytest.raises(StoreError, match=r"cannot write .*b: a folder has its name\. Nothing was changed"):
        write_together({tmp_path / "a": "new", tmp_path / "b": "new"})
    assert (tmp_path / "a").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_cannot_be_made_is_refused_before_work(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="cannot write"):
        RunStore(tmp_path / "runs").prepare()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"schema": 1, "run_', "not whole JSON"),
        ("", "not whole JSON"),
        ("[1, 2]", "holds a list"),
        ('{"schema": 1}', "run_id is missing, identity is missing, config is missing"),
    ],
)
def test_a_half_or_foreign_file_is_named(store: RunStore, record: dict[str, Any], content: str, message: str) -> None:
    store.record_path(record["run_id"]).write_text(content)
    with pytest.raises(StoreError, match=message) as error:
        store.read(record["run_id"])
    assert str(store.record_path(record["run_id"])) in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": None}, "scores is null"),
        ({"scores": {"metric": "accuracy"}}, "scores.test is missing, scores.validation is missing"),
        ({"seconds": {"train": 1.0, "total": "long"}}, 'seconds.total is "long"'),
        ({"best_round": "9"}, 'best_round is "9"'),
        ({"provenance": []}, r"provenance is \[\]"),
        ({"history": None}, "history is null"),
    ],
)
def test_an_incomplete_record_is_refused(
    store: RunStore, record: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    store.record_path(record["run_id"]).write_text(json.dumps({**record, **change}))
    with pytest.raises(StoreError, match=f"is no run record: {message}.*Delete it to run the cell again"):
        store.read(record["run_id"])
    with pytest.raises(StoreError, match=f"not a whole run record: {message}"):
        store.write({**record, **change})


def test_a_record_under_another_name_is_refused(store: RunStore, record: dict[str, Any]) -> None:
    store.record_path("0" * 16).write_text(json.dumps({**record, "run_id": "0" * 16}))
    with pytest.raises(StoreError, match="does not hold the run its name says"):
        store.read("0" * 16)


def test_a_record_of_another_schema_is_refused(store: RunStore, record: dict[str, Any]) -> None:
    store.record_path(record["run_id"]).write_text(json.dumps({**record, "schema": 99}))
    with pytest.raises(StoreError, match="schema 99"):
        store.read(record["run_id"])


def test_a_record_that_is_not_whole_is_not_written(store: RunStore, record: dict[str, Any]) -> None:
    del record["scores"]
    with pytest.raises(StoreError, match="scores"):
        store.write(record)
    assert store.identifiers() == []


def test_a_failure_is_kept_apart_and_forgotten_after_success(store: RunStore, record: dict[str, Any]) -> None:
    try:
        raise ValueError("diverged")
    except ValueError as error:
        store.write_failure(record["identity"], error)
    note = json.loads((store.failures_dir / f"{record['run_id']}.json").read_text())
    assert note["identity"] == record["identity"]
    assert any("raise ValueError" in line for line in note["traceback"])
    assert store.failure(record["run_id"]) == "ValueError: diverged"
    assert not store.has(record["run_id"])
    store.write(record)
    assert store.failure(record["run_id"]) is None


def test_a_missing_data_set_is_noted_and_forgotten(store: RunStore) -> None:
    store.write_missing_dataset("yeast", "no file")
    assert store.missing_dataset("yeast") == "no file"
    store.forget_missing_dataset("yeast")
    assert store.missing_dataset("yeast") is None


def test_leftovers_of_dead_processes_of_this_machine_are_removed(store: RunStore) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    host = socket.gethostname()
    stale = store.records_dir / f".a.json.{host}.{int(dead.stdout)}.tmp"
    own = store.records_dir / f".a.json.{host}.{os.getpid()}.tmp"
    foreign = store.records_dir / ".a.json.elsewhere.1.tmp"
    stale_model = store.models_dir / f".a.{host}.{int(dead.stdout)}.partial.npz"
    own_model = store.models_dir / f".a.{owner()}.partial.npz"
    kept = (own, foreign, own_model)
    for path in (stale, stale_model, *kept):
        path.write_text("{")
    assert store.clean_temporary() == [stale, stale_model]
    assert [path for path in kept if not path.exists()] == []
    assert store.identifiers() == []
