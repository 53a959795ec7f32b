"""The ways to run the C: built, judged on the timed contents, pinned or on all cores."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.cli.report import speed_rows
from cudaperf_agent.cuda import c_baselines as module
from cudaperf_agent.cuda.baselines import (
    Baseline,
    ReferenceConfig,
    affordable_samples,
    make_contents,
    time_reference,
    timed_case,
)
from cudaperf_agent.cuda.c_baselines import c_baselines, is_right, native_baseline
from cudaperf_agent.cuda.measure import C_FAST_MATH, C_ONE_CORE, C_OPENMP, baseline_name, best_of_c
from cudaperf_agent.cuda.replay import _differences
from cudaperf_agent.cuda.timing import TIMING, Contents
from cudaperf_agent.cuda.verdict import Speedup, Status, Verdict
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.sandbox import detect
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from cudaperf_agent.tasks.reference_build import Build, require_library
from training.evaluation.baselines import kind_of

CASES = Path(__file__).parent.parent / "cases" / "c"
SMALL = replace(TIMING, contents=3, fewest_contents=2, size_bytes=1 << 18, contents_bytes=1 << 20)
LIMITS = Limits(seconds=30)
INDIGESTIBLE = """// cudaperf: n in 1..100000; x in 0.1..10
void compensated(int n, const float *x, float *y)
{
    for (int i = 0; i < n; i++) {
        float big = x[i] * 1048576.0f;
        float sum = big + x[i];
        y[i] = (sum - big) - x[i];
    }
}
"""
# What the processor and the library are told is what counts, so the C itself says where and on how many it runs.
ASKS = """#define _GNU_SOURCE
#include <sched.h>
#ifdef _OPENMP
#include <omp.h>
#endif
void cudaperf_call(void *const *args)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int *seen = args[0];
    seen[0] = CPU_COUNT(&set);
    seen[1] = sched_getcpu();
#ifdef _OPENMP
    seen[2] = omp_get_max_threads();
#else
    seen[2] = 0;
#endif
}
"""


class Counted:
    """A gate that counts who comes in, one at a time."""

    def __init__(self) -> None:
        self.entered, self._lock = 0, asyncio.Lock()

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        self.entered += 1

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


async def prepared(source: str) -> Task:
    return await prepare(load_task(source=source))


async def contents_of(task: Task) -> Contents:
    case = await timed_case(task, await native_baseline(task), SMALL, None)
    return await make_contents(task, Oracle(task), case, SMALL)


async def ways(task: Task, contents: Contents) -> dict[str, Baseline]:
    return {b.name: b for b in await c_baselines(task, contents, LIMITS, detect().wrap)}


@pytest.mark.parametrize("name", ["saxpy", "dot", "gemm"])
async def test_a_parallel_task_has_all_three_and_their_times(name: str) -> None:
    task = await prepare(load_task(CASES / f"{name}.c"))
    contents = await contents_of(task)
    found = await ways(task, contents)
    assert list(found) == [C_ONE_CORE, C_FAST_MATH, C_OPENMP]
    for way in found.values():
        timing = await time_reference(task, way, contents, 3, LIMITS, detect().wrap)
        assert timing is not None
        assert (timing.note, len(timing.samples)) == (way.name, 3)
        assert all(s > 0 for s in timing.samples)
    libraries = [way.library.read_bytes() for way in found.values()]
    assert b"GOMP_parallel" in libraries[2]
    assert b"GOMP_parallel" not in libraries[0] + libraries[1]


@pytest.mark.parametrize(
    ("seconds", "fewest", "wanted"), [(1000.0, 3, 9), (0.0, 3, 3), (0.0, 5, 5)], ids=["quick", "slow", "slow, five"]
)
async def test_what_takes_long_is_timed_less_often(seconds: float, fewest: int, wanted: int) -> None:
    task = await prepare(load_task(CASES / "saxpy.c"))
    contents, config = await contents_of(task), ReferenceConfig(9, seconds, fewest)
    way = await native_baseline(task)
    assert await affordable_samples(task, way, contents, config, LIMITS, None) == wanted


async def test_contents_are_made_past_a_gate_and_in_order() -> None:
    task, gate = await prepare(load_task(CASES / "saxpy.c")), Counted()
    case = await timed_case(task, await native_baseline(task), SMALL, None, gate)
    tried = gate.entered
    assert tried > 1
    made = await make_contents(task, Oracle(task), case, SMALL, gate)
    assert gate.entered - tried == len(made.cases) == len(made.expected) == len(made.bounds) == 3
    again = await make_contents(task, Oracle(task), case, SMALL)
    for one, other in zip(made.cases, again.cases, strict=True):
        assert one.name == other.name == case.name
        assert all(np.array_equal(one.values[name], other.values[name]) for name in one.values)
    assert len({c.values["y"].tobytes() for c in made.cases}) == 3
    found = await c_baselines(task, made, LIMITS, None, gate)
    assert gate.entered - tried - 3 >= len(found) - 1 > 0


async def test_an_order_is_kept_and_integers_have_no_fast_math() -> None:
    task = await prepared(
        "// cudaperf: n in 1..100000; a in -5..5\n"
        "void sums(int n, int *a) { for (int i = 1; i < n; i++) a[i] = (a[i] + a[i - 1]) % 97; }"
    )
    assert list(await ways(task, await contents_of(task))) == [C_ONE_CORE]


async def test_openmp_of_c_that_makes_the_plan_begin_anew_gives_what_the_c_gives() -> None:
    task = await prepare(load_task(CASES.parents[1] / "codegen" / "ordinary" / "count_beside.c"))
    assert list(await ways(task, await contents_of(task))) == [C_ONE_CORE, C_OPENMP]


async def test_fast_math_that_gives_other_results_is_left_out() -> None:
    task = await prepared(INDIGESTIBLE)
    contents = await contents_of(task)
    fast = Baseline(C_FAST_MATH, await require_library(task, Build.FAST))
    assert await is_right(task, await native_baseline(task), contents, LIMITS, None)
    assert not await is_right(task, fast, contents, LIMITS, None)
    assert list(await ways(task, contents)) == [C_ONE_CORE, C_OPENMP]


async def test_a_pragma_of_the_file_that_is_wrong_is_left_out_and_a_right_one_is_taken() -> None:
    text = """// cudaperf: n in 1..100000; x in 0..9
