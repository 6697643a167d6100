"""Fixtures that all tests may use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT_ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep downloads of tests out of the user's cache."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GBDTMO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


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
