"""From a benchmark's experiment file to its cells, in the order they are run."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from repro.bench.shapes import is_at_hand
from repro.provenance import ROOT, library_versions
from repro.store import StoreError, check_runs_dir, run_id

CONF = ROOT / "conf"
RELEASED_LIBRARY = "GBDTMO_RELEASED_LIB"
KINDS = ("bench", "figure5", "inference", "table6", "ranksvm_scaling")
"""Kinds of table that are made from benchmark records."""
# Files that a measurement depends on; a change of any of them makes new cells.
_MEASURING = (
    "cell.py",
    "measure.py",
    "shapes.py",
    "solve.py",
    "synthetic.py",
    "limit.py",
    "limit.c",
)
_NEUTRAL = ("runs_dir",)
_BOOSTED = ("rounds", "predict", "score", "row")
"""Kinds of work that train a number of rounds."""
_STAND_IN_GROUPS = ("limit", "rounds", "inference")


class BenchError(ValueError):
    """A benchmark that cannot be planned; the message says why."""


@dataclass(frozen=True)
class BenchCell:
    """One measurement.

    Attributes
    ----------
    group, work, shape, model, variant : str
        ``model`` is empty where the machine itself is measured, ``variant`` where the group has none.
    threads, repeat : int
    config : dict
        What the measuring process needs; with the code's digests it is the cell's identity.
    run_id : str
    identity : dict
    """

    group: str
    work: str
    shape: str
    model: str
    variant: str
    threads: int
    repeat: int
    config: dict[str, Any]
    identity: dict[str, Any]
    run_id: str

    @property
    def key(self) -> dict[str, Any]:
        """What tells the cell within its experiment."""
        names = ("group", "shape", "model", "variant", "threads", "repeat")
        return {name: getattr(self, name) for name in names}

    @property
    def label(self) -> str:
        """Short name for progress lines."""
        words = [self.group, self.shape, self.model, self.variant, f"{self.threads} thread(s)", f"repeat {self.repeat}"]
        return " ".join(word for word in words if word)


Measured = Sequence[tuple[BenchCell, Mapping[str, Any]]]
"""Cells with their records."""


@dataclass(frozen=True)
class BenchPlan:
    """The cells of one benchmark; attributes as in `repro.plan.Plan`, and ``titles`` of the shapes."""

    experiment: str
    kind: str
    cells: tuple[BenchCell, ...]
    narrowed: tuple[str, ...]
    runs_dir: str
    titles: dict[str, str]


def is_benchmark(experiment: str) -> bool:
    """Tell whether an experiment file describes a benchmark."""
    path = CONF / "experiment" / f"{experiment}.yaml"
    if not path.is_file():
        return False
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return (content.get("table") or {}).get("kind") in KINDS


def make_bench_plan(
    experiment: str = "bench",
    *,
    overrides: Sequence[str] = (),
    shapes: Sequence[str] = (),
    models: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> BenchPlan:
    """Plan the cells of a benchmark.

    Parameters
    ----------
    experiment : str
        A file under ``conf/experiment`` whose table is one of `KINDS`.
    overrides : sequence of str
        Hydra overrides for the experiment and every cell.
    shapes, models, groups : sequence of str
        Narrow the benchmark to these; a further shape stands in for those of groups ``limit``,
        ``rounds`` and ``inference``.

    Raises
    ------
    BenchError
        If the experiment, a shape, model or group does not exist, or nothing is left.
    """
    if not is_benchmark(experiment):
        raise BenchError(f"{experiment} is no benchmark; there are {', '.join(KINDS)}")
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            base = _compose([f"+experiment={experiment}", *overrides])
            chosen = _groups(base, groups)
            _check_most_rounds(base.bench.most_rounds)
            _check_names("shape", shapes, CONF / "shape")
            _check_names("model", models, CONF / "model")
            cells = [
                cell
                for name, group in chosen.items()
                for cell in _cells(name, group, base.bench, overrides, shapes, models)
            ]
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, StoreError) as error:
        raise BenchError(f"{experiment} {' '.join(overrides)}: {' '.join(str(error).split())}") from error
    if not cells:
        raise BenchError(f"nothing of {experiment} is left to measure: no group has these shapes and models")
    return BenchPlan(
        experiment=experiment,
        kind=str(base.table.kind),
        cells=tuple(cells),
        narrowed=tuple(_narrowing(overrides, shapes, models, groups)),
        runs_dir=check_runs_dir(base.runs_dir),
        titles={cell.shape: cell.config["dataset"]["title"] for cell in cells},
    )


def _compose(overrides: list[str]) -> DictConfig:
    return compose("bench", overrides=overrides)


def _check_most_rounds(most_rounds: Any) -> None:
    if most_rounds is not None and (not isinstance(most_rounds, int) or most_rounds < 2):
        raise BenchError(f"bench.most_rounds must be at least 2 (the first round is left out), not {most_rounds!r}")


def _groups(base: DictConfig, asked: Sequence[str]) -> dict[str, Any]:
    groups: Any = OmegaConf.to_container(base.bench.groups, resolve=True)
    only = list(base.bench.get("only") or groups)
    if unknown := sorted({*asked, *only} - set(groups)):
        raise BenchError(f"no group named {', '.join(unknown)}; there are {', '.join(groups)}")
    groups = {name: groups[name] for name in only}
    return {name: group for name, group in groups.items() if not asked or name in asked}


def _check_names(role: str, names: Sequence[str], folder: Path) -> None:
    known = sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.yaml"))
    known = [name for name in known if not name.startswith("base")]
    if unknown := [name for name in names if name not in known]:
        raise BenchError(f"no {role} named {', '.join(unknown)}; there are {', '.join(known)}")


def _cells(
    name: str,
    group: Mapping[str, Any],
    bench: DictConfig,
    overrides: Sequence[str],
    shapes: Sequence[str],
    models: Sequence[str],
) -> Iterator[BenchCell]:
    for shape in _narrowed(group["shapes"], shapes, takes_any=name in _STAND_IN_GROUPS):
        given = [f"shape@dataset={shape}", *group.get("shape_overrides", {}).get(shape, [])]
        given += [text for text in overrides if not text.startswith("bench.")]
        variants = _top_k_variants(given) if group.get("top_k") else group.get("variants", {"": []})
        bases = {
            model: _with_rows_at_hand(_compose([*given, *_model_overrides(bench, model)]))
            for model in (_narrowed(group["models"], models) if "models" in group else [""])
        }
        composed = {
            (variant, model): _cell_config(_changed(base, changes), group, shape, model, bench.most_rounds)
            for variant, changes in variants.items()
            for model, base in bases.items()
        }
        for repeat in range(group["repeats"]):
            for threads in group.get("threads", [1]):
                for (variant, model), config in composed.items():
                    yield _cell(name, group["work"], shape, model, str(variant), threads, repeat, config)


def _with_rows_at_hand(config: DictConfig) -> DictConfig:
    """Let rows be made up, if the shape allows it, where its data set would have to be downloaded."""
    made_up = config.dataset.get("made_up")
    if made_up and not is_at_hand(config.dataset.source):
        OmegaConf.update(config, "dataset", {**made_up, "synthetic": True}, merge=True, force_add=True)
    return config


def _narrowed(own: Sequence[str], asked: Sequence[str], takes_any: bool = False) -> list[str]:
    if not asked:
        return list(own)
    return list(asked) if takes_any else [name for name in own if name in asked]


def _model_overrides(bench: DictConfig, model: str) -> list[str]:
    return [f"model={model}", *map(str, bench.overrides.get(model) or [])] if model else []


def _top_k_variants(overrides: list[str]) -> dict[str, list[str]]:
    grid = _compose(overrides).dataset.top_k_grid
    variants: dict[str, list[str]] = {"full": []}
    for k in grid:
        for mode in ("restricted", "unrestricted"):
            variants[f"{mode} {k}"] = [f"+model.estimator.top_k={k}", f"+model.estimator.top_k_mode={mode}"]
    return variants


_DATA_KEYS = (
    "name",
    "title",
    "task",
    "synthetic",
    "source",
    "seed",
    "rows",
    "test_rows",
    "features",
    "outputs",
    "options",
)


def _changed(base: DictConfig, changes: Sequence[str]) -> DictConfig:
    """Return a copy with a variant's changes, ``key=value``; a plus before a new key, as Hydra wants it."""
    config = base.copy()
    for change in changes:
        key, _, value = change.partition("=")
        OmegaConf.update(config, key.removeprefix("+"), yaml.safe_load(value), force_add=key.startswith("+"))
    return config


