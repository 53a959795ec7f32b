"""A GPU host's way from a source to a measured verdict, on the CPU: all of it but kernels and the device itself."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from module_bench import ModuleBench

from cudaperf_agent.codegen.modules.forms import ModuleFile
from cudaperf_agent.cuda.modules.building import BuiltModule
from cudaperf_agent.cuda.modules.config import MODULES
from cudaperf_agent.cuda.modules.runs import Kernels, ModuleRuns
from cudaperf_agent.cuda.modules.timing import COMPILED, EAGER
from cudaperf_agent.cuda.modules.verifier import ModuleVerifier
from cudaperf_agent.cuda.modules.waiting import WAITING
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.cuda.verifier import VerifierConfig
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.tasks.model import Task
from tests.cuda.standin import GPU

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow, pytest.mark.timeout(400)]
CONFIG = replace(
    MODULES,
    device="cpu",
    timed=4,
    warmups=1,
    contents_bytes=1 << 24,
    gpu_elements=MODULES.elements,
    slack=50.0,
    slack_seconds=1.0,
    waiting=replace(WAITING, waiting=2),
)
BODY = "return (torch.softmax(scores / self.temperature, -1) * mask).sum(-1)"
CANDIDATE = f"""import torch
class ModelNew(torch.nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature
    def forward(self, scores, mask):
        {BODY}
"""


async def built(self: ModuleVerifier, source: str) -> BuiltModule:
    """A candidate without kernels, as if nvcc had had nothing to do."""
    return BuiltModule(ModuleFile(source, source, "light", ()), Kernels({}), Kernels({}))


async def test_many_at_once_are_tested_and_timed(
    module_bench: ModuleBench, torch_cases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModuleVerifier, "_build", built)
    reserved: list[int] = []
    reserve = ModuleRuns.reserve

    async def counted(self: ModuleRuns) -> None:
        await reserve(self)
        reserved.append(len(self._workers))

    monkeypatch.setattr(ModuleRuns, "reserve", counted)
    task = await module_bench.described(torch_cases / "row_softmax_scale.py", mode="libraries-allowed")
    place = Workplace(VerifierConfig(also_emulate=False), gpu=GPU)
    verifier = ModuleVerifier(place, CONFIG)

    async def whole(task: Task, source: str) -> Verdict:
        verdict = await verifier.test(task, source, hidden=False)
        if verdict.correct:
            verdict = await verifier.test(task, source, hidden=True)
        return await verifier.measure(task, source, verdict)

    wrong = CANDIDATE.replace(BODY, f"{BODY} + 1")
    try:
        found = await asyncio.gather(*(whole(task, s) for s in (CANDIDATE, f"# again\n{CANDIDATE}", wrong)))
    finally:
        await verifier.aclose()
    assert [v.status for v in found] == [Status.CORRECT, Status.CORRECT, Status.WRONG], [v.message for v in found]
    for verdict in found[:2]:
        assert verdict.measured
        assert {s.baseline for s in verdict.speedups} == {EAGER, COMPILED}
        assert {"process", "first run", "run's cases", "baselines"} <= verdict.seconds.keys()
    assert 2 in reserved, "some ran in processes that waited"
