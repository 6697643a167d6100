"""Builds the C core as the extension module ``gbdtmo_core._native`` (cffi, API mode)."""

from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "gbdtmo_core" / "csrc"

# One binary for every machine (no -march), and the same bits on all of them: no contraction to fused multiply-add.
# Without trapping math and errno, selections and roundings vectorise; results do not change.
COMPILE_ARGS = [
    "-std=c11",
    "-O3",
    "-fopenmp",
    "-ffp-contract=off",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-fvisibility=hidden",
]


def declarations() -> str:
    """The part of gbdtmo.h between its marks: one declaration, read by the compiler and by cffi."""
    header = (CSRC / "gbdtmo.h").read_text(encoding="utf-8")
    return header.split("/* [cffi:", 1)[1].split("*/", 1)[1].split("/* [cffi: end] */", 1)[0]


ffibuilder = FFI()
ffibuilder.cdef(declarations())
ffibuilder.set_source(
    "gbdtmo_core._native",
    '#include "gbdtmo.h"',
    # setuptools wants paths relative to setup.py, cffi's own compile() takes them from the current folder.
    sources=sorted(str(path.relative_to(ROOT)) for path in CSRC.glob("*.c")),
    include_dirs=[str(CSRC.relative_to(ROOT))],
    depends=sorted(str(path.relative_to(ROOT)) for path in CSRC.glob("*.h")),
    extra_compile_args=COMPILE_ARGS,
    extra_link_args=["-fopenmp"],
)
