"""Runs a scripted trajectory in a child process that kills itself at the n-th boundary, then resumes it in another.

Boundaries are: before and after every call of the policy and the verifier, before and after every write of the store,
and before and after every checkpoint. Usage: ``kill_worker.py FOLDER SCRIPT CHECKPOINTS STRIDE OFFSET``; prints one
JSON object per kill. All imports are done once, before the children are forked.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.store.records import Step
from cudaperf_agent.store.repository import Store
from graph.config import GraphConfig
from graph.runner import resume_run, run_task
from tests.graph.graph_world import DirectiveVerifier, ScriptedPolicy, candidate, make_deps, saxpy_task

SCRIPTS = {
    "short": (candidate("correct 1e-6"),),
    "long": (
        candidate("compile_error", 0),
        candidate("wrong", 1),
        candidate("correct 4e-6", 2),
        candidate("correct 2e-6 hidden=wrong", 3),
        "no code at all",
    ),
}
RUN = "killed0000"


class Boundaries:
    """Counts boundaries, notes every call of policy and verifier in a file, and kills the process at one boundary."""

    def __init__(self, journal: Path, kill_at: int | None) -> None:
        self.journal, self.kill_at, self.count = journal, kill_at, 0

    def cross(self, name: str) -> None:
        if self.count == self.kill_at:
            self.note(f"killed {name}")
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def note(self, line: str) -> None:
        with self.journal.open("a") as out:
            out.write(line + "\n")


class KilledPolicy(ScriptedPolicy):
    """A scripted policy with boundaries."""

    boundaries: Boundaries

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        self.boundaries.cross(f"before propose {request.turn}")
        self.boundaries.note(f"call propose {request.turn}")
        answer = self.answer(request)
        if "no code" in answer.text:
            answer = Proposal(answer.text)
        self.boundaries.cross(f"after propose {request.turn}")
        return [answer]


class KilledVerifier(DirectiveVerifier):
    """A verifier with boundaries."""

    boundaries: Boundaries

    async def _at(self, name: str, source: str, work: Any) -> Any:
        name = f"{name} {source.splitlines()[0]}"
        self.boundaries.cross(f"before {name}")
        self.boundaries.note(f"call {name}")
        verdict = await work
        self.boundaries.cross(f"after {name}")
        return verdict

    async def compile(self, task: Any, source: str) -> Any:
        return await self._at("compile", source, super().compile(task, source))

    async def test(self, task: Any, source: str, *, hidden: bool = False) -> Any:
        return await self._at("hidden" if hidden else "test", source, super().test(task, source, hidden=hidden))

    async def measure(self, task: Any, source: str, verdict: Any) -> Any:
        return await self._at("measure", source, super().measure(task, source, verdict))


class KilledStore(Store):
    """A store with boundaries."""

    boundaries: Boundaries

    def save_steps(self, steps: Any) -> None:
        name = f"store {','.join(f'{s.node} {s.turn}' for s in steps)}"
        self.boundaries.cross(f"before {name}")
        super().save_steps(steps)
        for step in steps:
            assert isinstance(step, Step)
            self.boundaries.note(f"stored {step.node} {step.turn}")
        self.boundaries.cross(f"after {name}")

    def save_trajectory(self, trajectory: Any) -> None:
        self.boundaries.cross("before trajectory")
        super().save_trajectory(trajectory)
        self.boundaries.cross("after trajectory")

    def end_run(self, run_id: str, end: Any) -> None:
        self.boundaries.cross("before end")
        super().end_run(run_id, end)
        self.boundaries.cross("after end")


def with_boundaries_in_checkpoints(boundaries: Boundaries) -> None:
    """Boundaries around every checkpoint written by this process."""
    put = AsyncSqliteSaver.aput

    async def aput(self: AsyncSqliteSaver, *arguments: Any) -> Any:
        boundaries.cross("before checkpoint")
        answer = await put(self, *arguments)
        boundaries.cross("after checkpoint")
        return answer

    AsyncSqliteSaver.aput = aput  # type: ignore[method-assign]


def carry_out(folder: Path, script: str, checkpoints: bool, kill_at: int | None, resume: bool) -> None:
    """One process: start or resume the run, and write down what it came to."""
    boundaries = Boundaries(folder / "journal", kill_at)
    with_boundaries_in_checkpoints(boundaries)
    policy = KilledPolicy(SCRIPTS[script])
    verifier = KilledVerifier()
    store = KilledStore(str(folder / "runs.sqlite"))
    policy.boundaries = verifier.boundaries = store.boundaries = boundaries
    deps = make_deps(policy, verifier, store, checkpoints=folder / "checkpoints.sqlite")
    config = GraphConfig(checkpointing=checkpoints, turns=len(SCRIPTS[script]))
    if resume:
        result = asyncio.run(resume_run(RUN, deps))
    else:
        result = asyncio.run(run_task(saxpy_task(), deps, config, run_id=RUN))
    best = result.best
    told = {
        "boundaries": boundaries.count,
        "status": result.status,
        "reason": result.reason,
        "best": best and [best.trajectory, best.turn, best.source, best.verdict.status],
        "trajectories": [[t.status, t.reason, t.first_choice, t.best_turn, t.seed] for t in result.trajectories],
        "attempts": [[a.turn, a.source, a.status, a.feedback, a.reward, a.messages] for a in result.attempts],
    }
    (folder / "result.json").write_text(json.dumps(told))


def in_child(*arguments: Any) -> int:
    """`carry_out` in a forked process; returns its status as `os.waitpid` gives it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            carry_out(*arguments)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitpid(child, 0)[1]


