"""From an experiment file to its cells: which runs a table needs, in the order they are run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

from datasets.base import check_seed
from repro.fitting import refusal
from repro.provenance import ROOT
from repro.run import hyperparameters
from repro.run import identity as identity_of
from repro.store import RUNS_DIR, StoreError, check_runs_dir, run_id

CONF = ROOT / "conf"
KINDS_FOLDER = ROOT / "repro" / "kinds"
_ROLES = ("dataset", "model", "protocol", "seed")
_ESTIMATOR = "model.estimator."
_ADDED_TO = ("model", "table", "hydra")
_NEUTRAL = ("n_jobs", "runs_dir")  # overrides that leave every run what it is
WITHOUT_RUNS = ("sizes", "split_kinds")
"""Kinds of table that are made from the data or the library alone."""
_WITHOUT_PUBLISHED = ("grid", "curves", "first_trees", "split_kinds", "ablation", "protocol_cost", "families")


class PlanError(ValueError):
    """An experiment, data set or model that cannot be planned; the message names what there is."""


@dataclass(frozen=True)
class Cell:
    """One run of an experiment.

    Attributes
    ----------
    dataset, model, protocol : str
        Names of the files under ``conf/``.
    seed : int
    settings : dict
        Further swept keys and their values, as text; of hyper-parameters those that the model has and that are not
        chosen under the protocol.
    run_id : str
    identity : dict
        See `repro.store.run_id`.
    config : dict
        The full resolved configuration.
    """

    dataset: str
    model: str
    protocol: str
    seed: int
    settings: dict[str, str]
    run_id: str
    identity: dict[str, Any]
    config: dict[str, Any]

    @property
    def key(self) -> dict[str, Any]:
        """What tells the cell within its experiment."""
        names = {"dataset": self.dataset, "model": self.model, "protocol": self.protocol, "seed": self.seed}
        return {**names, **self.settings}

    @property
    def label(self) -> str:
        """Short name for progress lines and messages."""
        settings = "".join(f" {key.rpartition('.')[2]}={value}" for key, value in self.settings.items())
        return f"{self.dataset} {self.model} {self.protocol} seed {self.seed}{settings}"


@dataclass(frozen=True)
class Plan:
    """The cells of one experiment.

    Attributes
    ----------
    experiment : str
        Name of the file under ``conf/experiment``.
    table : dict
        The file's ``table`` node: ``kind`` of table (see `repro.kinds`), for most the file of ``published`` values, and
        in ``records_of`` the experiment whose published records serve where there are no others.
    cells : tuple of Cell
        In the order they are run; none where the table needs no runs.
    narrowed : tuple of str
        What was left out on request, in words; empty for the whole experiment.
    runs_dir : str
        Folder of the run store, relative to the project.
    """

    experiment: str
    table: dict[str, Any]
    cells: tuple[Cell, ...]
    narrowed: tuple[str, ...] = ()
    runs_dir: str = RUNS_DIR

    @property
    def setting_names(self) -> list[str]:
        """The last words of the further swept keys, whichever cells have them."""
        return [key.rpartition(".")[2] for key in dict.fromkeys(key for cell in self.cells for key in cell.settings)]

    @property
    def name(self) -> str:
        """What the experiment's files are called: a grid is one of a data set and a model."""
        if self.table["kind"] != "grid":
            return self.experiment
        parts = {(cell.dataset, cell.model): None for cell in self.cells}
        return "_".join([self.experiment, *(name for pair in parts for name in pair)])


