"""The measuring part of the service: contents and baselines of a task made once, then candidates timed alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from cudaperf_agent.cuda.baselines import affordable_samples, make_contents, time_reference, timed_case
from cudaperf_agent.cuda.building import Built
from cudaperf_agent.cuda.c_baselines import c_baselines, native_baseline
from cudaperf_agent.cuda.ceilings import device_ceilings
from cudaperf_agent.cuda.compile import compile_cuda
from cudaperf_agent.cuda.measure import Baselines, Stopwatch, measured_verdict, with_times
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.cuda.once import Once
from cudaperf_agent.cuda.own import OwnTimer
from cudaperf_agent.cuda.spread import UNKNOWN, known_spread
from cudaperf_agent.cuda.timing import Contents
from cudaperf_agent.cuda.tracer import tracer_library
from cudaperf_agent.cuda.verdict import Timing, Verdict
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle

TIMER = Path(__file__).with_name("timer.cu")


class Measuring:
    """Times candidates on the GPU of a workplace.

    Args:
        place: Tools and turns.
        build: Builds a candidate (for the naive baseline).
    """

    def __init__(self, place: Workplace, build: Callable[[Task, str], Awaitable[Built | Verdict]]) -> None:
        self._place = place
        self._build = build
        self._contents: Once[Contents] = Once(place.config.tasks_at_hand)
        self._baselines: Once[Baselines] = Once(place.config.remembered_tasks)
        self._watch: Once[Stopwatch] = Once(1)
        self._own: dict[str, OwnTimer] = {}
        config = place.config
        self._timing = config.own.timing(config.timing) if place.trust == "own" else config.timing
        self._staged = asyncio.Semaphore(place.config.staged)

    async def measure(self, task: Task, built: Built, verdict: Verdict) -> Verdict:
        """`verdict` of a correct candidate with its times and speedups."""
        assert built.compiled.artefact is not None
        clock = asyncio.get_running_loop().time
        started = clock()
        watch = await self.stopwatch()
        contents = await self.contents(task)
        baselines = await self._baselines.get(task.digest, lambda: self._time_baselines(task, contents, watch))
        ready, gpu, library = clock(), self._place.gpu, built.compiled.artefact
        if self._place.trust == "own" and built.dropin.form == "device":
            timer = self._own_timer(watch, task, contents)
            await self._close_idle_timers(self._place.config.tasks_at_hand)
            found = with_times(verdict, [await timer.time(library)], task, contents, watch, baselines, gpu)
        else:
            # Only who has passed the hidden cases can be chosen for good.
            chosen = bool(verdict.profile.get("cases", {}).get("hidden"))
            whole = self._place.config.whole == "all" or (self._place.config.whole == "chosen" and chosen)
            found = await measured_verdict(verdict, library, task, contents, watch, baselines, gpu, whole=whole)
        seconds = {"baselines": ready - started, "time": clock() - ready}
        return replace(found, seconds={**verdict.seconds, **seconds})

    async def contents(self, task: Task) -> Contents:
        """What the task is timed on, made once while it is at hand."""
        return await self._contents.get(task.digest, lambda: self._make_contents(task))

    async def stopwatch(self) -> Stopwatch:
        """What times on this machine, made and measured once."""
        return await self._watch.get("", self._make_stopwatch)

    def _own_timer(self, watch: Stopwatch, task: Task, contents: Contents) -> OwnTimer:
        """That of the task; the one that was not asked for the longest makes room for it."""
        timer = self._own.pop(task.digest, None) or OwnTimer(watch, task, contents, self._place.config.own)
        self._own[task.digest] = timer
        return timer

    async def _close_idle_timers(self, most: int) -> None:
        while len(self._own) > most:
            await self._own.pop(next(iter(self._own))).aclose()

    async def aclose(self) -> None:
        """Cancel what still runs."""
        await self._close_idle_timers(0)
        for once in (self._contents, self._baselines, self._watch):
            await once.aclose()

    async def _make_stopwatch(self) -> Stopwatch:
        place = self._place
        config = replace(place.config.compile, flags=("-O2", "-std=c++17"))
        text = await asyncio.to_thread(TIMER.read_text)
        made = await compile_cuda(place.nvcc, text, "program", config=config, wrap=place.sandbox.wrap)
        if made.artefact is None:
            raise BackendUnavailable(f"the timer does not compile: {made.diagnostics[0].message}")
        gpu, wrap, env = place.gpu, place.sandbox.for_gpu(), gpu_environment()
        tracer = await asyncio.to_thread(tracer_library, place.nvcc) if place.config.trace else None
        ceilings = None
        if gpu is not None:
            async with place.alone():
                ceilings = await device_ceilings(place.nvcc, gpu, wrap=wrap.wrap, env=env)
        return Stopwatch(
            made.artefact,
            self._timing,
            gpu.l2_bytes if gpu is not None else 0,
            (wrap.reading(*tracer.needs) if tracer is not None else wrap).wrap,
            env,
            turn=place.alone,
            staged=self._staged,
            staging=place.staging,
            tracer=tracer.path if tracer is not None else None,
            ceilings=ceilings,
            spread=await asyncio.to_thread(known_spread, gpu) if gpu is not None else UNKNOWN,
        )

    async def _make_contents(self, task: Task) -> Contents:
        config, wrap = self._timing, self._place.sandbox.wrap
        preparing = self._place.preparing
        case = await timed_case(task, await native_baseline(task), config, wrap, preparing)
        # Not the oracle of the tests: what is this large is not kept for longer than the task is at hand.
        return await make_contents(task, Oracle(task, wrap), case, config, preparing)

    async def _time_baselines(self, task: Task, contents: Contents, watch: Stopwatch) -> Baselines:
        building = asyncio.create_task(self._naive(task))
        try:
            references = await self._time_references(task, contents)
            naive = await building
        finally:
            building.cancel()
        if naive is None or naive.compiled.artefact is None:
            return Baselines(None, references)
        timed = (await watch.time(naive.compiled.artefact, ("device",), task, contents))[0]
        return Baselines(replace(timed.timing, kind="naive") if timed.timing else None, references)

    async def _time_references(self, task: Task, contents: Contents) -> tuple[Timing, ...]:
        """The ways to run the C, all in one turn: stopping everything else takes longer than most of them."""
        place, config, wrap = self._place, self._place.config, self._place.sandbox.wrap
        if place.trust == "own":
            ways = [await native_baseline(task)]
        else:
            ways = await c_baselines(task, contents, config.reference, wrap, place.preparing)
        samples = []
        for way in ways:
            async with place.preparing:
                samples.append(await affordable_samples(task, way, contents, config.references, config.reference, wrap))
        async with place.alone():
            found = [
                await time_reference(task, way, contents, count, config.reference, wrap)
                for way, count in zip(ways, samples, strict=True)
            ]
        return tuple(timing for timing in found if timing is not None)

    async def _naive(self, task: Task) -> Built | None:
        """The plain CUDA that the generator gives, built; `None` where it declines."""
        from cudaperf_agent.codegen.variants import plain_variant

        plain = await asyncio.to_thread(plain_variant, task)
        built = await self._build(task, plain.source) if plain else None
        return built if isinstance(built, Built) else None
