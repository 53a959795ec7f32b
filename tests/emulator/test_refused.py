"""What the emulator does not have is `unsupported` with its line, before or while it runs, and never a pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernel_calls import BuildKernel

from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.emulator.refuse import find_unsupported

F = 'extern "C" void f(int n, const float *x, float *y)'


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ('__global__ void k() {\n  asm volatile("bar.sync 0;");\n}', 2, "PTX"),
        ("#include <cuda_runtime.h>\n#include <cub/cub.cuh>\n", 2, "CUB"),
        ("#include <thrust/sort.h>\n", 1, "Thrust"),
        ("\n\n#include <cublas_v2.h>\n", 3, "NVIDIA"),
        ("#include <mma.h>\nusing namespace nvcuda;", 1, "WMMA"),
        ("#include <cuda/std/atomic>\n", 1, "libcu++"),
        ("__global__ void k() {\n auto g = cooperative_groups::this_grid();\n g.sync(); }", 2, "grid-wide"),
        ("\n__global__ void k(cudaTextureObject_t t) {}", 2, "textures"),
        ("void f() {\n cudaGraph_t graph; }", 2, "graphs"),
        ("__global__ void __cluster_dims__(2, 1, 1) k() {}", 1, "clusters"),
        ("extern unsigned emu_active_mask(int);", 1, "belong to the emulator"),
        ('extern "C" const char *cudaperf_emulator_report();', 1, "belong to the emulator"),
    ],
)
def test_a_construct_is_refused_with_its_line(text: str, line: int, word: str) -> None:
    refusal = find_unsupported(text)
    assert refusal is not None
    assert refusal.line == line
    assert word in refusal.reason


def test_words_in_comments_and_strings_are_not_refused() -> None:
    assert find_unsupported('// asm volatile\n/* #include <thrust/x.h> */ const char *s = "wmma this_grid";') is None


async def test_a_refused_file_is_not_compiled(tmp_path: Path) -> None:
    made = await emulator.build('void f() { asm("nop"); }', path_name="a.cu", folder=tmp_path)
    assert made.library is None
    assert made.unsupported == "line 1: asm: the emulator does not have inline PTX (asm)"
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240


async def test_what_gcc_rejects_has_the_candidates_line(tmp_path: Path) -> None:
    text = "#include <cuda_runtime.h>\n__global__ void k(float *y)\n{\n    y[0] = undeclared;\n}\n"
    made = await emulator.build(text, path_name="k.cu", folder=tmp_path)
    assert (made.library, made.program) == (None, None)
    assert [(d.severity, d.line) for d in made.diagnostics] == [("error", 4)]
    assert "undeclared" in made.diagnostics[0].message
    assert made.unsupported is not None
    assert made.unsupported.startswith("line 4: ")


async def test_an_undefined_function_is_seen_when_linking(tmp_path: Path) -> None:
    text = 'float missing(float);\nextern "C" void f(float *y)\n{\n    y[0] = missing(1.0f);\n}\n'
    made = await emulator.build(text, path_name="k.cu", folder=tmp_path)
    assert made.library is None
    assert [d.line for d in made.diagnostics if "missing" in d.message] == [4]


@pytest.mark.parametrize(
    "launch", ["k<<<1, 2>>(x);", "k<<<1, 2>>>;", "<<<1, 2>>>(x);", "k<<<1, (2>>>(x);", "k<<<1, 2>>>(x;"]
)
async def test_a_malformed_launch_is_no_traceback(tmp_path: Path, launch: str) -> None:
    text = f"__global__ void k(float *y) {{}}\nvoid f(float *x) {{\n {launch}\n}}\n"
    made = await emulator.build(text, path_name="k.cu", folder=tmp_path)
    assert made.library is None
    assert made.unsupported


RUN_TIME = {
    "spin-wait": (
        "__device__ int flag;\n__global__ void k(int n) {\n"
        "  if (blockIdx.x == 0)\n    while (atomicAdd(&flag, 0) == 0);\n  else\n    atomicExch(&flag, 1);\n}\n",
        4,
        "blocks run one after another",
    ),
    "volatile spin-wait": (
        "__device__ volatile int flag;\n__global__ void k(int n) {\n"
        "  if (blockIdx.x == 0)\n    while (flag == 0);\n  else\n    flag = 1;\n}\n",
        4,
        "blocks run one after another",
    ),
    "dynamic parallelism": (
        "__global__ void child() {}\n__global__ void k(int n) {\n  if (threadIdx.x == 0)\n    child<<<1, 1>>>();\n}\n",
        4,
        "dynamic parallelism",
    ),
    "device heap": (
        "__global__ void k(int n) {\n  int *volatile p = (int *)malloc(n);\n  p[0] = 1;\n  free(p);\n}\n",
        None,
        "malloc",
    ),
}


@pytest.mark.parametrize("name", RUN_TIME)
async def test_what_shows_only_when_run(build_kernel: BuildKernel, name: str) -> None:
    text, line, words = RUN_TIME[name]
    candidate = await build_kernel(f"{text}{F} {{ k<<<2, 32>>>(n); cudaDeviceSynchronize(); }}\n")
    [ran] = await candidate.call([np.ones(8, np.float32)])
    assert ran.report.unsupported is not None
    assert words in ran.report.unsupported
    if line:
        assert ran.report.unsupported.startswith(f"line {line}: ")


async def test_waiting_for_a_thread_of_the_same_block_works(build_kernel: BuildKernel) -> None:
    text = (
        "__global__ void k(int *flag, float *y) {\n"
        "  if (threadIdx.x == 0) { while (atomicAdd(flag, 0) == 0); y[0] = 5.0f; }\n"
        "  if (threadIdx.x == 40) atomicExch(flag, 1);\n}\n"
        f"{F} {{ int *flag; float *d; cudaMalloc(&flag, 4); cudaMalloc(&d, 4); cudaMemset(flag, 0, 4);\n"
        "  k<<<1, 64>>>(flag, d); cudaMemcpy(y, d, 4, cudaMemcpyDeviceToHost); cudaFree(flag); cudaFree(d); }\n"
    )
    candidate = await build_kernel(text)
    [ran] = await candidate.call([np.ones(1, np.float32)])
    assert ran.report.reports == ()
    assert ran.report.unsupported is None
    assert ran.y == [5.0]
