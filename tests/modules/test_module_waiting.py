"""Processes that wait for a candidate: each sees one, what it gives is what a fresh one gives, and none is needed."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from module_bench import ModuleBench

from cudaperf_agent.codegen.modules.forms import ModuleFile
from cudaperf_agent.cuda.emulated import RunPlan
from cudaperf_agent.cuda.judge import CaseRuns, judge
from cudaperf_agent.cuda.modules.config import MODULES
from cudaperf_agent.cuda.modules.reference import Answers
from cudaperf_agent.cuda.modules.runs import Bench, Kernels, ModuleRuns
from cudaperf_agent.cuda.modules.waiting import WAITING, WaitingPythons
from cudaperf_agent.cuda.trials import FIRST_POISON, SECOND_POISON
from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.modules.cases import module_cases

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow, pytest.mark.timeout(240)]
FIRST, AGAIN = RunPlan(FIRST_POISON), RunPlan(SECOND_POISON, "reverse")
LIMITS = Limits(seconds=60.0, memory=4 << 30, file_bytes=1 << 30)
BODY = "return (torch.softmax(scores / self.temperature, -1) * mask).sum(-1)"
HONEST = f"""import os, sys, torch

class ModelNew(torch.nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, scores, mask):
        {BODY}
"""


class Tried:
    """A candidate in plain PyTorch on the CPU, which no verdict would pass; all but its kernels is what a GPU sees."""

    def __init__(self, task: Task, answers: Answers, pool: WaitingPythons | None, bench: ModuleBench) -> None:
        self._task = task
        self._pool = pool
        self._answers = answers
        sandbox = bench.verifier.place.sandbox
        self._bench = Bench(False, sandbox, LIMITS, device="cpu", waiting=pool, start_seconds=60.0)
        self.folders: list[Path] = []

    def runs(self, text: str, **bench: object) -> ModuleRuns:
        """The runs of a candidate."""
        assert self._task.module is not None
        file = ModuleFile(text, text, "light", ())
        place = replace(self._bench, **bench)  # type: ignore[arg-type]
        return ModuleRuns(file, Kernels({}), self._task.module, self._answers, place, [AGAIN])

    async def both(self, runs: ModuleRuns) -> list[CaseRuns]:
        """Both runs, one asked for after the other."""
        chosen = range(len(self._answers.cases))
        try:
            if self._pool is not None:
                self._pool.fill()
            await runs.reserve()
            return [await runs.run(chosen, plan) for plan in (FIRST, AGAIN)]
        finally:
            await runs.aclose()

    def status(self, runs: CaseRuns) -> Status:
        """What would be said of it, were there no rule against it."""
        cases = [Case(c.name, {}) for c in self._answers.cases]
        plain = [replace(r, problem=None) if _operators_only(r.problem) else r for r in runs.runs]
        return judge(self._task, cases, self._answers.expected, replace(runs, runs=tuple(plain))).status


def _operators_only(problem: object) -> bool:
    return getattr(problem, "status", None) is Status.CHEAT


@pytest_asyncio.fixture(loop_scope="session")
async def pool(module_bench: ModuleBench) -> AsyncIterator[WaitingPythons]:
    made = WaitingPythons(
        module_bench.verifier.place.sandbox, {}, LIMITS, asyncio.Semaphore(2), "cpu", config=replace(WAITING, waiting=2)
    )
    yield made
    await made.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def tried(module_bench: ModuleBench, torch_cases: Path, pool: WaitingPythons) -> Tried:
    task = await module_bench.described(torch_cases / "row_softmax_scale.py")
    assert task.module is not None
    cases = module_cases(task.module, hidden=False, seed=0, elements=MODULES.elements)[:4]
    return Tried(task, await module_bench.verifier.modules.reference.expected(task, cases, 0), pool, module_bench)


def without_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts a process as ever fails the test."""

    async def process(*_: object) -> None:
        pytest.fail("a process was started although some wait")

    monkeypatch.setattr(ModuleRuns, "_process", process)


