"""Kernels timed after a search without timing, and evaluations cut to fewer turns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from eval_facts import evaluation, fails, right, task, turn
from graph_world import Clock, DirectiveVerifier, ScriptedPolicy, candidate, make_deps
from test_eval_drive import as_it_is, item

from cudaperf_agent.cli.eval_time import part_of
from cudaperf_agent.cli.main import main
from cudaperf_agent.cuda.measure import C_ONE_CORE, NAIVE
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.errors import BackendUnavailable, UsageError
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from tests.cuda.standin import stand_in
from tests.cuda.test_gpu_path import CHEATS, CONFIG, HONEST
from training.evaluation.baselines import LIMIT
from training.evaluation.collect import collect
from training.evaluation.cut import cut
from training.evaluation.drive import drive
from training.evaluation.estimates import estimate
from training.evaluation.facts import Evaluation
from training.evaluation.kernel_times import FILE, WHOLE, KernelTimes, Part, time_kernels
from training.evaluation.plan import Plan, Plans, Settings, new_plan
from training.evaluation.suite import Item, Suite

FAST, SLOW, WRONG = candidate("correct 1e-6", 1), candidate("correct 4e-6", 2), candidate("wrong", 3)


class Device(DirectiveVerifier):
    """A GPU on which some kernels fail, whatever the emulator said."""

    fails: tuple[str, ...] = ()
    broken: str = ""

    async def test(self, task: Task, source: str, *, hidden: bool = False) -> Verdict:
        if task.digest == self.broken:
            raise BackendUnavailable("the device is gone")
        verdict = await super().test(task, source, hidden=hidden)
        return replace(verdict, status=Status.WRONG, message="other warps") if source in self.fails else verdict


@dataclass
class Searched:
    """Evaluations on the emulator, in one store."""

    folder: Path

    async def search(self, name: str, answers: Sequence[str], tasks: str = "ab", turns: int = 2) -> Plan:
        plans = Plans(self.folder / "evaluations")
        suite = Suite("s", tuple(item(t) for t in tasks))
        plan = new_plan(name, Settings("s", name, 2, turns, 1), suite, name, "emulator", ())
        plans.save(plan)
        with Store(f"sqlite:///{self.folder}/runs.sqlite") as store:
            deps = make_deps(ScriptedPolicy(answers), DirectiveVerifier("emulator"), store, clock=Clock())
            await drive(suite, plan, plans, deps, prepare=as_it_is)
        return plan

    async def time(self, device: Device, *plans: Plan, seconds: float | None = None, part: Part = WHOLE) -> int:
        with Store(f"sqlite:///{self.folder}/runs.sqlite") as store:
            return await time_kernels(plans, store, device, self.times(), seconds=seconds, part=part)

    def times(self) -> KernelTimes:
        return KernelTimes.load(self.folder / "evaluations")

    def found(self, plan: Plan) -> Evaluation:
        with Store(f"sqlite:///{self.folder}/runs.sqlite") as store:
            return collect(store, plan, self.times())


async def test_a_search_without_timing_has_speeds_once_its_kernels_are_timed(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [WRONG, FAST])
    assert not world.found(plan).timed()
    assert await world.time(Device(), plan) == 0
    found = world.found(plan)
    assert [o.seconds for o in found.outcomes()] == pytest.approx([1e-6] * 4)
    assert all(o.speedups for o in found.outcomes())
    assert any("was not timed" in note for note in found.notes)
    assert estimate(found, None).speeds
    # The same again measures nothing.
    device = Device()
    assert await world.time(device, plan) == 0
    assert not device.calls


async def test_a_kernel_that_two_policies_wrote_is_timed_once(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    remarked = f"{FAST}\n\n  // and a remark\n"
    plans = [await world.search("e", [FAST]), await world.search("f", [WRONG, remarked])]
    device = Device()
    assert await world.time(device, *plans) == 0
    assert sum(count for (what, _), count in device.calls.items() if what == "measure") == 2  # of two tasks
    assert all(world.found(p).timed() for p in plans)


async def test_two_devices_share_the_tasks_and_one_file(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST], tasks="abcde")
    devices = [Device(), Device()]
    halves = [Part(1, 2), Part(2, 2)]
    left = await asyncio.gather(*(world.time(d, plan, part=p) for d, p in zip(devices, halves, strict=True)))
    assert left == [0, 0]
    assert [sum(n for (what, _), n in d.calls.items() if what == "measure") for d in devices] == [3, 2]
    found = world.found(plan)
    assert not any(t.unreached for t in found.tasks)
    assert [o.seconds for o in found.outcomes()] == pytest.approx([1e-6] * 10)
    again = Device()
    assert await world.time(again, plan) == 0
    assert not again.calls


def test_parts_split_each_group_and_leave_nothing_out() -> None:
    groups = dict(zip("abcdefgh", "xyxxyxxy", strict=True))
    parts = [Part(k, 3).of(groups) for k in (1, 2, 3)]
    assert sorted(key for part in parts for key in part) == sorted(groups)
    for group, sizes in (("x", {1, 2}), ("y", {1})):
        assert {sum(groups[key] == group for key in part) for part in parts} == sizes
    assert Part().of(groups) == tuple(groups)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1/0", "half", "1", "-1/2", "1/2/3", ""])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no part"):
        part_of(text)
    assert part_of("2/3") == Part(2, 3)


def test_lines_of_two_processes_stay_whole(tmp_path: Path) -> None:
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_lines, args=(tmp_path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines() if line]
    assert sorted(row["task"][:1] for row in lines) == ["a"] * 200 + ["b"] * 200


def _write_lines(folder: Path, name: str) -> None:
    """Tasks whose lines are longer than what files are buffered by."""
    times = KernelTimes.load(folder)
    for number in range(200):
        times.close(f"{name * 20_000}{number}")


async def test_a_kernel_that_fails_on_the_device_is_a_failure(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST])
    device = Device()
    device.fails = (FAST,)
    await world.time(device, plan)
    assert {(o.correct, o.reason, o.detail) for o in world.found(plan).outcomes()} == {
        (False, "hidden wrong", "other warps")
    }


async def test_tasks_that_the_timing_did_not_reach_have_no_say_in_speeds(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST])
    device = Device()
    device.broken = "b"
    assert await world.time(device, plan) == 1
    found = world.found(plan)
    assert [t.unreached for t in found.tasks] == [False, True]
    estimates = estimate(found, None)
    assert estimates.pass_at[1].value == 1.0
    assert {s.tasks for s in estimates.speeds} == {1}
    assert (estimates.unreached, estimates.untimed) == (1, 0)
    # Nor has a task on which nothing was correct, if it was not its turn: it would count as S = 1 by results alone.
    none = replace(found.tasks[1], outcomes=tuple(replace(o, correct=False) for o in found.tasks[1].outcomes))
    assert {s.tasks for s in estimate(replace(found, tasks=(found.tasks[0], none)), None).speeds} == {1}
    assert await world.time(Device(), plan) == 0
    assert not any(t.unreached for t in world.found(plan).tasks)


async def test_a_kernel_that_was_timed_stays_timed_whatever_becomes_of_its_task(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plans = [await world.search("e", [FAST], tasks="a"), await world.search("f", [SLOW], tasks="a")]
    timed_one = asyncio.Event()

    class HalfWay(Device):
        async def measure(self, task: Task, source: str, verdict: Verdict) -> Verdict:
            if source == SLOW:
                await timed_one.wait()
                raise BackendUnavailable("the device is gone")
            try:
                return await super().measure(task, source, verdict)
            finally:
                timed_one.set()

    assert await world.time(HalfWay(), *plans) == 1
    assert not world.times().tasks
    device = Device()
    assert await world.time(device, *plans) == 0
    assert [source for (what, source), _ in device.calls.items() if what == "measure"] == [SLOW]


async def test_no_time_left_begins_no_task(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST])
    device = Device()
    assert await world.time(device, plan, seconds=0.0) == 2
    assert not device.calls


def test_reports_say_once_how_coarsely_their_kernels_were_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDAPERF_DATA_DIR", str(tmp_path))
    world = Searched(tmp_path)
    for name, answer in (("e", FAST), ("shared", FAST), ("usual", SLOW), ("none", WRONG)):
        asyncio.run(world.search(name, [answer]))
    device = Device()
    monkeypatch.setattr("cudaperf_agent.cuda.verifier.Verifier", lambda config: device)

    def report(name: str) -> str:
        capsys.readouterr()
        assert main(["eval", "report", name]) == 0
        return " ".join(capsys.readouterr().out.split())

    coarse = "--samples 9 --contents 6 --c-seconds 0.1 --device-times".split()
    said = (
        "imed with 9 timed calls of a kernel, at most 6 sets of inputs, sizes at which the C takes 0.1 s, no times "
        "with copies."
    )
    device.broken = "b"
    assert main(["eval", "time", "e", "none", *coarse]) == 0
    device.broken = ""
    # The one that was timed so stays so, the other one is timed as usual.
    assert main(["eval", "time", "shared", "usual"]) == 0
    assert report("e").count(f"Partly t{said}") == report("shared").count(f"Partly t{said}") == 1
    assert "imed with" not in report("usual")
    assert "imed with" not in report("none")


def test_a_report_of_kernels_that_were_all_timed_coarsely_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDAPERF_DATA_DIR", str(tmp_path))
    asyncio.run(Searched(tmp_path).search("e", [FAST]))
    monkeypatch.setattr("cudaperf_agent.cuda.verifier.Verifier", lambda config: Device())
    for samples in ("9", "9", "24"):  # nothing is left for the later ones
        assert main(["eval", "time", "e", "--samples", samples]) == 0
    capsys.readouterr()
    assert main(["eval", "report", "e"]) == 0
    assert " ".join(capsys.readouterr().out.split()).count("Timed with 9 timed calls of a kernel.") == 1


async def test_a_line_that_a_kill_cut_short_is_measured_again(tmp_path: Path) -> None:
    world = Searched(tmp_path)
    plan = await world.search("e", [FAST], tasks="a")
    await world.time(Device(), plan)
    path = tmp_path / "evaluations" / FILE
    whole = path.read_text()
    path.write_text(whole[: whole.index('"verdict"') + 40])
    assert not world.times().verdicts
    device = Device()
    assert await world.time(device, plan) == 0
    assert device.calls["measure", FAST] == 1
    assert world.found(plan).timed()


def test_fewer_turns_keep_what_was_found_in_them() -> None:
    early = right(4, 2, 0.5, turn("correct"))
    late = right(8, 2, 0.5, turn("wrong"), turn("correct"), number=1)
    never = fails("crash", turn("compile_error"), turn("crash"), number=2)
    whole = replace(evaluation(task("a", early, late, never), n=3), backend="emulator")
    one = cut(whole, 1)
    assert one.turns == 1
    assert [(o.correct, o.reason, len(o.turns)) for o in one.outcomes()] == [
        (True, "", 1), (False, "wrong", 1), (False, "compile_error", 1),
    ]  # fmt: skip
    assert one.tasks[0].outcomes[0].speedups == early.speedups
    assert estimate(one, None).pass_at[1].value == pytest.approx(1 / 3)
    assert cut(whole, 2) == whole


def test_a_kernel_that_fails_the_hidden_tests_in_the_first_turn_still_does() -> None:
    outcome = fails("hidden wrong", turn("correct"))
    whole = replace(evaluation(task("a", outcome), n=1), backend="emulator")
    assert [o.reason for o in cut(whole, 1).outcomes()] == ["hidden wrong"]


@pytest.mark.parametrize(("backend", "turns"), [("gpu", 1), ("emulator", 3), ("emulator", 0)])
def test_a_cut_that_would_say_something_else_is_refused(backend: str, turns: int) -> None:
    with pytest.raises(UsageError):
        cut(replace(evaluation(task("a", fails("wrong", turn("wrong"))), n=1), backend=backend), turns)


async def test_a_real_kernel_is_tested_and_timed_with_its_baselines_on_a_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real emulator, real search, then the whole path of a GPU but the device itself."""
    real = load_task(CHEATS / "tasks" / "saxpy.c")
    one = Suite("s", (Item("s/saxpy", "s", "s/saxpy", "saxpy", lambda: real),))
    plans = Plans(tmp_path / "evaluations")
    plan = new_plan("e", Settings("s", "e", 1, 1, 1), one, "e", "emulator", ())
    plans.save(plan)
    on_emulator = Verifier(gpu=None)
    times = KernelTimes.load(plans.folder)
    with Store(f"sqlite:///{tmp_path}/runs.sqlite") as store:
        deps = make_deps(ScriptedPolicy([HONEST]), on_emulator, store)
        await drive(one, plan, plans, deps, prepare=prepare)
        await on_emulator.aclose()
        device = stand_in(CONFIG, tmp_path, monkeypatch)
        try:
            assert await time_kernels([plan], store, device, times) == 0
        finally:
            await device.aclose()
        (outcome,) = collect(store, plan, KernelTimes.load(plans.folder)).outcomes()
    assert outcome.correct, (outcome.reason, outcome.detail)
    assert outcome.seconds is not None
    assert {NAIVE, C_ONE_CORE, LIMIT} <= set(outcome.speedups)
