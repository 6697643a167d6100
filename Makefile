# Every target can be the first one called on a fresh clone: it sets up .venv and builds the C core
# when that is needed. `make help` lists them.

.DEFAULT_GOAL := help
PYTHON ?=
VENV   := .venv
PY     := $(VENV)/bin/python

# Passed to the experiments; empty means everything (see README.md). ARGS: further options and Hydra overrides.
# Both spellings are taken: a narrowing that is not understood would run everything.
DATASET    ?=
MODEL      ?=
DATASETS   ?= $(DATASET)
MODELS     ?= $(MODEL)
SEEDS      ?=
EXPERIMENT ?=
ARGS       ?=
TAKEN      := PYTHON VENV DATASET MODEL DATASETS MODELS SEEDS EXPERIMENT ARGS
GIVEN      := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
ifneq ($(filter-out $(TAKEN),$(GIVEN)),)
$(error $(filter-out $(TAKEN),$(GIVEN)): nothing reads that; there are $(TAKEN))
endif
# Nor may a target be given what it does not read: it would run the whole thing.
SWEEPS := reproduce-table3 reproduce-table5 reproduce-table7 reproduce-table8 reproduce-table9 reproduce-table9-large grid figure1 \
          figure3 figure4 ablation ranksvm-table families ranksvm-toy experiment
READ_SEEDS      := $(SWEEPS)
READ_MODELS     := $(SWEEPS) bench ranksvm-scaling
READ_DATASETS   := $(READ_MODELS) reproduce-table6
READ_EXPERIMENT := experiment bench publish
READ_MODEL      := $(READ_MODELS)
READ_DATASET    := $(READ_DATASETS)
$(foreach name,$(filter DATASET DATASETS MODEL MODELS SEEDS EXPERIMENT,$(GIVEN)),$(if $(filter $(READ_$(name)),$(MAKECMDGOALS)),,\
    $(error $(name): $(or $(MAKECMDGOALS),help) does not read that; these do: $(READ_$(name)))))
$(foreach name,DATASET MODEL,$(if $(filter 2,$(words $(filter $(name) $(name)S,$(GIVEN)))),\
    $(error $(name) and $(name)S are two spellings of one thing: give one)))

