"""Null launches: what takes the place of CUDA's launch functions, with functions of ours for kernels; nvcc links it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.gpu_study.null_launch import FIND, FOUND, LEAVE_OUT, WRAPPED, WRAPPERS, linker_flags
from cudaperf_agent.codegen.dropin import make_dropin
from cudaperf_agent.cuda.compile import CompileConfig, flags_for
from cudaperf_agent.cuda.link import linked_c
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.tasks.parse import load_task

CHEATS = Path(__file__).parent.parent / "cheats"
# A runtime whose launches call the kernel at once, and three kernels, one of which is launched twice.
RUNTIME = """
#include <stddef.h>
struct extent { unsigned x, y, z; };
typedef void (*kernel)(unsigned);
int cudaLaunchKernel(const void *k, struct extent g, struct extent b, void **a, size_t s, void *t)
{ ((kernel)k)(g.x * 100 + b.z); return 0; }
int __cudaLaunchKernel(const void *k, struct extent g, struct extent b, void **a, size_t s, void *t)
{ ((kernel)k)(g.x * 100 + b.z); return 0; }
int cudaLaunchCooperativeKernel(const void *k, struct extent g, struct extent b, void **a, size_t s, void *t)
{ ((kernel)k)(g.x * 100 + b.z); return 0; }
int cudaLaunchKernelExC(const void *c, const void *k, void **a) { ((kernel)k)(9); return 0; }
"""
CALLER = """
#include <stddef.h>
#include <stdio.h>
struct extent { unsigned x, y, z; };
int cudaLaunchKernel(const void *, struct extent, struct extent, void **, size_t, void *);
int __cudaLaunchKernel(const void *, struct extent, struct extent, void **, size_t, void *);
int cudaLaunchKernelExC(const void *, const void *, void **);
static void first(unsigned v) { printf("first %u\\n", v); }
static void second(unsigned v) { printf("second %u\\n", v); }
static void third(unsigned v) { printf("third %u\\n", v); }
int main(void)
{
    struct extent grid = {1, 2, 3}, block = {4, 5, 6};
    int status = cudaLaunchKernel((void *)first, grid, block, 0, 0, 0);
    status |= __cudaLaunchKernel((void *)second, grid, block, 0, 0, 0);
    status |= cudaLaunchKernel((void *)first, block, grid, 0, 0, 0);
    status |= cudaLaunchKernelExC(0, (void *)third, 0);
    return status;
}
"""
ALL = ["first 106", "second 106", "first 403", "third 9"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("launches")
    (folder / "runtime.c").write_text(RUNTIME)
    (folder / "caller.c").write_text(CALLER)
    wraps = [f"-Wl,--wrap={name}" for name in WRAPPED]
    subprocess.run(
        ["gcc", "-w", "runtime.c", "caller.c", str(WRAPPERS), *wraps, "-o", "program"], cwd=folder, check=True
    )
    return folder / "program"


def run(program: Path, **asked: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program], env={**os.environ, **asked}, capture_output=True, text=True, check=False)


def test_one_kernel_is_left_out_at_each_of_its_launches(program: Path) -> None:
    for number, name in enumerate(("first", "second", "third"), 1):
        done = run(program, **{LEAVE_OUT: str(number)})
        assert (done.returncode, done.stdout.splitlines()) == (0, [line for line in ALL if not line.startswith(name)])
    for asked in ({}, {LEAVE_OUT: "4"}, {LEAVE_OUT: "0"}):
        done = run(program, **asked)
        assert (done.returncode, done.stdout.splitlines()) == (0, ALL)


def test_it_tells_whether_there_is_a_kernel(program: Path) -> None:
    assert [run(program, **{FIND: str(n)}).returncode for n in (1, 2, 3, 4)] == [FOUND, FOUND, FOUND, 0]


def test_a_candidate_links_with_it(tmp_path: Path) -> None:
    task = load_task(CHEATS / "tasks" / "saxpy.c")
    dropin = make_dropin(task, (CHEATS / "00_honest.cu").read_text())
    assert dropin is not None
    (tmp_path / "candidate.cu").write_text(dropin.cu)
    (tmp_path / "linked.c").write_text(f"{linked_c(task, dropin)}\n{WRAPPERS.read_text()}")
    subprocess.run(["gcc", "-fPIC", "-c", "linked.c"], cwd=tmp_path, check=True)
    nvcc = find_nvcc()
    flags = [*flags_for(nvcc, "library", CompileConfig()), *linker_flags()]
    command = [str(nvcc.path), *flags, "candidate.cu", "linked.o", "-o", "library.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    code = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "library.so"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    launches = [line for line in code.splitlines() if "call" in line and "__wrap_" in line]
    assert any("__wrap___cudaLaunchKernel" in line or "__wrap_cudaLaunchKernel" in line for line in launches)
