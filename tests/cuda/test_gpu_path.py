"""From source to a measured verdict on a stand-in for a GPU: all of the path but the device itself."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.cuda.baselines import ReferenceConfig
from cudaperf_agent.cuda.clocks import CLOCKS
from cudaperf_agent.cuda.measure import C_FAST_MATH, C_ONE_CORE, C_OPENMP, END_TO_END, NAIVE
from cudaperf_agent.cuda.replay import replay
from cudaperf_agent.cuda.timing import TIMING, TimedRun
from cudaperf_agent.cuda.verdict import Trust, Verdict
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.reward.presets import PAPER, ROBUST
from cudaperf_agent.reward.verifiable import verifiable_reward
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from tests.cuda.standin import GPU, stand_in

CHEATS = Path(__file__).parent.parent / "cheats"
HONEST = (CHEATS / "00_honest.cu").read_text()
CONFIG = VerifierConfig(
    timing=replace(
        TIMING,
        samples=8,
        whole_samples=5,
        contents=3,
        fewest_contents=2,
        size_bytes=1 << 20,
        contents_bytes=4 << 20,
        clocks=replace(CLOCKS, slack_seconds=0.05, batch_slack_seconds=0.05),
    ),
    references=ReferenceConfig(samples=3),
    also_emulate=False,
)


async def saxpy() -> Task:
    return await prepare(load_task(CHEATS / "tasks" / "saxpy.c"))


def edited(number: int) -> str:
    return f"// {number}\n{HONEST}"


async def measured(verifier: Verifier, task: Task, source: str) -> Verdict:
    verdict = await verifier.test(task, source)
    return await verifier.measure(task, source, verdict)


async def test_candidates_side_by_side_are_tested_and_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = stand_in(CONFIG, tmp_path, monkeypatch)
    task = await saxpy()
    sources = [*(edited(i) for i in range(3)), HONEST.replace("+ y[i]", "- y[i]")]
    try:
        verdicts = await asyncio.gather(*(measured(verifier, task, source) for source in sources))
    finally:
        await verifier.aclose()
    assert [str(v.status) for v in verdicts] == ["correct"] * 3 + ["wrong"], [v.message for v in verdicts]
    for verdict in verdicts[:3]:
        assert verdict.measured
        assert [(t.kind, len(t.samples)) for t in verdict.timings] == [
            ("device", 8),
            ("end_to_end", 5),
            ("naive", 8),
            ("reference", 3),
            ("reference", 3),
            ("reference", 3),
        ]
        assert [s.baseline for s in verdict.speedups] == [
            NAIVE,
            *(name + copies for name in (C_ONE_CORE, C_FAST_MATH, C_OPENMP) for copies in ("", END_TO_END)),
        ]
        assert verdict.clocks["device"]["calls_seconds"] > 0
        assert set(verdict.seconds) >= {"compile", "wait", "test", "baselines", "time"}
        told = {s.baseline: s.value for s in verdict.speedups}
        for preset in (ROBUST, PAPER):
            paid = verifiable_reward(verdict, preset)
            assert paid is not None
            assert paid.speedup == told[paid.baseline] != 1.0, "the reward is over a baseline that verdicts have"
            assert not paid.flags
        size = int(verdict.timings[0].case.removeprefix("n="))
        assert verdict.profile["flop"] == 2 * size
        assert verdict.profile["moved_bytes"] == 12 * size
        assert verdict.profile["share_of_copy_bandwidth"] > 0


async def test_a_search_by_device_times_leaves_the_others_to_who_passes_the_hidden_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = stand_in(replace(CONFIG, whole="chosen"), tmp_path, monkeypatch)
    task = await saxpy()
    try:
        searched = await measured(verifier, task, HONEST)
        hidden = await verifier.test(task, HONEST, hidden=True)
        chosen = await verifier.measure(task, HONEST, hidden)
    finally:
        await verifier.aclose()
    assert [t.kind for t in searched.timings[:2]] == ["device", "naive"]
    assert [t.kind for t in chosen.timings[:3]] == ["device", "end_to_end", "naive"]
    assert searched.speedups[0].baseline == chosen.speedups[0].baseline == NAIVE


async def test_nobody_has_times_with_copies_where_none_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = stand_in(replace(CONFIG, whole="none"), tmp_path, monkeypatch)
    task = await saxpy()
    try:
        timed = await verifier.measure(task, HONEST, await verifier.test(task, HONEST, hidden=True))
    finally:
        await verifier.aclose()
    assert [t.kind for t in timed.timings[:2]] == ["device", "naive"]
    assert "end_to_end" not in {t.kind for t in timed.timings}


async def test_nothing_starts_on_the_device_or_computes_while_calls_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates of two tasks at once, all of their steps watched."""
    verifier = stand_in(replace(CONFIG, staged=2, staging=2), tmp_path, monkeypatch)
    place, seen = verifier.place, Counter[str]()
    inside: dict[int, tuple[str, bool]] = {}

    def watched(method: str) -> None:
        real = getattr(TimedRun, method)

        def call(self: TimedRun) -> object:
            inside[id(self)] = method, self.kind == "end_to_end"
            if method == "calls":
                others = [name for run, (name, _) in inside.items() if run != id(self)]
                assert not others, "another process starts, or is timed"
                assert all(not gate.inside for gate in (place.running, place.starting, place.staging))
                computing = place.compiling.inside or place.preparing.inside
                assert not (self.kind == "end_to_end" and computing), "somebody computes"
            seen[method] += 1
            try:
                return real(self)
            finally:
                del inside[id(self)]

        monkeypatch.setattr(TimedRun, method, call)

    for method in ("stage", "calls", "close"):
        watched(method)
    tasks = [await saxpy(), replace(await saxpy(), digest="another")]
    try:
        verdicts = await asyncio.gather(*(measured(verifier, t, edited(i)) for i in range(4) for t in tasks))
    finally:
        await verifier.aclose()
    assert {str(v.status) for v in verdicts} == {"correct"}, [v.message for v in verdicts]
    assert seen["calls"] == seen["stage"] == seen["close"] == 2 * 8 + 2  # the naive ones too