def make_plan(
    experiment: str,
    *,
    overrides: Sequence[str] = (),
    datasets: Sequence[str] = (),
    models: Sequence[str] = (),
    seeds: int | None = None,
) -> Plan:
    """Plan the cells of an experiment, data sets in the file's order (cheapest first).

    Parameters
    ----------
    experiment : str
        Name of a file under ``conf/experiment``.
    overrides : sequence of str
        Hydra overrides for every cell; one with several values is swept.
    datasets, models : sequence of str
        Narrow the experiment to these; empty for its own.
    seeds : int, optional
        Only the first `seeds` seeds.

    Raises
    ------
    PlanError
        If the experiment, a data set or a model does not exist, an override does not fit, a model can take none of the
        protocols, or nothing is left to run.
    """
    _check_names("experiment", [experiment])
    try:
        refuse_unread(overrides)
        return _make_plan(experiment, overrides, datasets, models, seeds)
    except PlanError:
        raise
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, StoreError, ValueError) as error:
        raise PlanError(_one_line([f"experiment={experiment}", *overrides], error)) from error


def _one_line(overrides: Iterable[str], error: Exception) -> str:
    text = f"{' '.join(overrides)}: {' '.join(str(error).split())}"
    if isinstance(error, InterpolationKeyError) and "'dataset." in text:
        text += ". The data set's file below conf/dataset lacks that; docs/data.md shows what one needs"
    return text


def _make_plan(
    experiment: str, overrides: Sequence[str], datasets: Sequence[str], models: Sequence[str], seeds: int | None
) -> Plan:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        base = _compose([f"experiment={experiment}", *_constant(overrides)], with_hydra=True)
        table = _table(experiment, base)
        if table["kind"] in WITHOUT_RUNS:
            _refuse_narrowing(experiment, [*overrides, *datasets, *models], seeds)
            return Plan(experiment, table, (), (), check_runs_dir(base.runs_dir))
        own = _sweep_values(base)
        asked = {**own, **_swept(overrides)}
        for role, names in (("dataset", datasets), ("model", models)):
            if names:
                _check_names(role, names)
                asked[role] = _in_order(names, own.get(role, []))
        for key in _constant_keys(overrides):
            asked.pop(key, None)
        if seeds is not None:
            if seeds < 1:
                raise PlanError(f"seeds must be at least 1, not {seeds}")
            known = asked.get("seed", [str(base.seed)])
            if seeds > len(known):
                more = f"dataset.seeds={seeds} 'seed=range({seeds})'"
                raise PlanError(
                    f'{experiment} has {len(known)} seeds, not {seeds}; for more, give {more} instead (ARGS="{more}")'
                )
            asked["seed"] = known[:seeds]
        of_dataset = [key for key in _of_dataset(base) if key not in _swept(overrides) and key in asked]
        cells = _cells(experiment, list(_constant(overrides)), asked, of_dataset, base)
        _check_used(experiment, _swept(overrides), cells)
    if not cells:
        raise PlanError(f"{' '.join([experiment, *overrides])} has no cells; give each swept key at least one value")
    return Plan(
        experiment=experiment,
        table=table,
        cells=tuple(cells),
        narrowed=tuple(_narrowing(own, asked, overrides)),
        runs_dir=check_runs_dir(base.runs_dir),
    )


def _refuse_narrowing(experiment: str, asked: Sequence[str], seeds: int | None) -> None:
    changing = [text for text in asked if text.partition("=")[0] not in _NEUTRAL]
    if changing or seeds is not None:
        raise PlanError(
            f"{experiment} needs no runs, so that there is nothing to narrow or change: leave out what says so"
        )


def _table(experiment: str, base: DictConfig) -> dict[str, Any]:
    """Return the ``table`` node, after checking what a table that is written after hours needs."""
    table = OmegaConf.to_container(base.table, resolve=True) if base.get("table") else {}
    assert isinstance(table, dict)
    if base.get("bench"):
        raise PlanError(f"{experiment} is a benchmark, not a sweep; measure it by: make bench EXPERIMENT={experiment}")
    published = table.get("published")
    kinds = sorted(path.stem for path in KINDS_FOLDER.glob("*.py") if path.stem not in ("__init__", "base"))
    if table.get("kind") not in kinds:
        raise PlanError(f"{experiment}: table.kind must be one of {', '.join(kinds)}, not {table.get('kind')!r}")
    if table["kind"] not in _WITHOUT_PUBLISHED and not (published and (ROOT / str(published)).is_file()):
        raise PlanError(
            f"{experiment}: table.published must name the file of published values, below {ROOT}; "
            f"{published or 'nothing'} is no file there"
        )
    return {str(key): value for key, value in table.items()}


