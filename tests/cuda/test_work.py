"""Work and span beside plain CUDA's, counted on the emulator: what is slow whatever its results are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.cuda.work import COARSE, WRITES, Work, beside
from cudaperf_agent.policies.feedback import build_feedback
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

C = """void brighten(int rows, int cols, const float *image, float *out)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            out[r * cols + c] = 2.0f * image[r * cols + c] + 1.0f;
}
"""


def kernel(body: str, grid: str, block: str) -> str:
    return f"""
__global__ void brighten_kernel(int rows, int cols, const float *image, float *out)
{{
{body}
}}

extern "C" int brighten_device(int rows, int cols, const float *image, float *out, cudaStream_t stream)
{{
    if (rows > 0 && cols > 0)
        brighten_kernel<<<{grid}, {block}, 0, stream>>>(rows, cols, image, out);
    return cudaGetLastError();
}}
"""


ELEMENT = "out[r * cols + c] = 2.0f * image[r * cols + c] + 1.0f;"
COLUMN = "    int c = blockIdx.x * blockDim.x + threadIdx.x;\n    if (c >= cols) return;\n"
FLAT = f"""    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * cols) return;
    int r = i / cols, c = i % cols;
    {ELEMENT}"""
FOUR = f"""    int first = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    for (int i = first; i < first + 4 && i < rows * cols; i++) {{ int r = i / cols, c = i % cols; {ELEMENT} }}"""
AGAIN = f"{COLUMN}    for (int r = 0; r < rows; r++) {ELEMENT}"
OVER_THE_ROW = f"""    int r = blockIdx.x;
    if (threadIdx.x == 0) for (int c = 0; c < cols; c++) {ELEMENT}"""
AGAIN_VOLATILE = AGAIN.replace("out[", "((volatile float *)out)[")
MEMCPY = """    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) memcpy(out + r * cols, image + r * cols, sizeof(float) * cols);"""
TALLY_C = """void tally(int n, const int *values, int *bins) /* bins: 64 */
{
    for (int b = 0; b < 64; b++)
        bins[b] = 0;
    for (int i = 0; i < n; i++)
        bins[values[i] & 63]++;
}
"""
TALLY_IN_PLACE_C = TALLY_C.replace("    for (int b = 0; b < 64; b++)\n        bins[b] = 0;\n", "")
TALLY = """
__global__ void tally_kernel(int n, const int *values, int *bins)
{{
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * {each};
    for (int i = first; i < n && i < first + {each}; i++)
        atomicAdd(&bins[values[i] & 63], 1);
}}

