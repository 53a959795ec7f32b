"""What goes wrong in a candidate's process is its verdict, in its time, and the next one is judged as ever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from module_bench import ModuleBench

from cudaperf_agent.cuda.modules.config import MODULES
from cudaperf_agent.cuda.modules.verifier import ModuleVerifier
from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.execution.child import Limits

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]
SHORT = replace(MODULES, emulated=Limits(seconds=10.0, memory=2 << 30, file_bytes=64 << 20))
CALL = "        launch(kernels.row_softmax"
KERNEL = "    __shared__ float shared[256];"
LAUNCHER = "    return cudaGetLastError();"
FAULTS = {
    "endless_python": (CALL, "        while True:\n            pass\n" + CALL, {Status.TIMEOUT}),
    "endless_kernel": (KERNEL, "    while (cols) __syncthreads();\n" + KERNEL, {Status.TIMEOUT, Status.MEMORY_ERROR}),
    "leaves": (CALL, "        raise SystemExit(0)\n" + CALL, {Status.CRASH}),
    "recursion": (CALL, "        self.forward(scores, mask)\n" + CALL, {Status.CRASH, Status.TIMEOUT}),
    "null_on_the_host": (LAUNCHER, "    *(volatile int *)0 = 1;\n" + LAUNCHER, {Status.CRASH}),
    "huge_output": (
        CALL,
        "        for _ in range(10**5):\n            print('x' * 1000)\n" + CALL,
        # What it prints is thrown away as it comes; on a slow machine its time is over first.
        {Status.CORRECT, Status.CRASH, Status.TIMEOUT},
    ),
    "memory_hog": (CALL, "        kept = [b'x' * (1 << 28) for _ in range(40)]\n" + CALL, {Status.CRASH}),
}


@pytest.mark.parametrize("name", sorted(FAULTS))
async def test_a_fault_is_a_verdict(
    name: str, module_bench: ModuleBench, torch_cases: Path, row_softmax_candidate: str
) -> None:
    before, after, statuses = FAULTS[name]
    assert before in row_softmax_candidate
    task = await module_bench.described(torch_cases / "row_softmax_scale.py")
    verifier = ModuleVerifier(module_bench.verifier.place, SHORT)
    try:
        verdict = await verifier.test(task, row_softmax_candidate.replace(before, after), False)
    finally:
        await verifier.aclose()
    assert verdict.status in statuses, verdict.message
    assert verdict.correct or verdict.message
    assert len(verdict.message) < 2000


async def test_the_next_one_is_judged_as_ever(
    module_bench: ModuleBench, torch_cases: Path, row_softmax_candidate: str
) -> None:
    task = await module_bench.described(torch_cases / "row_softmax_scale.py")
    assert (await module_bench.verifier.test(task, row_softmax_candidate)).correct
