"""Notes, statistics, determinism, and the reading of reports."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_calls import KERNELS, BuildKernel

from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.verdict import Report

X = np.random.default_rng(5).standard_normal(600).astype(np.float32)


async def test_a_leak_is_a_note_with_the_line_of_its_allocation(build_kernel: BuildKernel) -> None:
    text = (
        'extern "C" void f(int n, const float *x, float *y) {\n  float *a, *b;\n  cudaMalloc(&a, 4 * n);\n'
        "  cudaMalloc(&b, 4 * n);\n  cudaFree(a);\n}\n"
    )
    candidate = await build_kernel(text)
    first, second = await candidate.call([X, X])
    for ran in (first, second):
        assert ran.report.reports == ()
        assert [(r.kind, r.line, r.count) for r in ran.report.notes] == [("leak", 4, 1)]


async def test_unordered_writes_of_one_value_are_a_note(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / "locks.cu")
    [ran] = await candidate.call([X])
    assert ran.report.reports == ()
    assert {(r.kind, r.line) for r in ran.report.notes} == {("race-same-value", 11)}


async def test_unordered_writes_of_two_values_are_a_race(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / "locks.cu", replace=("*flag = 1;", "*flag = threadIdx.x;"))
    [ran] = await candidate.call([X])
    assert ran.found() == {("race", 11)}


async def test_without_its_lock_the_counter_races(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / "locks.cu", replace=("atomicCAS(&lock, 0, 1) == 0", "lock == 0"))
    [ran] = await candidate.call([X])
    assert ("race", 15) in ran.found()


async def test_without_its_fence_the_last_block_races(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / "last_block.cu", replace=("__threadfence();", ";"))
    [ran] = await candidate.call([X])
    assert ("race", 36) in ran.found()


@pytest.mark.parametrize(("name", "barrier"), [("scan_blocks", "__syncthreads();"), ("stencil_2d", "__syncthreads();")])
async def test_without_its_barrier_a_good_kernel_is_reported(
    build_kernel: BuildKernel, name: str, barrier: str
) -> None:
    candidate = await build_kernel(KERNELS / "good" / f"{name}.cu", replace=(barrier, ";"))
    for order in ("forward", "reverse", "random"):
        [ran] = await candidate.call([X], order)  # type: ignore[arg-type]
        assert {kind for kind, _ in ran.found()} & {"race", "uninit-read"}, order


async def test_without_syncwarp_a_warp_races(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / "last_block.cu", replace=("__syncwarp();", ";"))
    [ran] = await candidate.call([X])
    assert "race" in {kind for kind, _ in ran.found()}


async def test_a_random_order_is_fixed_by_its_seed(build_kernel: BuildKernel) -> None:
    text = (
        "__global__ void k(int n, float *y, int *next) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = atomicAdd(next, 1);\n}\n"
        'extern "C" void f(int n, const float *x, float *y) {\n  float *d; int *next; cudaMalloc(&d, 4 * n);\n'
        "  cudaMalloc(&next, 4); cudaMemset(next, 0, 4); k<<<(n + 31) / 32, 32>>>(n, d, next);\n"
        "  cudaMemcpy(y, d, 4 * n, cudaMemcpyDeviceToHost); cudaFree(d); cudaFree(next); }\n"
    )
    candidate = await build_kernel(text)

    async def order(name: emulator.Order, seed: int) -> list[float]:
        [ran] = await candidate.call([X], name, seed)
        assert ran.y is not None
        return [float(v) for v in ran.y]

    ascending = [float(i) for i in range(X.size)]
    assert await order("forward", 0) == ascending
    assert await order("reverse", 0) == ascending[::-1]
    assert sorted(await order("random", 1)) == ascending
    assert await order("random", 1) == await order("random", 1)
    assert await order("random", 1) != await order("random", 2)
    assert await order("random", 1) != ascending


async def test_statistics_count_what_ran(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / "saxpy.cu")
    [ran] = await candidate.call([X])
    grid = {"launches": 1, "blocks": 3, "threads": 768, "widest": 768}
    assert ran.report.stats == {**grid, "accesses": 3 * 600, "writes": 600, "span": 3}


async def test_the_span_is_of_the_busiest_thread_and_adds_up_over_launches(build_kernel: BuildKernel) -> None:
    text = (
        "__global__ void head(int n, float *y) { if (threadIdx.x < 3) for (int i = 0; i < 7; i++) y[i] = 1; }\n"
        "__global__ void all(int n, const float *x, float *y) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i];\n}\n"
        'extern "C" void f(int n, const float *x, float *y) {\n  float *d, *e; cudaMalloc(&d, 4 * n);\n'
        "  cudaMalloc(&e, 4 * n); cudaMemcpy(e, x, 4 * n, cudaMemcpyHostToDevice);\n"
        "  head<<<1, 32>>>(n, d); all<<<(n + 31) / 32, 32>>>(n, e, d);\n"
        "  cudaMemcpy(y, d, 4 * n, cudaMemcpyDeviceToHost); cudaFree(d); cudaFree(e); }\n"
    )
    candidate = await build_kernel(text)
    for _ in range(2):  # a call begins anew
        [ran] = await candidate.call([X])
        assert (ran.report.stats["writes"], ran.report.stats["span"]) == (3 * 7 + X.size, 7 + 2)


async def test_each_call_has_its_own_report(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "bad" / "index_not_checked.cu")
    whole, cut = await candidate.call([X[:512], X])
    assert whole.report.reports == ()
    assert cut.found() == {("oob-read", 7), ("oob-write", 8)}
    assert all(r.count == 168 for r in cut.report.reports)


async def test_a_race_names_both_lines(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "bad" / "stencil_in_place.cu")
    [ran] = await candidate.call([X])
    [write] = [r for r in ran.report.reports if r.line == 12]
    assert "another block" in write.message
    assert "(the other one: line 9)" in write.message


async def test_a_race_with_an_atomic_names_both_lines(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "bad" / "total_read_too_early.cu")
    order: emulator.Order
    for order, line, other in (("forward", 11, 13), ("reverse", 13, 11)):
        [ran] = await candidate.call([X], order)
        assert ran.found() == {("race", line)}
        assert f"(the other one: line {other})" in ran.report.reports[0].message


async def test_the_read_of_a_compare_and_swap_loop_is_a_note(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / "atomics.cu")
    [ran] = await candidate.call([X])
    assert ran.report.reports == ()
    assert {r.kind for r in ran.report.notes} == {"race-with-atomic"}


def test_an_empty_report_is_empty() -> None:
    assert emulator.parse_report("") == emulator.EmulatorReport()


def test_a_report_that_is_cut_is_no_pass() -> None:
    assert emulator.parse_report('{"library":"x","findings":[').unsupported is not None
    assert emulator.parse_report('{"findings": 3}').unsupported is not None


def test_a_report_is_found_in_standard_error() -> None:
    body = (
        '{"library":"/none","source":"a.cu","stats":{"launches":1},"kernels":{"k@3":256},"findings":[{"kind":"trap","severity":"error",'
        '"count":2,"pc":0,"line":7,"other_pc":0,"other_line":0,"message":"m"}]}'
    )
    report = emulator.parse_report(f"noise\ncudaperf-emulator-report: {body}\nmore\n")
    assert report.reports == (Report("trap", "m", 7, 2),)