C_FILES := $(wildcard gbdtmo_core/csrc/*.[ch] repro/bench/*.c tests/c/*.[ch])

# What is missing of an experiment, then its tables.
SWEEP = $(PY) -m repro.sweep --datasets "$(DATASETS)" --models "$(MODELS)" --seeds "$(SEEDS)" $(ARGS)

.PHONY: FORCE help setup native test test-c lint format check reproduce-table3 reproduce-table4 reproduce-table5 \
        reproduce-table6 reproduce-table7 reproduce-table8 reproduce-table9 reproduce-table9-large reproduce-table10 \
        grid bench figure1 figure2 figure3 figure4 figure5 inference experiment significance table12 ablation protocol-cost ranksvm-table \
        families ranksvm-toy ranksvm-scaling report mlflow-ui publish wheel lock clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-22s %s\n", $$1, $$2 }' Makefile

setup: native  ## Make .venv from the pinned lock and build the C core (PYTHON=... picks the interpreter)

# Always asked, since only the script can tell a whole set-up from an interrupted or outdated one;
# it leaves the stamp alone when there is nothing to do, and make then rebuilds nothing.
$(VENV)/.installed: FORCE
	@PYTHON='$(PYTHON)' scripts/bootstrap.sh

native: $(VENV)/.native  ## Compile gbdtmo_core._native in place

$(VENV)/.native: $(VENV)/.installed $(wildcard gbdtmo_core/csrc/*.[ch]) gbdtmo_core/build_native.py setup.py
	$(PY) setup.py --quiet build_ext --inplace --force
	@touch $@

test: native  ## Run all tests, the C units under sanitizers among them
	$(PY) -m pytest

test-c: native  ## Run the C unit tests alone
	$(PY) -m pytest tests/c

lint: native  ## ruff, mypy, import rules, clang-format
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-cache
	$(VENV)/bin/clang-format --dry-run --Werror $(C_FILES)

format: $(VENV)/.installed  ## Rewrite Python and C sources in the project's format
	$(PY) -m ruff check --fix
	$(PY) -m ruff format
	$(VENV)/bin/clang-format -i $(C_FILES)

check: lint test  ## lint and test

reproduce-table3: native  ## Table III, the synthetic sets: run what is missing, write the table (narrowed like Table V)
	$(SWEEP) experiment=table3

reproduce-table4: native  ## Table IV: the data sets as loaded
	$(PY) -m repro.report table table4 $(ARGS)

reproduce-table5: native  ## Table V: run what is missing, write the tables (DATASETS=a,b MODELS=c SEEDS=n narrow it; ARGS=...)
	$(SWEEP) experiment=table5

reproduce-table6: native  ## Table VI, seconds of top-k splits: measure what is missing; keep the machine idle (ARGS=...)
	$(PY) -m repro.bench experiment=table6 --datasets "$(DATASETS)" $(ARGS)

reproduce-table7: native  ## Table VII, scores of top-k splits: run what is missing, write the table (narrowed like Table V)
	$(SWEEP) experiment=table7

reproduce-table8: native  ## Table VIII, exact Hessian or its diagonal: run what is missing, write the table (narrowed like Table V)
	$(SWEEP) experiment=table8

reproduce-table9: native  ## Table IX, the grid search: run what is missing, write the table (narrowed like Table V)
	$(SWEEP) experiment=table9

reproduce-table9-large: native  ## Table IX on the larger sets, a part of the grid (narrowed like Table V)
	$(SWEEP) experiment=table9_large

reproduce-table10: native  ## Table X, trees in the best model: from the records of Table V (ARGS=...)
	$(PY) -m repro.report table table10 $(ARGS)

grid: native  ## Learning rate x depth grid, chosen on validation rows (DATASET=yeast MODEL=gbdt_mo SEEDS=n ARGS=...)
	$(PY) -m repro.sweep experiment=grid --datasets "$(or $(DATASETS),yeast)" --models "$(or $(MODELS),gbdt_mo)" \
		--seeds "$(SEEDS)" $(ARGS)

bench: native  ## Speed and memory: measure what is missing, write the report (DATASETS=a MODELS=b ARGS=...); keep the machine idle
	$(PY) -m repro.bench experiment=$(or $(EXPERIMENT),bench) \
		--datasets "$(DATASETS)" --models "$(MODELS)" $(ARGS)

ranksvm-scaling: native  ## Rank-SVM's time and memory: measure what is missing, write the report; keep the machine idle (ARGS=...)
	$(PY) -m repro.bench experiment=ranksvm_scaling --datasets "$(DATASETS)" --models "$(MODELS)" $(ARGS)

figure1: native  ## Figure 1, the first trees on Yeast: run what is missing, draw
	$(SWEEP) experiment=figure1

figure2: native  ## Figure 2, the three kinds of split: draw
	$(PY) -m repro.report table figure2 $(ARGS)

figure3: native  ## Figure 3, curves on the synthetic sets: run what is missing of Table III, draw (narrowed like Table V)
	$(SWEEP) experiment=figure3

figure4: native  ## Figure 4, curves on MNIST and Caltech101: run what is missing, draw (narrowed like Table V)
	$(SWEEP) experiment=figure4

figure5: native  ## Figure 5, seconds a round, from the benchmark's records (ARGS=...)
	$(PY) -m repro.report table figure5 $(ARGS)

inference: native  ## The inference table from the benchmark's records (ARGS=...)
	$(PY) -m repro.report table inference $(ARGS)

significance: native  ## The tests over seeds and data sets, from Table V's records (ARGS=...)
	$(PY) -m repro.report table significance $(ARGS)

table12: native  ## Table XII: the paper's confidence beside ours, from Table V's records (ARGS=...)
	$(PY) -m repro.report table table12 $(ARGS)

ablation: native  ## The released program's growth beside complete trees: run what is missing, write the table (narrowed like Table V)
	$(SWEEP) experiment=ablation

protocol-cost: native  ## What stopping on the test rows is worth, from Table V's records (ARGS=...)
	$(PY) -m repro.report table protocol_cost $(ARGS)

ranksvm-table: native  ## The gene table of Rank-SVM, both protocols: run what is missing, write the table (narrowed like Table V)
	$(SWEEP) experiment=ranksvm_table

families: native  ## Rank-SVM, BoosTexter and boosted trees on two sets of labels: run what is missing, write the table (narrowed like Table V)
	$(SWEEP) experiment=families

ranksvm-toy: native  ## Rank-SVM's toy problem, regions and losses: run what is missing, draw (narrowed like Table V)
	$(SWEEP) experiment=ranksvm_toy

experiment: native  ## Any file of conf/experiment: run what is missing, write its table (EXPERIMENT=yeast_splits, narrowed like Table V)
	$(SWEEP) experiment=$(or $(EXPERIMENT),$(error say which, such as EXPERIMENT=yeast_splits))

report: native  ## One page with all that is published, results/report.html
	$(PY) -m repro.page

mlflow-ui: native  ## Browse the recorded runs in MLflow's web page
	$(PY) -m repro.tracking ui

publish: EXPERIMENT := $(or $(EXPERIMENT),table5)
publish: native  ## Copy finished tables and their records to results/, renew the page (EXPERIMENT=table5 ARGS=...)
	$(PY) -m repro.report publish $(EXPERIMENT) $(ARGS)
	$(if $(filter table5,$(EXPERIMENT)),$(PY) scripts/readme_table.py)
	$(if $(filter table5,$(EXPERIMENT)),$(PY) -m repro.report publish significance && $(PY) -m repro.report publish table12 \
		&& $(PY) -m repro.report publish table10 && $(PY) -m repro.report publish protocol_cost)
	$(if $(filter bench,$(EXPERIMENT)),$(PY) -m repro.report publish figure5 $(ARGS) && $(PY) -m repro.report publish inference $(ARGS))
	$(PY) -m repro.page

wheel: native  ## Build the wheel of gbdtmo_core into dist/
	rm -rf build # it may hold modules that were renamed since
	$(PY) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

lock: $(VENV)/.installed  ## Regenerate requirements/py3*.lock from requirements/*.in
	scripts/lock.sh

clean:  ## Remove .venv, build products and caches; results stay
	rm -rf $(VENV) build dist *.egg-info gbdtmo_core/_native*.so gbdtmo_core/_native.c
	rm -rf .pytest_cache .mypy_cache .ruff_cache
	find gbdtmo_core datasets repro tests -name __pycache__ -prune -exec rm -rf {} +
