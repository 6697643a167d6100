"""The design's import rules: those between Python modules, and those between C units."""

import ast
import re
import subprocess
import sys
from pathlib import Path

# What each C unit may include directly; `boost` joins those of the trees.
C_RULES = {
    "common": {"gbdtmo"},
    "bins": {"common"},
    "loss": {"common"},
    "fixed": {"common"},
    "shape": {"fixed"},
    "hist": {"shape"},
    "tree": {"common"},
    "predict": {"common"},
    "split": {"hist", "score", "screen"},
    "small": {"screen"},
    "score": {"split"},
    "screen": {"split"},
    "cholesky": {"common"},
    "exact": {"cholesky", "split"},
    "grow": {"exact", "tree"},
    "search": {"grow"},
    "released": {"grow"},
    "leaf": {"grow"},
    "boost": {"leaf", "loss"},
    "pairs": {"common"},
    "rows": {"common"},
    "scores": {"rows"},
    "qp": {"pairs", "scores"},
    "bounds": {"qp"},
    "kernel": {"common"},
    "ranksvm": {"qp"},
    "stump_weights": {"common"},
    "stump_search": {"stump_weights"},
    "stumps": {"stump_search"},
    "stump_scores": {"common"},
}


def test_python_import_contracts(project_root: Path) -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run([linter, "--no-cache"], cwd=project_root, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_compiled_module_has_one_door_a_family(project_root: Path) -> None:
    importers = set()
    for folder in ("gbdtmo_core", "datasets", "repro"):
        for path in (project_root / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom):
                    names = {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
                elif isinstance(node, ast.Import):
                    names = {alias.name for alias in node.names}
                else:
                    continue
                if any("_native" in name.split(".") for name in names):
                    importers.add(path.name)
    assert importers == {"_lib.py", "_lib_ranksvm.py", "_lib_stumps.py"}


def test_c_units_include_only_what_they_stand_on(project_root: Path) -> None:
    included: dict[str, set[str]] = {}
    for path in (project_root / "gbdtmo_core/csrc").glob("*.[ch]"):
        headers = re.findall(r'^#include "(\w+)\.h"', path.read_text(encoding="utf-8"), re.MULTILINE)
        included.setdefault(path.stem, set()).update(set(headers) - {path.stem})
    assert included.pop("gbdtmo") == set()
    assert included == C_RULES
