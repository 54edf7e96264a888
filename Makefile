# On a fresh Linux machine with Python >= 3.10, a C++20 compiler and make, each of these does
# everything: `make demo`, `make tune` (the main job), `make test`.  `make help` lists the rest.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
SEED ?= 1
INTERVALS ?= 60
MAIN := fb-hadoop-uplink30
OUT ?= runs/fb-hadoop
DEMO ?= runs/demo

BIN := $(VENV)/bin
# it takes a fifth of pip's time, and asks the index that pip is set up for
INDEX = $(or $(PIP_INDEX_URL),$(shell $(BIN)/python -m pip config get global.index-url 2>/dev/null))
UV = $(BIN)/uv pip install -q --python $(BIN)/python $(if $(INDEX),--default-index $(INDEX))
BASE := $(VENV)/.base-installed
DEPS := $(VENV)/.deps-installed
CORE := $(VENV)/.core-built
ENGINE := $(shell find engine -name '*.cpp' -o -name '*.hpp' -o -name '*.h')
BUILD_TOOLS := "scikit-build-core>=1.0" "nanobind>=2.5" "setuptools-scm>=8" "cmake>=3.20" "ninja>=1.11"
# bytecode is written even where the environment says not to: else every process compiles anew
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS)
# two builds in one build directory would spoil each other, so they queue
CORE_TESTS := comparison core engine envs package pages report runs simulate tuners
ADD_ONS := hw leaderboard papers ns3 learn traffic jobs track workbench fuzz tools
LOCK := $(if $(shell command -v flock),flock $(VENV)/.build-lock)

.DEFAULT_GOAL := help
.PHONY: help install tune demo check test test-add-ons fuzz lint tidy format rebuild-core stub schemas docs site clean

help:  ## list the targets
	@grep -hE '^[a-z3 -]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "error: dcqcn-gym needs Python >= 3.10, found $$($(PYTHON) --version 2>/dev/null || echo none);" \
	         "name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@command -v "$${CXX:-c++}" >/dev/null || \
	  { echo "error: no C++ compiler found; install g++ >= 11 or clang >= 14," \
	         "or set CXX" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV): about 50 MB of packages, then the engine is compiled; 1 to 3 minutes"
	$(BIN)/python -m pip install -qq --disable-pip-version-check uv
	$(UV) $(BUILD_TOOLS)
	$(LOCK) $(UV) --compile-bytecode --no-build-isolation -e .
	@touch $@ $(CORE)

$(CORE): $(BASE) CMakeLists.txt $(ENGINE)
	$(LOCK) $(UV) --no-build-isolation --no-deps --reinstall-package dcqcn-gym -e .
	@touch $@

$(DEPS): pyproject.toml tests/constraints.txt | $(CORE)
	@echo "installing what tests and tools need; about a minute"
	$(LOCK) $(UV) -c tests/constraints.txt --no-build-isolation-package dcqcn-gym -e '.[dev]'
	@touch $@

install: $(DEPS) $(CORE)  ## virtual environment, dependencies and engine, all in .venv

rebuild-core: | $(DEPS)  ## rebuild only the C++ module into .venv; export its tables
	$(LOCK) $(UV) --no-build-isolation --no-deps --reinstall-package dcqcn-gym -e .
	$(BIN)/python engine/export_tables.py
	@touch $(CORE)

tune: $(CORE)  ## the main job: PARALEON, the rule and Keeper on FB_Hadoop, in one table; writes $(OUT)/report.html
	@echo "Keeper, then PARALEON, tune 128 hosts for $(INTERVALS) ms: about a minute"
	@$(BIN)/dcqcn-gym tune --scenario $(MAIN) --tuner keeper --seed $(SEED) --intervals $(INTERVALS) \
	  --eval-seeds 0 --no-report --quiet --out $(OUT)-keeper --force
	@$(BIN)/dcqcn-gym tune --scenario $(MAIN) --tuner paraleon --seed $(SEED) --intervals $(INTERVALS) \
	  --no-report --quiet --out $(OUT) --force
	@$(BIN)/dcqcn-gym report $(OUT) $(OUT)-keeper

