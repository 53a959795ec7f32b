"""How a plan is carried out: with verdicts that tests foresee, in memory, without a compiler."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from graph_world import Clock, DirectiveVerifier, ScriptedPolicy, candidate, make_deps, saxpy_task
from langgraph.runtime import RunControl

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.errors import BackendUnavailable, InputRefused, StoreError, UsageError
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from training.evaluation.collect import collect
from training.evaluation.drive import DriveConfig, drive
from training.evaluation.facts import Evaluation
from training.evaluation.plan import Plan, Plans, Settings, check_same, new_plan
from training.evaluation.suite import Item, Suite
from training.evaluation.task_by_task import TaskByTask

GOOD, SLOW = candidate("correct 1e-6", 1), candidate("correct 4e-6", 2)


def item(name: str, *, refused: str = "", hand: str = "", loads: Counter[str] | None = None) -> Item:
    def load() -> Task:
        if loads is not None:
            loads[name] += 1
        if refused:
            raise InputRefused(refused, where=f"{name}.c:3")
        return replace(saxpy_task(), digest=name)

    return Item(f"s/{name}", "s", f"s/{name}", name, load, hand)


async def as_it_is(task: Task) -> Task:
    return task


@dataclass
class World:
    """An evaluation in a folder."""

    folder: Path
    items: tuple[Item, ...]
    policy: Any
    verifier: Any = field(default_factory=DirectiveVerifier)
    settings: Settings = field(default_factory=lambda: Settings("s", "scripted", 2, 2, 2))
    told: list[str] = field(default_factory=list)

    async def run(self, **more: Any) -> Evaluation:
        plans = Plans(self.folder / "evaluations")
        suite = Suite("s", self.items)
        plan = plans.load("e") or new_plan("e", self.settings, suite, self.policy.name, self.verifier.backend, ())
        plans.save(plan)
        with Store(f"sqlite:///{self.folder}/runs.sqlite") as store:
            deps = make_deps(self.policy, self.verifier, store, clock=Clock())
            self.progress = await drive(suite, plan, plans, deps, prepare=as_it_is, **{"say": self.told.append, **more})
            return collect(store, plan)


async def test_every_task_and_seed_is_a_run_of_the_graph_in_the_store(tmp_path: Path) -> None:
    policy = ScriptedPolicy([SLOW, GOOD])
    world = World(tmp_path, (item("a"), item("b")), policy)
    found = await world.run()
    assert world.progress.complete
    with Store(f"sqlite:///{tmp_path}/runs.sqlite") as store:
        runs = store.list_runs(None, origin="eval")
    assert len(runs) == 4
    assert [len(t.outcomes) for t in found.tasks] == [4, 4]
    assert {o.seed for t in found.tasks for o in t.outcomes} == {0, 1}
    first = found.tasks[0].outcomes[0]
    assert first.correct
    assert first.seconds == pytest.approx(1e-6)
    assert [t.status for t in first.turns] == ["correct", "correct"]
    assert [t.seconds for t in first.turns] == pytest.approx([4e-6, 1e-6])
    # No two trajectories of a task sample with one seed.
    assert len({r.seed for r in policy.asked if r.task.digest == "a"}) == 8


async def test_a_best_that_fails_the_hidden_tests_is_a_failure(tmp_path: Path) -> None:
    fast_but_wrong = candidate("correct 1e-6 hidden=wrong", 1)
    found = await World(tmp_path, (item("a"),), ScriptedPolicy([fast_but_wrong, SLOW])).run()
    assert [(o.correct, o.reason, o.speedups) for o in found.tasks[0].outcomes] == [(False, "hidden wrong", {})] * 4


async def test_reasons_of_failure(tmp_path: Path) -> None:
    def answers(request: ProposalRequest) -> Any:
        return {
            "wrong": candidate("wrong", request.turn),
            "broken": candidate("compile_error", request.turn),
            "declines": Proposal("", declined="no loop is parallel"),
            "fails": BackendUnavailable("the endpoint went away"),
        }[request.task.digest]

    names = ("wrong", "broken", "declines", "fails")
    found = await World(tmp_path, tuple(map(item, names)), ScriptedPolicy(answers)).run()
    reasons = [{o.reason for o in t.outcomes} for t in found.tasks]
    assert reasons == [{"wrong"}, {"compile_error"}, {"declined"}, {"error"}]
    assert found.tasks[2].outcomes[0].detail == "no loop is parallel"


async def test_what_has_finished_is_not_done_again_and_errors_are_tried_again(tmp_path: Path) -> None:
    down = True

    def answers(request: ProposalRequest) -> Any:
        if down and request.task.digest == "b":
            return BackendUnavailable("the endpoint went away")
        return (SLOW, GOOD)[request.turn]

    policy, verifier = ScriptedPolicy(answers), DirectiveVerifier()
    world = World(tmp_path, (item("a"), item("b")), policy, verifier)
    first = await world.run()
    assert {o.reason for o in first.tasks[1].outcomes} == {"error"}
    asked = sum(r.task.digest == "a" for r in policy.asked)
    down = False
    second = await world.run()
    assert all(o.correct for t in second.tasks for o in t.outcomes)
    assert sum(r.task.digest == "a" for r in policy.asked) == asked
    assert second.tasks[0] == first.tasks[0]


async def test_a_refused_task_is_remembered_with_the_reason(tmp_path: Path) -> None:
    loads: Counter[str] = Counter()
    items = (item("a"), item("b", refused="it is recursive", loads=loads))
    world = World(tmp_path, items, ScriptedPolicy([SLOW, GOOD]))
    found = await world.run()
    assert found.tasks[1].refused == "b.c:3: it is recursive"
    assert world.progress.complete
    assert await world.run() == found
    assert loads["b"] == 1


async def test_the_hand_written_kernel_is_judged_by_the_same_rules(tmp_path: Path) -> None:
    items = (item("a", hand=candidate("correct 2e-6", 7)), item("b", hand=candidate("wrong", 8)), item("c"))
    found = await World(tmp_path, items, ScriptedPolicy([SLOW, GOOD])).run()
    hands = [t.hand for t in found.tasks]
    assert [h and (h.correct, h.reason, h.seconds) for h in hands] == [
        (True, "", pytest.approx(2e-6)),
        (False, "wrong", None),
        None,
    ]


async def test_no_new_task_begins_once_the_time_is_up_and_the_rest_is_done_later(tmp_path: Path) -> None:
    world = World(tmp_path, (item("a"), item("b")), ScriptedPolicy([SLOW, GOOD]))
    found = await world.run(config=DriveConfig(seconds=0.0))
    assert (world.progress.done, world.progress.complete) == (0, False)
    assert found.finished() == ()
    assert len((await world.run()).finished()) == 2


async def test_a_drained_evaluation_stops_between_steps_and_goes_on(tmp_path: Path) -> None:
    control = RunControl()

    def answers(request: ProposalRequest) -> Any:
        control.request_drain()
        return (SLOW, GOOD)[request.turn]

    policy = ScriptedPolicy(answers)
    world = World(tmp_path, (item("a"), item("b")), policy)
    stopped = await world.run(control=control, config=DriveConfig(at_once_timed=1))
    assert stopped.finished() == ()
    assert {r.task.digest for r in policy.asked} == {"a"}
    policy.script = [SLOW, GOOD]
    whole = World(tmp_path / "other", world.items, ScriptedPolicy([SLOW, GOOD]))
    (tmp_path / "other").mkdir()
    assert (await world.run()).tasks == (await whole.run()).tasks


async def test_a_step_that_takes_too_long_is_cancelled_and_done_later(tmp_path: Path) -> None:
    """Of two tasks, one has ended when it is asked to stop, and the other waits for ever."""
    control, endless = RunControl(), asyncio.Event()

    class Stuck(DirectiveVerifier):
        async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
            if task.digest == "b" and not endless.is_set():
                await endless.wait()
            return await super().measure(task, source, verdict)

    verifier = Stuck()
    world = World(tmp_path, (item("a"), item("b")), ScriptedPolicy([SLOW, GOOD]), verifier)

    def told(text: str) -> None:
        if "s/a" in text:
            control.request_drain()

    config = DriveConfig(at_once_timed=2, grace=0.0, looking=0.0)
    stopped = await asyncio.wait_for(world.run(control=control, config=config, say=told), 30)
    assert [t.key for t in stopped.finished()] == ["s/a"]
    assert (world.progress.done, world.progress.complete) == (1, False)
    endless.set()
    assert len((await world.run()).finished()) == 2


@dataclass
class Batches:
    """A policy that takes batches, and notes how large they are."""

    sizes: list[int] = field(default_factory=list)
    name: str = "batches"

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        return (await self.propose_batch([request]))[0]

    async def propose_batch(self, requests: list[ProposalRequest]) -> list[list[Proposal]]:
        self.sizes.append(len(requests))
        return [[Proposal((SLOW, GOOD)[r.turn], source=(SLOW, GOOD)[r.turn])] for r in requests]

    async def aclose(self) -> None:
        pass


async def test_policies_see_batches_over_tasks(tmp_path: Path) -> None:
    policy = Batches()
    world = World(tmp_path, tuple(item(f"t{i}") for i in range(5)), policy)
    # Five tasks, two seeds, two trajectories: a batch that is full goes out at once, however slow the machine is.
    await world.run(config=DriveConfig(batch_seconds=60.0, batch_size=20))
    assert policy.sizes == [20, 20]


@dataclass
class Slow:
    """Notes which tasks are measured at once."""

    now: Counter[str] = field(default_factory=Counter)
    seen: list[frozenset[str]] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    backend: str = "gpu"

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        self.now[task.digest] += 1
        self.order.append(task.digest)
        self.seen.append(frozenset(d for d, n in self.now.items() if n))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.now[task.digest] -= 1
        return verdict


async def test_few_tasks_are_timed_at_once_and_all_candidates_of_one_together() -> None:
    slow = Slow()
    front = TaskByTask(slow, 2)  # type: ignore[arg-type]
    verdict = Verdict(Status.CORRECT)
    tasks = [replace(saxpy_task(), digest=d) for d in "abcabcabcabc"]
    await asyncio.gather(*(front.measure(t, "", verdict) for t in tasks))
    assert len(slow.order) == 12
    assert max(map(len, slow.seen)) == 2
    assert "".join(slow.order).endswith("cccc")
    # A waiter that gives up does not keep others out.
    waiting = [asyncio.ensure_future(front.measure(t, "", verdict)) for t in tasks]
    await asyncio.sleep(0)
    waiting[2].cancel()
    assert sum(isinstance(r, Verdict) for r in await asyncio.gather(*waiting, return_exceptions=True)) == 11


def _plan(settings: Settings) -> Plan:
    return new_plan("e", settings, Suite("s", (item("a"),)), "scripted", "gpu", ())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n": 3}, "begun with n 2, not 3"),
        ({"turns": 5}, "turns 2"),
        ({"limit": 4}, "limit None"),
        ({"seeds": 1}, "seeds 2"),
    ],
)
def test_other_settings_need_another_name(change: dict[str, int], told: str) -> None:
    settings = Settings("s", "scripted", 2, 2, 2)
    suite = Suite("s", (item("a"),))
    check_same(_plan(settings), settings, suite, "scripted", "gpu")
    with pytest.raises(UsageError, match=told):
        check_same(_plan(settings), replace(settings, **change), suite, "scripted", "gpu")


def test_another_policy_machine_or_suite_needs_another_name() -> None:
    settings = Settings("s", "scripted", 2, 2, 2)
    suite = Suite("s", (item("a"),))
    with pytest.raises(UsageError, match="not other"):
        check_same(_plan(settings), settings, suite, "other", "gpu")
    with pytest.raises(UsageError, match="on the gpu"):
        check_same(_plan(settings), settings, suite, "scripted", "emulator")
    with pytest.raises(UsageError, match="suite has changed"):
        check_same(_plan(settings), settings, Suite("s", (replace(item("a"), text="new"),)), "scripted", "gpu")


@pytest.mark.parametrize("change", [{"n": 0}, {"turns": 6}, {"seeds": 0}, {"limit": 0}])
def test_settings_that_make_no_sense_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=next(iter(change))):
        replace(Settings("s", "p", 1, 1, 1), **change)


def test_a_plan_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    plans = Plans(tmp_path)
    assert plans.load("e") is None
    (tmp_path / "e.json").write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        plans.load("e")
    for name in ("", "../x", "a/b", ".hidden"):
        with pytest.raises(UsageError, match="no name"):
            plans.load(name)


def test_ids_of_runs_are_the_same_again_and_differ() -> None:
    settings = Settings("s", "scripted", 2, 2, 2)
    plan = _plan(settings)
    ids = [plan.run_id("s/a", seed) for seed in (0, 1, "hand")]
    assert ids == [_plan(settings).run_id("s/a", seed) for seed in (0, 1, "hand")]
    assert len(set(ids)) == 3
    assert all(len(i) == 16 for i in ids)
    assert _plan(replace(settings, turns=1)).run_id("s/a", 0) != ids[0]
