"""Plans of the experiment files: which cells, in which order, and how they are narrowed."""

import shutil
from pathlib import Path

import pytest
from configs import CONF, compose_config, names

from repro import plan
from repro.bench.plan import is_benchmark
from repro.plan import Plan, PlanError, make_plan
from repro.run import identity
from repro.store import run_id

PAPER_SEEDS = {"student_por": 10, "yeast": 10, "mnist": 1, "mnist_inpainting": 1, "caltech101": 10, "nus_wide": 1}
FEWER_SEEDS = {("caltech101", "xgboost_vector"): 2}  # hours of training
MODELS = ["gbdt_mo", "gbdt_so", "gbdt_sparse", "xgboost", "xgboost_vector", "lightgbm"]


@pytest.fixture(scope="module")
def table5() -> Plan:
    return make_plan("table5")


def test_table5_has_every_model_both_protocols_and_the_papers_seeds(table5: Plan) -> None:
    cells = {(cell.dataset, cell.model, cell.protocol, cell.seed) for cell in table5.cells}
    expected = {
        (dataset, model, protocol, seed)
        for dataset, seeds in {**PAPER_SEEDS, "digits": 10, "digits_inpainting": 10}.items()
        for model in MODELS
        for protocol in ("paper", "holdout")
        for seed in range(FEWER_SEEDS.get((dataset, model), seeds))
    }
    assert cells == expected
    assert len(table5.cells) == len(expected) == len({cell.run_id for cell in table5.cells})
    assert table5.narrowed == ()


def test_a_planned_cell_is_the_one_a_single_run_would_do(table5: Plan) -> None:
    cell = next(cell for cell in table5.cells if cell.label == "yeast gbdt_so holdout seed 3")
    config = compose_config("dataset=yeast", "model=gbdt_so", "protocol=holdout", "seed=3")
    assert cell.identity == identity(config)
    assert cell.run_id == run_id(identity(config))
    assert cell.config["seed"] == 3


def test_no_config_value_refers_to_the_seed() -> None:
    # A plan resolves a configuration once for all its seeds.
    assert [path for path in CONF.rglob("*.yaml") if "${seed" in path.read_text()] == []


def test_data_sets_run_in_the_files_order() -> None:
    asked = make_plan("table5", datasets=["mnist", "digits"], models=["lightgbm"])
    assert list(dict.fromkeys(cell.dataset for cell in asked.cells)) == ["digits", "mnist"]


def test_narrowing_takes_the_first_seeds_and_says_so() -> None:
    plan = make_plan("table5", datasets=["yeast", "mnist"], models=["gbdt_mo"], seeds=2)
    assert [(c.dataset, c.protocol, c.seed) for c in plan.cells] == [
        ("yeast", "paper", 0),
        ("yeast", "paper", 1),
        ("yeast", "holdout", 0),
        ("yeast", "holdout", 1),
        ("mnist", "paper", 0),
        ("mnist", "holdout", 0),
    ]
    assert [note.partition(":")[0] for note in plan.narrowed] == ["dataset", "model", "seed"]


def test_all_values_given_by_hand_are_no_narrowing() -> None:
    plan = make_plan("table5", datasets=["digits"], models=MODELS, seeds=10)
    assert [note.partition(":")[0] for note in plan.narrowed] == ["dataset"]


def test_an_override_reaches_every_cell_and_is_told() -> None:
    plan = make_plan(
        "table5", datasets=["digits"], models=["gbdt_mo"], seeds=1, overrides=["model.estimator.max_bins=9"]
    )
    assert {cell.identity["params"]["max_bins"] for cell in plan.cells} == {9}
    assert "model.estimator.max_bins overridden" in plan.narrowed


def test_threads_and_folder_are_no_part_of_a_run() -> None:
    plan = make_plan("grid", overrides=["n_jobs=2", "runs_dir=elsewhere"])
    assert plan.narrowed == ()
    assert plan.runs_dir == "elsewhere"
    assert [cell.run_id for cell in plan.cells] == [cell.run_id for cell in make_plan("grid").cells]


def test_grid_is_the_papers_on_validation_rows() -> None:
    plan = make_plan("grid", datasets=["yeast"], models=["gbdt_mo"])
    settings = {(c.identity["params"]["learning_rate"], c.identity["params"]["max_depth"]) for c in plan.cells}
    assert settings == {(rate, depth) for rate in (0.05, 0.1, 0.25, 0.5) for depth in range(4, 11)}
    assert {cell.protocol for cell in plan.cells} == {"holdout"}
    assert plan.narrowed == ()
    assert plan.name == "grid_yeast_gbdt_mo"