async def test_what_it_gives_is_what_a_fresh_process_gives(
    tried: Tried, pool: WaitingPythons, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = await tried.both(tried.runs(HONEST, waiting=None))
    assert await pool.wait()
    without_starting(monkeypatch)
    waited = await tried.both(tried.runs(HONEST))
    for one, other in zip(fresh, waited, strict=True):
        assert tried.status(one) is tried.status(other) is Status.CORRECT
        assert len(one.runs) == len(other.runs) == 4
        for left, right in zip(one.runs, other.runs, strict=True):
            assert left.problem == right.problem
            assert {n: v.tobytes() for n, v in left.outputs.items()} == {
                n: v.tobytes() for n, v in right.outputs.items()
            }


WRONG = {
    "wrong": (BODY, BODY + " + 1", Status.WRONG),
    "dies": (BODY, "os.kill(os.getpid(), 11)", Status.CRASH),
    "leaves": (BODY, "os._exit(0)", Status.CRASH),
    "raises": (BODY, "raise ValueError('no')", Status.CRASH),
    "ends_all": (BODY, "os.kill(-1, 9)", Status.CRASH),
    "no_class": ("ModelNew", "Other", Status.CRASH),
}


@pytest.mark.parametrize("name", sorted(WRONG))
async def test_a_fault_is_the_same_verdict(name: str, tried: Tried) -> None:
    before, after, status = WRONG[name]
    first = (await tried.both(tried.runs(HONEST.replace(before, after))))[0]
    assert tried.status(first) is status
    if name == "raises":
        assert first.runs[0].problem is not None
        assert "ValueError" in first.runs[0].problem.message


async def test_an_endless_one_ends_with_its_time(tried: Tried) -> None:
    short = replace(LIMITS, seconds=3.0)
    first = (await tried.both(tried.runs(HONEST.replace(BODY, "\n        while True: pass"), limits=short)))[0]
    assert first.child.timed_out
    assert tried.status(first) is Status.TIMEOUT


LOOKING = BODY.replace(
    "return ",
    """found = sorted(os.listdir("/tmp")) if os.getpid() < 100 else []
        others = [p for p in os.listdir("/proc") if p.isdigit()]
        open("/tmp/left", "w").write("here")
        open(os.path.expanduser("~/left"), "w").write("here")
        print("SEEN", len([f for f in found if f == "left"]), len(others), file=sys.stderr)
        return """,
)


async def test_the_runs_of_a_candidate_do_not_meet(tried: Tried, module_bench: ModuleBench) -> None:
    if module_bench.verifier.place.sandbox.kind != "bubblewrap":
        pytest.skip("there is no private /tmp")
    both = await tried.both(tried.runs(HONEST.replace(BODY, LOOKING)))
    for run in both:
        assert tried.status(run) is Status.CORRECT
        said = [line.split()[1:] for line in run.child.stderr.decode().splitlines() if line.startswith("SEEN")]
        assert len(said) >= 4  # one more where the device is looked at
        assert said[0][0] == "0", "a file of another run was there"
        # The first process of the namespace, the parent of the run, and the run.
        assert all(int(others) <= 4 for _, others in said)


async def test_no_file_of_a_candidate_stays(tried: Tried, pool: WaitingPythons) -> None:
    await pool.wait()
    folders = [task.result().folder for task in pool._ready]
    await tried.both(tried.runs(HONEST))
    assert not any(folder.exists() for folder in folders)
    assert len(pool._ready) == 2, "others wait for the next one"


async def test_one_that_died_while_it_waited_is_not_used(tried: Tried, pool: WaitingPythons) -> None:
    await pool.wait()
    workers: Sequence = [task.result() for task in pool._ready]
    for worker in workers:
        os.killpg(worker.child.process.pid, signal.SIGKILL)
        await worker.child.process.wait()
    assert [tried.status(r) for r in await tried.both(tried.runs(HONEST))] == [Status.CORRECT] * 2
    assert not any(worker.folder.exists() for worker in workers)


async def test_where_none_can_wait_each_starts_as_ever(
    tried: Tried, pool: WaitingPythons, caplog: pytest.LogCaptureFixture
) -> None:
    pool.device = "cuda:7"  # which is not there
    pool.config = replace(pool.config, failures=2)
    with caplog.at_level(logging.WARNING):
        assert [tried.status(r) for r in await tried.both(tried.runs(HONEST))] == [Status.CORRECT] * 2
    assert "each starts anew" in caplog.text
    pool.fill()
    assert not pool._ready or all(task.done() for task in pool._ready)


async def test_one_that_fails_at_its_job_is_not_the_candidates_fault(
    tried: Tried, pool: WaitingPythons, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pool.wait()
    filled = ModuleRuns._filled

    def broken(self: ModuleRuns, folder: Path, request: dict[str, object], copied: bool = False) -> None:
        filled(self, folder, request, copied)
        if copied:
            (folder / "request.json").write_text("{")

    monkeypatch.setattr(ModuleRuns, "_filled", broken)
    assert [tried.status(r) for r in await tried.both(tried.runs(HONEST))] == [Status.CORRECT] * 2


async def test_what_is_reserved_and_not_used_is_let_go(tried: Tried, pool: WaitingPythons) -> None:
    runs, other = tried.runs(HONEST), tried.runs(HONEST)
    pool.fill()
    await asyncio.gather(runs.reserve(), other.reserve())
    assert not other._workers, "more than wait are not waited for"
    folders = [worker.folder for worker in runs._workers]
    assert len(folders) == 2
    await runs.aclose()
    assert not any(folder.exists() for folder in folders)


async def test_closing_ends_all(module_bench: ModuleBench) -> None:
    made = WaitingPythons(module_bench.verifier.place.sandbox, {}, LIMITS, asyncio.Semaphore(2), "cpu")
    assert await made.wait()
    workers = [task.result() for task in made._ready]
    await made.aclose()
    for worker in workers:
        assert worker.child.process.returncode is not None
        assert not worker.folder.exists()
    assert await made.take(1) == []
