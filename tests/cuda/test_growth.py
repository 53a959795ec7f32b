"""Which parallel shapes count as ones that use the GPU, seen on kernels that run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

WAVEFRONT = """
__global__ void diagonal(int n, int d, double *a)
{
    int i = 1 + blockIdx.x * blockDim.x + threadIdx.x, j = d - i;
    if (i < n - 1 && j >= 1 && j < n - 1)
        a[i * n + j] = (a[(i - 1) * n + j] + a[(i + 1) * n + j] + a[i * n + j - 1] + a[i * n + j + 1]
                        + a[i * n + j]) / 5.0;
}

extern "C" int gauss_seidel_device(int n, int iters, double *a, cudaStream_t stream)
{
    for (int t = 0; t < iters; t++)
        for (int d = 2; d <= 2 * (n - 2); d++)
            diagonal<<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(n, d, a);
    return cudaGetLastError();
}
"""
IN_ORDER = """
__global__ void all(int n, int iters, double *a)
{
    for (int t = 0; t < iters; t++)
        for (int d = 2; d <= 2 * (n - 2); d++) {
            for (int i = 1 + threadIdx.x; i < n - 1; i += blockDim.x) {
                int j = d - i;
                if (j >= 1 && j < n - 1)
                    a[i * n + j] = (a[(i - 1) * n + j] + a[(i + 1) * n + j] + a[i * n + j - 1] + a[i * n + j + 1]
                                    + a[i * n + j]) / 5.0;
            }
            __syncthreads();
        }
}

extern "C" int gauss_seidel_device(int n, int iters, double *a, cudaStream_t stream)
{
    all<<<1, BLOCK, 0, stream>>>(n, iters, a);
    return cudaGetLastError();
}
"""
FEW_ROWS = """
/* cudaperf: rows in 1..4; in x[rows*cols]; out sums[rows] */
void row_sums(int rows, int cols, const int *x, int *sums)
{
    for (int r = 0; r < rows; r++) {
        sums[r] = 0;
        for (int c = 0; c < cols; c++)
            sums[r] += x[r * cols + c] % 7;
    }
}
"""
WARP_PER_ROW = """
__global__ void rows_kernel(int cols, const int *x, int *sums)
{
    __shared__ int total;
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    int mine = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        mine += x[blockIdx.x * cols + c] % 7;
    atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        sums[blockIdx.x] = total;
}

extern "C" int row_sums_device(int rows, int cols, const int *x, int *sums, cudaStream_t stream)
{
    rows_kernel<<<rows, 256, 0, stream>>>(cols, x, sums);
    return cudaGetLastError();
}
"""
FIXED = """
void last_column(float a[64][64])
{
    for (int i = 0; i < 64; i++)
        for (int j = 1; j < 64; j++)
            a[i][j] = a[i][j - 1] + a[i][j];
}
"""
FIXED_ROWS = """
__global__ void rows_kernel(float *a)
{
    for (int i = threadIdx.x; i < 64; i += blockDim.x)
        for (int j = 1; j < 64; j++)
            a[i * 64 + j] = a[i * 64 + j - 1] + a[i * 64 + j];
}

