"""The measuring part of the service: contents and baselines of a task made once, then candidates timed alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from cudaperf_agent.cuda.baselines import Baseline, make_contents, time_reference, timed_case
from cudaperf_agent.cuda.building import Built
from cudaperf_agent.cuda.compile import compile_cuda
from cudaperf_agent.cuda.measure import C_ONE_CORE, Baselines, Stopwatch, measured_verdict
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.cuda.once import Once
from cudaperf_agent.cuda.timing import Contents
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.reference_build import Build, require_library

TIMER = Path(__file__).with_name("timer.cu")
_TASKS_AT_HAND = 2  # contents are hundreds of megabytes


class Measuring:
    """Times candidates on the GPU of a workplace.

    Args:
        place: Tools and turns.
        build: Builds a candidate (for the naive baseline).
    """

    def __init__(self, place: Workplace, build: Callable[[Task, str], Awaitable[Built | Verdict]]) -> None:
        self._place = place
        self._build = build
        self._contents: Once[Contents] = Once(_TASKS_AT_HAND)
        self._baselines: Once[Baselines] = Once(place.config.remembered_tasks)

    async def measure(self, task: Task, built: Built, verdict: Verdict) -> Verdict:
        """`verdict` of a correct candidate with its times and speedups."""
        assert built.compiled.artefact is not None
        clock = asyncio.get_running_loop().time
        started = clock()
        watch = await self._stopwatch()
        contents = await self._contents.get(task.digest, lambda: self._make_contents(task))
        baselines = await self._baselines.get(task.digest, lambda: self._time_baselines(task, contents, watch))
        async with self._place.alone():
            found = await measured_verdict(
                verdict, built.compiled.artefact, task, contents, watch, baselines, self._place.gpu
            )
        return replace(found, seconds={**verdict.seconds, "time": clock() - started})

    async def aclose(self) -> None:
        """Cancel what still runs."""
        await self._contents.aclose()
        await self._baselines.aclose()

    async def _stopwatch(self) -> Stopwatch:
        place = self._place
        config = replace(place.config.compile, flags=("-O2", "-std=c++17"))
        text = await asyncio.to_thread(TIMER.read_text)
        made = await compile_cuda(place.nvcc, text, "program", config=config, wrap=place.sandbox.wrap)
        if made.artefact is None:
            raise BackendUnavailable(f"the timer does not compile: {made.diagnostics[0].message}")
        l2_bytes = place.gpu.l2_bytes if place.gpu else 0
        return Stopwatch(made.artefact, place.config.timing, l2_bytes, place.sandbox.for_gpu().wrap, gpu_environment())

    async def _make_contents(self, task: Task) -> Contents:
        config, wrap = self._place.config.timing, self._place.sandbox.wrap
        case = await timed_case(task, await _native(task), config, wrap)
        # Not the oracle of the tests: what is this large is not kept for longer than the task is at hand.
        return await make_contents(task, Oracle(task, wrap), case, config)

    async def _time_baselines(self, task: Task, contents: Contents, watch: Stopwatch) -> Baselines:
        config, wrap = self._place.config, self._place.sandbox.wrap
        native = await _native(task)
        async with self._place.alone():
            reference = await time_reference(task, native, contents, config.reference_samples, config.reference, wrap)
        naive = await self._naive(task)
        if naive is None or naive.compiled.artefact is None:
            return Baselines(None, reference)
        async with self._place.alone():
            timed = await watch.time(naive.compiled.artefact, "device", task, contents)
        return Baselines(replace(timed.timing, kind="naive") if timed.timing else None, reference)

    async def _naive(self, task: Task) -> Built | None:
        """The plain CUDA that the generator gives, built; `None` where it declines."""
        from cudaperf_agent.codegen.variants import generate

        plain = next((v for v in generate(task).variants if v.naive), None)
        built = await self._build(task, plain.source) if plain else None
        return built if isinstance(built, Built) else None


async def _native(task: Task) -> Baseline:
    return Baseline(C_ONE_CORE, await require_library(task, Build.NATIVE))
