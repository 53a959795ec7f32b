"""Selection, comparison of sources, batches, and the loop for synchronous callers."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from cudaperf_agent.cuda.verdict import Status, Timing, Verdict
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.store.records import RunStatus, Step, Trajectory
from cudaperf_agent.store.repository import Store
from graph import loop
from graph.batching import BatchingPolicy
from graph.config import GraphConfig
from graph.events import Event, EventKind
from graph.runner import run_task
from graph.selection import ranked, seconds
from graph.sources import normalise, source_key
from graph.writer import shared_writer
from tests.graph.graph_world import DirectiveVerifier, ScriptedPolicy, candidate, make_deps, saxpy_task

ROOT = Path(__file__).parents[2]


def verdict(*timings: tuple[str, float], status: Status = Status.CORRECT) -> Verdict:
    """A verdict with one timing per (kind, seconds)."""
    kinds = tuple(Timing(kind, "n", (t, t * 1.01, t * 0.99)) for kind, t in timings)
    return Verdict(status, measured=bool(timings), timings=kinds)


def test_the_fastest_correct_candidate_comes_first() -> None:
    found = ranked(
        {
            0: verdict(("device", 3.0)),
            1: verdict(("device", 0.1), status=Status.WRONG),
            2: verdict(("device", 1.0), ("end_to_end", 9.0)),
            3: verdict(),
            4: verdict(("device", 2.0)),
        }
    )
    assert found == [2, 4, 0, 3]


def test_times_of_different_kinds_are_not_compared() -> None:
    device = verdict(("device", 1.0), ("end_to_end", 5.0))
    whole = verdict(("end_to_end", 4.0))
    assert ranked({0: device, 1: whole}) == [1, 0]
    assert ranked({0: device, 1: verdict(("end_to_end", 6.0))}) == [0, 1]


def test_untimed_candidates_rank_by_turn_and_equals_too() -> None:
    assert ranked({2: verdict(), 0: verdict(status=Status.CRASH), 1: verdict()}) == [1, 2]
    assert ranked({1: verdict(("device", 1.0)), 0: verdict(("device", 1.0))}) == [0, 1]


def test_several_timed_cases_count_by_their_geometric_mean() -> None:
    both = Verdict(
        Status.CORRECT, measured=True, timings=(Timing("device", "a", (1e-6,)), Timing("device", "b", (4e-6,)))
    )
    assert seconds(both) == pytest.approx(2e-6)
    assert seconds(replace(both, measured=False)) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int a; // note\n", "int a;"),
        ("int a=b+c;", "int  a = b\n  + c ;"),
        ("/* x */ f<<<g,b>>>(p);", "f <<< g , b >>> ( p );"),
        ("#define N 4\nint a;", "  #  define   N 4 // four\n\n\nint a;"),
        ("#define N \\\n 4\nint a;", "#define N 4\nint a;"),
        ("int a;\r\nint b;\r\n", "int a; int b;"),
        ('char *s = "a // b";', 'char* s="a // b"; // c'),
    ],
)
def test_layout_and_comments_do_not_make_another_program(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)
    assert source_key(one) == source_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int ab;", "int a b;"),
        ("a++ + b;", "a + ++b;"),
        ('s = "a  b";', 's = "a b";'),
        ('s = "/* x */";', 's = "";'),
        ("#define N 4\nint a;", "#define N 4 int a;"),
        ("x = 1e-5;", "x = 1e - 5;"),
        ("if (a) b; #pragma unroll\n c;", "if (a) b;\n#pragma unroll\n c;"),
        ("a >> b;", "a > > b;"),
        ("x = 'a';", "x = 'b';"),
    ],
)
def test_what_may_mean_something_else_is_another_program(one: str, other: str) -> None:
    assert source_key(one) != source_key(other)


@pytest.mark.parametrize("start", ["/*", '"', "\\\n", 'R"(', "# ", "\ud800", "1'", 'R"a'])
def test_the_cost_of_a_hostile_source_grows_with_its_length_only(start: str) -> None:
    started = time.process_time()
    source_key(start * (400_000 // len(start)))
    assert time.process_time() - started < 3.0


class BatchScript(ScriptedPolicy):
    """Notes the batches in which it was asked."""

    batches: list[int]

    async def propose_batch(self, requests: list[ProposalRequest]) -> list[list[Proposal]]:
        self.batches.append(len(requests))
        return [[self.answer(request)] for request in requests]


async def test_a_policy_that_takes_batches_sees_them() -> None:
    policy = BatchScript(lambda r: candidate("wrong", 100 * r.trajectory + r.turn))
    policy.batches = []
    with Store() as store:
        deps = make_deps(policy, DirectiveVerifier(), store)
        result = await run_task(
            saxpy_task(), deps, GraphConfig(turns=2, trajectories=8, batch_seconds=60.0, batch_size=8)
        )
    assert policy.batches == [8, 8]
    assert {a.source for a in result.attempts} == {candidate("wrong", 100 * t + n) for t in range(8) for n in range(2)}


async def test_a_policy_that_takes_batches_streams_to_the_right_trajectory() -> None:
    class Talking(BatchScript):
        async def propose_batch(self, requests: list[ProposalRequest]) -> list[list[Proposal]]:
            for request in requests:
                assert request.on_token is not None
                # As from a task that an engine had started before any node ran.
                contextvars.Context().run(request.on_token, f"to {request.trajectory}")
            return await super().propose_batch(requests)

    policy = Talking(lambda r: candidate("correct 1e-6", r.trajectory))
    policy.batches = []
    tokens: list[tuple[int | None, str]] = []

    def on_event(event: Event) -> None:
        if event.kind is EventKind.TOKEN:
            tokens.append((event.trajectory, event.data["text"]))

    with Store() as store:
        deps = make_deps(policy, DirectiveVerifier(), store)
        await run_task(saxpy_task(), deps, GraphConfig(turns=1, trajectories=3), on_event=on_event)
    assert sorted(tokens) == [(0, "to 0"), (1, "to 1"), (2, "to 2")]


async def test_a_batch_goes_out_when_its_time_has_come() -> None:
    policy = BatchScript(lambda r: candidate("wrong", r.trajectory))
    policy.batches = []
    front = BatchingPolicy(policy, seconds=0.001, size=100)
    requests = [ProposalRequest((), saxpy_task(), trajectory=n) for n in range(3)]
    answers = await asyncio.gather(*(front.propose(r) for r in requests))
    assert [a[0].text for a in answers] == [candidate("wrong", n) for n in range(3)]
    assert policy.batches == [3]
    assert front.name == "scripted"


async def test_a_batch_that_fails_fails_all_of_its_requests() -> None:
    def script(request: ProposalRequest) -> str:
        raise BackendUnavailable("gone")

    policy = BatchScript(script)
    policy.batches = []
    front = BatchingPolicy(policy, seconds=0.0, size=10)
    requests = [ProposalRequest((), saxpy_task(), trajectory=n) for n in range(3)]
    answers = await asyncio.gather(*(front.propose(r) for r in requests), return_exceptions=True)
    assert [type(a) for a in answers] == [BackendUnavailable] * 3


def test_synchronous_callers_share_one_loop_in_one_thread() -> None:
    async def where() -> tuple[int, int]:
        return id(asyncio.get_running_loop()), threading.get_ident()

    places = {loop.run(where()) for _ in range(3)} | {loop.submit(where()).result()}
    assert len(places) == 1
    assert threading.get_ident() not in {thread for _, thread in places}


def test_a_failure_reaches_the_synchronous_caller() -> None:
    async def fail() -> None:
        raise BackendUnavailable("gone")

    with pytest.raises(BackendUnavailable):
        loop.run(fail())


def test_a_run_can_be_had_synchronously() -> None:
    with Store() as store:
        deps = make_deps(ScriptedPolicy([candidate("correct 1e-6")]), DirectiveVerifier(), store)
        assert loop.run(run_task(saxpy_task(), deps, GraphConfig(turns=1))).status is RunStatus.CORRECT


async def test_runs_at_work_on_one_loop_share_a_writer_and_its_transactions() -> None:
    written: list[int] = []

    class Counting(Store):
        def save_steps(self, steps: Sequence[Step]) -> None:
            written.append(len(steps))
            super().save_steps(steps)

    with Counting() as store:
        async with shared_writer(store) as first, shared_writer(store) as second:
            assert first is second
            runs = [store.create_run(saxpy_task(), **RUN) for _ in range(4)]
            for run in runs:
                store.save_trajectory(Trajectory(run, 0, 0, RunStatus.RUNNING, 1.0))
            finish = {"reason": "turns", "first_choice": None, "best_turn": None}
            steps = [Step(run, 0, 0, "finish", 1.0, 2.0, finish) for run in runs]
            await asyncio.gather(*(first.save(step) for step in steps))
        assert [store.steps(run) for run in runs] == [(step,) for step in steps]
        async with shared_writer(store) as later:
            assert later is not first
    assert written == [4]


async def test_a_step_that_cannot_be_written_fails_its_own_caller_only() -> None:
    with Store() as store:
        run = store.create_run(saxpy_task(), **RUN)
        store.save_trajectory(Trajectory(run, 0, 0, RunStatus.RUNNING, 1.0))
        finish = {"reason": "turns", "first_choice": None, "best_turn": None}
        steps = [Step(name, 0, 0, "finish", 1.0, 2.0, finish) for name in (run, "deleted")]
        async with shared_writer(store) as writer:
            ended = await asyncio.gather(*(writer.save(step) for step in steps), return_exceptions=True)
        assert ended[0] is None
        assert isinstance(ended[1], IntegrityError)
        assert store.steps(run) == (steps[0],)


RUN = {"policy": "p", "backend": "b", "config": {}, "trajectories": 1, "turns": 1, "created": 1.0}

INTERRUPTED = """
import asyncio, os, signal, sys
from graph import loop