extern "C" int last_column_device(float *a, cudaStream_t stream)
{
    rows_kernel<<<1, BLOCK, 0, stream>>>(a);
    return cudaGetLastError();
}
"""


@pytest.fixture
async def verifier() -> AsyncIterator[Verifier]:
    made = Verifier(gpu=None)
    yield made
    await made.aclose()


@pytest.mark.parametrize("block", [64, 256, 1024])
async def test_a_wavefront_grows_with_its_diagonals(verifier: Verifier, c_cases: Path, block: int) -> None:
    task = await prepare(load_task(c_cases / "gauss_seidel.c"))
    verdict = await verifier.test(task, WAVEFRONT.replace("BLOCK", str(block)))
    assert verdict.correct, verdict.message
    assert verdict.seconds["test"] < 10


@pytest.mark.parametrize("block", [1, 256])
async def test_one_block_for_every_size_does_not(verifier: Verifier, c_cases: Path, block: int) -> None:
    task = await prepare(load_task(c_cases / "gauss_seidel.c"))
    verdict = await verifier.test(task, IN_ORDER.replace("BLOCK", str(block)))
    assert verdict.status is Status.WRONG
    assert "however large" in verdict.message
    assert verdict.passed == verdict.total


async def test_a_block_per_row_grows_with_few_rows(verifier: Verifier) -> None:
    verdict = await verifier.test(await prepare(load_task(source=FEW_ROWS)), WARP_PER_ROW)
    assert verdict.correct, verdict.message


@pytest.mark.parametrize("block", [256, 512, 1024])
async def test_wide_blocks_grow_beyond_sizes_that_have_a_range(verifier: Verifier, c_cases: Path, block: int) -> None:
    """The tests' points fit into one block; more of them are tried, but never more centres than the C is made for."""
    task = await prepare(load_task(c_cases / "kmeans_assign.c"))
    made = next(v.source for v in generate(task).variants if v.strategy == "block512")
    wide = made.replace(" 512,", f" {block},")
    verdict = await verifier.test(task, wide)
    assert verdict.correct, verdict.message
    one = (
        wide.replace(f"blocks_for(i_count, {block}, 2147483647)", "1")
        .replace("const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n)\n        return;", "", 1)
        .replace("    float best", "    for (int i = threadIdx.x; i < n; i += blockDim.x) {\n    float best")
        .replace("label[i] = arg;", "label[i] = arg; }")
    )
    verdict = await verifier.test(task, one)
    assert "however large" in verdict.message


@pytest.mark.parametrize(("most", "correct"), [(2000, True), (20_000, False)])
async def test_a_range_that_ends_low_needs_a_warp(verifier: Verifier, most: int, correct: bool) -> None:
    """Where no legal input fills a second block, one is not too few."""
    text = f"""/* cudaperf: in x[n]; out y[n]; n in 1..{most} */
void doubled(int n, const float *x, float *y)
{{
    for (int i = 0; i < n; i++)
        y[i] = 2 * x[i];
}}
"""
    source = """
__global__ void all(int n, const float *x, float *y)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = 2 * x[i];
}

extern "C" int doubled_device(int n, const float *x, float *y, cudaStream_t stream)
{
    all<<<1, 256, 0, stream>>>(n, x, y);
    return cudaGetLastError();
}
"""
    verdict = await verifier.test(await prepare(load_task(source=text)), source)
    assert verdict.correct is correct, verdict.message


@pytest.mark.parametrize(("block", "correct"), [(64, True), (32, True), (1, False)])
async def test_constant_sizes_need_a_warp(verifier: Verifier, block: int, correct: bool) -> None:
    task = await prepare(load_task(source=FIXED))
    verdict = await verifier.test(task, FIXED_ROWS.replace("BLOCK", str(block)))
    assert verdict.correct is correct, verdict.message


SIDE_KERNEL = """
__global__ void saxpy_kernel(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

__global__ void side(int n, float *scratch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        scratch[i] = 1.0f;
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    float *scratch;
    if (n <= 0)
        return cudaSuccess;
    cudaMalloc((void **)&scratch, n * sizeof(float));
    side<<<SIDE, 32, 0, stream>>>(n, scratch);
    saxpy_kernel<<<(n + 31) / 32, 32, 0, stream>>>(n, a, x, y);
    cudaFree(scratch);
    return cudaGetLastError();
}
"""


@pytest.mark.parametrize(("side", "status"), [("1", Status.CORRECT), ("(n + 31) / 32", Status.CHEAT)])
async def test_an_idle_kernel_is_a_cheat_where_it_is_wide(
    verifier: Verifier, c_cases: Path, side: str, status: Status
) -> None:
    task = await prepare(load_task(c_cases / "saxpy.c"))
    verdict = await verifier.test(task, SIDE_KERNEL.replace("SIDE", side), hidden=True)
    assert verdict.status is status, verdict.message


