"""The verifier of a training run: one verdict for sources that differ in layout only, time accounted for."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cudaperf_agent.cuda.base import CandidateVerifier
from cudaperf_agent.cuda.once import Once
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.policies.base import Policy, Proposal, ProposalRequest
from cudaperf_agent.tasks.model import Task
from graph.sources import source_key
from training.grpo.step_time import GpuTurns, StepMeter

_REMEMBERED = 16384


class SharedVerifier:
    """Implements `cuda.base.CandidateVerifier` on top of another one.

    Samples of one task are often the same program in another layout. The first one that comes is judged, and its
    verdict holds for all of them; line numbers in its messages are that one's.

    Args:
        verifier: Who judges.
        meter: Where the time goes.
        turns: Who may use the GPU; `None` where candidates are not timed on the GPU that generates.
        timing: Whether correct candidates are timed.
    """

    def __init__(
        self, verifier: CandidateVerifier, meter: StepMeter, turns: GpuTurns | None = None, *, timing: bool = True
    ) -> None:
        self._verifier = verifier
        self._meter = meter
        self._turns = turns
        self._timing = timing
        self._verdicts: Once[Verdict] = Once(_REMEMBERED, lambda v: not v.transient)

    @property
    def backend(self) -> str:
        """The verifier's own."""
        return self._verifier.backend

    async def compile(self, task: Task, source: str) -> Verdict:
        """As `CandidateVerifier.compile`."""
        with self._meter.during("verifying"):
            return await self._verdicts.get(_key(task, source, "compile"), lambda: self._compile(task, source))

    async def test(self, task: Task, source: str, *, hidden: bool = False) -> Verdict:
        """As `CandidateVerifier.test`."""
        with self._meter.during("verifying"):
            return await self._verdicts.get(
                _key(task, source, f"hidden={hidden}"), lambda: self._test(task, source, hidden)
            )

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        """As `CandidateVerifier.measure`; unchanged where the run does not time."""
        if not self._timing or self.backend != "gpu" or not verdict.correct:
            return verdict
        return await self._verdicts.get(_key(task, source, "measure"), lambda: self._measure(task, source, verdict))

    async def aclose(self) -> None:
        """Stop workers."""
        await self._verdicts.aclose()
        await self._verifier.aclose()

    async def _compile(self, task: Task, source: str) -> Verdict:
        return await self._verifier.compile(task, source)

    async def _test(self, task: Task, source: str, hidden: bool) -> Verdict:
        return await self._verifier.test(task, source, hidden=hidden)

    async def _measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        async with _holding(self._turns, "timing"):
            with self._meter.during("timing"):
                return await self._verifier.measure(task, source, verdict)


class MeteredPolicy:
    """A policy whose time is accounted for, and that leaves the GPU to timing when it is its turn.

    Args:
        policy: Who proposes.
        meter: Where the time goes.
        turns: As for `SharedVerifier`.
    """

    def __init__(self, policy: Policy, meter: StepMeter, turns: GpuTurns | None = None) -> None:
        self._policy = policy
        self._meter = meter
        self._turns = turns

    @property
    def name(self) -> str:
        """The policy's own."""
        return self._policy.name

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        """As `Policy.propose`."""
        async with _holding(self._turns, "generating"):
            with self._meter.during("generating"):
                return await self._policy.propose(request)

    async def aclose(self) -> None:
        """As `Policy.aclose`."""
        await self._policy.aclose()


@asynccontextmanager
async def _holding(turns: GpuTurns | None, kind: str) -> AsyncIterator[None]:
    if turns is None:
        yield
        return
    async with turns.use("timing" if kind == "timing" else "generating"):
        yield


def _key(task: Task, source: str, what: str) -> str:
    return hashlib.sha256("\0".join((task.digest, source_key(source), what)).encode()).hexdigest()
