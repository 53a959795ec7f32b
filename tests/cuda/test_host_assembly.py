"""What the preprocessor makes of a candidate is screened: pasted names, and assembly for the host but not PTX."""

from __future__ import annotations

import pytest

from cudaperf_agent.cuda.cheats import Finding, screen
from cudaperf_agent.cuda.compile import CompileConfig
from cudaperf_agent.cuda.preprocessed import preprocessed
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.execution.sandbox import detect

LANE = 'asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));'
PASTE = "#define P(a, b) a##b\n"
HONEST = {
    "a kernel": f"__global__ void k(unsigned lane) {{ if (lane) {{ {LANE} }} }}",
    "a macro for the qualifiers": f"#define DEVICE __device__ inline\nDEVICE void f(unsigned lane) {{ {LANE} }}",
    "a macro for the instruction": f"#define LANE(lane) {LANE}\n__device__ void f(unsigned lane) {{ LANE(lane) }}",
    "a template": f"template <int N = int{{3}}>\n__device__ void f(int lane) {{ while (lane < N) {LANE} }}",
    "an argument with a default": f"struct S {{ int x; }};\n__device__ void f(int lane, S s = S{{1}}) {{ {LANE} }}",
    "a method": f"struct S {{ int x; __device__ S(unsigned lane) : x{{1}} {{ {LANE} }} }};",
    "a method after another": f"struct S {{ __device__ void f() {{ }} __device__ void g(int lane) {{ {LANE} }} }};",
    "a namespace": f"namespace a {{ namespace {{ __device__ void f(unsigned lane) {{ {LANE} }} }} }}",
    "for host and device": f"__host__ __device__ void f(unsigned lane) {{\n#ifdef __CUDA_ARCH__\n{LANE}\n#endif\n}}",
    "never called on the host": f"template <int N> __host__ __device__ void f(unsigned lane) {{ {LANE} }}",
    "behind launch bounds": f"__global__ void __launch_bounds__(256, 2) k(unsigned lane) {{ {LANE} }}",
    "a lambda for the device": f"void f() {{ auto g = [] __device__ (unsigned lane) {{ {LANE} }}; (void)g; }}",
    "pasted variables": "#define ADD(i) acc##i += i;\n__global__ void k() { int acc1 = 0, acc2 = 0; ADD(1) ADD(2) }",
    "a pasted name that is not refused": "#define F(x) get##x\nint F(end)(int); int n = F(end)(3);",
    "in a literal": 'const char *words = "asm(1) ##";',
}
CHEATS = {
    "a pasted call": PASTE + '\n\nchar *p = P(get,\n  env)("X");',
    "a paste by digraphs": '%:define J(a, b) a%:%:b\n\n\nchar *p = J(get, env)("X");',
    "a paste by another macro": PASTE + '#define J(a, b) P(a, b)\n#define S get\nchar *p = J(S, env)("X");',
    "a paste of the C library's": '#include <sys/cdefs.h>\n\n\nchar *p = __CONCAT(get, env)("X");',
    "pasted assembly": PASTE + '\nvoid f() {\n  P(as, m)("nop"); }',
    "a label": '\n\n\nextern "C" char *mine(const char *) asm("getenv");',
    "a label by a macro": '#define LABEL(x) asm(#x)\n\n\nextern "C" char *mine(const char *) LABEL(getenv);',
    "a label in a function": 'void f() {\n\n\n  extern int mine(int) __asm__("getenv"); }',
    "at file scope": '\n\n\nasm(".symver mine, getenv@GLIBC_2.2.5");',
    "an instruction": '\nvoid f() {\n\n  __asm volatile("nop"); }',
    "a function of device in its name": '\nextern "C" int saxpy_device(int __device_) {\n\n  asm("nop"); return 0; }',
    "behind a method for the device": "struct S {\n__device__ void f() { }\n\nvoid g() { asm(\"nop\"); } };",
    "in a struct for the device": "__device__ struct S {\n\n\nvoid g() { asm(\"nop\"); } } s;",
    "for the host too": '__host__ __device__ void f() {\n#ifndef __CUDA_ARCH__\n\nasm(".byte 0x0f");\n#endif\n}',
    "the emulator's own": PASTE + '\n\nextern "C" void P(emu_, launch)(const char *);',
    "an unchecked access": PASTE + '\n\n__attribute__((P(no_, sanitize)("thread"))) __global__ void k() { }',
    "the checker's macro": PASTE + '#define S P(__SANITIZE_, THREAD)\n\nint S = 1;',
    "elsewhere": PASTE + '#line 1 "/a.h"\n# 1 "/usr/include/a.h" 3\nchar *p = P(get, env)("X");',
}  # fmt: skip


async def found(source: str) -> Finding | None:
    text = await preprocessed(find_nvcc(), source + "\n", config=CompileConfig(), wrap=detect().wrap)
    assert text is not None
    return screen(text, replaced=True)


@pytest.mark.parametrize("name", HONEST)
async def test_work_for_the_device_is_no_cheat(name: str) -> None:
    assert screen(HONEST[name]) is None
    assert await found(HONEST[name]) is None


@pytest.mark.parametrize("name", CHEATS)
async def test_what_the_preprocessor_makes_is_screened_on_its_line(name: str) -> None:
    finding = await found(CHEATS[name])
    assert finding is not None
    assert finding.line == 4, finding.message


async def test_what_cannot_be_preprocessed_is_left_to_the_compiler() -> None:
    source = '#include "nowhere.h"\n'
    assert await preprocessed(find_nvcc(), source, config=CompileConfig(), wrap=detect().wrap) is None