def _compose(overrides: list[str], with_hydra: bool = False) -> DictConfig:
    try:
        return compose("config", overrides=overrides, return_hydra_config=with_hydra)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise PlanError(_one_line(overrides, error)) from error


def _parse(overrides: Iterable[str]) -> list[Any]:
    overrides = list(overrides)
    try:
        return list(OverridesParser.create().parse_overrides(overrides))
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise PlanError(_one_line(overrides, error)) from error


def refuse_unread(overrides: Iterable[str]) -> None:
    """Refuse ``+key=value`` for a key that nothing reads; of models, `repro.run.hyperparameters` looks closer.

    Raises
    ------
    PlanError
        That names the key, and what to write instead.
    """
    for override in _parse(overrides):
        if override.is_add() and override.key_or_group.partition(".")[0] not in _ADDED_TO:
            raise PlanError(
                f"{override.input_line}: nothing reads {override.key_or_group}; a key that exists is changed without "
                f"the +, and keys are added below {', '.join(_ADDED_TO)} alone"
            )


def _constant(overrides: Iterable[str]) -> list[str]:
    return [override.input_line for override in _parse(overrides) if not override.is_sweep_override()]


def _constant_keys(overrides: Iterable[str]) -> list[str]:
    return [override.key_or_group for override in _parse(_constant(overrides))]


def _swept(overrides: Iterable[str]) -> dict[str, list[str]]:
    return {
        override.key_or_group: [str(value) for value in override.sweep_string_iterator()]
        for override in _parse(overrides)
        if override.is_sweep_override()
    }


def _sweep_values(base: DictConfig) -> dict[str, list[str]]:
    """Read the file's sweep as Hydra's own sweeper does."""
    parameters: Mapping[str, str] = base.hydra.sweeper.params or {}
    values = {}
    for override in _parse(f"{key}={value}" for key, value in parameters.items()):
        swept = override.is_sweep_override()
        values[override.key_or_group] = (
            [str(value) for value in override.sweep_string_iterator()]
            if swept
            else [str(override.get_value_element_as_str())]
        )
    return values


def _check_names(role: str, names: Sequence[str]) -> None:
    known = sorted(path.stem for path in (CONF / role).glob("*.yaml"))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise PlanError(f"no {role} named {', '.join(unknown)}; there are {', '.join(known)}")


def _in_order(names: Sequence[str], own: Sequence[str]) -> list[str]:
    """Sort the names asked for as the experiment sorts them, further ones last."""
    unique = list(dict.fromkeys(names))
    return sorted(unique, key=lambda name: own.index(name) if name in own else len(own))


def _cells(
    experiment: str, constant: list[str], asked: dict[str, list[str]], of_dataset: list[str], base: DictConfig
) -> list[Cell]:
    choices = base.hydra.runtime.choices
    seeds = [_seed(value) for value in asked["seed"]] if "seed" in asked else [check_seed(base.seed)]
    groups = {role: asked.get(role, [choices.get(role)]) for role in _ROLES[:3]}
    for role, names in groups.items():
        if None in names:
            raise PlanError(f"{experiment} needs a {role}: {role}=NAME")
    settings = {key: values for key, values in asked.items() if key not in _ROLES}
    cells: list[Cell] = []
    refused: dict[str, str] = {}
    for dataset in groups["dataset"]:
        given = [f"experiment={experiment}", *constant, f"dataset={dataset}"]
        if of_dataset:
            own = _sweep_values(_compose(given, with_hydra=True))
            settings |= {key: own[key] for key in of_dataset}
        for model, protocol in itertools.product(groups["model"], groups["protocol"]):
            names = [*given, f"model={model}", f"protocol={protocol}"]
            plain = _compose(names)
            if reason := refusal(plain):
                refused.setdefault(model, reason)
                continue
            for chosen in _combinations(settings, plain):
                config = _compose([*names, *(f"{key}={value}" for key, value in chosen.items())]) if chosen else plain
                cells += _seeded(config, seeds[: _most_seeds(config, dataset)], (dataset, model, protocol), chosen)
    if refusing := [reason for model, reason in refused.items() if model not in {cell.model for cell in cells}]:
        raise PlanError(f"{experiment}: {refusing[0]}")
    return cells


