"""What verification works with on this machine: tools, limits, and turns at the processors and the device."""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Literal

from cudaperf_agent.cuda.baselines import ReferenceConfig
from cudaperf_agent.cuda.cached import CacheLimits, prune
from cudaperf_agent.cuda.compile import CompileConfig, flags_for
from cudaperf_agent.cuda.gpu import Gpu, find_gpu
from cudaperf_agent.cuda.large_case import LARGE, LargeCase
from cudaperf_agent.cuda.own import OwnConfig
from cudaperf_agent.cuda.timing import TIMING, TimingConfig
from cudaperf_agent.cuda.toolchain import Nvcc, find_nvcc
from cudaperf_agent.cuda.turns import Gate, Turns, TurnsConfig
from cudaperf_agent.cuda.verdict import Trust
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.sandbox import Sandbox, detect
from cudaperf_agent.execution.standby import StandbyConfig

EMULATED_LIMITS = Limits(seconds=30.0, memory=4 << 30, file_bytes=1 << 30, output=1 << 20)
GPU_LIMITS = Limits(seconds=60.0, memory=16 << 30, file_bytes=1 << 30, output=1 << 20)
_BUILDS_BETWEEN_PRUNES = 500
Whole = Literal["all", "chosen", "none"]
REFERENCE_LIMITS = Limits(seconds=120.0, memory=16 << 30, file_bytes=16 << 30)


@dataclass(frozen=True, slots=True)
class VerifierConfig:
    """Numbers of the service.

    Attributes:
        compile: Flags and limits of nvcc.
        emulated: Limits of one run of all cases on the emulator.
        on_gpu: And on the GPU.
        timing: Numbers of a measurement.
        reference: Limits of timing the C.
        references: How often the C is timed.
        also_emulate: On a GPU, look for memory errors and races on the emulator too.
        repeat_seconds: The second run takes the cheapest cases up to this time (by the first run's clock).
        seed: Of the test inputs; another seed is another set.
        compile_jobs, run_jobs: At once; `None` takes the processors of the machine, with a GPU less
            `spared_processors` for compiling.
        spared_processors: Not used by compilers while calls are timed on a GPU: one for the call, one for the parent.
        remembered: Verdicts and builds kept in memory.
        remembered_tasks: Tasks whose inputs and expected results are kept in memory.
        tasks_at_hand: Tasks whose timed contents, hundreds of megabytes each, are kept in memory.
        cache: How much of compiled candidates is kept.
        standby: The pool of processes that wait for a candidate with their CUDA context made.
        trace: Also record what the device does in a few calls of a correct candidate, where CUPTI is there.
        whole: Who is timed with copies, too, and traced: `all`, the `chosen` ones, which have passed the hidden cases,
            or `none`. Others have the device's times alone, which is what a search selects by (those in host form,
            their only times).
        staged: Candidates at once whose processes wait, with their contents, for their turns to be timed.
        staging: Such processes that start at once.
        turns: When nothing but timing goes on.
        trust: ``own`` only for what our own generator made: one correctness run on a GPU, no emulator beside it,
            times by `own.OwnTimer`, and of the C on one core only.
        own: Numbers of such times.
        large: For a candidate that passes the hidden cases, without a GPU: run one large case, where sizes allow.
        large_case: Numbers of it.
        suppress: For a candidate that passes the hidden cases: leave out each kernel in turn and see the output break.
        work: Where the emulator runs, count the memory accesses of the task's plain CUDA, too, to put a correct
            candidate's beside them.
    """

    compile: CompileConfig = field(default_factory=CompileConfig)
    emulated: Limits = EMULATED_LIMITS
    on_gpu: Limits = GPU_LIMITS
    timing: TimingConfig = TIMING
    reference: Limits = REFERENCE_LIMITS
    references: ReferenceConfig = field(default_factory=ReferenceConfig)
    also_emulate: bool = True
    repeat_seconds: float = 0.5
    seed: int = 0
    compile_jobs: int | None = None
    run_jobs: int | None = None
    spared_processors: int = 2
    remembered: int = 4096
    remembered_tasks: int = 64
    tasks_at_hand: int = 2
    cache: CacheLimits = field(default_factory=CacheLimits)
    standby: StandbyConfig = field(default_factory=StandbyConfig)
    trace: bool = True
    whole: Whole = "all"
    staged: int = 8
    staging: int = 8
    turns: TurnsConfig = field(default_factory=TurnsConfig)
    trust: Trust = "suspicious"
    own: OwnConfig = field(default_factory=OwnConfig)
    large: bool = True
    large_case: LargeCase = LARGE
    suppress: bool = True
    work: bool = True


class Workplace:
    """Tools of one verifier, and who may use the machine when.

    Of the gates, `running`, `starting` and `staging` lead to the device, for tests, for processes that get ready for
    tests, and for those that get ready to be timed; `compiling` and `preparing` (inputs, and what the C gives for
    them) to the processors.

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
        config: VerifierConfig,
        nvcc: Nvcc | None = None,
        sandbox: Sandbox | None = None,
        gpu: Gpu | Literal["auto"] | None = "auto",
    ) -> None:
        self.nvcc = nvcc or find_nvcc()
        self.gpu = find_gpu() if gpu == "auto" else gpu
        toolkit = () if self.nvcc.root.is_relative_to("/usr") else (self.nvcc.root,)
        self.sandbox = (sandbox or detect()).reading(*toolkit)
        arch = self.gpu.arch if self.gpu is not None else config.compile.arch
        self.config = replace(config, compile=replace(config.compile, arch=arch))
        processors = len(os.sched_getaffinity(0))
        spared = config.spared_processors if self.gpu is not None else 0
        compile_jobs = self.config.compile_jobs or max(1, processors - spared)
        run_jobs = self.config.run_jobs or processors
        self.compiling = Gate(compile_jobs)
        self.preparing = Gate(run_jobs)
        self.running = Gate(run_jobs)
        # Not the turns of those that are ready: they would wait behind all that are about to start.
        self.starting = Gate(self.config.standby.starting)
        self.staging = Gate(self.config.staging)
        self._turns = Turns(
            (self.running, self.starting, self.staging), (self.compiling, self.preparing), self.config.turns
        )
        self._built = 0

    @property
    def flags(self) -> str:
        """nvcc's flags, for digests."""
        return " ".join(flags_for(self.nvcc, "cubin", self.config.compile))

    @property
    def device(self) -> str:
        """Name of what candidates run on."""
        return self.gpu.name if self.gpu is not None else "CPU emulator"

    @property
    def trust(self) -> Trust:
        """What applies here: on the emulator nothing is left out."""
        return self.config.trust if self.gpu is not None else "suspicious"

    async def note_build(self) -> None:
        """Count a build; now and then, keep the cache to its size."""
        due = self._built % _BUILDS_BETWEEN_PRUNES == 0
        self._built += 1  # before anything is awaited: others that build at the same time have nothing to do
        if due:
            await asyncio.to_thread(prune, self.config.cache)

    def alone(self, *, cpu: bool = True) -> AbstractAsyncContextManager[None]:
        """For timing: nothing else of this verifier is on the device meanwhile; with `cpu`, nothing computes either."""
        return self._turns.alone(cpu=cpu)
