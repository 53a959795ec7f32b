"""The verification service on the emulator: verdicts, their messages, their cache, and program mode."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cudaperf_agent.cuda.base import CandidateVerifier
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

SAXPY = """
__global__ void saxpy_kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        saxpy_kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
"""
WHOLE = """
__global__ void saxpy_kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" void saxpy(int n, float a, const float *x, float *y)
{
    float *dx, *dy;
    size_t bytes = n * sizeof(float);
    if (n <= 0)
        return;
    cudaMalloc((void **)&dx, bytes);
    cudaMalloc((void **)&dy, bytes);
    cudaMemcpy(dx, x, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(dy, y, bytes, cudaMemcpyHostToDevice);
    saxpy_kernel<<<(n + 127) / 128, 128>>>(n, a, dx, dy);
    cudaMemcpy(y, dy, bytes, cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
}
"""
PAIRS = """
#include <cstdio>
#include <vector>

__global__ void count_pairs(int n, int k, const int *a, unsigned long long *pairs, int *biggest)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    for (int j = i + 1; j < n; j++)
        if ((a[i] + a[j]) % k == 0) {
            atomicAdd(pairs, 1ull);
            atomicMax(biggest, a[i] + a[j]);
        }
}

int main()
{
    int n, k;
    if (scanf("%d %d", &n, &k) != 2)
        return 1;
    std::vector<int> a(n);
    for (int i = 0; i < n; i++)
        if (scanf("%d", &a[i]) != 1)
            return 1;
    int *values, *biggest, top = -1;
    unsigned long long *pairs, count = 0;
    cudaMalloc((void **)&values, (n + 1) * sizeof(int));
    cudaMalloc((void **)&biggest, sizeof(int));
    cudaMalloc((void **)&pairs, sizeof(unsigned long long));
    cudaMemcpy(values, a.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(biggest, &top, sizeof top, cudaMemcpyHostToDevice);
    cudaMemcpy(pairs, &count, sizeof count, cudaMemcpyHostToDevice);
    if (n > 0)
        count_pairs<<<(n + 127) / 128, 128>>>(n, k, values, pairs, biggest);
    cudaMemcpy(&top, biggest, sizeof top, cudaMemcpyDeviceToHost);
    cudaMemcpy(&count, pairs, sizeof count, cudaMemcpyDeviceToHost);
    printf("%llu %d\\n", count, top);
    return 0;
}
"""


@pytest.fixture
async def verifier() -> AsyncIterator[Verifier]:
    made = Verifier(gpu=None)
    yield made
    await made.aclose()


@pytest.fixture
async def saxpy(c_cases: Path) -> Task:
    return await prepare(load_task(c_cases / "saxpy.c"))


async def test_a_right_kernel_passes_visible_and_hidden_cases(verifier: Verifier, saxpy: Task) -> None:
    service: CandidateVerifier = verifier
    assert service.backend == "emulator"
    visible = await service.test(saxpy, SAXPY)
    hidden = await service.test(saxpy, SAXPY, hidden=True)
    for verdict in (visible, hidden):
        assert verdict.correct, verdict.message
        assert verdict.form == "device"
        assert verdict.passed == verdict.total > 5
        assert verdict.profile["ptxas"]["saxpy_kernel"]["registers"] > 0
        assert not verdict.measured
        assert verdict.timings == ()
        assert set(verdict.digests) == {"source", "flags", "task", "inputs"}
        assert verdict.versions["nvcc"]
    assert visible.digests["inputs"] != hidden.digests["inputs"]
    assert await service.measure(saxpy, SAXPY, hidden) == hidden
    assert Verdict.from_dict(hidden.to_dict()) == hidden


async def test_a_whole_file_passes(verifier: Verifier, saxpy: Task) -> None:
    verdict = await verifier.test(saxpy, WHOLE)
    assert verdict.correct, verdict.message
    assert verdict.form == "whole"


async def test_a_failure_names_the_case_with_readable_inputs(verifier: Verifier, saxpy: Task) -> None:
    verdict = await verifier.test(saxpy, SAXPY.replace("a * x[i] + y[i]", "a * x[i] - y[i]"))
    assert verdict.status is Status.WRONG
    assert verdict.failure is not None
    assert verdict.failure.output == "y"
    assert verdict.failure.index is not None
    assert verdict.failure.expected
    assert verdict.failure.got
    assert verdict.failure.error is not None
    assert set(verdict.failure.inputs) == {"n", "a", "x", "y"}
    assert len(str(verdict.failure.inputs)) < 600
    assert 0 < verdict.pass_rate < 1  # with n = 0 nothing can be wrong


async def test_a_compile_error_has_the_candidates_line(verifier: Verifier, saxpy: Task) -> None:
    for verdict in (
        await verifier.compile(saxpy, SAXPY.replace("a * x[i]", "b * x[i]")),
        await verifier.test(saxpy, SAXPY.replace("a * x[i]", "b * x[i]")),
    ):
        assert verdict.status is Status.COMPILE_ERROR
        assert verdict.diagnostics[0].line == 6
        assert "line 6" in verdict.message


async def test_what_only_nvcc_refuses_is_refused(verifier: Verifier, saxpy: Task) -> None:
    source = "static float host_only(float v) { return v; }\n" + SAXPY.replace("a * x[i]", "host_only(a) * x[i]")
    verdict = await verifier.test(saxpy, source)
    assert verdict.status is Status.COMPILE_ERROR
    assert "host_only" in verdict.message


@pytest.mark.parametrize(
    ("source", "needle"), [("", "no code"), ("__global__ void k() {}\n", "saxpy_device"), ("   \n", "no code")]
)
async def test_no_entry_is_no_code(verifier: Verifier, saxpy: Task, source: str, needle: str) -> None:
    verdict = await verifier.test(saxpy, source)
    assert verdict.status is Status.NO_CODE
    assert needle in verdict.message


async def test_a_missing_definition_is_a_compile_error(verifier: Verifier, saxpy: Task) -> None:
    source = 'extern "C" int elsewhere();\n' + SAXPY.replace(
        "return cudaGetLastError", "elsewhere();\n return cudaGetLastError"
    )
    verdict = await verifier.test(saxpy, source)
    assert verdict.status is Status.COMPILE_ERROR
    assert "elsewhere" in verdict.message


async def test_what_the_emulator_lacks_is_unsupported(verifier: Verifier, saxpy: Task) -> None:
    source = SAXPY.replace("    if (i < n)\n        y", '    asm volatile("");\n    if (i < n)\n        y')
    verdict = await verifier.test(saxpy, source)
    assert verdict.status is Status.UNSUPPORTED
    assert "asm" in verdict.message


async def test_a_memory_error_fails_even_with_the_right_output(verifier: Verifier, saxpy: Task) -> None:
    verdict = await verifier.test(saxpy, SAXPY.replace("+ y[i];", "+ y[i] + 0.0f * x[i + 1];"))
    assert verdict.status is Status.MEMORY_ERROR
    assert verdict.reports[0].kind == "oob-read"
    assert verdict.reports[0].line == 6


async def test_the_same_candidate_is_verified_once(verifier: Verifier, saxpy: Task) -> None:
    first, second = await asyncio.gather(verifier.test(saxpy, SAXPY), verifier.test(saxpy, SAXPY))
    assert first is second


async def test_another_seed_is_another_set_of_inputs(saxpy: Task) -> None:
    digests = set()
    for seed in (0, 1):
        verifier = Verifier(VerifierConfig(seed=seed), gpu=None)
        verdict = await verifier.test(saxpy, SAXPY)
        assert verdict.correct
        digests.add(verdict.digests["inputs"])
        await verifier.aclose()
    assert len(digests) == 2


async def test_verdicts_leave_nothing_behind(
    verifier: Verifier, saxpy: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await verifier.test(saxpy, SAXPY)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    built = await verifier._build(saxpy, SAXPY)
    assert not isinstance(built, Verdict)
    suite = await verifier._suite(saxpy, False)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        assert (await verifier._on_emulator(saxpy, built, suite, False)).correct
    assert len(os.listdir("/proc/self/fd")) == before
    assert os.listdir(temporary) == []


async def test_a_program_is_judged_by_what_it_prints(verifier: Verifier, c_cases: Path) -> None:
    task = await prepare(load_task(c_cases / "prog_pair_sums.c"))
    visible = await verifier.test(task, PAIRS)
    assert visible.correct, visible.message
    assert visible.form == "program"
    assert visible.passed == visible.total > 3
    hidden = await verifier.test(task, PAIRS, hidden=True)
    assert hidden.correct, hidden.message
    wrong = await verifier.test(task, PAIRS.replace("j = i + 1", "j = i"))
    assert wrong.status is Status.WRONG, wrong.message
    assert wrong.failure is not None
    assert "stdin" in wrong.failure.inputs
    assert wrong.failure.output == "stdout"


async def test_a_program_that_computes_on_the_cpu_is_declined(verifier: Verifier, c_cases: Path) -> None:
    task = await prepare(load_task(c_cases / "prog_pair_sums.c"))
    verdict = await verifier.test(
        task, task.source.replace("static int a[20000];", "static int a[20000];  // as it was")
    )
    assert verdict.status is Status.CHEAT, verdict.message
    assert "no kernel" in verdict.message


async def test_a_program_with_a_memory_error_fails(verifier: Verifier, c_cases: Path) -> None:
    task = await prepare(load_task(c_cases / "prog_pair_sums.c"))
    verdict = await verifier.test(task, PAIRS.replace("j < n", "j <= n"))
    assert verdict.status is Status.MEMORY_ERROR, verdict.message


CHECKED_SUM = """
#include <stdio.h>
/* cudaperf: stdin n in 0..500, a[n] in -3..100 */
int main(void)
{
    int n, value, sum = 0, bad = 0;
    if (scanf("%d", &n) != 1)
        return 2;
    for (int i = 0; i < n; i++) {
        if (scanf("%d", &value) != 1)
            return 2;
        sum += value;
        bad |= value < 0;
    }
    printf("%d\\n", sum);
    return bad ? 3 : 0;
}
"""
CHECKED_SUM_CUDA = """
#include <cstdio>
#include <vector>

__global__ void add(int n, const int *a, int *sums)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&sums[0], a[i]);
        if (a[i] < 0)
            atomicOr(&sums[1], 1);
    }
}

