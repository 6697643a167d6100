"""The project's configs, for tests of the harness."""

from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

import repro  # noqa: F401 - registers the resolvers that the configs call

CONF = Path(__file__).resolve().parents[2] / "conf"


def names(group: str) -> list[str]:
    """Names of the configs of a group, as a user may choose them."""
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def stops_early(model: str) -> bool:
    """Whether a model is one that protocols with rows to stop on are for."""
    return "early_stopping_rounds" in compose_config("dataset=digits", f"model={model}").model.estimator


def compose_config(*overrides: str) -> DictConfig:
    """Compose the project's config with overrides."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def compose_bench(*overrides: str) -> DictConfig:
    """Compose the config of one benchmark cell with overrides."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("bench", overrides=list(overrides))