def _cell_config(
    config: DictConfig, group: Mapping[str, Any], shape: str, model: str, most_rounds: int | None
) -> dict[str, Any]:
    composed: Any = OmegaConf.to_container(config, resolve=True)
    dataset = composed["dataset"]
    cell = {"work": group["work"], "dataset": {key: dataset[key] for key in _DATA_KEYS if key in dataset}}
    if not model:
        return cell
    if group["work"] not in _BOOSTED:
        return {**cell, "estimator": composed["model"]["estimator"]}
    own = group.get("rounds", {})  # by model or by shape
    rounds = own.get(model, own.get(shape, dataset["rounds"]))
    rounds = min(rounds, most_rounds or rounds)
    return {**cell, "rounds": rounds, "estimator": {**composed["model"]["estimator"], "n_estimators": rounds}}


def _cell(
    group: str, work: str, shape: str, model: str, variant: str, threads: int, repeat: int, config: dict[str, Any]
) -> BenchCell:
    config = {**config, "threads": threads}
    identity = {"suite": "bench", **config, "repeat": repeat, "code": _code(config)}
    return BenchCell(group, work, shape, model, variant, threads, repeat, config, identity, run_id(identity))


def _code(config: Mapping[str, Any]) -> dict[str, Any]:
    """Name the code that a measurement depends on: the suite's, the adapter's and the library's own."""
    code: dict[str, Any] = {"suite": _digest(tuple(ROOT / "repro" / "bench" / name for name in _MEASURING))}
    if "estimator" not in config:
        return code
    module = str(config["estimator"]["_target_"]).rpartition(".")[0]
    code["adapter"] = _digest(((ROOT / module.replace(".", "/")).with_suffix(".py"),))
    code["library"] = _library(module.rpartition(".")[2])
    return code


