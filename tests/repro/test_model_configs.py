"""Every choice of data set, model and protocol composes, with the paper's hyper-parameters."""

import pytest
from hydra.errors import HydraException
from omegaconf import OmegaConf

import datasets
from repro.metrics import TASK_METRICS
from repro.protocol import Protocol
from repro.run import hyperparameters, identity
from tests.repro.configs import compose_config, names, stops_early

COLUMNS = ("mnist", "yeast", "mnist_inpainting", "student_por")

# Learning rate / maximum depth, from Table IX of arXiv 1909.04373. "-": no such cell; GBDT-MO's stands in.
TABLE_9 = {
    "xgboost": "0.10/8 0.10/4 0.10/8 0.10/4",
    "lightgbm": "0.25/6 0.10/4 0.10/8 0.05/4",
    "gbdt_sparse": "0.05/8 0.10/5 - -",
    "gbdt_so": "0.10/6 0.10/4 0.10/8 0.05/4",
    "gbdt_mo": "0.10/8 0.10/5 0.10/7 0.10/4",
}
BOOSTED = [name for name in names("model") if stops_early(name)]
STAND_INS = {
    "xgboost_vector": "xgboost",
    "catboost": "xgboost",
    "gbdt_mo_released": "gbdt_mo",
    "gbdt_mo_exact": "gbdt_mo",
    "gbdt_mo_sigmoid": "gbdt_mo",
}

# Gain threshold, minimum of samples, maximum bins, from Table XI, and the authors' round caps.
TABLE_11 = {
    "mnist": (1e-3, 16, 8, 1000),
    "yeast": (1e-3, 16, 32, 1000),
    "mnist_inpainting": (1e-6, 4, 16, 10_000),
    "student_por": (1e-6, 4, 8, 10_000),
}
LEAVES = {4: 12, 5: 24, 6: 48, 7: 96, 8: 192}  # int(0.75 * 2**depth)


def published(model: str, dataset: str) -> tuple[float, int]:
    row = TABLE_9[STAND_INS.get(model, model)].split()
    cell = row[COLUMNS.index(dataset)]
    if cell == "-":
        return published("gbdt_mo", dataset)
    learning_rate, depth = cell.split("/")
    return float(learning_rate), int(depth)


@pytest.mark.parametrize("dataset", COLUMNS)
@pytest.mark.parametrize("model", BOOSTED)
def test_hyperparameters_are_the_published_ones(model: str, dataset: str) -> None:
    params = hyperparameters(compose_config(f"dataset={dataset}", f"model={model}"))
    learning_rate, depth = published(model, dataset)
    min_split_gain, min_samples_leaf, max_bins, rounds = TABLE_11[dataset]
    expected = {
        "learning_rate": learning_rate,
        "max_depth": depth,
        "max_leaves": LEAVES[depth],
        "min_split_gain": min_split_gain,
        "min_samples_leaf": min_samples_leaf,
        "max_bins": max_bins,
        "n_estimators": rounds,
        "reg_lambda": 1.0,
        "early_stopping_rounds": 25,
    }
    assert {name: params[name] for name in expected} == expected


@pytest.mark.parametrize("model", BOOSTED)
@pytest.mark.parametrize(("stand_in", "original"), [("digits", "mnist"), ("digits_inpainting", "mnist_inpainting")])
def test_stand_ins_differ_in_minimum_of_samples_alone(stand_in: str, original: str, model: str) -> None:
    small = hyperparameters(compose_config(f"dataset={stand_in}", f"model={model}"))
    large = hyperparameters(compose_config(f"dataset={original}", f"model={model}"))
    small.pop("select", None)
    large.pop("select", None)
    assert small == {**large, "min_samples_leaf": 4}


def test_values_of_the_scripts_are_a_config_away() -> None:
    def values(model: str) -> tuple[float, int, int]:
        params = hyperparameters(compose_config("dataset=yeast_scripts", f"model={model}"))
        return params["learning_rate"], params["max_depth"], params["min_samples_leaf"]

    assert values("gbdt_mo") == (0.25, 6, 4)
    assert values("gbdt_so") == (0.10, 5, 4)
    assert values("lightgbm") == (0.10, 4, 4)


def test_models_differ_in_what_defines_them() -> None:
    def given(model: str) -> dict[str, object]:
        mine = hyperparameters(compose_config("dataset=yeast", f"model={model}"))
        base = hyperparameters(compose_config("dataset=yeast", "model=gbdt_mo", "+model.estimator.none=0"))
        return {name: value for name, value in mine.items() if name not in base}

    assert given("gbdt_mo") == {}
    assert given("gbdt_so") == {"tree_output": "single"}
    assert given("gbdt_mo_exact") == {"hessian": "exact"}
    assert given("gbdt_mo_sigmoid") == {"label_loss": "sigmoid"}
    assert given("gbdt_mo_released") == {"growth": "released", "binning": "released", "node_cache": 16}
    sparse = {"hessian": "constant", "top_k_mode": "unrestricted", "select": {"top_k": [2, 4, 8]}}
    assert given("gbdt_sparse") == sparse


@pytest.mark.parametrize("name", names("dataset"))
def test_dataset_configs_name_a_data_set(name: str) -> None:
    dataset = compose_config(f"dataset={name}").dataset
    assert dataset.name in datasets.names()
    assert dataset.task in TASK_METRICS


@pytest.mark.parametrize("dataset", names("dataset"))
def test_every_combination_composes(dataset: str) -> None:
    seen = set()
    choices = [("gbdt_mo", protocol) for protocol in names("protocol")]
    choices += [(model, "paper") for model in names("model") if model != "gbdt_mo"]
    for model, protocol in choices:
        cfg = compose_config(f"dataset={dataset}", f"model={model}", f"protocol={protocol}")
        assert OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
        assert cfg.model.name == model
        assert cfg.protocol.name == protocol
        seen.add(str(identity(cfg)))
    assert len(seen) == len(choices)


def test_depth_sets_the_leaf_budget() -> None:
    cfg = compose_config("dataset=yeast", "model=xgboost", "model.estimator.max_depth=7")
    assert cfg.model.estimator.max_leaves == 96


def test_threads_do_not_change_the_identity() -> None:
    one, two = (identity(compose_config("dataset=yeast", f"n_jobs={n}")) for n in (1, 2))
    assert one == two
    assert identity(compose_config("dataset=yeast", "seed=1")) != one


@pytest.mark.parametrize("group", ["dataset", "model", "protocol"])
def test_unknown_choice_names_the_known_ones(group: str) -> None:
    with pytest.raises(HydraException, match=names(group)[0]):
        compose_config(f"{group}=no_such_thing")


@pytest.mark.parametrize(("folds", "stop_rows"), [(1, None), (-1, None), (3, "validation")])
def test_protocol_refuses_folds_that_cannot_be(folds: int, stop_rows: str | None) -> None:
    with pytest.raises(ValueError, match="expected at least 2 folds and no rows to stop on"):
        Protocol(name="mine", fit_rows="train", stop_rows=stop_rows, folds=folds)


def test_protocol_refuses_unknown_rows() -> None:
    with pytest.raises(ValueError, match="'tests'; expected one of train, fit, validation, test"):
        Protocol(name="mine", fit_rows="train", stop_rows="tests")
