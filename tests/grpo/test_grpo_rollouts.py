"""Rollouts through the graph, scripted: horizon, shared verdicts, time accounts, branches of one history."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from graph_world import Clock, DirectiveVerifier, ScriptedPolicy, candidate, saxpy_task

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.store.repository import Store
from graph.context import Assessment, Deps
from training.grpo.config import make_config
from training.grpo.judging import MeteredPolicy, SharedVerifier
from training.grpo.rollouts import ORIGIN, roll_out
from training.grpo.step_time import GpuTurns, StepMeter

REWARDS = {"correct": 1.0, "wrong": -2.0, "compile_error": -3.0}


def assess(task: Any, source: str, verdict: Verdict) -> Assessment:
    reward = REWARDS.get(verdict.status.value)
    return Assessment(reward=None if reward is None else {"total": reward})


def proposal(source: str, request: ProposalRequest) -> Proposal:
    ids = (request.trajectory + 1, request.turn + 1, (request.seed or 0) % 1000)
    return Proposal(source, source=source, prompt_token_ids=(7,), token_ids=ids, logprobs=(-1.0,) * 3)


def deps(store: Store, policy: Any, verifier: Any) -> Deps:
    return Deps(
        policy=policy,
        verifier=verifier,
        store=store,
        build_messages=lambda task, history=(): (),
        parse_answer=lambda text, **_: None,  # every proposal brings its source
        assess=assess,
        write_feedback=lambda verdict, assessment: f"it is {verdict.status.value}",
        clock=Clock(),
    )


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(f"sqlite:///{tmp_path / 'runs.sqlite'}") as opened:
        yield opened


def section(**more: Any) -> Any:
    return make_config({"rollout": {"trajectories": 4, "turns": 3, **more}}).rollout


async def test_the_horizon_is_fixed_and_nothing_is_spent_on_hidden_cases(store: Store) -> None:
    policy = ScriptedPolicy(lambda request: proposal(candidate("correct"), request))
    inner = DirectiveVerifier(backend="emulator")
    task = saxpy_task()
    found = await roll_out({"a": task, "b": task}, ["a", "b"], deps(store, policy, inner), section(), seed=3)
    # The same correct source again and again, and yet every trajectory goes on to its third turn.
    assert len(found.turns) == 2 * 4 * 3
    assert {t.reward for t in found.turns} == {1.0}
    assert not [call for call in inner.calls if call[0] == "hidden"]
    runs = store.list_runs(origin=ORIGIN)
    assert {(r.task_path, r.status.value, r.reason) for r in runs} == {
        ("a", "correct", "turn 1 passed the visible cases"), ("b", "correct", "turn 1 passed the visible cases"),
    }  # fmt: skip
    seeds = {(r.seed, r.turn) for r in policy.asked}
    assert len(seeds) == 24, "every answer has a seed of its own"


async def test_an_unhappy_trajectory_is_told_and_the_others_are_kept(store: Store) -> None:
    def script(request: ProposalRequest) -> Proposal:
        if request.trajectory == 1 and request.turn == 1:
            raise ValueError("engine lost")
        return proposal(candidate("wrong", request.trajectory), request)

    found = await roll_out(
        {"a": saxpy_task()}, ["a"], deps(store, ScriptedPolicy(script), DirectiveVerifier()), section(), 0
    )
    assert found.errors == ("ValueError: engine lost",)
    assert sorted(t.turn for t in found.turns if t.trajectory == 1) == [0]
    assert len(found.turns) == 10


async def test_samples_branch_from_one_history(store: Store) -> None:
    def script(request: ProposalRequest) -> Proposal:
        directive = ("wrong", "correct", "wrong")[request.turn]
        return proposal(candidate(directive, 10 * request.turn + request.trajectory), request)

    policy = ScriptedPolicy(script)
    wanted = section(grouping="same_history")
    found = await roll_out({"a": saxpy_task()}, ["a"], deps(store, policy, DirectiveVerifier()), wanted, seed=1)
    assert [sum(t.turn == turn for t in found.turns) for turn in range(3)] == [4, 4, 4]
    assert len(found.runs["a"]) == 3
    for turn in (1, 2):
        histories = {tuple(a.source for a in r.history) for r in policy.asked if r.turn == turn}
        assert len(histories) == 1, "one history for the whole group"
        (shared,) = histories
        assert len(shared) == turn
        told = {tuple(a.feedback for a in r.history) for r in policy.asked if r.turn == turn}
        assert told == {("it is wrong", "it is correct")[:turn]}
        assert len({r.seed for r in policy.asked if r.turn == turn}) == 4
    assert len(policy.asked) == 12, "what is shared is not drawn again"


async def test_sources_that_differ_in_layout_share_one_verdict() -> None:
    inner = DirectiveVerifier()
    meter = StepMeter()
    shared = SharedVerifier(inner, meter)
    task = saxpy_task()
    a, b = "// correct\nint v;\n", "// correct\nint   v ;  // other\n"
    first, second = await asyncio.gather(shared.test(task, a), shared.test(task, b))
    assert first == second
    assert sum(n for (what, _), n in inner.calls.items() if what == "test") == 1
    await shared.test(task, "// correct\nint w;\n")
    await shared.test(task, a, hidden=True)
    assert sum(n for (what, _), n in inner.calls.items() if what == "test") == 2
    assert sum(n for (what, _), n in inner.calls.items() if what == "hidden") == 1
    await shared.compile(task, a)
    await shared.compile(task, b)
    assert sum(n for (what, _), n in inner.calls.items() if what == "compile") == 1


async def test_timing_can_be_left_out() -> None:
    task, source = saxpy_task(), "// correct 0.5\nint v;\n"
    inner = DirectiveVerifier(backend="gpu")
    shared = SharedVerifier(inner, StepMeter(), timing=False)
    tested = await shared.test(task, source)
    assert await shared.measure(task, source, tested) is tested
    timing = SharedVerifier(inner, StepMeter(), GpuTurns(), timing=True)
    assert (await timing.measure(task, source, tested)).measured
    await timing.measure(task, source + " ", tested)
    assert sum(n for (what, _), n in inner.calls.items() if what == "measure") == 1


class Watched:
    """Counts who is at work, and waits for a word before it ends."""

    def __init__(self) -> None:
        self.name = "watched"
        self.backend = "gpu"
        self.at_work: set[str] = set()
        self.together: set[frozenset[str]] = set()

    async def work(self, what: str) -> None:
        self.at_work.add(what)
        for _ in range(3):
            await asyncio.sleep(0)
            self.together.add(frozenset(self.at_work))
        self.at_work.discard(what)

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        await self.work(f"generate {request.trajectory}")
        return []

    async def measure(self, task: Any, source: str, verdict: Verdict) -> Verdict:
        await self.work(f"time {source}")
        return verdict


async def test_nothing_generates_while_something_is_timed() -> None:
    watched = Watched()
    turns, meter = GpuTurns(), StepMeter()
    policy, verifier = MeteredPolicy(watched, meter, turns), SharedVerifier(watched, meter, turns)  # type: ignore[arg-type]
    task = saxpy_task()
    correct = Verdict.from_dict({"status": "correct"})
    await asyncio.gather(
        *(policy.propose(ProposalRequest((), task, trajectory=k)) for k in range(3)),
        *(verifier.measure(task, f"int v{k};", correct) for k in range(3)),
        *(policy.propose(ProposalRequest((), task, trajectory=k)) for k in range(3, 6)),
    )
    for together in watched.together:
        assert len({name.split()[0] for name in together}) <= 1, together
    assert any(len(together) > 1 for together in watched.together), "many of one kind go at once"


def test_every_moment_counts_once() -> None:
    times = iter([0.0, 1.0, 3.0, 6.0, 10.0, 15.0, 21.0, 28.0])
    meter = StepMeter(lambda: next(times))
    meter.begin("verifying")  # waited 1
    meter.begin("generating")  # verified 2
    meter.end("generating")  # generated 3, verifying meanwhile
    meter.end("verifying")  # verified 4
    meter.end("verifying")  # waited 5; ending what did not begin changes nothing
    with meter.during("learning"):  # waited 6
        pass  # learned 7
    times = iter([28.0])
    assert meter.take() == {"learning": 7.0, "generating": 3.0, "timing": 0.0, "verifying": 6.0, "waiting": 12.0}
