"""scripts/bootstrap.sh takes an interpreter that really runs, and repairs a set-up that was interrupted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
BROKEN = "#!/bin/sh\necho 'shim: command not found' >&2\nexit 127\n"
TOO_NEW = "#!/bin/sh\necho 3.99\n"


def _executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path: Path, project_root: Path) -> Path:
    """A project with the real script and a lock that names no package."""
    project = tmp_path / "project"
    (project / "requirements").mkdir(parents=True)
    (project / f"requirements/py{VERSION.replace('.', '')}.lock").write_text("# nothing\n")
    (project / "scripts").mkdir()
    shutil.copy(project_root / "scripts/bootstrap.sh", project / "scripts")
    return project


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """What the script calls, but no Python."""
    for name in ("bash", "cat", "cksum", "cut", "dirname", "gcc", "head", "ls", "mktemp", "mv", "rm", "sort"):
        (tmp_path / "tools").mkdir(exist_ok=True)
        found = shutil.which(name)
        assert found is not None, name
        (tmp_path / "tools" / name).symlink_to(found)
    return tmp_path / "tools"


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """The interpreter below the one that runs this test, under its versioned name."""
    path = tmp_path / f"real/python{VERSION}"
    path.parent.mkdir()
    path.symlink_to(Path(sys._base_executable).resolve())  # type: ignore[attr-defined]
    return path


def _bootstrap(project: Path, *arguments: str, path: list[Path], **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "PYTHONPATH")}
    variables = {"PYENV_ROOT": "/nowhere", "PATH": ":".join(map(str, path)), **variables}
    return subprocess.run(
        [project / "scripts/bootstrap.sh", *arguments], env=kept | variables, capture_output=True, text=True
    )


def test_skips_shims_that_fail(project: Path, tools: Path, real: Path, tmp_path: Path) -> None:
    for name in ("python3.13", "python3.12", "python3.11", "python3"):
        _executable(tmp_path / "shims" / name, BROKEN)
    result = _bootstrap(project, "--find-python", path=[tmp_path / "shims", real.parent, tools])
    assert result.stdout == f"{real}\n"


def test_finds_pyenv_versions_and_plain_python3(project: Path, tools: Path, real: Path, tmp_path: Path) -> None:
    managed = tmp_path / f"pyenv/versions/{VERSION}.0/bin/python{VERSION}"
    managed.parent.mkdir(parents=True)
    managed.symlink_to(real.resolve())
    result = _bootstrap(project, "--find-python", path=[tools], PYENV_ROOT=str(tmp_path / "pyenv"))
    assert result.stdout == f"{managed}\n"

    plain = tmp_path / "plain/python3"
    plain.parent.mkdir()
    plain.symlink_to(real.resolve())
    result = _bootstrap(project, "--find-python", path=[plain.parent, tools])
    assert result.stdout == f"{plain}\n"


def test_says_what_it_tried(project: Path, tools: Path, tmp_path: Path) -> None:
    broken = _executable(tmp_path / "shims/python3.12", BROKEN)
    other = _executable(tmp_path / "shims/python3", TOO_NEW)
    result = _bootstrap(project, path=[tmp_path / "shims", tools])
    assert result.returncode == 1
    assert f"{broken}: shim: command not found" in result.stderr
    assert f"{other}: is Python 3.99" in result.stderr
    assert "PYTHON=" in result.stderr
    assert not (project / ".venv").exists()


def test_python_variable_overrides(project: Path, tools: Path, real: Path, tmp_path: Path) -> None:
    path = [real.parent, tools]
    chosen = str(real.resolve())
    assert _bootstrap(project, "--find-python", path=path, PYTHON=chosen).stdout == f"{chosen}\n"
    result = _bootstrap(project, "--find-python", path=path, PYTHON=str(_executable(tmp_path / "other", TOO_NEW)))
    assert result.returncode == 1
    assert "is Python 3.99" in result.stderr


def test_the_checkout_can_be_imported_from_anywhere(project: Path, tools: Path, real: Path, tmp_path: Path) -> None:
    (project / "datasets.py").write_text("here = True\n")
    path = [real.parent, tools]
    command = [project / ".venv/bin/python", "-c", "import datasets; print(datasets.__file__)"]
    for _ in range(2):  # a set-up made by an earlier version of the script gets the path, too
        result = _bootstrap(project, path=path)
        assert result.returncode == 0, result.stderr
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert found.stdout == f"{project / 'datasets.py'}\n", found.stderr
        next((project / ".venv").glob("lib/*/site-packages/checkout.pth")).unlink()


def test_repairs_an_interrupted_setup(project: Path, tools: Path, real: Path) -> None:
    path = [real.parent, tools]
    stamp = project / ".venv/.installed"
    _executable(project / ".venv/bin/python", BROKEN)  # cut off half-way: no stamp yet
    first = _bootstrap(project, path=path)
    assert first.returncode == 0, first.stderr
    assert subprocess.run([project / ".venv/bin/python", "-c", "import sys"]).returncode == 0

    written = stamp.stat().st_mtime_ns
    again = _bootstrap(project, path=path)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert stamp.stat().st_mtime_ns == written

    (project / f"requirements/py{VERSION.replace('.', '')}.lock").write_text("# another nothing\n")
    assert _bootstrap(project, path=path).returncode == 0
    assert stamp.stat().st_mtime_ns > written
