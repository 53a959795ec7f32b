"""Where the studies run: a GPU, or the emulator in its place, to try the studies themselves out without one."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

from cudaperf_agent.codegen.dropin import make_dropin
from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.baselines import Baseline, make_contents, timed_case
from cudaperf_agent.cuda.building import Built
from cudaperf_agent.cuda.emulated import build_emulated
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.link import linked_c
from cudaperf_agent.cuda.measure import C_ONE_CORE, Stopwatch
from cudaperf_agent.cuda.measuring import TIMER
from cudaperf_agent.cuda.timing import Contents, TimingConfig
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.sandbox import detect
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from cudaperf_agent.tasks.reference_build import Build, require_library

CASES = Path(__file__).parents[2] / "tests" / "cases" / "c"


class Lab:
    """A stopwatch and built candidates, on either.

    Args:
        gpu: `None` for the emulator.
        timing: Numbers.
    """

    def __init__(self, gpu: Gpu | None, timing: TimingConfig) -> None:
        self.gpu = gpu
        self.timing = timing
        self.verifier = Verifier(VerifierConfig(timing=timing, also_emulate=False), gpu=gpu)
        self._folder = tempfile.TemporaryDirectory(prefix="cudaperf-lab-")

    async def stopwatch(self) -> Stopwatch:
        """What times here."""
        if self.gpu is not None:
            return await self.verifier._measuring.stopwatch()
        folder = Path(self._folder.name) / "timer"
        await asyncio.to_thread(folder.mkdir)
        built = await emulator.build(TIMER.read_text(), path_name="timer.cu", folder=folder, mode="fast", program=True)
        if built.program is None:
            raise BackendUnavailable(f"the timer does not build: {built}")
        for place in (Path(self._folder.name), folder, built.program):
            place.chmod(0o755)
        wrap = detect().reading(emulator.runtime_library()).wrap
        return Stopwatch(built.program, self.timing, wrap=wrap, clocks=dict)

    async def library(self, task: Task, source: str) -> Path:
        """A candidate that compiles, built."""
        if self.gpu is not None:
            built = await self.verifier._build(task, source)
            if isinstance(built, Built) and built.compiled.artefact is not None:
                return built.compiled.artefact
            raise BackendUnavailable(f"a kernel of the study does not compile: {built}")
        dropin = make_dropin(task, source)
        assert dropin is not None
        limits = Limits(seconds=60.0)
        made = await build_emulated(dropin.cu, linked_c(task, dropin), wrap=None, limits=limits, mode="fast")
        if made.artefact is None:
            raise BackendUnavailable(f"a kernel of the study does not build: {made}")
        return made.artefact

    async def aclose(self) -> None:
        """Stop what still runs."""
        await self.verifier.aclose()
        self._folder.cleanup()


async def task_of(name: str) -> Task:
    """A handed C file, prepared."""
    return await prepare(load_task(CASES / f"{name}.c"))


async def contents_of(task: Task, timing: TimingConfig, size_bytes: int, reference_seconds: float = 0.5) -> Contents:
    """Contents of a task at a size of its own."""
    config = replace(timing, size_bytes=size_bytes, reference_seconds=reference_seconds)
    native = Baseline(C_ONE_CORE, await require_library(task, Build.NATIVE))
    case = await timed_case(task, native, config, None)
    return await make_contents(task, Oracle(task), case, config)
