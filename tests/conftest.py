"""Shared fixtures: every test has a private home, so that it never sees or harms the developer's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A machine that does something else meanwhile makes no property false.
settings.register_profile("cudaperf", deadline=None)
settings.load_profile("cudaperf")

# Read by LangGraph when it is imported: checkpoints of tests may make no objects but those it knows to be safe.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

CASES = Path(__file__).parent / "cases"

# Where several processes run the tests, those of such a group run in one: what they share takes up to minutes to make.
TOGETHER = {
    "codegen_modules/test_module_variants.py": "traced modules",
    "cheats/test_module_cheats.py": "cheats in modules",
    "modules/test_module_verdicts.py": "described modules",
    "modules/test_module_faults.py": "described modules",
    "modules/test_module_sums.py": "described modules",
    "grpo/test_grpo_engines.py": "tiny policy",
    "grpo/test_grpo_train.py": "tiny policy",
    "grpo/test_trl_adapter.py": "tiny policy",
    "sft/test_sft_training.py": "warm start",
    "sft/test_sft_rows.py": "rows",
    "training/dataset/test_measure.py": "bench",
    "training/dataset/test_export.py": "dataset",
    "training/ranker/test_ranker.py": "ranker",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell pytest-xdist which tests belong together."""
    here = Path(__file__).parent
    for item in items:
        group = TOGETHER.get(item.path.relative_to(here).as_posix()) if item.path.is_relative_to(here) else None
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(autouse=True)
def _private_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configuration and data of a test lie in a folder of its own; compiled runtimes are shared between tests."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("CUDAPERF_DATA_DIR", str(home / "data"))
    monkeypatch.setenv("CUDAPERF_CONFIG_DIR", str(home / "config"))
    if "CUDAPERF_CACHE_DIR" not in os.environ:
        monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(Path(__file__).parent.parent / "build" / "test-cache"))
    for name in [n for n in os.environ if n.startswith("CUDAPERF_") and not n.endswith("_DIR")]:
        monkeypatch.delenv(name)
    # Where torch is installed, `auto` is the small model, which takes minutes on a CPU; tests of it say so.
    monkeypatch.setenv("CUDAPERF_LOCAL__ADAPTER", "none")


@pytest.fixture(scope="session")
def c_cases() -> Path:
    """The handed C files."""
    return CASES / "c"
