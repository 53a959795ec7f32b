"""Launches and dynamic shared memory become C++, and no line moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.emulator.rewrite import RewriteError, rewrite


@pytest.mark.parametrize(
    ("launch", "kernel", "configuration"),
    [
        ("k<<<g, b>>>(x);", "k", "g, b"),
        ("ns::k<float, (3 > 2)><<<g, b, 0, s>>>(x);", "ns::k<float, (3 > 2)>", "g, b, 0, s"),
        ("k<A<B<int>>><<<f(1, 2), dim3(3)>>>();", "k<A<B<int>>>", "f(1, 2), dim3(3)"),
        ("table[i]<<<1, 1>>>(x);", "table[i]", "1, 1"),
        ("(*pointer)<<<1, 1>>>(x);", "(*pointer)", "1, 1"),
        ("this->kernel<<<1, 1>>>(x);", "this->kernel", "1, 1"),
        ("k<<<(n + (1 << 8) - 1) >> 8, 1 << 8>>>(x);", "k", "(n + (1 << 8) - 1) >> 8, 1 << 8"),
    ],
)
def test_launch(launch: str, kernel: str, configuration: str) -> None:
    text = rewrite(f"void f() {{ {launch} }}")
    assert f'::emu::Launch("{kernel}", __LINE__, {configuration}).run(' in text
    assert f"{{ {kernel}(emu_a...); }}" in text
    assert "<<<" not in text


@pytest.mark.parametrize(
    ("declaration", "becomes"),
    [
        ("extern __shared__ float s[];", "float *const s = (float *)emu_dynamic_shared;"),
        ("__shared__ extern unsigned char s[];", "unsigned char *const s = (unsigned char *)emu_dynamic_shared;"),
        ("extern __shared__ __align__(16) float4 s[];", "float4 *const s = (float4 *)emu_dynamic_shared;"),
        ("extern volatile __shared__ int s[];", "volatile int *const s = (volatile int *)emu_dynamic_shared;"),
        ("extern __shared__ T s[];", "T *const s = (T *)emu_dynamic_shared;"),
    ],
)
def test_dynamic_shared_memory(declaration: str, becomes: str) -> None:
    assert becomes in rewrite(f"__global__ void k() {{ {declaration} }}")
    assert f"static {becomes}" in rewrite(declaration)


def test_static_shared_memory_is_left_to_the_macro() -> None:
    assert rewrite("__shared__ float s[4];") == "__shared__ float s[4];"
    assert "static" not in rewrite("static __shared__ float s[4];")


def test_lines_do_not_move() -> None:
    source = (
        "void f() {\n  k<int,\n    3>\n  <<<g,\n     b>>>\n  (x,\n   y);\n}\n"
        "#define LAUNCH(k) \\\n  k<<<1, \\\n  1>>>(x)\n"
        "__global__ void m() {\n  extern\n  __shared__ float s[];\n  marker; }\n"
    )
    text = rewrite(source)
    assert text.count("\n") == source.count("\n")
    assert [i for i, line in enumerate(text.splitlines()) if "marker" in line] == [
        i for i, line in enumerate(source.splitlines()) if "marker" in line
    ]


def test_comments_and_strings_are_left_alone() -> None:
    source = (
        '// k<<<1, 1>>>(x);\n/* extern __shared__ float s[]; */ const char *t = "a<<<b>>>(c)";\nauto r = R"(k<<<)";\n'
    )
    assert rewrite(source) == source


def test_null_and_zero_are_pointers_where_the_kernel_takes_one() -> None:
    text = rewrite("void f() { k<<<1, 1>>>(0, g(0), NULL, a[0]); }")
    assert "::emu::Zero{}, g(0), nullptr, a[0])" in text


@pytest.mark.parametrize("source", ["void f() {\n\n k<<<1, 2; }", "extern __shared__ float s[4];", "\n\n<<<1,1>>>(x)"])
def test_what_is_not_understood_has_a_line(source: str) -> None:
    with pytest.raises(RewriteError) as caught:
        rewrite(source)
    assert caught.value.line == next(
        i for i, row in enumerate(source.splitlines(), 1) if "<<<" in row or "shared" in row
    )


async def test_noinline_goes_with_the_standard_library(tmp_path: Path) -> None:
    """The C++ library's own headers write ``__attribute__((__noinline__))``: a macro of that name would break them."""
    source = (
        "#include <memory>\n#define NI __noinline__\n"
        "__device__ __noinline__ float f(float x) { return x * 2; }\n"
        "NI __device__ __attribute__((__noinline__)) float g(float x) { return f(x); }\n"
        "__global__ void k(float *x) { x[threadIdx.x] = g(x[threadIdx.x]); }\n"
        'extern "C" void run(float *p) { auto q = std::make_shared<int>(3); k<<<1, 32>>>(p + *q); }\n'
    )
    built = await emulator.build(source, path_name="x.cu", folder=tmp_path)
    assert built.library is not None, built.diagnostics