extern "C" int tally_device(int n, const int *values, int *bins, cudaStream_t stream)
{{
    {clear}
    if (n > 0)
        tally_kernel<<<(n + 32 * {each} - 1) / (32 * {each}), 32, 0, stream>>>(n, values, bins);
    return cudaGetLastError();
}}
"""
CLEAR = "cudaMemsetAsync(bins, 0, 64 * sizeof(int), stream);"

HONEST = {
    "a thread an element": kernel(FLAT, "(rows * cols + 255) / 256", "256"),
    "four elements a thread": kernel(FOUR, "(rows * cols + 1023) / 1024", "256"),
}


@pytest.fixture(scope="module")
async def verifier() -> AsyncIterator[Verifier]:
    service = Verifier(VerifierConfig(), gpu=None)
    yield service
    await service.aclose()


@pytest.fixture(scope="module")
async def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    path = tmp_path_factory.mktemp("work") / "brighten.c"
    path.write_text(C)
    return await prepare(load_task(path))


async def work_of(verifier: Verifier, task: Task, source: str) -> tuple[Verdict, Work]:
    verdict = await verifier.test(task, source)
    assert verdict.status is Status.CORRECT, verdict.message
    found = Work.of(verdict)
    assert found is not None
    return verdict, found


@pytest.mark.parametrize("name", HONEST)
async def test_ordinary_kernels_are_told_nothing(verifier: Verifier, task: Task, name: str) -> None:
    verdict, work = await work_of(verifier, task, HONEST[name])
    assert work.over == 1.0
    assert work.excess == 1.0
    assert work.sentences() == []
    assert "Work" not in build_feedback(verdict)


async def test_plain_cuda_is_as_much_as_plain_cuda(verifier: Verifier, task: Task) -> None:
    plain = generate(task).naive
    assert plain is not None
    _, work = await work_of(verifier, task, plain.source)
    assert (work.writes, work.span) == (work.plain_writes, work.plain_span)


async def test_threads_that_all_write_the_same_are_told(verifier: Verifier, task: Task) -> None:
    source = kernel(AGAIN, "dim3((cols + 31) / 32, (rows + 15) / 16)", "dim3(32, 16)")
    verdict, work = await work_of(verifier, task, source)
    assert work.over >= 16
    assert work.excess >= 4
    (line, *_) = [line for line in build_feedback(verdict).splitlines() if "several threads write the same" in line]
    assert f"{work.over:.3g} times" in line


async def test_one_thread_a_row_is_told(verifier: Verifier, task: Task) -> None:
    verdict, work = await work_of(verifier, task, kernel(OVER_THE_ROW, "rows", "32"))
    assert work.over == 1.0
    assert work.longer > COARSE
    assert "let more threads share the work" in build_feedback(verdict)


async def test_volatile_writes_are_writes(verifier: Verifier, task: Task) -> None:
    source = kernel(AGAIN_VOLATILE, "dim3((cols + 31) / 32, (rows + 15) / 16)", "dim3(32, 16)")
    _, work = await work_of(verifier, task, source)
    assert work.over >= 16


@pytest.mark.parametrize(("c", "clear"), [(TALLY_C, CLEAR), (TALLY_IN_PLACE_C, "")], ids=["cleared", "in place"])
async def test_kernels_that_write_by_atomics_alone_have_a_span(
    verifier: Verifier, tmp_path: Path, c: str, clear: str
) -> None:
    (tmp_path / "tally.c").write_text(c)
    tally = await prepare(load_task(tmp_path / "tally.c"))
    _, work = await work_of(verifier, tally, TALLY.format(each=1, clear=clear))
    assert (work.writes, work.over, work.excess) == (0, 0.0, 1.0)
    _, work = await work_of(verifier, tally, TALLY.format(each=256, clear=clear))
    assert work.longer > COARSE
    assert len(work.sentences()) == 1


async def test_what_memcpy_moves_is_as_much_as_a_loop(verifier: Verifier, tmp_path: Path) -> None:
    copied = C.replace("2.0f * image[r * cols + c] + 1.0f", "image[r * cols + c]")
    (tmp_path / "brighten.c").write_text(copied)
    copy = await prepare(load_task(tmp_path / "brighten.c"))
    _, work = await work_of(verifier, copy, kernel(MEMCPY, "(rows + 31) / 32", "32"))
    assert work.longer > COARSE


async def test_the_chosen_one_is_told_after_its_hidden_cases_too(verifier: Verifier, task: Task) -> None:
    verdict = await verifier.test(task, kernel(OVER_THE_ROW, "rows", "32"), hidden=True)
    work = Work.of(verdict)
    assert verdict.correct
    assert work is not None
    assert work.longer > COARSE


async def test_it_can_be_left_out(task: Task) -> None:
    service = Verifier(VerifierConfig(work=False), gpu=None)
    verdict = await service.test(task, HONEST["a thread an element"])
    await service.aclose()
    assert verdict.correct
    assert Work.of(verdict) is None


async def test_a_wrong_candidate_has_none(verifier: Verifier, task: Task) -> None:
    wrong = HONEST["a thread an element"].replace("+ 1.0f", "+ 1.5f")
    verdict = await verifier.test(task, wrong)
    assert verdict.status is Status.WRONG
    assert Work.of(verdict) is None


def test_nothing_is_compared_with_nothing() -> None:
    counted = Verdict(Status.CORRECT, profile={"counted": {"writes": 8, "span": 2}})
    assert beside(counted, None) == beside(counted, Verdict(Status.CORRECT)) == {}
    assert beside(counted, replace(counted, status=Status.WRONG)) == {}
    both = replace(counted, profile=beside(counted, counted))
    assert Work.of(both) == Work(8, 2, 8, 2)
    assert Work.of(replace(both, status=Status.UNSTABLE)) is None


def test_what_is_ordinary_is_not_charged() -> None:
    ordinary = Work(WRITES * 10, COARSE * 10, 10, 10)
    assert (ordinary.excess, ordinary.sentences()) == (1.0, [])
    assert Work(WRITES * 20, 10, 10, 10).excess == 2.0
    assert Work(10, COARSE * 30, 10, 10).excess == 3.0
