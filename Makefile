# Two commands to know: `make run` does the main job, `make test` runs the tests. Both set everything up first.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PYTEST := $(BIN)/python -m pytest -q --dist loadscope --no-loadscope-reorder  # a module or class stays on one process

.DEFAULT_GOAL := help
.PHONY: help setup run test quick fuzz faults bench report docs check format clean

help:  ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "relive needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.11 setup"; exit 1; }
	@echo "setting up .venv (a few minutes, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

setup: $(READY)  ## Create a .venv with the package and its tools

run: $(READY)  ## Train Replay-through-Feedback on split MNIST, Class-IL (about five minutes)
	@$(BIN)/relive run --protocol split --scenario class --method rtf --seed 0

test: $(READY)  ## Run the tests, doctests included
	@$(PYTEST) -n 3

quick: $(READY)  ## Run the tests that start no processes, browsers or long training (about a minute)
	@$(PYTEST) -n 2 -m "not slow"

fuzz: $(READY)  ## Feed relive 20,000 damaged files and command lines (two minutes; ARGS="--seed 7" for others)
	@$(BIN)/python -m tests.fuzzing --cases 20000 $(ARGS)

faults: $(READY)  ## Make every system call of a write fail, or kill the process there (needs strace; about twenty minutes)
	@$(BIN)/python -m tests.faults $(ARGS)

bench: $(READY)  ## Measure speed and memory against their goals (a few minutes, on a quiet machine; ARGS="--repeat 3")
	@$(BIN)/python -m benchmarks.bench --write-docs $(ARGS)

report: $(READY)  ## Rebuild tables, figures and the page from reproduction/, with no training
	@$(BIN)/relive report --runs-dir reproduction --output report/report.html

docs: $(READY)  ## Build the documentation site, site/index.html; warnings and dead links are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "site/index.html"

check: $(READY)  ## Format, lint, strict types, import layers, tests with doctests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -n 3

format: $(READY)  ## Format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove the environment and caches (runs are kept)
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
