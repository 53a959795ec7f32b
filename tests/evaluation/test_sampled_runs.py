"""A policy's answers as candidates: from evaluations in the store, and from exported runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_eval_times import FAST, SLOW, WRONG, Device, Searched

from cudaperf_agent.cli.main import main
from cudaperf_agent.cuda.measure import NAIVE
from cudaperf_agent.cuda.verdict import Speedup, Verdict
from cudaperf_agent.errors import EXIT_USAGE, ConfigError
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from training.dataset.sampled import Candidate, read_candidates, sampled_table
from training.dataset.sampled_runs import Answers, evaluation_answers, exported_answers
from training.evaluation.kernel_times import FILE
from training.evaluation.plan import Plan, Plans

COLUMNS = {
    "run": "r1", "task": "saxpy", "task_path": "program/155", "task_digest": "abcdef0123456789",
    "policy": "m+/x/step-000000", "trajectory": 0, "turn": 0, "source": FAST, "status": "correct", "reward_total": 1.0,
}  # fmt: skip


class OverNaive(Device):
    """A GPU on which plain CUDA takes three times as long; with a second size that takes so many times as long."""

    larger: float | None = None

    async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        found = await super().measure(task, source, verdict)
        (timing,) = found.timings
        timings = [timing]
        if self.larger is not None:
            timings.append(replace(timing, samples=tuple(s * self.larger for s in timing.samples)))
        over = tuple(Speedup(NAIVE, 3.0, 2.9, 3.1) for _ in timings)
        return replace(found, timings=tuple(timings), speedups=(*found.speedups, *over))


def answers(world: Searched, plan: Plan, **more: Any) -> Answers:
    with Store(f"sqlite:///{world.folder}/runs.sqlite") as store:
        return evaluation_answers(store, plan, world.times(), **more)


def parquet_file(path: Path, rows: list[Mapping[str, Any]]) -> Path:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the training extra is not installed")
    import pyarrow as arrow

    parquet.write_table(arrow.Table.from_pylist([COLUMNS | row for row in rows]), path)
    return path


async def test_first_answers_of_an_evaluation_have_their_verdicts_and_times(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST])
    await world.time(OverNaive(), plan)
    found = answers(world, plan).candidates
    assert [(c.task, c.family, c.phase, c.trajectory, c.turn) for c in found] == [
        (f"s/{t}", f"s/{t}", "e", number, 0) for t in "ab" for number in (0, 1)
    ]
    assert {(c.status, c.hidden) for c in found} == {("correct", "correct")}
    assert [c.seconds for c in found] == pytest.approx([1e-6] * 4)
    assert [c.naive for c in found] == pytest.approx([3e-6] * 4)
    assert all(c.samples for c in found)


async def test_of_several_sizes_the_geometric_mean_counts(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST], tasks="a")
    device = OverNaive()
    device.larger = 4.0
    await world.time(device, plan)
    found = answers(world, plan).candidates
    assert [(c.seconds, c.naive, c.samples) for c in found] == [(pytest.approx(2e-6), pytest.approx(6e-6), ())] * 2


async def test_later_turns_only_where_asked_for(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [WRONG, SLOW])
    await world.time(Device(), plan)
    assert {(c.turn, c.status, c.seconds) for c in answers(world, plan).candidates} == {(0, "wrong", None)}
    later = [c for c in answers(world, plan, every_turn=True).candidates if c.turn == 1]
    assert [(c.status, c.seconds) for c in later] == [("correct", pytest.approx(4e-6))] * 4


async def test_a_kernel_that_fails_on_the_device_is_no_correct_candidate(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST])
    device = Device()
    device.fails = (FAST,)
    await world.time(device, plan)
    assert {(c.status, c.timeable, c.seconds) for c in answers(world, plan).candidates} == {("wrong", False, None)}


async def test_a_task_with_a_first_answer_that_was_not_judged_is_left_out(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST])
    run = plan.run_id("s/a", 0)
    with Store(f"sqlite:///{tmp_path}/runs.sqlite") as store, store._writing() as connection:
        from sqlalchemy import text

        connection.execute(
            text("UPDATE attempts SET verdict = NULL, status = '' WHERE run_id = :run AND trajectory = 1"), {"run": run}
        )
    found = answers(world, plan)
    assert ({c.task for c in found.candidates}, found.left_out) == ({"s/b"}, 1)
    # What was planned and never begun is not left out: it is not there.
    more = replace(plan, tasks={**plan.tasks, "s/c": plan.tasks["s/b"] | {"digest": "c"}})
    assert answers(world, more).left_out == 1
    with pytest.raises(ConfigError, match="no task of the evaluation e has verdicts on all its first answers"):
        answers(world, replace(plan, tasks={"s/a": plan.tasks["s/a"]}))


async def test_members_of_families_are_named_as_the_families_are(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST], tasks="a")
    entry, run = plan.tasks["s/a"] | {"family": "gram"}, plan.run_id("s/a", 0)
    named = replace(plan, tasks={"unseen-families/gram-2": entry})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "run_id", lambda *_: run)
        assert {(c.task, c.unit) for c in answers(world, named).candidates} == {("gram/2", "gram")}
    assert Candidate(task="gram/2", source="", status="wrong").unit == "gram"


def test_exported_runs_tell_the_step_and_the_task(tmp_path: Path) -> None:
    rows = [
        {"trajectory": 0},
        {"trajectory": 1, "source": None, "status": "no_code"},
        {"trajectory": 0, "turn": 1},
        {"run": "r2", "task_path": "gram/3", "policy": "m+/x/step-000011"},
        {"run": "r3", "task_path": "/home/me/saxpy.c", "policy": "openai:some/model"},
        {"run": "r4", "status": "unfinished"},
        {"run": "r4", "trajectory": 1},
    ]
    path = parquet_file(tmp_path / "both.parquet", rows)
    found = exported_answers(path)
    assert [(c.task, c.unit, c.phase, c.status) for c in found.candidates] == [
        ("program/155", "program/155", "both/step-1", "correct"),
        ("program/155", "program/155", "both/step-1", "no_code"),
        ("gram/3", "gram", "both/step-12", "correct"),
        ("saxpy-abcdef01", "saxpy-abcdef01", "both/model", "correct"),
    ]
    assert found.left_out == 1
    assert [c.turn for c in exported_answers(path, every_turn=True).candidates] == [0, 0, 1, 0, 0]


def test_what_is_no_export_is_told_with_its_name(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the training extra is not installed")
    text, other = tmp_path / "text.parquet", tmp_path / "other.parquet"
    text.write_text("no Parquet")
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    parquet.write_table(arrow.table({"task": ["a"], "turn": [0]}), other)
    open_only = parquet_file(tmp_path / "open.parquet", [{"status": "unfinished"}])
    for path, what in [
        (tmp_path / "absent.parquet", "cannot be read: No such file"),
        (text, "it is no whole Parquet file"),
        (other, "it has no column task_path, task_digest, policy, run,"),
        (open_only, "no run in it has verdicts"),
    ]:
        with pytest.raises(ConfigError, match=what) as told:
            exported_answers(path)
        assert told.value.where == str(path)
        assert "dataset export --runs" in (told.value.hint or "")


async def test_the_command_writes_both_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST])
    await world.time(Device(), plan)
    assert (tmp_path / "evaluations" / FILE).exists()
    assert Plans(tmp_path / "evaluations").names() == ("e",)
    runs = parquet_file(tmp_path / "both.parquet", [{}, {"run": "r4", "status": "unfinished"}])
    monkeypatch.setenv("CUDAPERF_DATA_DIR", str(tmp_path))
    out = tmp_path / "out" / "kernels.jsonl.gz"
    import asyncio

    words = ["dataset", "sampled", "--evaluation", "e", "--runs", str(runs), "--out", str(out)]
    assert await asyncio.to_thread(main, words) == 0
    assert "5 candidates, 4 with a time\nleft out: 1 tasks" in capsys.readouterr().out
    assert [c.phase for c in read_candidates(out)] == ["e"] * 4 + ["both/step-1"]
    assert len(sampled_table(out)) == 2
    first = out.read_bytes()
    assert await asyncio.to_thread(main, [*words, "--json"]) == 0
    assert out.read_bytes() == first
    assert json.loads(capsys.readouterr().out)["left_out"] == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--candidates, --evaluation or --runs"),
        (["--candidates", "x"], "--candidates and --measured go together"),
        (["--measured", ".", "--runs", "x"], "--candidates and --measured go together"),
        (["--evaluation", "nobody"], "there is no evaluation `nobody`"),
        (["--runs", "absent.parquet"], "absent.parquet"),
    ],
)
def test_what_is_missing_is_said(
    words: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CUDAPERF_DATA_DIR", str(tmp_path))
    assert main(["dataset", "sampled", *words, "--out", str(tmp_path / "out.jsonl")]) == EXIT_USAGE
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
