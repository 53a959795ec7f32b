"""Runs, trajectories, attempts and steps go in and come out; listings are quick; readers and a writer get along."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.errors import StoreError
from cudaperf_agent.store.ids import new_run_id
from cudaperf_agent.store.records import RunEnd, RunStatus, Step, Tokens, Trajectory
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from tests.store.store_samples import GENERATED, new_run, rich_task, rich_verdict, step


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "runs.sqlite"))


def test_a_run_comes_back_with_its_whole_task(store: Store) -> None:
    run = store.get_run(new_run(store, config={"turns": 3, "seconds": None}))
    assert run.task == rich_task()
    assert run.config == {"turns": 3, "seconds": None}
    assert (run.summary.status, run.summary.task_name) == (RunStatus.RUNNING, "step")


def test_an_attempt_gathers_what_its_steps_find(store: Store) -> None:
    run = new_run(store)
    tokens = Tokens((1, 2, 70_000), (5, 4_000_000_000), (-0.5, -12.25))
    verdict = rich_verdict()
    store.save_step(step(run, "generate", GENERATED, tokens=tokens))
    store.save_step(step(run, "test", {"verdict": rich_verdict(Status.WRONG).to_dict()}))
    assert store.attempts(run)[0].status == "wrong"
    store.save_step(step(run, "measure", {"verdict": verdict.to_dict()}))
    reward = {"total": 1.5, "verifiable": 1.25, "structural": 0.25, "preset": "robust"}
    store.save_step(step(run, "assess", {"features": {"coal": 1.0}, "hints": [{"message": "m"}], "reward": reward}))
    store.save_step(step(run, "feedback", {"feedback": "faster", "stop": ""}))
    store.save_step(step(run, "hidden", {"verdict": rich_verdict(Status.UNSTABLE).to_dict()}))
    (attempt,) = store.attempts(run, 0)
    assert attempt.tokens == tokens
    assert attempt.verdict == verdict
    assert attempt.hidden_verdict == rich_verdict(Status.UNSTABLE)
    assert (attempt.text, attempt.source) == (GENERATED["text"], GENERATED["source"])
    assert (attempt.features, attempt.hints, attempt.reward) == ({"coal": 1.0}, ({"message": "m"},), reward)
    assert (attempt.feedback, attempt.usage, attempt.status) == ("faster", {"completion": 3}, "correct")
    with sqlite3.connect(store.path) as raw:
        row = raw.execute(
            "SELECT device_seconds, end_to_end_seconds, speedup, baseline, pass_rate, reward_total FROM attempts"
        )
        assert row.fetchone() == (2e-6, 1e-5, 12.5, "c -O3", 0.75, 1.5)


def test_a_candidate_that_only_compiles_is_not_recorded_as_correct(store: Store) -> None:
    run = new_run(store)
    store.save_step(step(run, "generate", GENERATED))
    store.save_step(step(run, "compile", {"verdict": Verdict(Status.CORRECT).to_dict()}))
    (attempt,) = store.attempts(run)
    assert attempt.status == ""
    assert attempt.verdict is not None
    assert attempt.verdict.untested
    store.save_step(step(run, "test", {"verdict": Verdict(Status.CORRECT, passed=4, total=4).to_dict()}))
    assert store.attempts(run)[0].status == "correct"


@pytest.mark.parametrize(
    ("node", "payload"),
    [
        ("generate", GENERATED),
        ("compile", {"verdict": {"status": "correct"} | {"message": ""}}),
        ("assess", {"features": None, "hints": [], "reward": None}),
        ("feedback", {"feedback": "mend it", "stop": "turns"}),
        ("hidden", {"verdict": {"status": "wrong", "message": "y"}}),
        ("finish", {"reason": "turns", "first_choice": 1, "best_turn": None}),
    ],
)
def test_the_payload_of_a_step_comes_back_as_it_was(store: Store, node: str, payload: dict[str, object]) -> None:
    run = new_run(store)
    wanted = step(run, node, payload)
    store.save_step(wanted)
    assert store.steps(run, 0) == (wanted,)


def test_a_later_step_does_not_change_what_an_earlier_one_found(store: Store) -> None:
    run = new_run(store)
    first = step(run, "test", {"verdict": rich_verdict(Status.WRONG).to_dict()}, finished=2.0)
    store.save_step(first)
    store.save_step(step(run, "measure", {"verdict": rich_verdict().to_dict()}, finished=3.0))
    assert store.steps(run)[0].payload["verdict"]["status"] == "wrong"


def test_writing_twice_changes_nothing(store: Store) -> None:
    run = new_run(store)
    for _ in range(2):
        store.save_trajectory(Trajectory(run, 0, 7, RunStatus.FAILED, 1.0, 2.0, "turns"))
        store.save_step(step(run, "generate", GENERATED))
    assert len(store.trajectories(run)) == len(store.steps(run)) == len(store.attempts(run)) == 1


def test_a_step_and_its_attempt_are_written_together_or_not_at_all(store: Store) -> None:
    run = new_run(store)
    bad = Step(run, 9, 0, "generate", 1.0, 2.0, GENERATED)  # there is no trajectory 9
    with pytest.raises(Exception, match="FOREIGN KEY"):
        store.save_steps([step(run, "generate", GENERATED), bad])
    assert store.steps(run) == ()
    assert store.attempts(run) == ()


def test_the_end_of_a_run_is_listed(store: Store) -> None:
    run = new_run(store)
    store.end_run(run, RunEnd(RunStatus.CORRECT, "done", 5.0, 0, 2, 1e-6, 3.5, "c"))
    (listed,) = store.list_runs()
    assert (listed.status, listed.reason, listed.finished) == (RunStatus.CORRECT, "done", 5.0)
    assert (listed.best_trajectory, listed.best_turn, listed.best_seconds) == (0, 2, 1e-6)
    assert (listed.best_speedup, listed.best_baseline) == (3.5, "c")
    store.reopen_run(run)
    assert store.list_runs()[0].status is RunStatus.RUNNING


def test_a_deleted_run_leaves_nothing(store: Store) -> None:
    run = new_run(store)
    store.save_step(step(run, "generate", GENERATED))
    store.delete_run(run)
    with sqlite3.connect(store.path) as raw:
        for table in ("runs", "trajectories", "attempts", "steps"):
            assert raw.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_runs_are_listed_newest_first_and_filtered(store: Store) -> None:
    ids = [new_run(store, 1_800_000_000.0 + i, origin="train" if i % 2 else "translate") for i in range(6)]
    store.end_run(ids[0], RunEnd(RunStatus.FAILED, "", 1.0))
    assert [r.id for r in store.list_runs()] == ids[::-1]
    assert [r.id for r in store.list_runs(2, offset=1)] == [ids[4], ids[3]]
    assert [r.id for r in store.list_runs(origin="train")] == [ids[5], ids[3], ids[1]]
    assert [r.id for r in store.list_runs(status=RunStatus.FAILED)] == [ids[0]]
    assert [r.id for r in store.list_runs(policy="other")] == []
    assert len(store.list_runs(task="folder/st")) == 6
    assert store.list_runs(task="%") == ()


def test_ten_thousand_runs_list_in_under_a_second(store: Store) -> None:
    new_run(store, task=Task("big", "function", "int x;\n" * 2000, "big.c"))
    with sqlite3.connect(store.path) as raw:
        columns = [c[1] for c in raw.execute("PRAGMA table_info(runs)") if c[1] not in ("id", "created")]
        copied = ", ".join(columns)
        raw.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
            f"INSERT INTO runs (id, created, {copied}) SELECT 'x' || i, i, {copied} FROM runs, n"
        )
    started = time.process_time()  # so that other programs on the machine do not count
    runs = store.list_runs(None)
    seconds = time.process_time() - started
    assert len(runs) == 10_000
    assert seconds < 1.0, seconds
    with sqlite3.connect(store.path) as raw:
        plan = str(
            raw.execute("EXPLAIN QUERY PLAN SELECT id FROM runs ORDER BY created DESC, id DESC LIMIT 50").fetchall()
        )
    assert "ix_runs_created" in plan


def test_ids_sort_by_time_and_are_short() -> None:
    ids = [new_run_id(1_764_000_000.0 + i / 16) for i in range(200)]
    assert ids == sorted(ids)
    assert {len(i) for i in ids} == {10}
    assert not set("".join(ids)) & set("ilou")
    assert new_run_id(1_764_000_000.0) != new_run_id(1_764_000_000.0)


def test_a_run_is_found_by_a_unique_prefix(store: Store) -> None:
    with pytest.raises(StoreError, match="no runs yet"):
        store.find_run("latest")
    for run in ("0abc", "0abd", "1xyz"):
        new_run(store, run_id=run)
    assert store.find_run("1") == "1xyz"
    assert store.find_run("0ABC") == "0abc"
    assert store.get_run("0abd").summary.id == "0abd"
    assert store.find_run("latest") == store.list_runs(1)[0].id
    with pytest.raises(StoreError, match="0abc, 0abd"):
        store.find_run("0ab")
    for nothing in ("zzz", "", "%", "_"):
        with pytest.raises(StoreError, match="no run"):
            store.find_run(nothing)


def test_latest_is_the_newest_translation(store: Store) -> None:
    for run, created, origin in (("0eva", 30.0, "eval"), ("0old", 10.0, "translate"), ("0new", 20.0, "translate")):
        new_run(store, run_id=run, created=created, origin=origin)
    assert store.find_run("latest") == store.get_run("latest").summary.id == "0new"


def test_latest_without_a_translation_tells_of_the_others(store: Store) -> None:
    for run, origin in (("0ab", "eval"), ("0cd", "eval"), ("0ef", "grpo")):
        new_run(store, run_id=run, origin=origin)
    with pytest.raises(StoreError, match=r"only others \(eval 2, grpo 1\)") as caught:
        store.find_run("latest")
    assert "cudaperf runs --origin all" in str(caught.value.hint)


def test_a_taken_id_is_refused(store: Store) -> None:
    new_run(store, run_id="mine")
    with pytest.raises(StoreError, match="already") as caught:
        store.create_run(
            rich_task(), policy="p", backend="b", config={}, trajectories=1, turns=1, created=1.0, run_id="mine"
        )
    assert "resume mine" in str(caught.value.hint)


def test_readers_see_whole_steps_while_another_thread_writes(store: Store) -> None:
    run = new_run(store)
    failures: list[str] = []
    done = threading.Event()

    def read() -> None:
        with Store(store.path) as mine:
            while not done.is_set():
                for found in mine.steps(run):
                    if found.payload["source"] != GENERATED["source"]:
                        failures.append(str(found))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for turn in range(60):
        store.save_step(step(run, "generate", GENERATED, turn=turn))
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert len(store.steps(run)) == 60


def test_a_reader_is_not_held_up_by_an_open_write_of_another_connection(store: Store) -> None:
    run = new_run(store)
    with sqlite3.connect(store.path, isolation_level=None) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE runs SET reason = 'half'")
        with Store(store.path) as reader:
            assert reader.get_run(run).summary.reason == ""
        writer.execute("ROLLBACK")


def test_a_run_is_claimed_by_one_process_and_freed_by_its_death(store: Store) -> None:
    run = new_run(store)
    ready, telling = os.pipe()
    child = os.fork()
    if child == 0:
        with store.claim(run):
            os.write(telling, b"x")
            signal.pause()
        os._exit(0)
    try:
        os.read(ready, 1)
        assert store.is_claimed(run)
        with pytest.raises(StoreError, match="another process"), store.claim(run):
            pass
        with store.claim("another"):
            assert store.is_claimed("another")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert not store.is_claimed(run)
    assert not store.is_claimed("another")
    with store.claim(run), pytest.raises(StoreError), store.claim(run):
        pass
