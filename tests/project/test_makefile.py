"""The Makefile explains itself, and the README, CI and Makefile name the same commands."""

import re
import subprocess
from pathlib import Path

import pytest


def _targets(project_root: Path) -> set[str]:
    """Every target a user would call: no files, no variables."""
    return set(re.findall(r"^([a-z][a-z0-9-]*):(?!=)", (project_root / "Makefile").read_text(), re.MULTILINE))


def test_help_lists_every_target(project_root: Path) -> None:
    listed = subprocess.run(["make", "-s", "help"], cwd=project_root, capture_output=True, text=True, check=True)
    names = {line.split()[0] for line in listed.stdout.splitlines()}
    assert names == _targets(project_root)
    required = {"help", "setup", "test", "lint", "check", "reproduce-table5", "grid", "mlflow-ui", "publish", "clean"}
    assert required <= names


def test_targets_can_be_called_first(project_root: Path) -> None:
    """Each target but those that need no Python sets the environment up before it uses it."""
    for target in _targets(project_root) - {"help", "clean"}:
        command = ["make", "-n", target, *(["EXPERIMENT=table5"] if target == "experiment" else [])]
        plan = subprocess.run(command, cwd=project_root, capture_output=True, text=True, check=True).stdout
        assert "scripts/bootstrap.sh" in plan.split(".venv/bin/")[0], target


def test_ci_runs_the_test_command_of_the_readme(project_root: Path) -> None:
    ci = (project_root / ".ci/run").read_text()
    commands = re.findall(r"^(?:exec )?(make .*)$", ci, re.MULTILINE)
    assert commands == ["make test"]
    assert "make test" in (project_root / "README.md").read_text()


@pytest.mark.parametrize(
    ("target", "given", "expected"),
    [
        ("reproduce-table5", (), '--datasets "" --models ""'),
        ("reproduce-table5", ("DATASETS=a,b", "MODELS=c"), '--datasets "a,b" --models "c"'),
        ("reproduce-table5", ("DATASET=a", "MODEL=c"), '--datasets "a" --models "c"'),
        ("reproduce-table9", ("DATASET=a", "SEEDS=2"), '--datasets "a" --models "" --seeds "2"'),
        ("figure4", ("MODELS=c",), '--models "c" --seeds ""  experiment=figure4'),
        ("ranksvm-table", ("MODELS=c",), '--datasets "" --models "c" --seeds ""  experiment=ranksvm_table'),
        ("families", ("DATASET=a",), '--datasets "a" --models "" --seeds ""  experiment=families'),
        ("bench", (), '--datasets "" --models ""'),
        ("bench", (), "experiment=bench "),
        ("bench", ("EXPERIMENT=figure5", "DATASET=a", "MODELS=b"), '--datasets "a" --models "b"'),
        ("bench", ("EXPERIMENT=figure5",), "experiment=figure5 "),
        ("grid", (), '--datasets "yeast" --models "gbdt_mo"'),
        ("grid", ("DATASETS=a", "MODELS=c,d"), '--datasets "a" --models "c,d"'),
        ("grid", ("DATASET=a", "MODEL=c"), '--datasets "a" --models "c"'),
    ],
)
def test_both_spellings_narrow_an_experiment(
    project_root: Path, target: str, given: tuple[str, ...], expected: str
) -> None:
    command = ["make", "-n", target, *given]
    assert expected in subprocess.run(command, cwd=project_root, capture_output=True, text=True, check=True).stdout


def refusal(project_root: Path, *words: str) -> str:
    done = subprocess.run(["make", "-n", *words], cwd=project_root, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    return done.stderr


@pytest.mark.parametrize(
    ("target", "given"),
    [
        ("bench", "SEEDS=2"),
        ("reproduce-table6", "MODELS=gbdt_mo"),
        ("reproduce-table10", "DATASETS=yeast"),
        ("significance", "DATASET=yeast"),
        ("publish", "DATASETS=yeast"),
        ("reproduce-table5", "EXPERIMENT=table7"),
    ],
)
def test_a_variable_that_the_target_does_not_read_is_refused(project_root: Path, target: str, given: str) -> None:
    """It would run, or publish, the whole thing."""
    name = given.partition("=")[0]
    assert f"{name}: {target} does not read that; these do: " in refusal(project_root, target, given)


def test_what_a_target_reads_is_what_its_recipe_takes(project_root: Path) -> None:
    """The lists at the head of the Makefile against what `make -n` then does with each variable."""
    for target in _targets(project_root) - {"help", "clean", "lock"}:
        which = ["EXPERIMENT=table5"] if target == "experiment" else []
        for name in ("DATASETS", "MODELS", "SEEDS", "EXPERIMENT"):
            command = ["make", "-n", target, *([] if name == "EXPERIMENT" else which), f"{name}=marked"]
            done = subprocess.run(command, cwd=project_root, capture_output=True, text=True, check=False)
            assert ("marked" in done.stdout) == (done.returncode == 0), (target, name)


def test_two_spellings_at_once_are_refused(project_root: Path) -> None:
    assert "two spellings" in refusal(project_root, "grid", "DATASET=yeast", "DATASETS=digits")


def test_an_experiment_must_be_named(project_root: Path) -> None:
    assert "say which, such as EXPERIMENT=yeast_splits" in refusal(project_root, "experiment")


@pytest.mark.parametrize("given", ["SEED=3", "DATSETS=yeast", "Models=a"])
def test_a_variable_that_nothing_reads_is_refused(project_root: Path, given: str) -> None:
    """A narrowing that is not understood would run everything."""
    command = ["make", "-n", "reproduce-table5", given]
    done = subprocess.run(command, cwd=project_root, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    name = given.partition("=")[0]
    assert f"{name}: nothing reads that; there are PYTHON VENV DATASET MODEL DATASETS MODELS SEEDS" in done.stderr