def _library(adapter: str) -> str | None:
    """Name the version of what an adapter calls."""
    if adapter in ("gbdt_mo", "rank_svm"):
        return _core_digest()
    if adapter == "frank_wolfe":
        own = _digest(tuple(ROOT / "tests" / "oracle" / f"{name}.py" for name in ("frank_wolfe", "label_pairs")))
        return f"{own}, SciPy {metadata.version('scipy')}"
    if adapter == "released_library":
        path = os.environ.get(RELEASED_LIBRARY)
        return _digest((Path(path),)) if path and Path(path).is_file() else None
    return library_versions().get("scikit-learn" if adapter == "one_vs_rest" else adapter)


def _core_digest() -> str:
    folder = ROOT / "gbdtmo_core"
    files = [path for ending in ("*.py", "*.c", "*.h") for path in folder.rglob(ending) if path.stem != "_native"]
    return _digest(tuple(sorted(files)))


@functools.cache
def _digest(paths: tuple[Path, ...]) -> str:
    """Hash the bytes of files, with their names."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _narrowing(
    overrides: Sequence[str], shapes: Sequence[str], models: Sequence[str], groups: Sequence[str]
) -> Iterator[str]:
    """Say in words what was left out or changed."""
    for role, names in (("shapes", shapes), ("models", models), ("groups", groups)):
        if names:
            yield f"{role} {', '.join(names)}"
    for override in overrides:
        if override.partition("=")[0] not in _NEUTRAL:
            yield override
