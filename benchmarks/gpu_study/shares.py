"""What a verdict says of a kernel's share of the machine, against a timing by CUDA events, by hand.

Three kernels: saxpy and a 2-D stencil, bound by memory, and a tiled matrix product. By hand: the same source, the L2
flushed in front of each call in the same stream, so that the call follows without a gap.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.gpu_study.record import Record
from cudaperf_agent.cuda.baselines import make_contents
from cudaperf_agent.cuda.building import Built
from cudaperf_agent.cuda.compile import CompileConfig, compile_cuda
from cudaperf_agent.cuda.gpu import Gpu
from cudaperf_agent.cuda.measure import Baselines, measured_verdict
from cudaperf_agent.cuda.on_gpu import gpu_environment
from cudaperf_agent.cuda.timing import TIMING, Contents
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.execution.child import Limits, run_child
from cudaperf_agent.tasks.cases import sized_case
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

SMALL_SIZE = 64
CONFIG = VerifierConfig(
    timing=replace(TIMING, contents=2, contents_bytes=512 << 20, fewest_contents=2, samples=15), also_emulate=False
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A C function, its CUDA, and how the hand timing calls it: sizes by name, and the floats of each buffer.

    Where the memory's rate is asked for, the buffers are larger than the L2.
    """

    name: str
    c: str
    cuda: str
    sizes: dict[str, int]
    buffers: tuple[str, ...]
    call: str


SUBJECTS = (
    Subject(
        "saxpy",
        "void saxpy(int n, float a, const float *x, float *y)\n"
        "{\n    for (int i = 0; i < n; i++)\n        y[i] = a * x[i] + y[i];\n}\n",
        """
__global__ void kernel(int n, float a, const float *__restrict__ x, float *__restrict__ y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
extern "C" int saxpy_device(int n, float a, const float *x, float *y, cudaStream_t stream)
{
    if (n > 0)
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, a, x, y);
    return cudaGetLastError();
}
""",
        {"n": 12 << 20},
        ("(size_t)n", "(size_t)n"),
        "saxpy_device(n, 0.7f, b[0], b[1], 0)",
    ),
    Subject(
        "stencil",
        "void stencil(int h, int w, const float in[h][w], float out[h][w])\n{\n"
        "    for (int r = 0; r < h; r++)\n        for (int c = 0; c < w; c++)\n"
        "            if (r > 0 && r < h - 1 && c > 0 && c < w - 1)\n"
        "                out[r][c] = 0.25f * (in[r - 1][c] + in[r + 1][c] + in[r][c - 1] + in[r][c + 1]);\n"
        "            else\n                out[r][c] = in[r][c];\n}\n",
        """
__global__ void kernel(int h, int w, const float *__restrict__ in, float *__restrict__ out)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= h || c >= w)
        return;
    size_t i = (size_t)r * w + c;
    if (r > 0 && r < h - 1 && c > 0 && c < w - 1)
        out[i] = 0.25f * (in[i - w] + in[i + w] + in[i - 1] + in[i + 1]);
    else
        out[i] = in[i];
}
extern "C" int stencil_device(int h, int w, const float *in, float *out, cudaStream_t stream)
{
    dim3 block(32, 8), grid((w + 31) / 32, (h + 7) / 8);
    if (h > 0 && w > 0)
        kernel<<<grid, block, 0, stream>>>(h, w, in, out);
    return cudaGetLastError();
}
""",
        {"h": 3584, "w": 3600},
        ("(size_t)h * w", "(size_t)h * w"),
        "stencil_device(h, w, b[0], b[1], 0)",
    ),
    Subject(
        "matmul",
        "void matmul(int n, const float a[n][n], const float b[n][n], float c[n][n])\n{\n"
        "    for (int i = 0; i < n; i++) {\n"
        "        for (int j = 0; j < n; j++)\n            c[i][j] = 0.0f;\n"
        "        for (int k = 0; k < n; k++)\n            for (int j = 0; j < n; j++)\n"
        "                c[i][j] += a[i][k] * b[k][j];\n    }\n}\n",
        """
constexpr int T = 32;
__global__ void kernel(int n, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c)
{
    __shared__ float as[T][T], bs[T][T + 1];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < n; t += T) {
        as[threadIdx.y][threadIdx.x] = row < n && t + threadIdx.x < n ? a[(size_t)row * n + t + threadIdx.x] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = col < n && t + threadIdx.y < n ? b[(size_t)(t + threadIdx.y) * n + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < T; k++)
            sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n)
        c[(size_t)row * n + col] = sum;
}
extern "C" int matmul_device(int n, const float *a, const float *b, float *c, cudaStream_t stream)
{
    dim3 block(T, T), grid((n + T - 1) / T, (n + T - 1) / T);
    if (n > 0)
        kernel<<<grid, block, 0, stream>>>(n, a, b, c);
    return cudaGetLastError();
}
""",
        {"n": 1024},
        ("(size_t)n * n", "(size_t)n * n", "(size_t)n * n"),
        "matmul_device(n, b[0], b[1], b[2], 0)",
    ),
)
HAND = """
#include <algorithm>
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
CANDIDATE
__global__ void fill(float *at, size_t count)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        at[i] = 0.001f * (float)((i * 2654435761u) % 2003u) - 1.0f;
}
int main()
{
    SIZES
    size_t counts[] = {COUNTS};
    std::vector<float *> b;
    for (size_t count : counts) {
        float *at;
        if (cudaMalloc(&at, count * sizeof(float))) return 1;
        fill<<<1024, 256>>>(at, count);
        b.push_back(at);
    }
    char *flush;
    size_t flush_bytes = FLUSH;
    if (cudaMalloc(&flush, flush_bytes)) return 1;
    cudaEvent_t before, after;
    cudaEventCreate(&before);
    cudaEventCreate(&after);
    std::vector<float> taken;
    for (int i = 0; i < 27; i++) {
        cudaMemset(flush, i, flush_bytes);
        cudaEventRecord(before);
        if (CALL) return 2;
        cudaEventRecord(after);
        if (cudaEventSynchronize(after)) return 3;
        float milliseconds;
        cudaEventElapsedTime(&milliseconds, before, after);
        if (i > 2) taken.push_back(milliseconds);
    }
    std::sort(taken.begin(), taken.end());
    printf("%.9g\\n", 1e-3 * taken[taken.size() / 2]);
}
"""


