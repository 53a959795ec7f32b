"""The timer, run for real on the emulator: contents, poison, checks and clocks work there as on a GPU."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.codegen.dropin import make_dropin
from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.baselines import Baseline, make_contents, time_reference, timed_case
from cudaperf_agent.cuda.clocks import CLOCKS
from cudaperf_agent.cuda.emulated import build_emulated
from cudaperf_agent.cuda.link import linked_c
from cudaperf_agent.cuda.measure import C_END_TO_END, C_ONE_CORE, NAIVE, Baselines, Stopwatch, measured_verdict
from cudaperf_agent.cuda.measuring import TIMER
from cudaperf_agent.cuda.timing import TIMING, Contents, Timed, TimingConfig, time_candidate
from cudaperf_agent.cuda.timing_process import TimedKind
from cudaperf_agent.cuda.verdict import Status, Timing, Verdict
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.execution.sandbox import detect
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from cudaperf_agent.tasks.reference_build import Build, require_library

CHEATS = Path(__file__).parent.parent / "cheats"
SMALL = replace(
    TIMING,
    samples=6,
    contents=4,
    fewest_contents=2,
    size_bytes=1 << 16,
    contents_bytes=1 << 18,
    deadline=30.0,
    clocks=replace(CLOCKS, slack_seconds=0.01),
    warmups=2,
)
KERNEL = """
__global__ void kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    BEFORE
    kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
"""


def sandboxed() -> Wrap:
    """The sandbox with the emulator's runtime in it, which the timer is linked with here."""
    return detect().reading(emulator.runtime_library()).wrap


class Bench:
    """A task with small contents, and what times candidates of it on the emulator."""

    def __init__(self, task: Task, contents: Contents, timer: Path) -> None:
        self.task = task
        self.contents = contents
        self.timer = timer

    async def library(self, source: str) -> Path:
        dropin = make_dropin(self.task, source)
        assert dropin is not None
        built = await build_emulated(
            dropin.cu, linked_c(self.task, dropin), wrap=None, limits=Limits(seconds=60), mode="fast"
        )
        assert built.artefact is not None, built
        return built.artefact

    async def time(self, source: str, kind: TimedKind = "device", config: TimingConfig = SMALL) -> Timed:
        return await asyncio.to_thread(
            time_candidate,
            self.timer,
            await self.library(source),
            kind,
            self.task,
            self.contents,
            config=config,
            l2_bytes=1 << 16,
            wrap=sandboxed(),
        )


async def bench_of(name: str, tmp_path: Path) -> Bench:
    task = await prepare(load_task(CHEATS / "tasks" / f"{name}.c"))
    native = Baseline(C_ONE_CORE, await require_library(task, Build.NATIVE))
    case = await timed_case(task, native, SMALL, None)
    contents = await make_contents(task, Oracle(task), case, SMALL)
    return Bench(task, contents, await built_timer(tmp_path / "timer", TIMER.read_text()))


async def built_timer(folder: Path, text: str) -> Path:
    await asyncio.to_thread(folder.mkdir)
    built = await emulator.build(text, path_name="timer.cu", folder=folder, mode="fast", program=True)
    assert built.program is not None, built
    built.program.chmod(0o755)
    return built.program


async def test_device_times_have_samples_a_cold_call_and_agreeing_clocks(tmp_path: Path) -> None:
    bench = await bench_of("saxpy", tmp_path)
    assert 1 << 15 <= bench.contents.bytes <= 1 << 16
    timed = await bench.time(KERNEL.replace("BEFORE", ""))
    assert timed.timing is not None, timed.message
    assert timed.timing.kind == "device"
    assert len(timed.timing.samples) == SMALL.samples
    assert timed.timing.cold is not None
    assert all(s > 0 for s in timed.timing.samples)
    assert timed.clocks["child_seconds"] <= timed.clocks["parent_seconds"]


async def test_end_to_end_runs_the_drop_in_on_host_buffers(tmp_path: Path) -> None:
    bench = await bench_of("scale", tmp_path)
    source = (CHEATS / "00_honest.cu").read_text().replace("saxpy", "scale").replace("+ y[i]", "")
    timed = await bench.time(source, "end_to_end")
    assert timed.timing is not None, timed.message
    assert timed.timing.kind == "end_to_end"


