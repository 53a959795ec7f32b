# Everything sets itself up: a fresh machine needs Python 3.11 or newer, gcc and this checkout, nothing else of ours.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-fast lint types imports clean

setup: $(STAMP)

# The compiler wheels are only taken where no nvcc is on the PATH.
$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@extras=$$(command -v nvcc >/dev/null 2>&1 && echo sandbox || echo nvcc,sandbox); \
	  $(BIN)/python -m pip install --quiet --editable ".[$$extras]" --group dev
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/cudaperf translate examples/saxpy.c --policy variants --out build/demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

test: lint types imports
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-fast: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