def new_folder(parent: Path, name: str) -> Path:
    """A folder with an empty database."""
    folder = parent / name
    folder.mkdir()
    shutil.copy(parent / "empty.sqlite", folder / "runs.sqlite")
    return folder


def main(folder: Path, script: str, checkpoints: bool, stride: int, offset: int) -> None:
    """Undisturbed once, then killed at every `stride`-th boundary."""
    Store(str(folder / "empty.sqlite")).close()  # the migrations run once; every run begins with a copy
    undisturbed = new_folder(folder, "undisturbed")
    assert in_child(undisturbed, script, checkpoints, None, False) == 0
    wanted = json.loads((undisturbed / "result.json").read_text())
    boundaries = wanted.pop("boundaries")
    calls = Counter(line for line in (undisturbed / "journal").read_text().splitlines() if line.startswith("call"))
    print(json.dumps({"undisturbed": wanted, "boundaries": boundaries, "calls": calls.total()}))
    for kill_at in range(offset, boundaries, stride):
        here = new_folder(folder, str(kill_at))
        killed = in_child(here, script, checkpoints, kill_at, False)
        resumed = in_child(here, script, checkpoints, None, True)
        got = json.loads((here / "result.json").read_text()) if resumed == 0 else {}
        got.pop("boundaries", None)
        journal = (here / "journal").read_text().splitlines()
        where = next(line for line in journal if line.startswith("killed"))
        made = Counter(line for line in journal if line.startswith("call"))
        before = journal[: journal.index(where)]
        stored = max((i for i, line in enumerate(before) if line.startswith("stored")), default=-1)
        told = {
            "kill_at": kill_at,
            "where": where,
            "killed": os.WIFSIGNALED(killed) and os.WTERMSIG(killed) == signal.SIGKILL,
            "resumed": resumed == 0,
            "same": got == wanted,
            "extra": dict(made - calls),
            "missing": dict(calls - made),
            "stored_twice": [k for k, n in Counter(x for x in journal if x.startswith("stored")).items() if n > 1],
            "in_flight": [line for line in before[stored + 1 :] if line.startswith("call")],
        }
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "1", int(sys.argv[4]), int(sys.argv[5]))