async def test_results_through_a_return_value_and_tables_reach_the_parent(tmp_path: Path) -> None:
    bench = await bench_of("find", tmp_path)
    source = """
    __global__ void start(int *result) { *result = 0x7fffffff; }
    __global__ void kernel(int n, int wanted, const int *x, int *result)
    {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n && x[i] == wanted) atomicMin(result, i);
    }
    __global__ void finish(int *result) { if (*result == 0x7fffffff) *result = -1; }
    extern "C" int find_device(int n, int wanted, const int *x, int *result, cudaStream_t stream)
    {
        start<<<1, 1, 0, stream>>>(result);
        if (n > 0) kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, wanted, x, result);
        finish<<<1, 1, 0, stream>>>(result);
        return cudaGetLastError();
    }
    """
    timed = await bench.time(source)
    assert timed.timing is not None, timed.message


@pytest.mark.parametrize(
    ("before", "status", "needle"),
    [
        # row 38: right at the sizes of the tests only
        ("if (n > 4000) n = 4000;", Status.WRONG, "timed size"),
        # row 11, 12: the first calls only
        ("static int calls; if (calls++ > 2) return cudaSuccess;", Status.WRONG, "timed size"),
        # row 8: buffers move, so an address says nothing of the content
        ("static float *known; if (known == y) return cudaSuccess; known = y;", Status.CORRECT, ""),
        # row 2: an input that changes
        ("cudaMemset((void *)x, 0, 4);", Status.WRONG, "input `x`"),
        # row 29: a launch that fails is an error
        ("return cudaErrorInvalidConfiguration;", Status.LAUNCH_ERROR, "CUDA error 9"),
        ("for (volatile int i = 0;; i++);", Status.TIMEOUT, "while timed"),
        ("__builtin_trap();", Status.CRASH, "while timed"),
    ],
)
async def test_what_only_the_timed_calls_show(tmp_path: Path, before: str, status: Status, needle: str) -> None:
    bench = await bench_of("saxpy", tmp_path)
    timed = await bench.time(KERNEL.replace("BEFORE", before), config=replace(SMALL, deadline=3.0))
    assert timed.status is status, timed.message
    assert needle in timed.message
    assert (timed.timing is not None) == (status is Status.CORRECT)


CREATE = 'extern "C" int pthread_create(unsigned long *, const void *, void *(*)(void *), void *);\n'


async def test_work_of_other_host_threads_is_a_cheat(tmp_path: Path) -> None:
    bench = await bench_of("saxpy", tmp_path)
    busy = (
        "static bool started; if (!started) { started = true; unsigned long other;"
        " pthread_create(&other, nullptr, [](void *) -> void * { for (volatile long i = 0;; i++); }, nullptr); }"
        " for (volatile long i = 0; i < 60000000; i++);"
    )
    # The share is small: on a busy machine the other thread gets little of its time.
    config = replace(SMALL, other_cpu=0.01)
    timed = await bench.time(CREATE + KERNEL.replace("BEFORE", busy), config=config)
    assert timed.status is Status.CHEAT, timed.message
    assert "other host threads" in timed.message


