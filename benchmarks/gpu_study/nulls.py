"""Null launches on the device: each kernel of right candidates is needed, and the idle one of a cheat is found."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.gpu_study.lab import task_of
from benchmarks.gpu_study.null_launch import null_launches
from benchmarks.gpu_study.record import Record
from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.tasks.model import Task
from tests.cheats.conftest import HERE, head_of, task_named

# Handed files whose CUDA has one kernel, or several.
TASKS = ("saxpy", "dot", "inclusive_scan", "softmax_rows", "gauss_seidel")
CHEATS = ("21_decoy_kernel", "22_idle_kernel")


async def run(record: Record, gpu: Gpu) -> None:
    """One row each: how many kernels were launched, and which were idle."""
    if record.small:
        record.say("nulls: a stand-in has no launches of CUDA's runtime to leave out")
        return
    known = {row["name"] for row in record.rows("null_launch")}
    verifier = Verifier(VerifierConfig(also_emulate=False), gpu=gpu)

    async def one(name: str, task: Task, source: str, expected_idle: bool) -> None:
        started = time.monotonic()
        result: dict[str, Any]
        try:
            suite = await verifier._suite(task, True)
            found = await null_launches(verifier.place, task, source, suite)
            result = {"kernels": found.kernels, "idle": list(found.idle)} if found is not None else {"kernels": None}
            ok = found is not None and found.kernels > 0 and bool(found.idle) == expected_idle
        except Exception as error:  # noqa: BLE001 - the others go on, and the row says what happened
            result, ok = {"error": f"{type(error).__name__}: {error}"}, False
        seconds = round(time.monotonic() - started, 2)
        record.add("null_launch", name=name, expected_idle=expected_idle, ok=ok, seconds=seconds, **result)
        record.say(f"null launches of {name}: {result}{'' if ok else ', which is not as it should be'}")

    async def right(name: str) -> None:
        task = await task_of(name)
        last = generate(task).variants[-1]  # the plainest come first
        await one(name, task, last.source, False)

    async def cheat(name: str) -> None:
        source = (HERE / f"{name}.cu").read_text()
        await one(name, await task_named(head_of(source)["task"]), source, True)

    try:
        jobs = [right(name) for name in TASKS if name not in known]
        await asyncio.gather(*jobs, *(cheat(name) for name in CHEATS if name not in known))
    finally:
        await verifier.aclose()
