"""The runtime itself: a broken barrier is noticed, nvcc takes every test kernel, the files reach installed users."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from kernel_calls import KERNELS, BuildKernel

from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.emulator import compiler
from tests.nvcc_batches import refused

X = np.random.default_rng(11).standard_normal(300).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("block.cpp", "  run.current->state = State::at_barrier;\n  waiting++;\n  wait_here();\n}", "}"),
        ("block.cpp", "  run.epoch++;\n  run.activity++;", "  run.activity++;"),
    ],
    ids=["threads do not wait", "the checker does not see it"],
)
async def test_a_broken_barrier_is_noticed(
    build_kernel: BuildKernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, before: str, after: str
) -> None:
    broken = tmp_path / "emulator"
    shutil.copytree(compiler.HERE, broken)
    text = (broken / "runtime" / file).read_text()
    assert before in text
    (broken / "runtime" / file).write_text(text.replace(before, after, 1))
    monkeypatch.setattr(compiler, "RUNTIME", broken / "runtime")
    candidate = await build_kernel(KERNELS / "good" / "scan_blocks.cu")
    [ran] = await candidate.call([X])
    expected = np.concatenate([np.cumsum(X[i : i + 64]) for i in range(0, X.size, 64)])
    assert ran.report.reports or not np.allclose(ran.y, expected, rtol=1e-4, atol=1e-4)


async def test_every_order_sees_a_race(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "bad" / "tree_without_barrier.cu")
    order: emulator.Order
    for order in ("forward", "reverse", "random"):
        [ran] = await candidate.call([X], order)
        assert ("race", 15) in ran.found()


async def test_fast_mode_gives_the_same_numbers(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / "scan_blocks.cu", mode="fast")
    [ran] = await candidate.call([X], "random", 3)
    assert ran.y is not None
    np.testing.assert_allclose(ran.y[:64], np.cumsum(X[:64]), rtol=1e-4, atol=1e-4)
    assert ran.report.stats["accesses"] == 0


async def test_a_loop_that_the_compiler_makes_a_copy_runs_in_fast_mode(build_kernel: BuildKernel) -> None:
    text = (
        "__global__ void k(int n, const float *x, float *y) {\n  int i = 4 * threadIdx.x;\n  if (i >= n) return;\n"
        "  float v[4];\n  for (int j = 0; j < 4; ++j) v[j] = i + j < n ? x[i + j] : 0.0f;\n"
        "  if (i + 4 <= n) *reinterpret_cast<float4 *>(y + i) = make_float4(v[0], v[1], v[2], v[3]);\n"
        "  else for (int j = 0; i + j < n; ++j) y[i + j] = v[j];\n}\n"
        'extern "C" void f(int n, const float *x, float *y) {\n  float *a, *b;\n  cudaMalloc(&a, n * 4);\n'
        "  cudaMalloc(&b, n * 4);\n  cudaMemcpy(a, x, n * 4, cudaMemcpyHostToDevice);\n  k<<<1, 128>>>(n, a, b);\n"
        "  cudaMemcpy(y, b, n * 4, cudaMemcpyDeviceToHost);\n  cudaFree(a);\n  cudaFree(b);\n}\n"
    )
    candidate = await build_kernel(text, mode="fast")
    [ran] = await candidate.call([X[:297]])
    assert ran.found() == set()
    assert ran.y is not None
    np.testing.assert_array_equal(ran.y, X[:297])


async def test_a_built_candidate_runs_fifteen_cases_in_under_a_second(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(KERNELS / "good" / "stencil_2d.cu")
    cases = [np.resize(X, n) for n in (1, 2, 31, 32, 33, 100, 255, 256, 257, 500, 997, 1500, 2048, 3000, 3150)]
    await candidate.call(cases)
    started = time.process_time_ns(), time.monotonic()
    ran = await candidate.call(cases)
    assert len(ran) == 15
    assert sum(o.seconds for o in ran[0].native.outcomes) < 1.0
    assert time.monotonic() - started[1] < 5.0  # a busy machine


@pytest.mark.slow
async def test_memory_comes_back_between_calls(build_kernel: BuildKernel) -> None:
    text = (
        'extern "C" void f(int n, const float *x, float *y) {\n  for (int i = 0; i < 2000; i++) {\n    float *a;\n'
        "    if (cudaMalloc(&a, 1000000) != cudaSuccess) y[0] = -1.0f; else y[0] = 1.0f;\n    cudaFree(a);\n  }\n}\n"
    )
    candidate = await build_kernel(text)
    for ran in await candidate.call([X] * 6):  # with the gaps between them about 10 GB, out of 8
        assert ran.y is not None
        assert ran.y[0] == 1.0
        assert ran.report.unsupported is None


async def test_concurrent_builds_do_not_disturb_each_other(tmp_path: Path) -> None:
    text = '__global__ void k() {}\nextern "C" void f() { k<<<1, 1>>>(); }\n'
    folders = [tmp_path / str(i) for i in range(4)]
    for folder in folders:
        folder.mkdir()
    made = await asyncio.gather(*(emulator.build(text, path_name="k.cu", folder=f) for f in folders))
    assert [m.library for m in made] == [f / "k.so" for f in folders]


@pytest.mark.slow
async def test_nvcc_takes_every_kernel() -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not on the path")
    sources = {path.relative_to(KERNELS).as_posix(): path.read_text() for path in sorted(KERNELS.rglob("*.cu"))}
    assert len(sources) > 50
    assert await refused(sources, flags=["-std=c++17", "--extended-lambda"]) == {}
