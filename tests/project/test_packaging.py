"""What users install: the wheel holds gbdtmo_core alone and needs nothing but its declared dependencies."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import datasets

USE_INSTALLED = """
import importlib.util
import numpy as np
from gbdtmo_core import GBDTMORegressor

X = np.arange(40.0).reshape(-1, 1)
Y = np.hstack([np.sign(X - 19.5), X])
model = GBDTMORegressor(n_estimators=3, min_samples_leaf=1).fit(X, Y)
assert model.predict(X).shape == (40, 2)
for name in ("datasets", "repro"):
    assert importlib.util.find_spec(name) is None, name
"""


def _run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def built(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    result = _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, project_root)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def test_datasets_is_ours(project_root: Path) -> None:
    # A package index project has the same name.
    assert Path(datasets.__file__).parent == project_root / "datasets"


def test_wheel_holds_gbdtmo_core_alone(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    top = {name.split("/")[0] for name in names}
    assert {re.sub(r"-.*\.", "-*.", name) for name in top} == {"gbdtmo_core", "gbdtmo_core-*.dist-info"}
    assert any(re.fullmatch(r"gbdtmo_core/_native\..*so", name) for name in names)
    assert not [name for name in names if name.endswith((".c", ".h"))]


def test_one_wheel_serves_all_supported_versions(built: Path, project_root: Path) -> None:
    settings = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = settings["project"]["requires-python"].removeprefix(">=").replace(".", "")
    wheel = next(built.glob("*.whl"))
    assert f"-cp{oldest}-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as content:
        assert "gbdtmo_core/_native.abi3.so" in content.namelist()


def test_sdist_holds_the_c_sources(built: Path, project_root: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = sdist.getnames()
    packed = {Path(name).name for name in names if "/gbdtmo_core/csrc/" in name}
    assert packed == {path.name for path in (project_root / "gbdtmo_core/csrc").glob("*.[ch]")}


def test_wheel_works_in_a_bare_environment(built: Path, tmp_path: Path, project_root: Path) -> None:
    python = tmp_path / "venv/bin/python"
    assert _run(sys.executable, "-m", "venv", tmp_path / "venv").returncode == 0
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--retries", "1")
    lock = project_root / f"requirements/py{sys.version_info.major}{sys.version_info.minor}.lock"
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(re.findall(r"^[\w.-]+==[^ ;\\]+", lock.read_text(), re.MULTILINE)))
    dependencies = _run(*pip, "install", "-c", constraints, "numpy", "scikit-learn", "cffi")
    if dependencies.returncode != 0:
        pytest.skip(f"no package index to install numpy, scikit-learn and cffi from: {dependencies.stderr[-300:]}")

    installed = _run(*pip, "install", "--no-deps", "--no-index", next(built.glob("*.whl")))
    assert installed.returncode == 0, installed.stderr
    check = _run(*pip, "check")  # the declared dependencies are met by these three
    assert check.returncode == 0, check.stdout
    used = _run(python, "-c", USE_INSTALLED, cwd=tmp_path)
    assert used.returncode == 0, used.stderr
