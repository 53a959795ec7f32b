"""An evaluation in child processes, of which each kills itself at another boundary and is then gone on with.

Boundaries are before and after every write of the store and of the plan, and every call of the policy. Usage:
``eval_kill_worker.py FOLDER STRIDE``; prints one JSON object per kill. Imports are done once, before the forks.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.policies.base import ProposalRequest
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from tests.graph.graph_world import DirectiveVerifier, ScriptedPolicy, candidate, make_deps, saxpy_task
from training.evaluation.collect import collect
from training.evaluation.document import text_document
from training.evaluation.drive import DriveConfig, drive
from training.evaluation.plan import Plan, Plans, Settings, new_plan
from training.evaluation.sections import document
from training.evaluation.suite import Item, Suite


class Boundaries:
    """Kills the process at the boundary with this number."""

    def __init__(self, kill_at: int | None) -> None:
        self.kill_at, self.count = kill_at, 0

    def cross(self) -> None:
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


class KilledStore(Store):
    boundaries: Boundaries

    def _around(self, work: Any, *arguments: Any, **named: Any) -> Any:
        self.boundaries.cross()
        answer = work(*arguments, **named)
        self.boundaries.cross()
        return answer

    def save_steps(self, steps: Any) -> None:
        self._around(super().save_steps, steps)

    def save_trajectory(self, trajectory: Any) -> None:
        self._around(super().save_trajectory, trajectory)

    def end_run(self, run_id: str, end: Any) -> None:
        self._around(super().end_run, run_id, end)

    def create_run(self, *arguments: Any, **named: Any) -> str:
        return str(self._around(super().create_run, *arguments, **named))


class KilledPlans(Plans):
    boundaries: Boundaries

    def save(self, plan: Plan) -> None:
        self.boundaries.cross()
        super().save(plan)
        self.boundaries.cross()


def load(name: str) -> Task:
    if name == "refused":
        raise InputRefused("it is recursive", where="refused.c:3")
    return replace(saxpy_task(), digest=name)


async def as_it_is(task: Task) -> Task:
    return task


def items() -> tuple[Item, ...]:
    hand = candidate("correct 3e-6", 9)
    made = [(n, hand if n == "b" else "") for n in ("a", "b", "refused")]
    return tuple(Item(f"s/{n}", "s", f"s/{n}", n, lambda n=n: load(n), h) for n, h in made)  # type: ignore[misc]


def carry_out(folder: Path, kill_at: int | None) -> None:
    """One process: begin or go on, and write the tables down."""
    boundaries = Boundaries(kill_at)
    script = (candidate("wrong", 0), candidate("correct 4e-6", 1), candidate("correct 2e-6 hidden=wrong", 2))

    def answer(request: ProposalRequest) -> str:
        boundaries.cross()
        return script[(request.turn + request.trajectory) % 3]

    policy = ScriptedPolicy(answer)
    plans = KilledPlans(folder)
    store = KilledStore(f"sqlite:///{folder}/runs.sqlite")
    plans.boundaries = store.boundaries = boundaries
    suite = Suite("s", items())
    plan = plans.load("e")
    if plan is None:
        plan = new_plan("e", Settings("s", "scripted", 2, 2, 2), suite, policy.name, "gpu", ())
        plans.save(plan)
    deps = make_deps(policy, DirectiveVerifier(), store)
    config = DriveConfig(at_once_timed=1)
    asyncio.run(drive(suite, plan, plans, deps, prepare=as_it_is, config=config))
    found = collect(store, plan)
    told = {"boundaries": boundaries.count, "facts": found.to_dict(), "text": text_document(document([found]))}
    (folder / "result.txt").write_text(json.dumps(told))


def in_child(folder: Path, kill_at: int | None) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            carry_out(folder, kill_at)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitpid(child, 0)[1]


def new_folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    shutil.copy(parent / "empty.sqlite", folder / "runs.sqlite")
    return folder


def main(folder: Path, stride: int) -> None:
    Store(f"sqlite:///{folder}/empty.sqlite").close()
    undisturbed = new_folder(folder, "undisturbed")
    assert in_child(undisturbed, None) == 0
    wanted = json.loads((undisturbed / "result.txt").read_text())
    boundaries = wanted.pop("boundaries")
    print(json.dumps({"boundaries": boundaries, "text": wanted["text"]}), flush=True)
    for kill_at in range(0, boundaries, stride):
        here = new_folder(folder, str(kill_at))
        killed = in_child(here, kill_at)
        resumed = in_child(here, None)
        got = json.loads((here / "result.txt").read_text()) if resumed == 0 else {}
        got.pop("boundaries", None)
        was_killed = os.WIFSIGNALED(killed) and os.WTERMSIG(killed) == signal.SIGKILL
        print(json.dumps({"kill_at": kill_at, "killed": was_killed, "same": got == wanted}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
