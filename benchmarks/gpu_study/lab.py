"""What the studies share: a stopwatch, built candidates, tasks and contents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cudaperf_agent.cuda.baselines import Baseline, make_contents, timed_case
from cudaperf_agent.cuda.building import Built
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.measure import C_ONE_CORE, Stopwatch
from cudaperf_agent.cuda.timing import Contents, TimingConfig
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from cudaperf_agent.tasks.reference_build import Build, require_library

CASES = Path(__file__).parents[2] / "tests" / "cases" / "c"


class Lab:
    """A stopwatch and built candidates.

    Args:
        gpu: The device.
        timing: Numbers.
    """

    def __init__(self, gpu: Gpu, timing: TimingConfig) -> None:
        self.timing = timing
        self.verifier = Verifier(VerifierConfig(timing=timing, also_emulate=False), gpu=gpu)

    async def stopwatch(self) -> Stopwatch:
        """What times here."""
        return await self.verifier._measuring.stopwatch()

    async def library(self, task: Task, source: str) -> Path:
        """A candidate that compiles, built."""
        built = await self.verifier._build(task, source)
        if isinstance(built, Built) and built.compiled.artefact is not None:
            return built.compiled.artefact
        raise BackendUnavailable(f"a kernel of the study does not compile: {built}")

    async def aclose(self) -> None:
        """Stop what still runs."""
        await self.verifier.aclose()


async def task_of(name: str) -> Task:
    """A handed C file, prepared."""
    return await prepare(load_task(CASES / f"{name}.c"))


async def contents_of(task: Task, timing: TimingConfig, size_bytes: int, reference_seconds: float = 0.5) -> Contents:
    """Contents of a task at a size of its own."""
    config = replace(timing, size_bytes=size_bytes, reference_seconds=reference_seconds)
    native = Baseline(C_ONE_CORE, await require_library(task, Build.NATIVE))
    case = await timed_case(task, native, config, None)
    return await make_contents(task, Oracle(task), case, config)