demo: $(CORE)  ## two settings judged for 16 hosts: one to deploy, one not
	$(BIN)/dcqcn-gym tune --scenario mini-fb-hadoop --tuner paraleon --seed 1 \
	  --out $(DEMO)/paraleon --force
	$(BIN)/dcqcn-gym tune --scenario mini-fb-hadoop --tuner advise --seed 1 --intervals 20 \
	  --eval-intervals 20 --out $(DEMO)/advise --force

check: $(DEPS) $(CORE)  ## the tests of the core, about a minute
	$(PYTEST) -m "not slow" tests/core tests/tuners

test: $(DEPS) $(CORE)  ## the fast tests of the core and of compare; about four minutes
	$(PYTEST) -m "not slow" $(CORE_TESTS:%=tests/%)

$(ADD_ONS:%=test-%): test-%: $(DEPS) $(CORE)
	$(PYTEST) -m "not slow" tests/$*

test-add-ons: $(DEPS) $(CORE)  ## the fast tests of all add-ons; test-hw (or another's name): of one
	$(PYTEST) -m "not slow" $(ADD_ONS:%=tests/%)

fuzz: $(DEPS)  ## both engines on $(FUZZ) random networks under ASan and UBSan
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/fuzz -G Ninja -DDCQCN_GYM_PYTHON=OFF \
	  -DDCQCN_GYM_TESTS=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DDCQCN_GYM_SANITIZE=address,undefined >/dev/null
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/fuzz -j $(JOBS) --target engine_fuzz
	build/fuzz/engine_fuzz $(FUZZ) $(FUZZ_SEED)

lint: $(DEPS) $(CORE)  ## every static check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@find engine ns3-scratch -name '*.cpp' -o -name '*.hpp' -o -name '*.cc' -o -name '*.h' | xargs -r $(BIN)/clang-format --dry-run --Werror

# all sources as one, so that the headers of the standard library, which cost most, are gone through once
tidy: $(DEPS)  ## clang-tidy over the engine (about a minute)
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/tidy -G Ninja -DDCQCN_GYM_PYTHON=OFF -DDCQCN_GYM_TESTS=OFF \
	  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 >/dev/null
	@sed -n 's/^ *"file": "\(.*\)",$$/\1/p' build/tidy/compile_commands.json | \
	  xargs -P $(JOBS) -n 1 $(BIN)/clang-tidy -p build/tidy --quiet --header-filter='engine/.*'

format: $(DEPS)  ## reformat Python and C++
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .
	@find engine ns3-scratch -name '*.cpp' -o -name '*.hpp' -o -name '*.cc' -o -name '*.h' | xargs -r $(BIN)/clang-format -i

stub: $(DEPS) $(CORE)  ## write the type stub of the engine module again
	$(BIN)/python -m nanobind.stubgen -q -m dcqcn_gym._core -p engine/core_stub.pat -o src/dcqcn_gym/_core.pyi
	$(BIN)/ruff format -q src/dcqcn_gym/_core.pyi

schemas: $(CORE)  ## write configs/schema again
	$(BIN)/python -c "from dcqcn_gym.core.config import export_schemas; \
	  from dcqcn_gym.envs.scenario.scenario import SCHEMAS; export_schemas('configs/schema', SCHEMAS)"

docs: $(CORE)  ## write the generated parts of docs/ again
	$(BIN)/python docs/make_knobs.py
	$(BIN)/python docs/make_environment.py

site: $(DEPS)  ## build the docs site into build/site; nothing is fetched
	$(BIN)/python docs/make_site.py build/docs
	$(BIN)/zensical build --strict

clean:  ## remove everything that was built; runs/ stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