# What patching the clock amounts to, seen from outside: the parent waits longer than the child says.
INSIDE = "double seconds = seconds_of(CLOCK_MONOTONIC) - start;"
LIES = {
    "half the time": (f"{INSIDE} seconds /= 2;", "for (volatile long i = 0; i < 6000000; i++);"),
    "work after the clock has stopped": (f"{INSIDE} for (volatile long i = 0; i < 6000000; i++);", ""),
    "two calls of three": (f"{INSIDE} if (turn % 3) seconds /= 4;", "for (volatile long i = 0; i < 6000000; i++);"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_child_that_slows_its_clock_is_seen(lie: str, tmp_path: Path) -> None:
    bench = await bench_of("saxpy", tmp_path)
    lying, before = LIES[lie]
    source = KERNEL.replace("BEFORE", before)
    timed = await bench.time(source, config=replace(SMALL, samples=24))
    assert timed.timing is not None, timed.message
    assert INSIDE in TIMER.read_text()
    bench.timer = await built_timer(tmp_path / "liar", TIMER.read_text().replace(INSIDE, lying))
    # Where tests share their processors, a lie may hide in the waiting for one: now and then, not twelve times.
    tried = []
    for _ in range(12):
        tried.append(await bench.time(source, config=replace(SMALL, samples=24)))
        if tried[-1].status is not Status.CORRECT:
            break
    lied = tried[-1]
    assert lied.status is Status.UNSTABLE, [t.clocks for t in tried]
    assert "clocks disagree" in lied.message
    assert lied.clocks["sure_batch_excess_seconds"] > lied.clocks["allowed_batch_excess_seconds"]


@contextmanager
def busy_processors() -> Iterator[None]:
    """Two processes more than there are processors, each doing nothing but computing."""
    wanted = len(os.sched_getaffinity(0)) + 2
    computing = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(wanted)]
    try:
        yield
    finally:
        for process in computing:
            process.kill()
            process.wait()


@pytest.mark.parametrize("before", ["", "for (volatile long i = 0; i < 5000000; i++);"])
async def test_an_honest_child_on_a_busy_machine_is_believed(before: str, tmp_path: Path) -> None:
    bench = await bench_of("saxpy", tmp_path)
    source = KERNEL.replace("BEFORE", before)
    library = await bench.library(source)
    assert library.exists()
    with busy_processors():
        found = [await bench.time(source, config=replace(SMALL, samples=24)) for _ in range(5)]
    assert [t.status for t in found] == [Status.CORRECT] * 5, [(t.message, t.clocks) for t in found]


async def test_a_measured_verdict_has_speedups_over_every_baseline(tmp_path: Path) -> None:
    bench = await bench_of("saxpy", tmp_path)
    source = KERNEL.replace("BEFORE", "")
    native = Baseline(C_ONE_CORE, await require_library(bench.task, Build.NATIVE))
    reference = await time_reference(bench.task, native, bench.contents, 5, Limits(seconds=30), None)
    assert reference is not None
    assert len(reference.samples) == 5
    watch = Stopwatch(bench.timer, SMALL, 1 << 16, sandboxed(), clocks=lambda: {"clocks.sm": "1980"})
    naive = (await bench.time(source)).timing
    assert naive is not None
    verdict = await measured_verdict(
        Verdict(Status.CORRECT, form="device"),
        await bench.library(source),
        bench.task,
        bench.contents,
        watch,
        Baselines(replace(naive, kind="naive"), (reference,)),
        None,
    )
    assert verdict.measured
    assert [t.kind for t in verdict.timings] == ["device", "end_to_end", "naive", "reference"]
    assert [s.baseline for s in verdict.speedups] == [NAIVE, C_ONE_CORE, C_END_TO_END]
    assert all(s.low <= s.value <= s.high for s in verdict.speedups)
    assert verdict.clocks["before"] == {"clocks.sm": "1980"}
    assert 0 <= verdict.profile["copies_and_allocation_share"] <= 1
    assert Verdict.from_dict(verdict.to_dict()) == verdict


async def test_a_wrong_timed_call_unseats_a_correct_verdict(tmp_path: Path) -> None:
    bench = await bench_of("saxpy", tmp_path)
    library = await bench.library(KERNEL.replace("BEFORE", "if (n > 4000) n = 4000;"))
    watch = Stopwatch(bench.timer, SMALL, 0, sandboxed(), clocks=dict)
    verdict = await measured_verdict(
        Verdict(Status.CORRECT, form="device"), library, bench.task, bench.contents, watch, Baselines(), None
    )
    assert verdict.status is Status.WRONG
    assert not verdict.measured
    assert verdict.timings == ()


def test_a_timing_keeps_its_raw_samples() -> None:
    make: Callable[..., Timing] = Timing
    assert make("device", "n=1", (3.0, 1.0, 2.0)).median == 2.0
