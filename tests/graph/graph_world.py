"""A small world around the graph: a task, a scripted policy and two verifiers whose verdicts tests can foresee."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cudaperf_agent.cuda.verdict import Diagnostic, FailedCase, Speedup, Status, Timing, Verdict
from cudaperf_agent.policies.base import Attempt, Message, Proposal, ProposalRequest
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import CType, Extent, Origin, Parameter, Role, Task, TypeKind
from graph.context import Assessment, Deps

CASES = Path(__file__).parents[1] / "cases" / "c"
FLOAT = CType("float", TypeKind.FLOAT, 4, 4)
INT = CType("int", TypeKind.INT, 4, 4)


def saxpy_task() -> Task:
    """`saxpy.c`, described by hand."""
    source = (CASES / "saxpy.c").read_text()
    extent = Extent("n", Origin.LOOP_BOUNDS, 5)
    return Task(
        name="saxpy",
        mode="function",
        source=source,
        path="saxpy.c",
        parameters=(
            Parameter("n", INT, False, Role.SCALAR, Origin.DEFAULT, "int n"),
            Parameter("a", FLOAT, False, Role.SCALAR, Origin.DEFAULT, "float a"),
            Parameter("x", FLOAT, True, Role.IN, Origin.TYPE, "const float *x", extent, const=True),
            Parameter("y", FLOAT, True, Role.INOUT, Origin.LOOP_BOUNDS, "float *y", extent),
        ),
        digest="5a" * 32,
        assumptions=("x and y do not overlap",),
    )


def candidate(directive: str, number: int = 0) -> str:
    """A source that `DirectiveVerifier` judges as `directive` says; different numbers make different programs."""
    return f"// {directive}\nint v{number};\n"


@dataclass
class Clock:
    """A clock that goes on by a fixed step at each look."""

    at: float = 1_800_000_000.0
    step: float = 0.25

    def __call__(self) -> float:
        self.at += self.step
        return self.at


@dataclass
class ScriptedPolicy:
    """Gives the answers of a script, by turn; a `Proposal` goes out as it is, an exception is raised."""

    script: Sequence[str | Proposal | BaseException] | Callable[[ProposalRequest], str | Proposal | BaseException]
    name: str = "scripted"
    asked: list[ProposalRequest] = field(default_factory=list)

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        self.asked.append(request)
        answer = self.answer(request)
        if request.on_token is not None:
            for piece in answer.text.split():
                request.on_token(piece)
        return [answer]

    def answer(self, request: ProposalRequest) -> Proposal:
        answer = self.script(request) if callable(self.script) else self.script[request.turn]
        if isinstance(answer, BaseException):
            raise answer
        return (
            answer if isinstance(answer, Proposal) else Proposal(answer, source=answer, strategy="script", model="m1")
        )

    async def aclose(self) -> None:
        pass


def timed(status: Status, seconds: float | None, message: str = "") -> Verdict:
    """A verdict of the GPU kind, timed if `seconds` is given."""
    verdict = Verdict(status, message, passed=4 if status is Status.CORRECT else 1, total=4, backend="gpu")
    if seconds is None:
        return verdict
    samples = (seconds, seconds, seconds * 1.5)
    speedup = Speedup("c", 1e-3 / seconds, 0.9e-3 / seconds, 1.1e-3 / seconds)
    return replace(verdict, measured=True, timings=(Timing("device", "n=1024", samples),), speedups=(speedup,))


@dataclass
class DirectiveVerifier:
    """Reads the verdict out of the candidate: ``// STATUS [SECONDS] [hidden=STATUS] [work=RATIO]``; counts calls."""

    backend: str = "gpu"
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def compile(self, task: Task, source: str) -> Verdict:
        self.calls["compile", source] += 1
        if self._status(source) is Status.COMPILE_ERROR:
            return Verdict(Status.COMPILE_ERROR, "no", diagnostics=(Diagnostic("error", "expected ';'", 1),))
        return Verdict(Status.CORRECT, backend=self.backend)

    async def test(self, task: Task, source: str, *, hidden: bool = False) -> Verdict:
        self.calls["hidden" if hidden else "test", source] += 1
        words = source.splitlines()[0].split()
        status = self._status(source)
        if hidden:
            given = [w.removeprefix("hidden=") for w in words if w.startswith("hidden=")]
            status = Status(given[0]) if given else status
        verdict = replace(
            timed(status, None, "y differs" if status is not Status.CORRECT else ""), backend=self.backend
        )
        ratio = next((int(w.removeprefix("work=")) for w in words if w.startswith("work=")), 0)
        if ratio:
            work = {"writes": 10 * ratio, "span": 1, "plain_writes": 10, "plain_span": 1}
            verdict = replace(verdict, profile={"work": work})
        if status is Status.WRONG:
            failure = FailedCase("n=7", {"n": "7"}, "y differs", "y", 3, "1.0", "2.0", 1.0, 1e-6)
            verdict = replace(verdict, failure=failure)
        return verdict

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        self.calls["measure", source] += 1
        words = source.splitlines()[0].split()
        if self.backend != "gpu" or len(words) < 3:
            return verdict
        return timed(verdict.status, float(words[2]))

    async def aclose(self) -> None:
        pass

    def _status(self, source: str) -> Status:
        return Status(source.split()[1])