asked = []
press = lambda: os.kill(os.getpid(), signal.SIGINT)

async def work():
    press()
    if sys.argv[1] != "unasked":
        while not asked:
            await asyncio.sleep(0)
    if sys.argv[1] == "patient":
        return "ended in peace"
    if sys.argv[1] == "hasty":
        press()
    try:
        await asyncio.Event().wait()
    finally:
        print("cleaned up")

try:
    print(loop.run(work(), on_interrupt=None if sys.argv[1] == "unasked" else lambda: asked.append(1)))
except KeyboardInterrupt:
    print("interrupted", len(asked))
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.parametrize(
    ("manner", "told"),
    [
        ("patient", "ended in peace"),
        ("hasty", "cleaned up\ninterrupted 1"),
        ("unasked", "cleaned up\ninterrupted 0"),
    ],
)
def test_the_first_interrupt_asks_and_the_second_cancels(manner: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, manner],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        # Started in the background, a shell ignores the signal, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        check=False,
        timeout=60,
    )
    assert done.stdout == f"{told}\nTrue\n", done.stderr


async def test_two_runs_share_the_store_and_the_checkpoints() -> None:
    scripts = [[candidate("wrong", 10 * n), candidate("correct 1e-6", 10 * n + 1)] for n in (1, 2)]
    config = GraphConfig(turns=2, trajectories=3)
    with Store() as store:
        deps = [make_deps(ScriptedPolicy(script), DirectiveVerifier(), store) for script in scripts]
        results = await asyncio.gather(*(run_task(saxpy_task(), d, config) for d in deps))
    assert [r.status for r in results] == [RunStatus.CORRECT] * 2
    assert [{a.source for a in r.attempts} for r in results] == [set(script) for script in scripts]


def test_the_benchmark_prints_its_table() -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/graph_overhead.py", "--repeat", "1", "--trajectories", "2"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    head, *rows = [line.split() for line in done.stdout.splitlines()]
    assert head[0] == "trajectories"
    assert [row[:2] for row in rows] == [["2", "no"], ["2", "yes"]]
    for row in rows:
        assert float(row[4]) < 150.0  # CPU ms a turn: far above the aim, since tests share their cores


async def test_a_cancelled_run_is_left_resumable() -> None:
    begun = asyncio.Event()

    class Hanging(ScriptedPolicy):
        async def propose(self, request: ProposalRequest) -> list[Proposal]:
            begun.set()
            await asyncio.Event().wait()
            return []

    with Store() as store:
        deps = make_deps(Hanging([]), DirectiveVerifier(), store)
        work = asyncio.create_task(run_task(saxpy_task(), deps))
        await begun.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        (run,) = store.list_runs()
        assert run.status is RunStatus.INTERRUPTED
        assert not store.is_claimed(run.id)
