"""However a process ends (main returns, exit, _exit, abort, a crash), what was found is told."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from kernel_calls import BuildKernel

from cudaperf_agent.cuda import emulator
from cudaperf_agent.execution.child import ChildResult, run_child

PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <unistd.h>
__global__ void twice(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 2 * x[i + SHIFT];
}
int main()
{
    int n;
    if (scanf("%d", &n) != 1)
        return 3;
    float *x = (float *)malloc(n * sizeof(float)), *dx, *dy;
    for (int i = 0; i < n; i++)
        x[i] = i;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    twice<<<(n + 127) / 128, 128>>>(n, dx, dy);
    cudaMemcpy(x, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
    printf("%g %g\\n", x[0], x[n - 1]);
    fflush(stdout);
    END
}
"""


async def run_program(folder: Path, shift: int, end: str) -> tuple[ChildResult, str]:
    text = PROGRAM.replace("SHIFT", str(shift)).replace("END", end)
    made = await emulator.build(text, path_name="twice.cu", folder=folder, program=True)
    assert made.program is not None, made
    report = folder / "report.json"
    env = {**os.environ, **emulator.environment("forward", 0), "CUDAPERF_EMULATOR_REPORT": str(report)}
    child = await run_child([str(made.program)], stdin=b"300\n", env=env)
    return child, report.read_text() if report.exists() else ""


@pytest.mark.parametrize(
    ("end", "code"),
    [("return 0;", 0), ("exit(4);", 4), ("_exit(5);", 5), ("abort();", -6), ("*(volatile int *)8 = 1;", -11)],
)
async def test_a_program_reports_however_it_ends(tmp_path: Path, end: str, code: int) -> None:
    child, text = await run_program(tmp_path, 1, end)
    assert child.returncode == code
    assert child.stdout.startswith(b"2 ")
    report = emulator.parse_report(text)
    assert [(r.kind, r.line) for r in report.reports] == [("oob-read", 10)]
    assert report.stats["threads"] == 384


async def test_a_correct_program_reports_nothing(tmp_path: Path) -> None:
    child, text = await run_program(tmp_path, 0, "return 0;")
    assert (child.returncode, child.stdout) == (0, b"0 598\n")
    assert text
    report = emulator.parse_report(text)
    assert (report.reports, report.notes, report.unsupported) == ((), (), None)


LIBRARY = """
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>
__global__ void k(float *y) { y[0] = 1.0f; }
extern "C" void f(int n, const float *x, float *y)
{
    k<<<1, 1>>>((float *)x);
    if (cudaDeviceSynchronize() != cudaSuccess) { END }
}
"""


@pytest.mark.parametrize(
    "end", ["exit(1);", "_exit(1);", "abort();", 'throw std::runtime_error("x");', "*(volatile int *)8 = 1;"]
)
async def test_a_library_that_ends_the_process_reports_on_standard_error(build_kernel: BuildKernel, end: str) -> None:
    candidate = await build_kernel(LIBRARY.replace("END", end))
    [ran] = await candidate.call([np.ones(4, np.float32)])
    assert ran.y is None
    assert ran.found() == {("host-pointer-in-kernel", 5)}


async def test_a_crash_of_host_code_is_still_the_runners_fault_record(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel('extern "C" void f(int n, const float *x, float *y) { y[n] = 1.0f; }')
    [ran] = await candidate.call([np.ones(4, np.float32)])
    assert ran.y is None
    assert ran.native.fault is not None
    assert (ran.native.fault.argument, ran.native.fault.offset, ran.native.fault.writing) == (2, 16, True)


async def test_after_an_early_end_nothing_found_is_an_empty_report(build_kernel: BuildKernel) -> None:
    candidate = await build_kernel(
        '#include <cstdlib>\nextern "C" void f(int n, const float *x, float *y) { exit(0); }'
    )
    [ran] = await candidate.call([np.ones(4, np.float32)])
    assert (ran.y, ran.report) == (None, emulator.EmulatorReport())


async def test_a_fault_in_fast_mode_is_a_report_too(build_kernel: BuildKernel) -> None:
    text = (
        "__global__ void k(int n, float *y) {\n  int i = threadIdx.x;\n  y[i * 1024] = 1.0f;\n}\n"
        'extern "C" void f(int n, const float *x, float *y) { float *d; cudaMalloc(&d, n * 4); k<<<1, 32>>>(n, d); }\n'
    )
    candidate = await build_kernel(text, mode="fast")
    [ran] = await candidate.call([np.ones(64, np.float32)])
    assert ran.found() == {("fault", 3)}
