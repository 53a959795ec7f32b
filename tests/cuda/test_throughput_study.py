"""Rows of the throughput study: also where its seconds are over before all candidates are judged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.gpu_study.record import Record
from benchmarks.gpu_study.throughput import Candidate, clocked, whole
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task

TASK = load_task(source="void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = i; }")


async def judge(_task: Task, source: str) -> Verdict:
    """Quick, for ever, or not at all, as the source says."""
    if source == "endless":
        await asyncio.Event().wait()
    if source == "broken":
        raise ValueError(source)
    return Verdict(Status.CORRECT, seconds={"test": 1.0})


@pytest.mark.parametrize(
    ("sources", "seconds", "cut"),
    [(["quick", "quick", "broken"], 30.0, False), (["quick", "endless", "quick"], 0.0, True)],
)
async def test_a_way_has_a_row_with_a_figure_also_where_it_is_cut(
    sources: list[str], seconds: float, cut: bool, tmp_path: Path
) -> None:
    record = Record(tmp_path / "rows.jsonl", 60.0, small=True)
    await clocked(record, "timed", [Candidate(TASK, s) for s in sources], judge, [], seconds)
    (row,) = record.rows("throughput")
    assert (row["candidates"], row["judged"], row["cut"]) == (3, 2, cut)
    assert row["per_minute"] == pytest.approx(120 / row["wall_seconds"])
    assert row["phase_seconds"] == {"test": 2.0}
    assert row["exceptions"] == ([] if cut else ["ValueError('broken')"])
    assert whole(record) == (set() if cut else {"timed"})


async def test_a_way_that_is_cancelled_has_its_row(tmp_path: Path) -> None:
    record = Record(tmp_path / "rows.jsonl", 60.0, small=True)
    work = clocked(record, "timed", [Candidate(TASK, s) for s in ("quick", "endless")], judge, [], 60.0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(work, 0.2)
    (row,) = record.rows("throughput")
    assert (row["judged"], row["cut"]) == (1, True)
