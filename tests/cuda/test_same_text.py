"""The emulator judges what nvcc compiles: text that depends on who reads it is found, honest conditions are not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cudaperf_agent.cuda.same_text import conditions, differing_text, first_difference, of_the_host
from cudaperf_agent.cuda.verifier import Verifier

KERNEL = "__global__ void k(int *p)\n{\n    *p = 1;\n}\n"
HONEST = {
    "for host and device": """
__host__ __device__ int f()
{
#ifdef __CUDA_ARCH__
    return 1;
#else
    return 2;
#endif
}""",
    "an older device": """
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
__device__ double atomicAdd(double *a, double b) { return *a + b; }
#endif""",
    "for the device alone": """
#if __CUDA_ARCH__ >= 700
__device__ int f(int x) { return x + 1; }
#endif""",
    "in a kernel": """
__global__ void
__launch_bounds__(256)
k2(int *p)
{
#if __CUDA_ARCH__ >= 800
    *p = 1;
#else
    *p = 2;
#endif
}""",
    "a macro of one's own": """
#ifndef BLOCK
#define BLOCK 256
#endif
#if BLOCK > 128 && \\
    BLOCK < 512
int wide;
#endif""",
    "versions": """
#if __CUDACC_VER_MAJOR__ >= 12 && defined(__NVCC__) && __cplusplus >= 201703L
int a;
#else
int b;
#endif""",
    "headers": """
#include <cassert>
#include <cfloat>
#include <cmath>
#include <cstdio>
#ifndef M_PI
#define M_PI 3.14
#endif
static float f(float x) { assert(x < FLT_MAX); std::printf("%g", x + INFINITY); return x * (float)M_PI; }""",
    "literals": """
#if 1
const char *s = R"(
#ifdef EOF
)";
/*
#else
*/
#endif""",
}
OTHER = {
    "the host's part": 'extern "C" int f()\n{\n#ifdef __CUDA_ARCH__\n    return 1;\n#endif\n    return 0;\n}',
    "a constant of the host's": "#ifdef __CUDA_ARCH__\n#define GO 1\n#else\n#define GO 0\n#endif\nint n =\n GO;",
    "nvcc's macro": "\n\n\n#ifdef __CUDACC_VER_BUILD__\n\n\nint n = 1;\n#endif",
    "the emulator's header": "\n\n\n#if defined(__CUDACC__) && !defined(__CUDA_RUNTIME_H__)\n\n\nint n = 1;\n#endif",
    "the emulator's file": '\n\n\n#if __has_include("candidate.emulated.cpp")\n\n\nint n = 1;\n#endif',
    "by digraphs": "\n\n\n%:ifdef __CUDACC_VER_BUILD__\n\n\nint n = 1;\n%:endif",
}
LINE = {"the host's part": 8, "a constant of the host's": 11}


@pytest.fixture
async def verifier() -> AsyncIterator[Verifier]:
    made = Verifier(gpu=None)
    yield made
    await made.aclose()


@pytest.mark.parametrize("name", HONEST)
async def test_honest_conditions_are_the_same_for_both(name: str, verifier: Verifier) -> None:
    assert await differing_text(verifier.place, KERNEL + HONEST[name] + "\n") is None


@pytest.mark.parametrize("name", OTHER)
async def test_text_for_one_of_the_two_is_found_with_its_line(name: str, verifier: Verifier) -> None:
    finding = await differing_text(verifier.place, KERNEL + OTHER[name] + "\n")
    assert finding is not None
    assert finding.line == LINE.get(name, 11)


def test_a_skeleton_keeps_directives_and_marks_code() -> None:
    text = "int a; /* x\n#if 1 */ #if 0\n#if A \\\n  B\n\n  int b; \\\n# if 2\n# endif /* c */ // d\n"
    kept = [
        "cudaperf_line_1",
        "         #if 0",
        "#if A \\",
        "  B",
        "",
        "cudaperf_line_6",
        "cudaperf_line_7",
        "# endif",
        "",
    ]
    assert [line.rstrip() for line in conditions(text).split("\n")] == kept


def test_functions_for_the_device_are_left_out() -> None:
    text = "int a;\n__device__ int f()\n{ return 1; } int b;"
    assert of_the_host(text) == [("int", 1), ("a", 1), (";", 1), ("int", 3), ("b", 3), (";", 3)]


def test_the_first_difference_is_found_in_the_longer_text_too() -> None:
    one = [("a", 1), ("b", 2)]
    assert first_difference(one, one) is None
    assert first_difference(one, [("a", 1), ("c", 4)]) == 2
    assert first_difference(one, one[:1]) == first_difference(one[:1], one) == 2
