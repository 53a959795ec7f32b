"""A verifier whose verdict is written in the candidate's first line: what do the commands do with verdicts?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cudaperf_agent.cuda.verdict import Diagnostic, FailedCase, Speedup, Status, Timing, Trust, Verdict
from cudaperf_agent.tasks.model import Task


def answer(status: str, *, hidden: str = "correct", number: int = 0, message: str = "") -> str:
    """An answer whose candidate `ToldVerifier` judges as said."""
    body = (
        "__global__ void k(int n, float a, const float *x, float *y) { }\n"
        'extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)\n'
        f"{{ return {number}; }}\n"
    )
    return f"Try this:\n```cuda\n// {status} {hidden} {message}\n{body}```\n"


class ToldVerifier:
    """Stands in for `cuda.verifier.Verifier`."""

    def __init__(self, *, gpu: bool = False, trust: Trust = "suspicious") -> None:
        self.gpu = gpu
        self.trust = trust
        sandbox = SimpleNamespace(name="none", covers=("nothing",), misses=("everything",), wrap=_as_it_is)
        self.place = SimpleNamespace(sandbox=sandbox)

    @property
    def backend(self) -> str:
        return "gpu" if self.gpu else "emulator"

    async def compile(self, task: Task, source: str) -> Verdict:
        if source.split()[1] == "compile_error":
            found = (Diagnostic("error", "identifier \x1b[31mq\x1b[0m is undefined", 7),)
            return Verdict(Status.COMPILE_ERROR, "nvcc refuses it", diagnostics=found)
        return Verdict(Status.CORRECT)

    async def test(self, task: Task, source: str, *, hidden: bool = False) -> Verdict:
        words = source.splitlines()[0].split(maxsplit=3)
        told = words[2] if hidden else words[1]
        status = Status(told) if told in list(Status) else Status.WRONG
        message = words[3] if len(words) > 3 else ("" if status is Status.CORRECT else "y differs")
        passed = 4 if status is Status.CORRECT else 1
        device = "NVIDIA H200" if self.gpu else ""
        verdict = Verdict(
            status,
            message,
            "device",
            (),
            passed,
            4,
            0.25,
            backend=self.backend,
            device=device,
            versions={"nvcc": "13.0.88"},
            trust=self.trust,
        )
        if status is Status.WRONG:
            failure = FailedCase("n=7", {"n": "7"}, "y differs", "y", 3, "1.0", "2.0", 1.0, 1e-6)
            verdict = replace(verdict, failure=failure)
        return verdict

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        if not self.gpu:
            return verdict
        times = (Timing("device", "n=1000000", (2e-3, 2e-3, 2e-3)), Timing("end_to_end", "n=1000000", (9e-3, 9e-3)))
        speedups = (Speedup("gcc -O3", 12.5, 12.0, 13.0), Speedup("naive CUDA", 1.5, 1.4, 1.6))
        return replace(verdict, measured=True, timings=times, speedups=speedups)

    async def aclose(self) -> None:
        pass


def _as_it_is(argv: Sequence[str], folder: Path) -> list[Any]:
    return list(argv)
