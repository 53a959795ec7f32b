"""A run that was killed, drained or stopped by an error goes on to the same end and repeats nothing that was done."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import RunControl

from cudaperf_agent.errors import BackendUnavailable, StoreError
from cudaperf_agent.store.records import RunStatus
from cudaperf_agent.store.repository import Store
from graph.config import GraphConfig
from graph.events import Event, EventKind
from graph.replay import replay_events
from graph.runner import resume_run, run_task
from tests.graph.graph_world import DirectiveVerifier, ScriptedPolicy, candidate, make_deps, saxpy_task

ROOT = Path(__file__).parents[2]
WRONG, WRONG_TOO, RIGHT = candidate("wrong"), candidate("wrong", 1), candidate("correct 1e-6", 2)


def kill_and_resume(
    folder: Path, script: str, *, checkpoints: bool, stride: int, offset: int = 0
) -> list[dict[str, Any]]:
    """What `kill_worker.py` tells of each kill, all checked."""
    worker = [sys.executable, str(Path(__file__).with_name("kill_worker.py")), str(folder), script]
    done = subprocess.run(
        [*worker, "1" if checkpoints else "0", str(stride), str(offset)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "LANGGRAPH_STRICT_MSGPACK": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *kills = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["undisturbed"]["status"] == "correct"
    for kill in kills:
        assert kill["killed"], kill
        assert kill["resumed"], kill
        assert kill["same"], kill
        assert kill["missing"] == {}, kill
        # Only the call that was under way, or whose result was not stored yet, is made again.
        assert kill["extra"] == Counter(kill["in_flight"]), kill
        assert len(kill["in_flight"]) <= 1, kill
        assert kill["stored_twice"] == [], kill
    return kills


def remove(folder: Path) -> None:
    """The checkpoints in `folder`."""
    for file in folder.glob("c.sqlite*"):
        file.unlink()


def test_a_run_killed_at_some_boundaries_resumes_to_the_same_end(tmp_path: Path) -> None:
    kills = kill_and_resume(tmp_path, "short", checkpoints=True, stride=7)
    assert len(kills) >= 7


@pytest.mark.slow
def test_a_run_killed_at_every_boundary_of_every_node_resumes_to_the_same_end(tmp_path: Path) -> None:
    kills = kill_and_resume(tmp_path, "short", checkpoints=True, stride=1)
    where = {kill["where"] for kill in kills}
    for node in ("generate", "compile", "test", "measure", "assess", "feedback", "hidden", "retime"):
        assert {f"killed before store {node} 0", f"killed after store {node} 0"} <= where
    assert {"killed before checkpoint", "killed after checkpoint", "killed before end", "killed after end"} <= where


@pytest.mark.slow
@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_run_of_five_turns_killed_anywhere_resumes_to_the_same_end(tmp_path: Path, checkpoints: bool) -> None:
    kills = kill_and_resume(tmp_path, "long", checkpoints=checkpoints, stride=9, offset=5)
    assert len(kills) >= 10


async def test_a_lost_file_of_checkpoints_costs_nothing(tmp_path: Path) -> None:
    policy = ScriptedPolicy([WRONG, BackendUnavailable("gone"), RIGHT])
    verifier = DirectiveVerifier()
    with Store() as store:
        deps = make_deps(policy, verifier, store, checkpoints=tmp_path / "c.sqlite")
        first = await run_task(saxpy_task(), deps, GraphConfig(turns=3))
        remove(tmp_path)
        policy.script = [WRONG, WRONG_TOO, RIGHT]
        result = await resume_run(first.run, deps)
    assert result.status is RunStatus.CORRECT
    assert [r.turn for r in policy.asked] == [0, 1, 1, 2]
    assert verifier.calls["test", WRONG] == 1


@pytest.mark.parametrize("lost", [1, 4, 6])
async def test_a_checkpoint_that_knows_more_than_the_store_is_not_used(lost: int) -> None:
    policy = ScriptedPolicy([WRONG, BackendUnavailable("stop here")])
    with Store() as store:
        deps = make_deps(policy, DirectiveVerifier(), store)
        first = await run_task(saxpy_task(), deps, GraphConfig(turns=2))
        with sqlite3.connect(store.path) as raw:  # as if a power cut had taken the last steps
            raw.execute(f"DELETE FROM steps WHERE rowid IN (SELECT rowid FROM steps ORDER BY rowid DESC LIMIT {lost})")
            raw.execute("UPDATE attempts SET feedback = NULL, reward = NULL")
        policy.script = [WRONG, RIGHT]
        result = await resume_run(first.run, deps)
        assert result.status is RunStatus.CORRECT
        assert len(store.steps(first.run)) == 5 + 6 + 3
    assert [a.feedback for a in result.attempts] == ["wrong: y differs", "correct:"]
    assert [r.turn for r in policy.asked] == [0, 1, 1] if lost < 5 else [0, 1, 0, 1]


async def test_an_error_is_recorded_once_and_resumed(tmp_path: Path) -> None:
    events: list[Event] = []
    policy = ScriptedPolicy([WRONG, BackendUnavailable("the endpoint is gone", hint="start it"), RIGHT])
    with Store() as store:
        deps = make_deps(policy, DirectiveVerifier(), store)
        result = await run_task(saxpy_task(), deps, GraphConfig(turns=3), on_event=events.append)
        assert (result.status, result.reason) == (RunStatus.ERROR, "the endpoint is gone")
        assert result.error is not None
        assert (result.error["kind"], result.error["hint"]) == ("backend", "start it")
        notices = [e for e in events if e.kind is EventKind.NOTICE]
        assert [n.data["message"] for n in notices] == ["the endpoint is gone"]
        policy.script = ["never asked", WRONG_TOO, RIGHT]
        resumed = await resume_run(result.run[:9], deps)
        assert (resumed.run, resumed.status, resumed.error) == (result.run, RunStatus.CORRECT, None)
        assert [r.turn for r in policy.asked] == [0, 1, 1, 2]
        assert [t.error for t in resumed.trajectories] == [None]


async def test_a_drained_run_stops_after_the_node_and_goes_on_later() -> None:
    policy = ScriptedPolicy([WRONG, RIGHT])
    verifier = DirectiveVerifier()
    control = RunControl()
    events: list[Event] = []

    def on_event(event: Event) -> None:
        events.append(event)
        if event.kind is EventKind.NODE_STARTED and event.node == "test" and event.turn == 0:
            control.request_drain("interrupted")

    with Store() as store:
        deps = make_deps(policy, verifier, store)
        result = await run_task(saxpy_task(), deps, GraphConfig(turns=2), on_event=on_event, control=control)
        assert result.status is RunStatus.INTERRUPTED
        assert [t.status for t in result.trajectories] == [RunStatus.INTERRUPTED]
        assert events[-1].data["status"] == "interrupted"
        finished = [(e.turn, e.node) for e in events if e.kind is EventKind.NODE_FINISHED]
        assert finished == [(0, "generate"), (0, "compile"), (0, "test")]
        more: list[Event] = []
        resumed = await resume_run("latest", deps, on_event=more.append)
        assert resumed.status is RunStatus.CORRECT
        started = [(e.turn, e.node) for e in more if e.kind is EventKind.NODE_STARTED]
        assert started[:2] == [(0, "assess"), (0, "feedback")]
        assert more[0].data["resumed"] is True
    assert max(verifier.calls.values()) == 2  # measure: once in the search, once at the end
    assert verifier.calls["test", WRONG] == 1


async def test_a_run_that_has_ended_is_only_told_again() -> None:
    policy = ScriptedPolicy([RIGHT])
    with Store() as store:
        deps = make_deps(policy, DirectiveVerifier(), store)
        result = await run_task(saxpy_task(), deps, GraphConfig(turns=1))
        assert await resume_run(result.run, deps) == result
    assert len(policy.asked) == 1


async def test_a_run_at_work_elsewhere_is_not_resumed() -> None:
    with Store() as store:
        deps = make_deps(ScriptedPolicy([BackendUnavailable("x")]), DirectiveVerifier(), store)
        result = await run_task(saxpy_task(), deps)
        with store.claim(result.run), pytest.raises(StoreError, match="another process"):
            await resume_run(result.run, deps)


async def test_finished_trajectories_leave_no_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with Store() as store:
        deps = make_deps(ScriptedPolicy([RIGHT]), DirectiveVerifier(), store, checkpoints=path)
        await run_task(saxpy_task(), deps, GraphConfig(turns=1, trajectories=3))
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
        assert raw.execute("SELECT count(*) FROM writes").fetchone() == (0,)


async def test_only_what_had_not_ended_is_resumed_among_trajectories() -> None:
    def script(request: Any) -> Any:
        return BackendUnavailable("lost") if request.trajectory == 1 and not healed else RIGHT

    healed = False
    policy = ScriptedPolicy(script)
    with Store() as store:
        deps = make_deps(policy, DirectiveVerifier(), store)
        result = await run_task(saxpy_task(), deps, GraphConfig(turns=1, trajectories=3))
        assert result.status is RunStatus.CORRECT
        assert [t.status for t in result.trajectories] == [RunStatus.CORRECT, RunStatus.ERROR, RunStatus.CORRECT]
        healed = True
        resumed = await resume_run(result.run, replace(deps))
        assert {t.status for t in resumed.trajectories} == {RunStatus.CORRECT}
        assert sorted(r.trajectory for r in policy.asked) == [0, 1, 1, 2]
        assert [e.kind for e in replay_events(store, result.run)].count(EventKind.RUN_FINISHED) == 1
