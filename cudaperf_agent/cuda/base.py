"""What the graph asks of verification, independent of where candidates run."""

from __future__ import annotations

from typing import Protocol

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.tasks.model import Task


class CandidateVerifier(Protocol):
    """Compiles, tests and times candidates. Every method is a pure function of content, cached, and safe to repeat.

    A bad candidate is a `Verdict`; an exception means that the machine or we failed.
    """

    @property
    def backend(self) -> str:
        """``gpu`` or ``emulator``."""
        ...

    async def compile(self, task: Task, source: str) -> Verdict:
        """Compile only. Status `CORRECT` here means no more than "it compiles"."""
        ...

    async def test(self, task: Task, source: str, *, hidden: bool = False) -> Verdict:
        """Compile (from cache) and run the visible, or the hidden, cases against the oracle."""
        ...

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        """`verdict` with timings and profile added; unchanged where nothing can be timed."""
        ...

    async def aclose(self) -> None:
        """Stop workers."""
        ...