int main()
{
    int n, *values, *sums, found[2] = {0, 0};
    if (scanf("%d", &n) != 1)
        return 2;
    std::vector<int> a(n + 1);
    for (int i = 0; i < n; i++)
        if (scanf("%d", &a[i]) != 1)
            return 2;
    cudaMalloc((void **)&values, (n + 1) * sizeof(int));
    cudaMalloc((void **)&sums, sizeof found);
    cudaMemcpy(values, a.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemcpy(sums, found, sizeof found, cudaMemcpyHostToDevice);
    if (n > 0)
        add<<<(n + 127) / 128, 128>>>(n, values, sums);
    cudaMemcpy(found, sums, sizeof found, cudaMemcpyDeviceToHost);
    printf("%d\\n", found[0]);
    return found[1] ? 3 : 0;
}
"""


async def test_a_programs_exit_status_is_part_of_its_result(verifier: Verifier) -> None:
    task = await prepare(load_task(source=CHECKED_SUM))
    right = await verifier.test(task, CHECKED_SUM_CUDA)
    assert right.correct, right.message
    wrong = await verifier.test(task, CHECKED_SUM_CUDA.replace("? 3 : 0", "? 4 : 0"))
    assert wrong.status is Status.WRONG
    assert wrong.failure is not None
    assert wrong.failure.output == "exit"
    assert (wrong.failure.expected, wrong.failure.got) == ("exit status 3", "4")
    assert wrong.passed > 0  # where nothing is negative both end with 0
