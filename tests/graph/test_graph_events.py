"""The event stream, its replay from the store, and following a run of another process."""

from __future__ import annotations

import asyncio
import json
import threading

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.store.repository import Store
from graph.config import GraphConfig
from graph.events import Event, EventKind
from graph.replay import follow_events, replay_events
from graph.runner import run_task
from tests.graph.graph_world import DirectiveVerifier, ScriptedPolicy, candidate, make_deps, saxpy_task


def varied(request: ProposalRequest) -> str | Proposal:
    """Trajectory 0 improves, 1 declines, 2 fails the hidden cases, 3 loses its backend, 4 talks."""
    n = 10 * request.trajectory + request.turn
    if request.trajectory == 1 and request.turn == 1:
        return Proposal("", declined="nothing more")
    if request.trajectory == 2:
        return candidate(f"correct {5 - request.turn}e-6 hidden={'correct' if request.turn == 0 else 'wrong'}", n)
    if request.trajectory == 3 and request.turn == 2:
        raise BackendUnavailable("lost", hint="find it")
    if request.trajectory == 4:
        return Proposal("no code, only words")
    return candidate(("compile_error", "wrong", "correct 1e-6")[request.turn], n)


async def test_a_replay_tells_what_the_live_run_told() -> None:
    live: list[Event] = []
    with Store() as store:
        deps = make_deps(ScriptedPolicy(varied), DirectiveVerifier(), store)
        result = await run_task(saxpy_task(), deps, GraphConfig(turns=3, trajectories=5), on_event=live.append)
        replayed = list(replay_events(store, result.run))
    for number in (None, *range(5)):
        wanted = [e for e in live if e.trajectory == number and e.kind is not EventKind.TOKEN]
        told = [e for e in replayed if e.trajectory == number]
        finished = {(e.turn, e.node) for e in wanted if e.kind is EventKind.NODE_FINISHED}
        assert ((2, "generate") in finished) == (number not in (None, 1, 3))  # where the backend was lost
        wanted = [e for e in wanted if not e.node or (e.turn, e.node) in finished]
        if number is None:
            wanted = [Event(wanted[0].kind, wanted[0].run, result.summary.created, data=wanted[0].data), *wanted[1:]]
        assert [(e.kind, e.turn, e.node) for e in told] == [(e.kind, e.turn, e.node) for e in wanted]
        assert told == wanted
    assert [e.at for e in replayed] == sorted(e.at for e in replayed)
    assert (replayed[0].kind, replayed[-1].kind) == (EventKind.RUN_STARTED, EventKind.RUN_FINISHED)
    for event in live:
        json.dumps(event.to_dict())


async def test_tokens_stream_also_from_a_thread_of_the_policy() -> None:
    class Threaded(ScriptedPolicy):
        async def propose(self, request: ProposalRequest) -> list[Proposal]:
            assert request.on_token is not None
            speaker = threading.Thread(target=lambda: [request.on_token(w) for w in ("a", "b", "c")])  # type: ignore[misc]
            speaker.start()
            await asyncio.to_thread(speaker.join)
            return [self.answer(request)]

    live: list[Event] = []
    with Store() as store:
        deps = make_deps(Threaded([candidate("correct 1e-6")]), DirectiveVerifier(), store)
        await run_task(saxpy_task(), deps, GraphConfig(turns=1), on_event=live.append)
    tokens = [e for e in live if e.kind is EventKind.TOKEN]
    assert [e.data["text"] for e in tokens] == ["a", "b", "c"]
    assert {(e.trajectory, e.turn, e.node) for e in tokens} == {(0, 0, "generate")}
    kinds = [e.kind for e in live]
    assert kinds.index(EventKind.TURN_STARTED) < kinds.index(EventKind.TOKEN) < kinds.index(EventKind.PROPOSAL)


async def test_a_run_at_work_is_followed_to_its_end_without_repetition() -> None:
    second_turn, go_on = asyncio.Event(), asyncio.Event()

    class Waiting(ScriptedPolicy):
        async def propose(self, request: ProposalRequest) -> list[Proposal]:
            if request.turn == 1:
                second_turn.set()
                await go_on.wait()
            return [self.answer(request)]

    with Store() as store, Store() as reader:
        deps = make_deps(Waiting([candidate("wrong"), candidate("correct 1e-6", 1)]), DirectiveVerifier(), store)
        work = asyncio.create_task(run_task(saxpy_task(), deps, GraphConfig(turns=2), run_id="followed00"))
        await second_turn.wait()
        seen = []
        async for event in follow_events(reader, "followed00", poll_seconds=0.001):
            seen.append(event)
            if event.kind is EventKind.FEEDBACK and event.turn == 0:
                assert not work.done()
                go_on.set()
        await work
        # A step that encloses others is told when it has ended, so its beginning may come late.
        assert sorted(map(repr, seen)) == sorted(map(repr, replay_events(store, "followed00")))
        assert seen[-1].kind is EventKind.RUN_FINISHED


async def test_a_run_without_an_end_is_replayed_as_far_as_it_got() -> None:
    with Store() as store:
        deps = make_deps(ScriptedPolicy([candidate("wrong"), BackendUnavailable("lost")]), DirectiveVerifier(), store)
        result = await run_task(saxpy_task(), deps)
        store.reopen_run(result.run)
        kinds = [e.kind for e in replay_events(store, result.run)]
    assert EventKind.FEEDBACK in kinds
    assert EventKind.RUN_FINISHED not in kinds
