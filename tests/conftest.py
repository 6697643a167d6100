"""Fixtures that all tests may use."""

import os
from pathlib import Path

import pytest

PROJECT_ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def project_root() -> Path:
    return PROJECT_ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of golden files and data sets for tests, which is not part of the repository."""
    folder = Path(os.environ.get("GBDTMO_SHARED", PROJECT_ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}: set GBDTMO_SHARED to the one that holds golden/ and data/")
    return folder
