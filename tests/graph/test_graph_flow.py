"""Which nodes run, when a trajectory stops, what is chosen, and what becomes of failures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.errors import BackendUnavailable, ConfigError
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.store.records import RunStatus, Tokens
from cudaperf_agent.store.repository import Store
from graph.checkpoints import open_checkpoints
from graph.config import GraphConfig
from graph.events import Event, EventKind
from graph.results import RunResult
from graph.runner import run_task
from tests.graph.graph_world import DirectiveVerifier, ScriptedPolicy, candidate, make_deps, saxpy_task

Ran = tuple[RunResult, list[Event]]


async def carry_out(script: Any, config: GraphConfig | None = None, verifier: Any = None, **changes: Any) -> Ran:
    """A run in a new store, and its events."""
    events: list[Event] = []
    with Store() as store:
        policy = ScriptedPolicy(script) if isinstance(script, list) or callable(script) else script
        deps = make_deps(policy, verifier or DirectiveVerifier(), store, **changes)
        result = await run_task(saxpy_task(), deps, config, on_event=events.append)
    return result, events


def reasons(result: RunResult) -> list[str]:
    """Why each trajectory stopped."""
    return [t.reason for t in result.trajectories]


async def test_a_timed_trajectory_goes_on_to_the_last_turn_and_keeps_the_fastest() -> None:
    times = ("3e-6", "1e-6", "2e-6", "5e-6", "4e-6")
    script = [candidate(f"correct {seconds}", n) for n, seconds in enumerate(times)]
    result, _ = await carry_out(script)
    assert result.best is not None
    assert (result.best.turn, reasons(result)) == (1, ["turns"])
    assert result.summary.best_seconds == pytest.approx(1e-6)
    assert result.summary.best_speedup == pytest.approx(1000.0)
    assert len(result.attempts) == 5


async def test_an_untimed_trajectory_stops_at_the_first_correct_candidate() -> None:
    script = [candidate("wrong"), candidate("correct", 1), candidate("correct", 2)]
    result, _ = await carry_out(script, verifier=DirectiveVerifier(backend="emulator"))
    assert result.best is not None
    assert (result.best.turn, reasons(result), len(result.attempts)) == (1, ["correct"], 2)
    assert (result.summary.best_seconds, result.summary.best_speedup) == (None, None)


async def test_an_untimed_search_goes_on_past_work_that_is_done_over_again_if_it_is_to_be_lean() -> None:
    script = [candidate(f"correct work={ratio}", ratio) for ratio in (100, 20, 2, 1)]
    emulator = DirectiveVerifier(backend="emulator")
    result, _ = await carry_out(script, verifier=emulator, config=GraphConfig(lean=True))
    assert result.best is not None
    assert (result.best.turn, reasons(result), len(result.attempts)) == (2, ["correct"], 3)
    # The turns end: the one with least work is taken.
    result, _ = await carry_out(script, verifier=emulator, config=GraphConfig(turns=2, lean=True))
    assert result.best is not None
    assert (result.best.turn, reasons(result)) == (1, ["turns"])
    result, _ = await carry_out(script, verifier=emulator)
    assert result.best is not None
    assert (result.best.turn, reasons(result), len(result.attempts)) == (0, ["correct"], 1)
    # What is timed is judged by its time.
    slower = [candidate("correct 1e-6 work=100"), candidate("correct 2e-6", 1)]
    result, _ = await carry_out(slower, config=GraphConfig(turns=2, lean=True))
    assert result.best is not None
    assert result.best.turn == 0


async def test_a_source_that_comes_back_ends_the_trajectory_whatever_its_layout() -> None:
    first = candidate("wrong") + "int f(int a) { return a+1; }\n"
    again = "// other words\n" + candidate("wrong") + "int f(int a)\n{\n  return a + 1; /* same */\n}\n"
    result, _ = await carry_out([first, candidate("wrong", 2), again])
    assert reasons(result) == ["repeated"]
    assert [a.status for a in result.attempts] == ["wrong", "wrong", "repeated"]
    assert result.attempts[2].verdict is None
    assert result.status is RunStatus.FAILED


async def test_a_source_that_comes_back_is_drawn_again_by_other_seeds() -> None:
    asked: list[ProposalRequest] = []

    def twice_the_same(request: ProposalRequest) -> str:
        asked.append(request)
        same = request.turn == 0 or sum(past.turn == 1 for past in asked) == 1
        return candidate("wrong", 1 if same else 2 + request.turn)

    result, _ = await carry_out(twice_the_same, GraphConfig(turns=3))
    assert reasons(result) == ["turns"]
    assert [request.turn for request in asked] == [0, 1, 1, 2]
    assert len({request.seed for request in asked}) == 4
    assert asked[1].messages == asked[2].messages
    assert asked[1].on_token is not None
    assert asked[2].on_token is None


@pytest.mark.parametrize(("redraws", "calls"), [(0, 2), (2, 4)])
async def test_a_policy_that_always_answers_alike_is_asked_no_more_than_that(redraws: int, calls: int) -> None:
    asked: list[ProposalRequest] = []

    def alike(request: ProposalRequest) -> str:
        asked.append(request)
        return candidate("wrong")

    result, _ = await carry_out(alike, GraphConfig(redraws=redraws))
    assert reasons(result) == ["repeated"]
    assert len(asked) == calls


async def test_a_policy_that_declines_ends_the_trajectory_with_its_reason() -> None:
    result, events = await carry_out([candidate("wrong"), Proposal("", declined="line 7: a recurrence")])
    assert reasons(result) == ["declined: line 7: a recurrence"]
    assert (result.status, result.reason) == (RunStatus.FAILED, "declined: line 7: a recurrence")
    assert result.attempts[1].declined == "line 7: a recurrence"
    assert [e.data["declined"] for e in events if e.kind is EventKind.PROPOSAL] == [None, "line 7: a recurrence"]


async def test_a_fixed_horizon_goes_on_after_repetition_and_success() -> None:
    script = [candidate("correct"), candidate("correct"), candidate("wrong", 1)]
    verifier = DirectiveVerifier(backend="emulator")
    result, _ = await carry_out(script, GraphConfig(turns=3, fixed_horizon=True), verifier)
    assert [a.status for a in result.attempts] == ["correct", "correct", "wrong"]
    assert result.best is not None
    assert (result.best.turn, reasons(result)) == (0, ["turns"])


async def test_an_answer_without_code_is_a_result_and_the_next_turn_hears_of_it() -> None:
    policy = ScriptedPolicy([Proposal("no code here"), candidate("correct 1e-6")])
    result, events = await carry_out(policy, GraphConfig(turns=2))
    assert result.attempts[0].verdict is not None
    assert result.attempts[0].verdict.status is Status.NO_CODE
    assert result.attempts[0].reward == {"total": -3.0, "verifiable": -3.0, "structural": 0.0}
    assert "no_code: there is no code block" in policy.asked[1].messages[1].content
    assert [e.node for e in events if e.kind is EventKind.NODE_STARTED and e.turn == 0] == [
        "generate",
        "assess",
        "feedback",
    ]


async def test_the_next_best_stands_if_the_best_fails_the_hidden_cases_and_it_is_said() -> None:
    script = [
        candidate("correct 3e-6", 0),
        candidate("correct 1e-6 hidden=wrong", 1),
        candidate("correct 2e-6 hidden=memory_error", 2),
    ]
    result, events = await carry_out(script, GraphConfig(turns=3))
    (trajectory,) = result.trajectories
    assert (trajectory.first_choice, trajectory.best_turn, result.status) == (1, 0, RunStatus.CORRECT)
    notices = [e.data["message"] for e in events if e.kind is EventKind.NOTICE]
    assert len(notices) == 3
    assert "turn 2 passed the visible cases but not the hidden ones (wrong)" in notices[0]
    assert "turn 3 passed the visible cases but not the hidden ones (memory_error)" in notices[1]
    assert "turn 1 stands instead" in notices[2]
    assert [a.hidden_verdict and a.hidden_verdict.status.value for a in result.attempts] == [
        "correct",
        "wrong",
        "memory_error",
    ]


async def test_a_run_whose_every_attempt_fails_the_hidden_cases_has_failed() -> None:
    result, events = await carry_out([candidate("correct 1e-6 hidden=wrong")], GraphConfig(turns=1))
    assert (result.status, result.best) == (RunStatus.FAILED, None)
    assert result.reason == "no attempt passed the hidden cases"
    assert events[-1].data["best"] is None


async def test_the_best_of_all_trajectories_is_the_runs_best() -> None:
    def script(request: ProposalRequest) -> str:
        return candidate(f"correct {(4 - request.trajectory) * 1e-6}", request.trajectory)

    result, _ = await carry_out(script, GraphConfig(turns=1, trajectories=4))
    assert result.best is not None
    assert (result.best.trajectory, result.best.turn) == (3, 0)
    assert [t.seed for t in result.trajectories] == [0, 1, 2, 3]


async def test_a_trajectory_that_fails_is_recorded_and_the_others_go_on() -> None:
    class Broken(DirectiveVerifier):
        async def test(self, task: Any, source: str, *, hidden: bool = False) -> Verdict:
            if "v1" in source:
                raise OSError("no space left")
            return await super().test(task, source, hidden=hidden)

    def script(request: ProposalRequest) -> str:
        if request.trajectory == 2:
            raise BackendUnavailable("the endpoint is gone", hint="start it")
        return candidate("correct 1e-6", request.trajectory)

    result, events = await carry_out(script, GraphConfig(turns=1, trajectories=4), Broken())
    assert [t.status.value for t in result.trajectories] == ["correct", "error", "error", "correct"]
    assert result.status is RunStatus.CORRECT
    errors = {t.number: t.error for t in result.trajectories if t.error}
    assert errors[1] == {"kind": "internal", "message": "OSError: no space left", "where": None, "hint": None}
    assert errors[2]["kind"] == "backend"
    told = [(e.trajectory, e.data["level"]) for e in events if e.kind is EventKind.NOTICE]
    assert sorted(told) == [(1, "error"), (2, "error")]


async def test_a_spent_budget_lets_what_is_best_so_far_be_finished() -> None:
    script = [candidate(f"correct {n + 1}e-6", n) for n in range(5)]
    result, _ = await carry_out(script, GraphConfig(seconds=6.0))  # the clock goes on by 0.25 at each look
    assert result.status is RunStatus.CORRECT
    assert reasons(result) == ["budget"]
    assert 1 <= len(result.attempts) < 5
    nothing, _ = await carry_out(script, GraphConfig(seconds=0.0))
    assert (nothing.status, nothing.attempts) == (RunStatus.FAILED, ())
    assert "budget" in nothing.reason


async def test_as_many_trajectories_are_at_work_as_allowed() -> None:
    at_work, most = 0, 0
    pair = asyncio.Barrier(2)

    class Counting(ScriptedPolicy):
        async def propose(self, request: ProposalRequest) -> list[Proposal]:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            await pair.wait()
            at_work -= 1
            return await super().propose(request)

    policy = Counting(lambda request: candidate("correct 1e-6", request.trajectory))
    result, _ = await carry_out(policy, GraphConfig(turns=1, trajectories=6, concurrency=2))
    assert result.status is RunStatus.CORRECT
    assert most == 2


async def test_each_turn_and_trajectory_samples_with_a_seed_of_its_own() -> None:
    policy = ScriptedPolicy(lambda r: candidate("wrong", 10 * r.trajectory + r.turn))
    await carry_out(policy, GraphConfig(turns=3, trajectories=3, seed=5))
    seeds = {(r.trajectory, r.turn): r.seed for r in policy.asked}
    assert len(set(seeds.values())) == 9
    again = ScriptedPolicy(policy.script)
    await carry_out(again, GraphConfig(turns=3, trajectories=3, seed=5))
    assert {(r.trajectory, r.turn): r.seed for r in again.asked} == seeds


async def test_tokens_are_in_the_store_and_never_in_a_checkpoint(tmp_path: Path) -> None:
    proposal = Proposal(
        candidate("wrong"),
        source=candidate("wrong"),
        prompt_token_ids=(987_651, 2),
        token_ids=(987_652,),
        logprobs=(-0.5,),
    )
    path = tmp_path / "c.sqlite"
    script = [proposal, BackendUnavailable("stop here, so that the checkpoints stay")]
    result, _ = await carry_out(script, checkpoints=path)
    assert result.attempts[0].tokens == Tokens((987_651, 2), (987_652,), (-0.5,))
    raw = b"".join(p.read_bytes() for p in (path, path.with_name("c.sqlite-wal")) if p.exists())
    assert b"int v0;" in raw
    for number in (987_651, 987_652):
        assert number.to_bytes(4, "big") not in raw
        assert number.to_bytes(4, "little") not in raw


async def test_hostile_text_is_stored_and_comes_back() -> None:
    hostile = candidate("wrong") + "\ud800 \x00 \x1b[31m \u202e [bold] " + "x" * 1_000_000
    result, _ = await carry_out([Proposal(hostile, source=hostile), candidate("correct 1e-6", 1)], GraphConfig(turns=2))
    stored = result.attempts[0]
    assert stored.source is not None
    assert stored.source == hostile.replace("\ud800", "\ufffd").replace("\x00", "\ufffd")
    assert stored.text == stored.source
    assert result.status is RunStatus.CORRECT


async def test_checkpoints_never_make_objects(tmp_path: Path) -> None:
    trusting = JsonPlusSerializer(allowed_msgpack_modules=True)
    async with open_checkpoints(tmp_path / "c.sqlite") as saver:
        written = trusting.dumps_typed({"status": Status.CORRECT})
        assert trusting.loads_typed(written) == {"status": Status.CORRECT}
        read = saver.serde.loads_typed(written)
        assert not isinstance(read["status"], Status)
        assert isinstance(saver.serde, JsonPlusSerializer)
        assert saver.serde.pickle_fallback is False


async def test_the_policy_is_told_of_every_earlier_turn() -> None:
    policy = ScriptedPolicy([candidate("compile_error"), candidate("wrong", 1), candidate("correct 1e-6", 2)])
    await carry_out(policy, GraphConfig(turns=3))
    last = policy.asked[2]
    assert [(a.turn, a.verdict.status.value, a.feedback) for a in last.history] == [
        (0, "compile_error", "compile_error: no"),
        (1, "wrong", "wrong: y differs"),
    ]
    assert last.history[1].source == candidate("wrong", 1)
    assert last.history[1].verdict.failure is not None
    assert last.task == saxpy_task()


@pytest.mark.parametrize("field", ["turns", "trajectories", "concurrency", "batch_size"])
def test_a_senseless_configuration_is_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        GraphConfig(**{field: 0})
    assert GraphConfig.from_dict({**GraphConfig(seed=3).to_dict(), "of_a_newer_version": 1}) == GraphConfig(seed=3)