long total(int n, const int *x)
{
    long s = 0;
#pragma omp parallel for PRIVATE
    for (int i = 0; i < n; i++)
        s += x[i];
    return s;
}
"""
    for clause, taken in (("reduction(+ : s)", True), ("firstprivate(s)", False)):
        task = await prepared(text.replace("PRIVATE", clause))
        assert (C_OPENMP in await ways(task, await contents_of(task))) is taken


async def test_every_content_is_judged() -> None:
    task = await prepare(load_task(CASES / "saxpy.c"))
    contents = await contents_of(task)
    native = await native_baseline(task)
    last = contents.cases[-1]
    other = replace(last, values={**last.values, "x": last.values["x"] + 1})
    swapped = replace(contents, cases=(*contents.cases[:-1], other))
    assert await is_right(task, native, contents, LIMITS, None)
    assert not await is_right(task, native, swapped, LIMITS, None)


async def test_a_way_that_crashes_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    task = await prepare(load_task(CASES / "saxpy.c"))
    contents = await contents_of(task)
    library = compiled(tmp_path, "void cudaperf_call(void *const *args) { __builtin_trap(); }")

    async def broken(_: Task) -> Baseline:
        return Baseline(C_OPENMP, library)

    monkeypatch.setattr(module, "_openmp", broken)
    assert list(await ways(task, contents)) == [C_ONE_CORE, C_FAST_MATH]


async def test_one_core_is_one_processor_and_openmp_has_all(tmp_path: Path) -> None:
    import numpy as np

    from cudaperf_agent.execution.native import Argument, call_native

    library = compiled(tmp_path, ASKS, "-fopenmp")

    async def seen(baseline: Baseline) -> list[int]:
        wrap = detect().reading(tmp_path).wrap
        argument = Argument(np.zeros(3, np.int32), returned=True)
        run = await call_native(library, [[argument]], env=baseline.environment, wrap=baseline.wrapped(wrap))
        return [int(v) for v in run.outcomes[0].outputs[0]]

    allowed = os.sched_getaffinity(0)
    task = await prepare(load_task(CASES / "saxpy.c"))
    native = await native_baseline(task)
    count, core, threads = await seen(native)
    assert (count, core, threads) == (1, max(allowed), 1)
    openmp = await module._openmp(task)
    assert openmp is not None
    count, _, threads = await seen(openmp)
    assert (count, threads) == (len(allowed), len(allowed))


def compiled(folder: Path, text: str, *flags: str) -> Path:

    source, made = folder / "made.c", folder / "made.so"
    source.write_text(text)
    subprocess.run(["gcc", "-shared", "-fPIC", *flags, "-o", made, source], check=True)
    for place in (*folder.parents, folder):
        if place != Path("/") and place.stat().st_uid == os.geteuid():
            place.chmod(place.stat().st_mode | 0o055)
    return made


def test_the_best_of_the_c_and_names_of_older_verdicts() -> None:
    speedups = [Speedup(n, v, v, v) for n, v in ((C_ONE_CORE, 90.0), (C_FAST_MATH, 80.0), (C_OPENMP, 10.0))]
    best = best_of_c([Speedup("naive CUDA", 1.1, 1, 2), *speedups, Speedup(f"{C_OPENMP}, copies included", 1, 1, 1)])
    assert best is not None
    assert best.baseline == C_OPENMP
    assert best_of_c(speedups[:1]) is None
    assert baseline_name("C -O3 -march=native, one core") == C_ONE_CORE
    assert baseline_name("C -O3 -march=native, one core, copies included") == f"{C_ONE_CORE}, copies included"
    assert baseline_name("naive CUDA") == "naive CUDA"
    assert {kind_of(n) for n in (C_ONE_CORE, C_FAST_MATH, C_OPENMP, "C -O3 -march=native, one core")} == {"c"}


def test_a_report_names_the_best_of_the_c() -> None:
    verdict = Verdict(
        Status.CORRECT,
        measured=True,
        speedups=tuple(Speedup(n, v, v, v) for n, v in ((C_ONE_CORE, 90.0), (C_FAST_MATH, 80.0), (C_OPENMP, 10.0))),
    )
    texts = [text for _, text in speed_rows(verdict)]
    assert [C_OPENMP in t for t in texts if "the best of the C" in t] == [True]
    assert len(texts) == 3


def test_a_verdict_with_the_old_name_is_compared_with_the_same_times() -> None:
    old = Verdict(Status.CORRECT, speedups=(Speedup("C -O3 -march=native, one core", 9.0, 8.0, 10.0),))
    assert _differences(old, Verdict(Status.CORRECT, speedups=(Speedup(C_ONE_CORE, 9.5, 9.0, 11.0),))) == []
    assert len(_differences(old, Verdict(Status.CORRECT, speedups=(Speedup(C_ONE_CORE, 20.0, 19.0, 21.0),)))) == 1
