"""Where a run says it comes from."""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from repro import provenance


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    git(tmp_path, "init")
    (tmp_path / "code.py").write_text("a = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "start")
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    return tmp_path


def version() -> dict[str, object]:
    provenance.code_version.cache_clear()
    try:
        return provenance.code_version()
    finally:
        provenance.code_version.cache_clear()


def test_a_changed_or_new_file_makes_the_checkout_dirty_but_results_do_not(checkout: Path) -> None:
    clean = version()
    head = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert clean == {"commit": head.stdout.strip(), "dirty": False}
    (checkout / "results").mkdir()
    (checkout / "results" / "table5.md").write_text("new")
    assert version()["dirty"] is False
    (checkout / "code.py").write_text("a = 2\n")
    assert version()["dirty"] is True
    git(checkout, "checkout", "code.py")
    (checkout / "more.py").write_text("")
    assert version()["dirty"] is True


def test_outside_a_checkout_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert version() == {"commit": None, "dirty": None}


def test_machine_and_libraries_are_described_in_json() -> None:
    described = provenance.collect(threads=3)
    assert json.loads(json.dumps(described)) == described
    assert described["threads"] == 3
    assert described["versions"]["numpy"] == np.__version__
    assert set(described["versions"]) >= {"scikit-learn", "xgboost", "lightgbm", "hydra-core"}
    assert described["n_cpus"] == len(os.sched_getaffinity(0))
    assert described["cpu"]
    assert datetime.now(UTC) - datetime.fromisoformat(described["started"]) < timedelta(minutes=1)
