"""The C's functions and a candidate's entry may have names that the C library has too, and are called all the same."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.codegen.dropin import host_part, make_dropin
from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda.compile import compile_cuda
from cudaperf_agent.cuda.link import linked_c
from cudaperf_agent.cuda.reach import CALLS
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.execution.native import Argument, call_native
from cudaperf_agent.execution.sandbox import detect
from cudaperf_agent.tasks.cuda_names import is_taken, runtime_calls
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

# glibc still exports `advance` and `step`, of <regexp.h>, to whoever asks for no version of them.
BOTH = """
static float factor[4];

void step(const float *values)
{
    for (int i = 0; i < 4; i++)
        factor[i] = values[i];
}

/* cudaperf: entry; setup step(values); in values[4] in -1..1; inout x[n] in -1..1 */
void advance(int n, float *x)
{
    for (int i = 0; i < n; i++)
        x[i] = factor[i % 4] * x[i] + 1;
}
"""
# What nvcc's headers define, what would be taken for a cheat, and what has another meaning than CUDA's.
HELPERS = """
static float min(float a, float b) { return a < b ? a : b; }
static float fmaxf(float a, float b) { return a < b ? a : b; }
static int isnan(float a) { return a != a; }
static float signal(float t) { return t * t; }
static int random(void) { return 3; }

void least(int n, const float *x, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = fmaxf(y[i], isnan(x[i]) ? 0 : min(signal(x[i]), random() * x[i]));
}
"""
ALONE = """
/* cudaperf: inout x[n] in -1..1 */
void advance(int n, float *x)
{
    for (int i = 0; i < n; i++)
        x[i] = 2 * x[i] + 1;
}
"""
DEVICE = """
__global__ void advance_kernel(int n, float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = 2 * x[i] + 1;
}

extern "C" int advance_device(int n, float *x, cudaStream_t stream)
{
    if (n > 0)
        advance_kernel<<<(n + 255) / 256, 256, 0, stream>>>(n, x);
    return cudaGetLastError();
}
"""
WITH_STATE = DEVICE.replace("float *x", "float *x, const float *factor").replace("2 * x", "factor[i % 4] * x")
WITH_STATE = WITH_STATE.replace("(n, x)", "(n, x, factor)")
# All of which a program with CUDA's runtime in it has already; `kept` calls them, `read` is data.
BESIDE = """
#include <stdio.h>
#include <stdlib.h>

struct file { int write; };
float read[2] = {3, 4};
int write(int a, int b) { return 2 * a + b; }
static int send(struct file *f) { return f->write; }
int cudaFree(int a) { return a + 1; }
int kept(int n)
{
    int (*const called)(int, int) = write;
    struct file f = {n};
    return called(n, 1) + write(n, 2) + send(&f) + cudaFree(n);
}

/* cudaperf: inout x[n] in -1..1 */
void advance(int n, float *x)
{
    for (int i = 0; i < n; i++)
        x[i] = read[i % 2] * x[i] + 1;
}
"""
ON_THE_HOST = """
extern "C" void advance(int n, float *x)
{
    for (int i = 0; i < n; i++)
        x[i] = 2 * x[i] + 1;
}
"""


@pytest.mark.parametrize(("source", "candidate"), [(ALONE, DEVICE), (BOTH, WITH_STATE)])
async def test_the_c_and_the_candidate_are_called_by_their_own_names(source: str, candidate: str) -> None:
    verifier = Verifier(gpu=None)
    verdict = await verifier.test(await prepare(load_task(source=source, entry="advance")), candidate)
    assert verdict.correct, verdict.message
    await verifier.aclose()


async def test_generated_kernels_call_helpers_of_any_name() -> None:
    task = await prepare(load_task(source=HELPERS, entry="least"))
    verifier = Verifier(gpu=None)
    verdict = await verifier.test(task, generate(task).variants[0].source)
    assert verdict.correct, verdict.message
    await verifier.aclose()


async def test_a_library_of_nvcc_calls_its_own_entry() -> None:
    task = load_task(source=ALONE, entry="advance")
    dropin = make_dropin(task, ON_THE_HOST)
    assert dropin is not None
    wrap = detect().wrap
    built = await compile_cuda(find_nvcc(), dropin.cu, "library", linked=linked_c(task, dropin), wrap=wrap)
    assert built.artefact is not None, built.diagnostics
    values = np.arange(3, dtype=np.float32)
    call = [Argument(np.array(3, np.int32)), Argument(values, returned=True), Argument(np.zeros(0, np.uint8))]
    run = await call_native(built.artefact, [call], wrap=wrap)
    assert run.outcomes, run.child.stderr
    assert run.outcomes[0].outputs[1].tolist() == [1, 3, 5]


def test_cudas_runtime_never_reaches_what_stays_c(tmp_path: Path) -> None:
    task = load_task(source=BESIDE, entry="advance")
    text = host_part(task)
    assert text is not None
    (tmp_path / "host.c").write_text(text)
    subprocess.run(["gcc", "-c", "-fPIC", "-Wall", "-Werror", "host.c"], cwd=tmp_path, check=True)
    listed = subprocess.run(["nm", "host.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    defined = {line.split()[2] for line in listed.splitlines() if line.split()[1] in "TD" and len(line.split()) == 3}
    assert defined == {"advance_write", "advance_read", "advance_cudaFree", "kept", "cudaperf_advance_read"}
    subprocess.run(
        "gcc -shared -o host.so host.o -Wl,--unresolved-symbols=ignore-all", shell=True, cwd=tmp_path, check=True
    )
    assert ctypes.CDLL(str(tmp_path / "host.so")).kept(5) == 11 + 12 + 5 + 6
    assert task.assumptions[0].endswith("-Dwrite=advance_write -DcudaFree=advance_cudaFree")


async def test_a_library_with_such_helpers_is_linked_with_cudas_runtime() -> None:
    task = await prepare(load_task(source=BESIDE, entry="advance"))
    dropin = make_dropin(task, generate(task).variants[0].source)
    assert dropin is not None
    linked = linked_c(task, dropin)
    for text, ok in ((linked, True), (linked.replace("#define", "// #define"), False)):
        built = await compile_cuda(find_nvcc(), dropin.cu, "library", linked=text, wrap=detect().wrap)
        assert built.ok == ok, built.diagnostics


def test_the_names_that_the_runtime_takes_are_known() -> None:
    nvcc = find_nvcc()
    archive = next(path for path in nvcc.root.rglob("libcudart_static.a"))
    listed = subprocess.run(["nm", archive], capture_output=True, text=True, check=True).stdout
    taken = {line.split()[1] for line in listed.splitlines() if line.split()[:1] == ["U"]}
    library = ctypes.CDLL("libc.so.6")
    assert [n for n in sorted(taken) if n[0] != "_" and hasattr(library, n) and not runtime_calls(n)] == []


def test_a_helper_of_a_name_that_a_candidate_may_not_call_is_renamed() -> None:
    assert [name for names in CALLS for name in names.split("|") if not is_taken(name)] == []
