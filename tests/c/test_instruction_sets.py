"""Every instruction set gives the same bits: the core compiled for each on its own, and as it is shipped."""

import os
import platform
import subprocess
from pathlib import Path

import pytest

from gbdtmo_core.build_native import COMPILE_ARGS, CSRC

PROGRAM = Path(__file__).parent / "print_models.c"
# What the shipped binary may choose between, and the flag of /proc/cpuinfo that a machine needs for it.
VERSIONS = {
    "baseline": (["-DGMO_NO_CLONES"], None),
    "avx2": (["-DGMO_NO_CLONES", "-mavx2"], "avx2"),
    "avx512": (["-DGMO_NO_CLONES", "-mavx512f"], "avx512f"),
    "shipped": ([], None),
}

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not Path("/proc/cpuinfo").is_file(), reason="the core has one version elsewhere"
)


def _printed(version: str, folder: Path) -> str:
    program = folder / version
    sources = [PROGRAM, *sorted(CSRC.glob("*.c"))]
    command = [os.environ.get("CC", "gcc"), *COMPILE_ARGS, "-Wall", "-Wextra", *VERSIONS[version][0], f"-I{CSRC}"]
    command += [*map(str, sources), "-lm", "-o", str(program)]
    compiled = subprocess.run(command, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    assert "warning" not in compiled.stderr, compiled.stderr
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _printed("baseline", tmp_path_factory.mktemp("baseline"))


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != "baseline"])
def test_same_bits(version: str, baseline: str, tmp_path: Path) -> None:
    needed = VERSIONS[version][1]
    if needed and needed not in Path("/proc/cpuinfo").read_text(encoding="utf-8").split():
        pytest.skip(f"this processor has no {needed}")
    printed = _printed(version, tmp_path)
    assert len(printed.splitlines()) == 6 * 3 * 3 * 2 + 3 * 2 + 2 * 2 + 6
    assert printed == baseline