async def test_a_candidate_is_called_again_in_the_same_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = stand_in(CONFIG, tmp_path, monkeypatch)
    task = await saxpy()
    cases = len(make_cases(task, hidden=False))
    tired = HONEST.replace(
        "    if (n > 0)\n",
        f"    static int calls;\n    if (++calls > {cases + 1})\n        n /= 2;\n    if (n > 0)\n",
        1,
    )
    assert tired != HONEST
    try:
        verdict = await verifier.test(task, tired)
    finally:
        await verifier.aclose()
    assert verdict.status == "wrong", verdict.message
    assert verdict.message.startswith("right at first, but called again with other memory: y[")
    assert verdict.passed < verdict.total == cases


async def test_own_kernels_share_a_process_and_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = stand_in(replace(CONFIG, trust="own"), tmp_path, monkeypatch)
    task = await saxpy()
    large_only = HONEST.replace("    if (n > 0)\n", "    if (n > 20000)\n        n = 20000;\n    if (n > 0)\n", 1)
    assert large_only != HONEST
    try:
        verdicts = [await measured(verifier, task, s) for s in (edited(0), edited(1), large_only, edited(2))]
    finally:
        await verifier.aclose()
    assert [str(v.status) for v in verdicts] == ["correct", "correct", "wrong", "correct"], [
        v.message for v in verdicts
    ]
    assert "timed size" in verdicts[2].message
    assert [t.kind for t in verdicts[0].timings] == ["device", "naive", "reference"]
    assert {v.trust for v in verdicts} == {"own"}


@pytest.mark.parametrize("trust", ["own", "suspicious"])
async def test_a_replay_keeps_the_trust(trust: Trust, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = stand_in(replace(CONFIG, trust=trust), tmp_path, monkeypatch)
    task = await saxpy()
    try:
        verdict = await measured(verifier, task, HONEST)
    finally:
        await verifier.aclose()
    record = json.loads(json.dumps(verdict.to_dict()))
    other: Trust = "suspicious" if trust == "own" else "own"
    tools = {"sandbox": verifier.place.sandbox, "gpu": GPU}
    again = await replay(record, task, HONEST, replace(CONFIG, trust=other), **tools)
    assert again.verdict.trust == verdict.trust == trust
    kinds = [t.kind for t in again.verdict.timings]
    assert kinds == [t.kind for t in verdict.timings]
    assert ("end_to_end" in kinds) == (trust == "suspicious")
    assert not [d for d in again.differences if not d.startswith("speedup")]


async def test_a_time_below_the_floor_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudaperf_agent.cuda import measuring
    from tests.cuda.standin import CEILINGS

    verifier = stand_in(CONFIG, tmp_path, monkeypatch)

    async def slow(*_: object, **__: object) -> object:
        return replace(CEILINGS, copy=1e3, read=1e3, write=1e3, l2_copy=1e3)

    monkeypatch.setattr(measuring, "device_ceilings", slow)
    task = await saxpy()
    try:
        verdict = await measured(verifier, task, HONEST)
    finally:
        await verifier.aclose()
    assert verdict.status == "unstable"
    assert "less than this device needs" in verdict.message
    assert not verdict.measured


@pytest.mark.parametrize("late", [1, 2])
async def test_clocks_that_disagree_are_read_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    from cudaperf_agent.cuda.timing import Timed, TimedRun
    from cudaperf_agent.cuda.verdict import Status

    verifier = stand_in(CONFIG, tmp_path, monkeypatch)
    task = await saxpy()
    await measured(verifier, task, HONEST)  # the baselines are there
    read, seen = TimedRun.calls, 0

    def first_ones_late(run: TimedRun) -> Timed:
        nonlocal seen
        seen += 1
        return Timed(None, Status.UNSTABLE, "the clocks disagree", {}) if seen <= late else read(run)

    monkeypatch.setattr(TimedRun, "calls", first_ones_late)
    try:
        verdict = await measured(verifier, task, f"// another\n{HONEST}")
    finally:
        await verifier.aclose()
    assert verdict.clocks["device"]["attempts"] == 2
    assert verdict.status == ("correct" if late == 1 else "unstable")
