"""The README's code runs, its commands exist, and its table is the published one."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def readme(project_root: Path) -> str:
    return (project_root / "README.md").read_text(encoding="utf-8")


def test_python_blocks_run(readme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # they write files
    blocks = [code for language, code in BLOCK.findall(readme) if language == "python"]
    names: dict[str, object] = {}
    exec(compile("\n".join(blocks), "README.md", "exec"), names)
    assert names["accuracy"] > 0.9  # ten classes
    assert names["images"].shape[1] == 32


def test_commands_exist(readme: str, project_root: Path) -> None:
    blocks = "\n".join(code for language, code in BLOCK.findall(readme) if language == "bash")
    in_text = "\n".join(re.findall(r"`((?:make|\.venv/bin/python) [^`]+)`", readme))
    makes = [
        shlex.split(line, comments=True) for line in f"{blocks}\n{in_text}".splitlines() if line.startswith("make ")
    ]
    assert len(makes) > 5
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    for command in makes:
        plan = subprocess.run(
            [command[0], "-n", *command[1:]], cwd=project_root, env=environment, capture_output=True, text=True
        )
        assert plan.returncode == 0, (command, plan.stderr)


def test_table_is_the_published_one(project_root: Path) -> None:
    script = project_root / "scripts/readme_table.py"
    checked = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
