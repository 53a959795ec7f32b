"""What only a GPU can show: load_inline files verify unchanged, times against both baselines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cudaperf_agent.cuda.gpu import find_gpu
from cudaperf_agent.cuda.modules.timing import COMPILED, EAGER
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.tasks.modules.find import load_module_task

CASES = Path(__file__).parents[1] / "cases"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(find_gpu() is None, reason="there is no GPU here")]


@pytest.fixture
async def on_gpu() -> AsyncIterator[Verifier]:
    made = Verifier(VerifierConfig(also_emulate=False))
    yield made
    await made.aclose()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(p.stem for p in (CASES / "torch_inline").glob("*.py")))
async def test_a_published_style_file_verifies_unchanged(name: str, on_gpu: Verifier) -> None:
    task = await on_gpu.modules.reference.described(load_module_task(CASES / "torch" / f"{name}.py"))
    source = (CASES / "torch_inline" / f"{name}.py").read_text()
    for hidden in (False, True):
        verdict = await on_gpu.test(task, source, hidden=hidden)
        assert verdict.correct, verdict.message
        assert verdict.form == "load_inline"


@pytest.mark.timeout(600)
async def test_times_are_against_eager_and_compiled(on_gpu: Verifier) -> None:
    task = await on_gpu.modules.reference.described(load_module_task(CASES / "torch" / "row_softmax_scale.py"))
    source = (CASES / "torch_light" / "row_softmax_scale.py").read_text()
    verdict = await on_gpu.test(task, source)
    assert verdict.correct, verdict.message
    timed = await on_gpu.measure(task, source, verdict)
    assert timed.measured, timed.message
    assert [s.baseline for s in timed.speedups] == [EAGER, COMPILED]
    assert "matmul_allow_tf32" in timed.profile["baselines"]["torch"]