@dataclass
class GccVerifier:
    """Judges candidates that are plain C: gcc compiles them with a driver, which checks `saxpy` for a few lengths."""

    folder: Path
    backend: str = "emulator"
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    _DRIVER = """
#include <math.h>
#include <stdio.h>
void saxpy(int n, float a, const float *x, float *y);
int main(int argc, char **argv) {
    static const int sizes[] = {0, 1, 7, 257, 4096};
    static float x[4096], y[4096];
    (void)argv;
    for (int s = 0; s < 5; s++) {
        int n = sizes[s] - (argc > 1 && sizes[s] > 1);
        for (int i = 0; i < 4096; i++) { x[i] = i % 13; y[i] = i % 7; }
        saxpy(n, 2.0f, x, y);
        for (int i = 0; i < 4096; i++)
            if (y[i] != i % 7 + (i < n ? 2.0f * (i % 13) : 0.0f)) { printf("%d %d", s, i); return 1; }
    }
    return 0;
}
"""

    async def compile(self, task: Task, source: str) -> Verdict:
        done = await self._gcc(source)
        if done.returncode:
            lines = [line.split(":", 4) for line in done.stderr.splitlines() if ": error: " in line]
            found = tuple(Diagnostic("error", parts[-1].strip(), int(parts[1])) for parts in lines)
            return Verdict(Status.COMPILE_ERROR, "gcc refuses it", diagnostics=found)
        return Verdict(Status.CORRECT)

    async def test(self, task: Task, source: str, *, hidden: bool = False) -> Verdict:
        done = await self._gcc(source)
        command = [done.args[-1], *(["hidden"] if hidden else [])]
        ran = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=30, check=False)
        if ran.returncode:
            size, index = ran.stdout.split()
            failure = FailedCase(f"size {size}", {}, "y differs", "y", int(index))
            return Verdict(Status.WRONG, "y differs", passed=int(size), total=5, failure=failure, backend="emulator")
        return Verdict(Status.CORRECT, passed=5, total=5, backend="emulator")

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        return verdict

    async def aclose(self) -> None:
        pass

    async def _gcc(self, source: str) -> subprocess.CompletedProcess[str]:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "candidate.c").write_text(source)
        (folder / "driver.c").write_text(self._DRIVER)
        command = ["gcc", "-std=c11", "candidate.c", "driver.c", "-lm", "-o", str(folder / "program")]
        return await asyncio.to_thread(
            subprocess.run, command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )


@dataclass(frozen=True)
class Answer:
    """A parsed answer."""

    source: str | None
    reason: str = ""


def parse_answer(text: str, *, name: str | None = None, finish_reason: str = "stop") -> Answer:
    """The answer itself, unless it holds no code."""
    return Answer(None, "there is no code block") if "no code" in text else Answer(text)


def build_messages(task: Task, history: Sequence[Attempt] = ()) -> tuple[Message, ...]:
    """Prompt that shows how many turns were seen, and the last feedback."""
    last = history[-1].feedback if history else "none"
    return (Message("system", "You write CUDA."), Message("user", f"{task.name} turn {len(history)}, feedback: {last}"))


def assess(task: Task, source: str, verdict: Verdict) -> Assessment:
    """Values that a test can foresee."""
    if not source:
        return Assessment(reward={"total": -3.0, "verifiable": -3.0, "structural": 0.0})
    hints = ({"message": "reads are strided", "line": 3},)
    return Assessment({"ops": float(len(source))}, hints, {"total": 1.5, "verifiable": 1.0, "structural": 0.5})


def write_feedback(verdict: Verdict, assessment: Assessment) -> str:
    """One line."""
    return f"{verdict.status}: {verdict.message}".rstrip()


def make_deps(policy: object, verifier: object, store: Store, **changes: object) -> Deps:
    """Dependencies with this world's prompts and worth."""
    deps = Deps(
        policy=policy,  # type: ignore[arg-type]
        verifier=verifier,  # type: ignore[arg-type]
        store=store,
        build_messages=build_messages,
        parse_answer=parse_answer,
        assess=assess,
        write_feedback=write_feedback,
        clock=Clock(),
    )
    return replace(deps, **changes)  # type: ignore[arg-type]
