"""The C units, each test file one program, under AddressSanitizer and UndefinedBehaviorSanitizer."""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CSRC = HERE.parents[1] / "gbdtmo_core/csrc"
# GMO_NO_CLONES: run-time dispatch and sanitizers do not mix.
FLAGS = [
    *(
        "-std=c11",
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-fopenmp",
        "-ffp-contract=off",
        "-DGMO_NO_CLONES",
        "-DGMO_PARALLEL_WORK=0",
    ),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror"),
    f"-I{CSRC}",
]


def _compile(*arguments: str | Path) -> None:
    compiler = os.environ.get("CC", "gcc")
    result = subprocess.run([compiler, *FLAGS, *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The core, compiled once for all programs."""
    folder = tmp_path_factory.mktemp("objects")
    compiled = []
    for source in sorted(CSRC.glob("*.c")):
        compiled.append(folder / f"{source.stem}.o")
        _compile("-c", source, "-o", compiled[-1])
    return compiled


@pytest.mark.parametrize("source", sorted(HERE.glob("test_*.c")), ids=lambda path: path.stem)
def test_unit(source: Path, objects: list[Path], tmp_path: Path) -> None:
    program = tmp_path / source.stem
    _compile(source, *objects, "-Wl,--wrap=aligned_alloc", "-lm", "-o", program)
    environment = os.environ | {
        "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "OMP_NUM_THREADS": "3",
    }
    result = subprocess.run([program], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-4000:]
    assert ", 0 failed" in result.stderr