def test_the_leaf_budget_follows_the_swept_depth() -> None:
    plan = make_plan("grid", datasets=["yeast"], models=["gbdt_mo"], seeds=1)
    leaves = {c.identity["params"]["max_depth"]: c.identity["params"]["max_leaves"] for c in plan.cells}
    assert leaves[4] == 12
    assert leaves[10] == 768


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"datasets": ["iris"]}, "no dataset named iris; there are .*digits"),
        ({"models": ["gbdt"]}, "no model named gbdt; there are .*catboost, gbdt_mo"),
        ({"seeds": 0}, "at least 1"),
        ({"overrides": ["model.estimator.no_such=1"]}, "no_such"),
        ({"overrides": ["+bogus=1"]}, r"\+bogus=1: nothing reads bogus"),
        ({"overrides": ["runs_dir="]}, "runs_dir must name the folder"),
        ({"overrides": ["a=[1"]}, "a="),
        ({"overrides": ["seed=null"]}, "seed must be a whole number"),
        ({"overrides": ["seed=-1,0"]}, "seed must be a whole number .* not '-1'"),
        ({"overrides": ["seed=1.5"]}, "not 1.5"),
        ({"overrides": ["seed=true"]}, "not True"),
        ({"overrides": ["seed='3'"]}, "not '3'"),
        ({"overrides": ["dataset.seeds=-1"]}, "dataset.seeds of digits must be a whole number >= 1, not -1"),
        ({"overrides": ["dataset.seeds=0"]}, "not 0"),
        ({"seeds": 11}, r"table5 has 10 seeds, not 11; for more, give dataset\.seeds=11 'seed=range\(11\)' instead"),
        ({"overrides": ["dataset.seeds=null"]}, "not None"),
        ({"overrides": ["seed=range(0)"]}, "no cells"),
        ({"overrides": ["model=null"]}, "model=null: Config group"),
        ({"overrides": ["~model"]}, "needs a model: model=NAME"),
        ({"overrides": ["~model.estimator"]}, "estimator"),
        ({"overrides": ["model.estimator.reg_lambda=nan"]}, "Out of range float"),
        ({"overrides": ["model.estimator.max_depth=abc"]}, "max_leaves"),
        ({"overrides": ["table.published=results/paper/none.csv"]}, r"results/paper/none\.csv is no file"),
        ({"overrides": ["table.published=null"]}, "nothing is no file"),
    ],
)
def test_a_wrong_request_says_what_there_is(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message) as error:
        make_plan("table5", **{"datasets": ["digits"], "models": ["gbdt_mo"], **arguments})  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_a_broken_file_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CONF, tmp_path / "conf")
    (tmp_path / "conf/dataset/yeast.yaml").write_text("name: [yeast\n")
    monkeypatch.setattr(plan, "CONF", tmp_path / "conf")
    with pytest.raises(PlanError, match=r"yeast\.yaml") as error:
        make_plan("table5", datasets=["yeast"])
    assert "\n" not in str(error.value)


def test_an_unknown_experiment_says_what_there_is() -> None:
    with pytest.raises(PlanError, match="table5"):
        make_plan("table99")


WITH_RUNS = [name for name in names("experiment") if not is_benchmark(name) and name not in ("table4", "figure2")]
NOT_STOPPED = {"ranksvm_table": "label_frequency", "ranksvm_toy": "rank_svm"}
"""A model of each experiment that has no protocol for models that are stopped early."""


@pytest.mark.parametrize("experiment", WITH_RUNS)
def test_every_experiment_plans(experiment: str) -> None:
    model = NOT_STOPPED.get(experiment, "gbdt_mo")
    assert make_plan(experiment, datasets=["digits"], models=[model], seeds=1).cells


def test_hyperparameters_are_swept_for_the_models_that_have_them_and_do_not_choose_them() -> None:
    plan = make_plan("ranksvm_table")
    cells = [(cell.model, cell.protocol, *cell.settings.values()) for cell in plan.cells]
    degrees = [str(degree) for degree in range(2, 10)]
    protocols = ("published_fit", "cross_validated")
    assert cells == [
        *(("label_frequency", protocol) for protocol in protocols),
        *(("boostexter", "published_fit", rounds) for rounds in ("30", "1000")),
        ("boostexter", "cross_validated"),  # folds choose the rounds
        *((f"{kind}_svm", protocol, d) for kind in ("rank", "binary") for protocol in protocols for d in degrees),
    ]
    assert plan.setting_names == ["n_estimators", "degree"]
    assert len({cell.run_id for cell in plan.cells}) == len(cells)
    for cell in plan.cells:
        params = cell.identity["params"]
        open_name = {"boostexter": "n_estimators", "rank_svm": "C", "binary_svm": "C"}.get(cell.model)
        assert list(params.get("select", {})) == ([open_name] if "cross" in cell.protocol and open_name else [])
        if "svm" in cell.model:
            assert (params["C"], params["gamma"], params["coef0"]) == ("inf", 1.0, 1.0)
            assert str(params["degree"]) == cell.settings["model.estimator.degree"]


