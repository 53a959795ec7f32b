"""The verification service: compiles, tests and times candidates, many at once, each result kept by content."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal

from cudaperf_agent import __version__
from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.building import Built, build_candidate, build_own
from cudaperf_agent.cuda.emulated import Emulated, RunPlan, run_emulated
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.judge import CaseRuns, judge
from cudaperf_agent.cuda.large_case import large_suite, try_large
from cudaperf_agent.cuda.measuring import Measuring
from cudaperf_agent.cuda.modules.verifier import ModuleVerifier
from cudaperf_agent.cuda.on_gpu import gpu_environment, run_on_gpu, run_twice_on_gpu
from cudaperf_agent.cuda.once import Once
from cudaperf_agent.cuda.toolchain import Nvcc
from cudaperf_agent.cuda.trials import Suite, TwoRuns, try_candidate
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.cuda.work import COUNTED, beside
from cudaperf_agent.cuda.workplace import VerifierConfig, Workplace
from cudaperf_agent.execution.native import Worker
from cudaperf_agent.execution.sandbox import Sandbox
from cudaperf_agent.execution.standby import Standby
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.oracle import Oracle, case_digest

__all__ = ["Verifier", "VerifierConfig"]


class Verifier:
    """Implements `cuda.base.CandidateVerifier` on the GPU where there is one, else on the emulator.

    Args:
        config: Numbers.
        nvcc: The compiler; found where `None`.
        sandbox: Found where `None`.
        gpu: The device; looked for where ``"auto"``, `None` for the emulator.

    Raises:
        BackendUnavailable: There is no nvcc.
    """

    def __init__(
        self,
        config: VerifierConfig | None = None,
        *,
        nvcc: Nvcc | None = None,
        sandbox: Sandbox | None = None,
        gpu: Gpu | Literal["auto"] | None = "auto",
    ) -> None:
        self.place = Workplace(config or VerifierConfig(), nvcc, sandbox, gpu)
        self._verdicts: Once[Verdict] = Once(self.place.config.remembered, lambda v: not v.transient)
        self._builds: Once[Built | Verdict] = Once(self.place.config.remembered, _lasting)
        self._suites: Once[Suite] = Once(self.place.config.remembered_tasks)
        self._plain: Once[Verdict | None] = Once(self.place.config.remembered_tasks)
        self._large: Once[Suite | None] = Once(self.place.config.tasks_at_hand)
        self._measuring = Measuring(self.place, self._build)
        self.modules = ModuleVerifier(self.place)
        self._standby = Standby(
            self.place.sandbox.for_gpu().wrap, gpu_environment(), self.place.config.standby, self.place.starting
        )

    @property
    def backend(self) -> str:
        """``gpu`` or ``emulator``."""
        return "gpu" if self.place.gpu is not None else "emulator"

    async def compile(self, task: Task, source: str) -> Verdict:
        """Compile only: `CORRECT` means that it compiles."""
        if task.module is not None:
            return self._signed(task, source, await self.modules.compile(task, source))
        built = await self._build(task, source)
        return self._signed(task, source, built if isinstance(built, Verdict) else built.verdict())

    async def test(self, task: Task, source: str, *, hidden: bool = False) -> Verdict:
        """Compile (from cache) and run the visible, or the hidden, cases against the C."""
        return await self._verdicts.get(
            self._key(task, source, f"hidden={hidden}"), lambda: self._test(task, source, hidden)
        )

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        """`verdict` with timings; unchanged without a GPU, in program mode, or where it is not correct."""
        if self.place.gpu is None or not verdict.correct or task.mode == "program":
            return verdict
        if task.module is not None:
            return await self.modules.measure(task, source, verdict)
        built = await self._build(task, source)
        return verdict if isinstance(built, Verdict) else await self._measuring.measure(task, built, verdict)

    async def aclose(self) -> None:
        """Cancel what still runs."""
        for once in (
            self._verdicts,
            self._builds,
            self._suites,
            self._plain,
            self._large,
            self._measuring,
            self.modules,
        ):
            await once.aclose()
        await self._standby.aclose()

    async def _build(self, task: Task, source: str) -> Built | Verdict:
        return await self._builds.get(
            self._key(task, source, "build"), lambda: build_candidate(self.place, task, source)
        )

    async def _test(self, task: Task, source: str, hidden: bool) -> Verdict:
        if task.module is not None:
            verdict = await self.modules.test(task, source, hidden)
            verdict = replace(verdict, backend=self.backend, device=self.place.device)
            return self._signed(task, source, verdict)
        built = await self._build(task, source)
        if isinstance(built, Verdict):
            return self._signed(task, source, built)
        suite = await self._suite(task, hidden)
        clock = asyncio.get_running_loop().time
        started = clock()
        if self.place.gpu is None:
            verdict = await self._on_emulator(task, built, suite, hidden)
        else:
            verdict = await self._on_gpu(task, built, suite)
            if verdict.correct and built.emulated.artefact is not None and self.place.trust != "own":
                verdict = _combined(verdict, await self._on_emulator(task, built, suite, hidden))
        known = built.verdict()
        work = beside(verdict, await self._plain_counted(task, hidden)) if COUNTED in verdict.profile else {}
        verdict = replace(
            verdict,
            form=known.form,
            diagnostics=known.diagnostics,
            profile={**known.profile, **work, "cases": {"hidden": hidden, "seed": self.place.config.seed}},
            backend=self.backend,
            device=self.place.device,
            seconds={
                **known.seconds,
                **verdict.seconds,
                "test": clock() - started - verdict.seconds.get("wait", 0.0),
            },
        )
        return self._signed(task, source, verdict, suite)

    async def _plain_counted(self, task: Task, hidden: bool) -> Verdict | None:
        """Plain CUDA on the same cases, to put beside it what the emulator counted of a candidate; once a task."""
        if not self.place.config.work or task.mode != "function":
            return None
        return await self._plain.get(f"{task.digest} {hidden}", lambda: self._count_plain(task, hidden))

    async def _count_plain(self, task: Task, hidden: bool) -> Verdict | None:
        from cudaperf_agent.codegen.variants import plain_variant

        plain = await asyncio.to_thread(plain_variant, task)
        built = await build_own(self.place, task, plain.source) if plain is not None else None
        if built is None:
            return None
        suite = await self._suite(task, hidden)
        return judge(task, suite.cases, suite.expected, await self._emulated(task, built, suite.cases, RunPlan()))

    async def _emulated(self, task: Task, built: Emulated, cases: Sequence[Case], plan: RunPlan) -> CaseRuns:
        # A program is linked with the runtime, and must see it.
        wrap = self.place.sandbox.reading(emulator.runtime_library()).wrap
        async with self.place.running:
            return await run_emulated(built, task, cases, plan, limits=self.place.config.emulated, wrap=wrap)

    async def _on_emulator(self, task: Task, built: Built, suite: Suite, hidden: bool) -> Verdict:
        config = self.place.config

        async def run(cases: Sequence[Case], plan: RunPlan) -> CaseRuns:
            return await self._emulated(task, built.emulated, cases, plan)

        suppress = hidden and config.suppress
        verdict = await try_candidate(
            task,
            suite,
            run,
            self._oracle(task).expected,
            repeat_seconds=config.repeat_seconds,
            suppress=suppress,
            counted=True,
        )
        # On a GPU, the outputs of timed calls are checked at larger sizes than this.
        if not (hidden and config.large and verdict.correct and self.place.gpu is None):
            return verdict
        large = await self._large.get(
            task.digest, lambda: large_suite(task, config.seed, self.place.sandbox.wrap, config.large_case)
        )
        return verdict if large is None else await try_large(task, large, verdict, run, config.large_case)

    async def _on_gpu(self, task: Task, built: Built, suite: Suite) -> Verdict:
        config, artefact = self.place.config, built.compiled.artefact
        assert artefact is not None
        wrap, limits, function = self.place.sandbox.for_gpu().wrap, config.on_gpu, task.mode == "function"

        waited: list[float] = []

        async def run(cases: Sequence[Case], plan: RunPlan) -> CaseRuns:
            async with self._worker(function, waited) as worker:
                return await run_on_gpu(artefact, task, cases, plan, limits=limits, wrap=wrap, worker=worker)

        async def run_twice(cases: Sequence[Case]) -> TwoRuns:
            async with self._worker(function, waited) as worker:
                return await run_twice_on_gpu(artefact, task, cases, limits=limits, wrap=wrap, worker=worker)

        repeat_seconds = None if self.place.trust == "own" else config.repeat_seconds
        verdict = await try_candidate(
            task,
            suite,
            run,
            self._oracle(task).expected,
            repeat_seconds=repeat_seconds,
            suppress=False,
            counted=False,
            run_twice=run_twice if function else None,
        )
        return replace(verdict, seconds={"wait": sum(waited)})

    @asynccontextmanager
    async def _worker(self, wanted: bool, waited: list[float]) -> AsyncIterator[Worker | None]:
        """A turn on the device, with a process that is ready for it if one is `wanted`; adds the seconds till then."""
        clock = asyncio.get_running_loop().time
        started = clock()
        # Taken before the turn, so that nothing waits in it.
        worker = await self._standby.take() if wanted else None
        try:
            async with self.place.running:
                waited.append(clock() - started)
                yield worker
        finally:
            if worker is not None:
                await worker.discard()

    async def _suite(self, task: Task, hidden: bool) -> Suite:
        return await self._suites.get(f"{task.digest} {hidden}", lambda: self._make_suite(task, hidden))

    async def _make_suite(self, task: Task, hidden: bool) -> Suite:
        cases = make_cases(task, hidden=hidden, seed=self.place.config.seed)
        expected = await self._oracle(task).expected(cases)
        digest = hashlib.sha256("".join(case_digest(c) for c in cases).encode()).hexdigest()
        return Suite(cases, expected, digest)

    def _oracle(self, task: Task) -> Oracle:
        return Oracle(task, self.place.sandbox.wrap)

    def _key(self, task: Task, source: str, what: str) -> str:
        parts = [task.digest, source, what, self.place.flags, self.place.device, str(self.place.config.seed)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _signed(self, task: Task, source: str, verdict: Verdict, suite: Suite | None = None) -> Verdict:
        """With what makes it repeatable: digests of everything that went in, and versions."""
        place = self.place
        digests = {
            "source": hashlib.sha256(source.encode()).hexdigest(),
            "flags": hashlib.sha256(place.flags.encode()).hexdigest(),
            "task": task.digest,
            **({"inputs": suite.digest} if suite else {}),
        }
        versions = {
            "cudaperf": __version__,
            "nvcc": place.nvcc.version,
            **({"driver": place.gpu.driver} if place.gpu else {}),
        }
        return replace(
            verdict,
            digests={**verdict.digests, **digests},
            versions={**verdict.versions, **versions},
            trust=place.trust,
        )


def _lasting(built: Built | Verdict) -> bool:
    """Whether it can be used again: no limit was met, and what it names is still in the cache."""
    return built.there if isinstance(built, Built) else not built.transient


def _combined(real: Verdict, emulated: Verdict) -> Verdict:
    """The GPU's verdict, with what only the emulator can see: memory errors, races, launches."""
    declined = emulated.status is Status.WRONG and emulated.failure is None
    if declined or emulated.status in (Status.MEMORY_ERROR, Status.CHEAT):
        return emulated
    return replace(real, reports=emulated.reports, profile={**real.profile, **emulated.profile})