LEVELS = """
#include <limits.h>

__global__ void chunks(int n, const int *x, int *best, int *top)
{
    if (threadIdx.x == 0) {
        int m = INT_MIN;
        for (int i = blockIdx.x * 1024; i < min(n, (blockIdx.x + 1) * 1024); i++)
            best[i] = m = max(m, x[i]);
        top[blockIdx.x] = m;
    }
}

__global__ void tops(int m, int *top)
{
    if (threadIdx.x == 0)
        for (int b = 1; b < m; b++)
            top[b] = max(top[b], top[b - 1]);
}

__global__ void carry(int n, int *best, const int *top)
{
    int i = (blockIdx.x + 1) * 1024 + threadIdx.x;
    if (i < n)
        best[i] = max(best[i], top[blockIdx.x]);
}

extern "C" int prefix_max_device(const int *x, int *best, int n, cudaStream_t stream)
{
    if (n <= 0)
        return 0;
    int m = (n + 1023) / 1024, *top;
    cudaMalloc((void **)&top, m * sizeof(int));
    chunks<<<m, 1024, 0, stream>>>(n, x, best, top);
    if (m > 1) {
        tops<<<TOPS, 1024, 0, stream>>>(m, top);
        carry<<<m - 1, 1024, 0, stream>>>(n, best, top);
    }
    cudaFree(top);
    return cudaGetLastError();
}
"""
PREFIX_MAX = """
/* cudaperf: in x[n]; out best[n] */
void prefix_max(const int *x, int *best, int n)
{
    int top = -2147483647 - 1;
    for (int i = 0; i < n; i++) {
        if (x[i] > top)
            top = x[i];
        best[i] = top;
    }
}
"""


@pytest.mark.parametrize("blocks", ["1", "m"])  # narrow on large inputs; wide, but needed there
async def test_the_second_level_of_a_scan_is_no_idle_kernel(verifier: Verifier, blocks: str) -> None:
    """Of at most three chunks the second level changes nothing, unless the second is the highest."""
    task = await prepare(load_task(source=PREFIX_MAX))
    text = LEVELS.replace("TOPS", blocks).replace("threadIdx.x == 0)\n        for (int b", FIRST_ONLY)
    verdict = await verifier.test(task, text, hidden=True)
    assert verdict.correct, verdict.message


FIRST_ONLY = "blockIdx.x == 0 && threadIdx.x == 0)\n        for (int b"
HIDDEN_DECOY = """
#include <vector>

__global__ void decoy(int n, float *scratch)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        scratch[i] = 1.0f;
}

extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    std::vector<float> hx(n), hy(n);
    float *scratch;
    if (n <= 0)
        return cudaSuccess;
    cudaMalloc((void **)&scratch, n * sizeof(float));
    decoy<<<(n + 31) / 32, 32, 0, stream>>>(n, scratch);
    LATER
    cudaMemcpy(hx.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(hy.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++)
        hy[i] = a * hx[i] + hy[i];
    cudaMemcpy(y, hy.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaFree(scratch);
    return cudaGetLastError();
}
"""


@pytest.mark.parametrize(
    "later",
    [
        "if (n > 2600) decoy<<<n, 32, 0, stream>>>(n, scratch);",  # wide on large inputs only
        "decoy<<<n > 2600 ? n : 1, 32, 0, stream>>>(n, scratch);",  # and too narrow before to be asked about
    ],
)
async def test_a_decoy_is_not_excused_by_a_wider_decoy_on_large_inputs(
    verifier: Verifier, c_cases: Path, later: str
) -> None:
    task = await prepare(load_task(c_cases / "saxpy.c"))
    verdict = await verifier.test(task, HIDDEN_DECOY.replace("LATER", later), hidden=True)
    assert verdict.status is Status.CHEAT, verdict.message
    assert "decoy" in verdict.message
