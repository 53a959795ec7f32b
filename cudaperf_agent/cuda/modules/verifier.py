"""The verification service for PyTorch candidates: `cuda.verifier.Verifier` hands tasks of module mode on to it."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.emulated import RunPlan
from cudaperf_agent.cuda.judge import CaseRuns
from cudaperf_agent.cuda.modules.budget import leaf_of
from cudaperf_agent.cuda.modules.building import BuiltModule, build_module
from cudaperf_agent.cuda.modules.config import MODULES, ModuleConfig
from cudaperf_agent.cuda.modules.reference import Answers, Reference
from cudaperf_agent.cuda.modules.runs import EXTENSIONS, Bench, ModuleRuns
from cudaperf_agent.cuda.modules.timing import Baselines, TimingPlace, TimingTurns, make_baselines, measured_module
from cudaperf_agent.cuda.modules.waiting import WaitingPythons
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.cuda.once import Once
from cudaperf_agent.cuda.trials import SECOND_POISON, Suite, try_candidate
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.modules.cases import growth_cases, module_cases

_TASKS_AT_HAND = 2  # right outputs are up to a gigabyte
REDUCED = "on shapes of at most {elements} elements: the emulator is slow"


@dataclass(frozen=True, slots=True, eq=False)
class ModuleSuite:
    """Cases of a module with all that their runs need."""

    answers: Answers
    suite: Suite


class ModuleVerifier:
    """Compiles, tests and times PyTorch candidates.

    Args:
        place: Tools of this machine, and turns at it.
        config: Numbers.
    """

    def __init__(self, place: Workplace, config: ModuleConfig = MODULES) -> None:
        self._place = place
        self._config = config
        self.reference = Reference(place.sandbox, config)
        self._builds: Once[BuiltModule | Verdict] = Once(place.config.remembered, _lasting)
        self._suites: Once[ModuleSuite] = Once(place.config.remembered_tasks)
        self._folders: dict[str, Path] = {}
        self._at_folders: dict[Path, asyncio.Lock] = {}
        self.waiting = None if place.gpu is None else _waiting(place, config)
        self._baselines: Once[Baselines] = Once(_TASKS_AT_HAND)

    async def compile(self, task: Task, source: str) -> Verdict:
        """Compile only."""
        del task
        built = await self._build(source)
        return built if isinstance(built, Verdict) else built.verdict()

    async def test(self, task: Task, source: str, hidden: bool) -> Verdict:
        """Run the visible, or the hidden, cases."""
        assert task.module is not None
        if self.waiting is not None:
            self.waiting.fill()  # they start while nvcc compiles
        built = await self._build(source)
        if isinstance(built, Verdict):
            return built
        clock = asyncio.get_running_loop().time
        started = clock()
        if self._place.gpu is None:
            verdict = await self._on_emulator(task, built, hidden)
        else:
            verdict = await self._on_gpu(task, built, hidden)
            trusted = self._place.trust == "own"
            if verdict.correct and not trusted and built.emulated.by_text and not _too_large(task, self._config):
                verdict = _combined(verdict, await self._on_emulator(task, built, hidden))
        known = built.verdict()
        cases = {"hidden": hidden, "seed": self._place.config.seed, "dtypes": list(task.module.tested_dtypes)}
        if self._place.gpu is None:
            cases["reduced"] = REDUCED.format(elements=self._config.elements)
        return replace(
            verdict,
            form=known.form,
            diagnostics=known.diagnostics,
            profile={**known.profile, **verdict.profile, "cases": {**cases, "mode": task.module.mode}},
            versions={"torch": task.module.torch},
            seconds={**verdict.seconds, **known.seconds, "test": clock() - started},
        )

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        """`verdict` with times, where there is a GPU."""
        built = await self._build(source)
        if self._place.gpu is None or not verdict.correct or isinstance(built, Verdict):
            return verdict
        clock = asyncio.get_running_loop().time
        started = clock()
        gpu = self._place.gpu
        where = TimingPlace(
            self._place.sandbox.for_gpu(),
            self._config.device,
            l2_bytes=gpu.l2_bytes,
            bandwidth=gpu.datasheet_bandwidth,
            env=self._gpu_environment(built),
            keep=self._kept(built),
        )
        turns = TimingTurns(lambda: self._place.staging, self._place.alone)
        known = await self._baselines.get(task.digest, lambda: make_baselines(task, where, self._config, turns))
        made = clock()
        async with self._at_folder(built):
            found = await measured_module(task, built.file, built.real, verdict, known, where, self._config, turns)
        seconds = {**verdict.seconds, "baselines": made - started, "time": clock() - started}
        return replace(found, seconds=seconds)

    async def suite_digest(self, task: Task, hidden: bool) -> str:
        """SHA-256 (hex) of the inputs of the cases."""
        return (await self._suite(task, hidden, emulated=self._place.gpu is None)).suite.digest

    async def aclose(self) -> None:
        """Cancel what still runs."""
        if self.waiting is not None:
            await self.waiting.aclose()
        await self._builds.aclose()
        await self._suites.aclose()
        await self._baselines.aclose()
        for folder in self._folders.values():
            shutil.rmtree(folder, ignore_errors=True)
        self._folders.clear()

    def _kept(self, built: BuiltModule) -> Path | None:
        """Where ``load_inline`` builds a candidate, so that the test, the hidden test and the timing build it once."""
        if built.file.form != "load_inline":
            return None
        digest = hashlib.sha256(built.file.source.encode()).hexdigest()[:16]
        if digest not in self._folders:
            self._folders[digest] = Path(tempfile.mkdtemp(prefix="cudaperf-inline-"))
        return self._folders[digest]

    def _at_folder(self, built: BuiltModule) -> AbstractAsyncContextManager[Any]:
        """One process at a time works in a folder that stays. Waited for before any turn at the machine is taken."""
        kept = self._kept(built)
        return nullcontext() if kept is None else self._at_folders.setdefault(kept, asyncio.Lock())

    def _gpu_environment(self, built: BuiltModule) -> dict[str, str]:
        kept = self._kept(built)
        extensions = {} if kept is None else {"TORCH_EXTENSIONS_DIR": str(kept / EXTENSIONS)}
        return {**gpu_candidate_environment(self._place), **extensions}

    async def _build(self, source: str) -> BuiltModule | Verdict:
        key = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
        return await self._builds.get(key, lambda: build_module(self._place, source))

    async def _on_emulator(self, task: Task, built: BuiltModule, hidden: bool) -> Verdict:
        if _too_large(task, self._config):
            return Verdict(
                Status.UNSUPPORTED,
                f"the module's state has {_state_elements(task)} elements; the emulator takes "
                f"{self._config.state_elements} at most",
            )
        suite = await self._suite(task, hidden, emulated=True)
        suppress = hidden and self._place.config.suppress
        return await self._tried(task, built, suite, suppress=suppress, on_emulator=True)

    async def _on_gpu(self, task: Task, built: BuiltModule, hidden: bool) -> Verdict:
        suite = await self._suite(task, hidden, emulated=False)
        async with self._at_folder(built):
            return await self._tried(task, built, suite, suppress=False, on_emulator=False)

    async def _tried(
        self, task: Task, built: BuiltModule, suite: ModuleSuite, *, suppress: bool, on_emulator: bool
    ) -> Verdict:
        assert task.module is not None
        config, place = self._config, self._place
        positions = {case.name: i for i, case in enumerate(suite.answers.cases)}
        bench = Bench(
            on_emulator,
            place.sandbox if on_emulator else place.sandbox.for_gpu(),
            config.emulated if on_emulator else config.on_gpu,
            config.python,
            device=config.device,
            waiting=None if on_emulator else self.waiting,
            start_seconds=config.start_seconds,
            env={} if on_emulator else self._gpu_environment(built),
            keep=None if on_emulator else self._kept(built),
        )
        kernels = built.emulated if on_emulator else built.real
        again = RunPlan(SECOND_POISON, "reverse")
        without = RunPlan(SECOND_POISON) if suppress else None
        runs = ModuleRuns(built.file, kernels, task.module, suite.answers, bench, [again], without)

        async def run(cases: Sequence[Case], plan: RunPlan) -> CaseRuns:
            # Before the turn: what starts for it needs one of its own.
            await runs.reserve()
            async with place.running:
                return await runs.run([positions[case.name] for case in cases], plan)

        async def expect(cases: Sequence[Case]) -> Sequence[Expected]:
            return [suite.answers.expected[positions[case.name]] for case in cases]

        try:
            verdict = await try_candidate(
                task,
                suite.suite,
                run,
                expect,
                repeat_seconds=place.config.repeat_seconds,
                suppress=suppress,
                counted=on_emulator,
            )
        finally:
            await runs.aclose()
        return replace(verdict, seconds={**verdict.seconds, **runs.seconds})

    async def _suite(self, task: Task, hidden: bool, *, emulated: bool) -> ModuleSuite:
        key = f"{task.digest} {hidden} {emulated}"
        return await self._suites.get(key, lambda: self._make_suite(task, hidden, emulated))

    async def _make_suite(self, task: Task, hidden: bool, emulated: bool) -> ModuleSuite:
        assert task.module is not None
        seed = self._place.config.seed
        elements = None if emulated else self._config.gpu_elements
        cases = module_cases(task.module, hidden=hidden, seed=seed, elements=elements)
        cases += growth_cases(task.module) if emulated else ()
        answers = await self.reference.expected(task, cases, seed * 2 + hidden)
        readable = tuple(
            Case(
                case.name,
                {f"input {n}": leaf_of(e, answers.inputs_raw) for n, e in enumerate(entries) if e is not None},
                hidden=hidden,
            )
            for case, entries in zip(answers.cases, answers.inputs, strict=True)
        )
        digest = hashlib.sha256(answers.inputs_raw + answers.state_raw).hexdigest()
        tried = sum(not case.probe for case in answers.cases)  # the probes come last
        suite = Suite(readable[:tried], answers.expected[:tried], digest, readable[tried:])
        return ModuleSuite(answers, suite)


def _waiting(place: Workplace, config: ModuleConfig) -> WaitingPythons:
    return WaitingPythons(
        place.sandbox.for_gpu(),
        gpu_candidate_environment(place),
        config.on_gpu,
        place.starting,
        config.device,
        python=config.python,
        config=config.waiting,
    )


def gpu_candidate_environment(place: Workplace) -> dict[str, str]:
    """Variables of a candidate's process on a GPU: the compiler that ``load_inline`` shall use, and for what."""
    assert place.gpu is not None
    number = place.gpu.arch.removeprefix("sm_")
    paths = [str(place.nvcc.path.parent), str(Path(sys.executable).parent), os.environ.get("PATH", "/usr/bin:/bin")]
    return {
        **gpu_environment(),
        # torch has thousands of kernels; loading all of them takes longer than most verdicts.
        "CUDA_MODULE_LOADING": "LAZY",
        "PATH": ":".join(paths),
        "CUDA_HOME": str(place.nvcc.root),
        "TORCH_CUDA_ARCH_LIST": f"{number[:-1]}.{number[-1]}",
    }


def _state_elements(task: Task) -> int:
    return sum(math.prod(s.shape) for s in task.module.state) if task.module else 0


def _too_large(task: Task, config: ModuleConfig) -> bool:
    return _state_elements(task) > config.state_elements


def _lasting(built: BuiltModule | Verdict) -> bool:
    return built.there if isinstance(built, BuiltModule) else not built.transient


def _combined(real: Verdict, emulated: Verdict) -> Verdict:
    """The GPU's verdict, with what only the emulator can see: memory errors, races, launches."""
    declined = emulated.status is Status.WRONG and emulated.failure is None
    if declined or emulated.status in (Status.MEMORY_ERROR, Status.CHEAT):
        return emulated
    return replace(real, reports=emulated.reports)