@dataclass(frozen=True, slots=True)
class Ready:
    """A subject that only has to be timed."""

    task: Task
    contents: Contents
    library: Path
    program: Path | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Subjects by name, made by the processors alone; one that failed is missing, and has a row."""

    verifier: Verifier
    ready: dict[str, Ready]


async def prepare_all(record: Record, gpu: Gpu) -> Prepared:
    """Contents, right results, the candidate and the hand timing of those that have no row yet."""
    verifier = Verifier(CONFIG, gpu=gpu)
    known = {row["kernel"] for row in record.rows("share") if row.get("ratio")}
    ready: dict[str, Ready] = {}

    async def one(subject: Subject) -> None:
        try:
            ready[subject.name] = await made_ready(record, verifier, gpu, subject)
            record.say(f"{subject.name}: ready to be timed")
        except Exception as error:  # noqa: BLE001 - the other two go on
            failed(record, subject, error)

    await asyncio.gather(*(one(s) for s in SUBJECTS if s.name not in known))
    return Prepared(verifier, ready)


async def made_ready(record: Record, verifier: Verifier, gpu: Gpu, subject: Subject) -> Ready:
    """All of it that needs no device."""
    task = await prepare(load_task(source=subject.c))
    sizes = scaled(subject, record.small)
    built, contents, program = await asyncio.gather(
        verifier._build(task, subject.cuda),
        contents_of(task, sizes),
        hand_program(verifier, subject, sizes, 2 * gpu.l2_bytes),
    )
    assert isinstance(built, Built), built
    assert built.compiled.artefact is not None
    return Ready(task, contents, built.compiled.artefact, program)


def scaled(subject: Subject, small: bool) -> dict[str, int]:
    """The sizes, or ones that the emulator can bear."""
    return dict.fromkeys(subject.sizes, SMALL_SIZE) if small else subject.sizes


def failed(record: Record, subject: Subject, error: Exception) -> None:
    """A row that says why there is no other."""
    record.add("share", kernel=subject.name, status="exception", message=f"{type(error).__name__}: {error}")
    record.say(f"{subject.name}: {type(error).__name__}: {error}")


async def run(record: Record, gpu: Gpu, preparing: Awaitable[Prepared]) -> None:
    """One after the other."""
    prepared = await preparing
    try:
        for subject in SUBJECTS:
            if subject.name in prepared.ready:
                await compared(record, prepared.verifier, gpu, subject, prepared.ready[subject.name])
    finally:
        await prepared.verifier.aclose()


async def compared(record: Record, verifier: Verifier, gpu: Gpu, subject: Subject, ready: Ready) -> None:
    """One row: the verdict's numbers and the hand's."""
    try:
        task = ready.task
        verdict = await verifier.test(task, subject.cuda)
        if verdict.correct:
            watch = await verifier._measuring.stopwatch()
            # Without baselines: the machine's share needs none.
            verdict = await measured_verdict(verdict, ready.library, task, ready.contents, watch, Baselines(), gpu)
        row = {"kernel": subject.name, "status": str(verdict.status), "message": verdict.message}
        if not verdict.measured:
            record.add("share", **row)
            record.say(f"{subject.name}: {verdict.status}: {verdict.message}")
            return
        case = verdict.timings[0].case
        async with verifier.place.alone():
            by_hand = await hand_seconds(ready.program) if ready.program is not None else 0.0
        profile = verdict.profile
        record.add(
            "share",
            **row,
            case=case,
            device_seconds=verdict.timings[0].median,
            busy_seconds=profile.get("busy_seconds"),
            busy_by=profile.get("busy_by"),
            hand_seconds=by_hand,
            ratio=profile["busy_seconds"] / by_hand if by_hand else None,
            share_of_copy_bandwidth=profile.get("share_of_copy_bandwidth"),
            share_of_flop_rate=profile.get("share_of_flop_rate"),
            profile={k: v for k, v in profile.items() if k != "ptxas"},
            timings=[{"kind": t.kind, "samples": t.samples, "cold": t.cold, "note": t.note} for t in verdict.timings],
            clocks=verdict.clocks,
            seconds=verdict.seconds,
        )
        record.say(f"{subject.name} {case}: {profile['busy_seconds'] * 1e6:.1f} µs, by hand {by_hand * 1e6:.1f} µs")
    except Exception as error:  # noqa: BLE001 - the other two go on
        failed(record, subject, error)


async def contents_of(task: Task, sizes: dict[str, int]) -> Contents:
    """Contents of given sizes."""
    case = await asyncio.to_thread(sized_case, task, sizes, 0)
    return await make_contents(task, Oracle(task), case, CONFIG.timing)


async def hand_program(verifier: Verifier, subject: Subject, sizes: dict[str, int], flush: int) -> Path | None:
    """The hand timing, compiled; `None` if it does not compile."""
    text = hand_text(subject, sizes, flush)
    place = verifier.place
    config = CompileConfig(arch=place.config.compile.arch, flags=("-O3", "-std=c++17"))
    return (await compile_cuda(place.nvcc, text, "program", config=config)).artefact


async def hand_seconds(program: Path) -> float:
    """Median seconds between two events around the call; 0 if the program fails."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, **gpu_environment()}
        child = await run_child([str(program)], limits=Limits(seconds=30.0), cwd=Path(folder), env=env)
    return float(child.stdout or 0) if child.ok else 0.0


def hand_text(subject: Subject, sizes: dict[str, int], flush: int) -> str:
    """The program that times by hand."""
    given = " ".join(f"int {name} = {value};" for name, value in sizes.items())
    text = HAND.replace("CANDIDATE", subject.cuda).replace("SIZES", given).replace("CALL", subject.call)
    return text.replace("COUNTS", ", ".join(subject.buffers)).replace("FLUSH", str(flush))
