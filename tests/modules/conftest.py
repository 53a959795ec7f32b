"""One verifier for the tests of this folder, with every module described once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from module_bench import ModuleBench

CASES = Path(__file__).parents[1] / "cases"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def module_bench() -> AsyncIterator[ModuleBench]:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    made = ModuleBench()
    yield made
    await made.verifier.aclose()


@pytest.fixture
def torch_cases() -> Path:
    """The handed PyTorch files."""
    return CASES / "torch"


@pytest.fixture
def row_softmax_candidate() -> str:
    """A hand-written candidate for ``row_softmax_scale.py``."""
    return (CASES / "torch_light" / "row_softmax_scale.py").read_text()
