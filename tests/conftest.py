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