def test_each_model_takes_the_protocols_that_are_for_it() -> None:
    plan = make_plan("families")
    taken = {(cell.model, cell.protocol) for cell in plan.cells}
    assert len(taken) == len({cell.model for cell in plan.cells}) == 8
    stopped = {model for model, protocol in taken if protocol == "holdout"}
    assert stopped == {"xgboost_vector", "gbdt_mo", "gbdt_mo_sigmoid"}
    assert plan.narrowed == ()
    for cell in plan.cells:
        assert cell.identity["row_scores"] is True
        kernel = cell.identity["params"].get("kernel")
        assert kernel == ("rbf" if "svm" in cell.model else None)


def test_a_hyperparameter_that_no_model_has_left_to_sweep_is_refused() -> None:
    for swept, model in (("no_such=1,2", "rank_svm"), ("degree=2,3", "label_frequency")):
        with pytest.raises(PlanError, match=f"{swept.partition('=')[0]} is no hyper-parameter left to be swept"):
            make_plan("ranksvm_table", models=[model], overrides=[f"model.estimator.{swept}"])


@pytest.mark.parametrize("experiment", ["table4", "figure2"])
def test_an_experiment_without_runs_has_no_cells_and_cannot_be_narrowed(experiment: str) -> None:
    assert make_plan(experiment, overrides=["runs_dir=elsewhere"]).cells == ()
    for narrowing in ({"datasets": ["digits"]}, {"seeds": 1}, {"overrides": ["seed=1"]}):
        with pytest.raises(PlanError, match="nothing to narrow"):
            make_plan(experiment, **narrowing)  # type: ignore[arg-type]


def test_an_unknown_kind_of_table_says_what_there_is() -> None:
    with pytest.raises(PlanError, match=r"table.kind must be one of ablation, choices, .* not 'pie'"):
        make_plan("table5", overrides=["table.kind=pie"])


def test_the_kinds_of_split_are_each_data_sets_own() -> None:
    plan = make_plan("table7", datasets=["mnist", "mnist_inpainting"], seeds=1)
    splits = {
        name: list(dict.fromkeys(c.settings["split"] for c in plan.cells if c.dataset == name))
        for name in ("mnist", "mnist_inpainting")
    }
    assert splits["mnist"][0] == splits["mnist_inpainting"][0] == "full"
    assert splits["mnist"][1::2] == ["restricted-2", "restricted-4", "restricted-8"]
    assert splits["mnist_inpainting"][2::2] == ["unrestricted-4", "unrestricted-8", "unrestricted-16"]
    for cell in plan.cells:
        params = cell.identity["params"]
        if cell.settings["split"] != "full":
            assert cell.settings["split"] == f"{params['top_k_mode']}-{params['top_k']}"
        assert params["top_k"] is not None or cell.settings["split"] == "full"
        assert params["max_depth"] == {"mnist": 8, "mnist_inpainting": 7}[cell.dataset]


def test_a_split_asked_for_replaces_those_of_the_data_sets() -> None:
    plan = make_plan("table7", datasets=["mnist"], seeds=1, overrides=["split=full,restricted-3"])
    assert {cell.settings["split"] for cell in plan.cells} == {"full", "restricted-3"}
    assert any(note.startswith("split:") for note in plan.narrowed)


def test_table7_takes_the_scripts_depth_where_the_table_says_so() -> None:
    plan = make_plan("table7", datasets=["digits"], seeds=1, overrides=["+table.depths.digits=3", "split=full"])
    assert {(c.identity["params"]["max_depth"], c.identity["params"]["max_leaves"]) for c in plan.cells} == {(3, 6)}


def test_table10_has_the_cells_of_table5(table5: Plan) -> None:
    assert [cell.run_id for cell in make_plan("table10").cells] == [cell.run_id for cell in table5.cells]


def test_runs_with_curves_are_runs_of_their_own() -> None:
    plain = make_plan("table5", datasets=["digits"], models=["gbdt_mo"], seeds=1)
    curved = make_plan("table5", datasets=["digits"], models=["gbdt_mo"], seeds=1, overrides=["curves=true"])
    assert plain.cells[0].run_id != curved.cells[0].run_id
    assert "curves" not in plain.cells[0].identity


def test_a_benchmark_is_no_sweep() -> None:
    with pytest.raises(PlanError, match="bench is a benchmark, not a sweep"):
        make_plan("bench")


def test_a_setting_that_a_data_set_lacks_is_named_with_its_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(plan.CONF, tmp_path / "conf")
    (tmp_path / "conf/dataset/mine.yaml").write_text("defaults: [/task/regression@_here_]\nname: mine\nseeds: 1\n")
    monkeypatch.setattr(plan, "CONF", tmp_path / "conf")
    with pytest.raises(PlanError, match=r"'dataset\.table9.* file below conf/dataset lacks that; docs/data\.md shows"):
        make_plan("table5", datasets=["mine"], models=["gbdt_mo"])