def _combinations(settings: dict[str, list[str]], config: DictConfig) -> Iterator[dict[str, str]]:
    """Yield the swept settings for one model and protocol, without hyper-parameters that it lacks or chooses itself."""
    left_open = hyperparameters(config).get("select", {})
    own = {
        key: values
        for key, values in settings.items()
        if not key.startswith(_ESTIMATOR) or (_has(config, key) and key.removeprefix(_ESTIMATOR) not in left_open)
    }
    for values in itertools.product(*own.values()):
        yield dict(zip(own, values, strict=True))


def _has(config: DictConfig, key: str) -> bool:
    holder, _, name = key.rpartition(".")
    return name in (OmegaConf.select(config, holder) or {})


def _check_used(experiment: str, swept: Iterable[str], cells: Sequence[Cell]) -> None:
    """Refuse a hyper-parameter swept on request that is none of any model here."""
    used = {key for cell in cells for key in cell.settings}
    if unused := [key for key in swept if key.startswith(_ESTIMATOR) and key not in used]:
        models = ", ".join(dict.fromkeys(cell.model for cell in cells))
        raise PlanError(f"{experiment}: {unused[0]} is no hyper-parameter left to be swept of {models}")


def _of_dataset(base: DictConfig) -> list[str]:
    """Name the swept keys whose values the experiment reads from the data set."""
    parameters: Any = OmegaConf.to_container(base.hydra.sweeper, resolve=False)
    return [key for key, value in (parameters["params"] or {}).items() if "${dataset" in str(value)]


def _most_seeds(config: DictConfig, dataset: str) -> int:
    most = config.dataset.seeds
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise PlanError(f"dataset.seeds of {dataset} must be a whole number >= 1, not {most!r}")
    return most


def _seed(text: str) -> int:
    """Read a swept seed: digits alone, where Python would also take ``1_0`` or `` 1``."""
    return check_seed(int(text) if text.isdecimal() else text)


def _seeded(
    config: DictConfig, seeds: Sequence[int], names: tuple[str, str, str], settings: dict[str, str]
) -> Iterator[Cell]:
    """Make a cell for each seed. No other value of a configuration refers to the seed, so one resolution serves all."""
    resolved = OmegaConf.to_container(config, resolve=True)
    assert isinstance(resolved, dict)
    identity = identity_of(config)
    for seed in seeds:
        own = {**identity, "seed": seed}
        seeded = {str(key): value for key, value in {**resolved, "seed": seed}.items()}
        yield Cell(*names, seed=seed, settings=settings, run_id=run_id(own), identity=own, config=seeded)


def _narrowing(own: dict[str, list[str]], asked: dict[str, list[str]], overrides: Sequence[str]) -> list[str]:
    """Say in words what of the experiment was left out or changed."""
    notes = []
    for key, values in own.items():
        if key in asked and set(values) <= set(asked[key]):
            continue
        shown = ", ".join(asked[key]) if key in asked else "one given value"
        notes.append(f"{key}: {shown} (of {', '.join(values)})")
    changed = [key for key in _constant_keys(overrides) if key not in {*own, *_ROLES, *_NEUTRAL}]
    notes += [f"{key} overridden" for key in changed]
    return notes
