"""What the linker sees of a candidate: names that it reaches however it writes them, and its own that are nobody's."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.cuda.cheats import screen_linked
from cudaperf_agent.cuda.compile import compile_cuda
from cudaperf_agent.cuda.emulated import build_emulated
from cudaperf_agent.cuda.reach import traced
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.sandbox import detect

LIMITS = Limits(seconds=60.0, memory=2 << 30)
KERNEL = "__global__ void k(int *p) { *p = 1; }\n"
REACHES = {
    "an address": ('#include <cstdlib>\nextern "C" void *f() { return (void *)&getenv; }', "getenv"),
    "an alias": ('#include <cstdlib>\n#define f getenv\nextern "C" char *g() { return f("X"); }', "getenv"),
    "a namespace": ('#include <cstdlib>\nnamespace s = std; extern "C" void *g() { return s::getenv("X"); }', "getenv"),
    "one by another name": ('#include <cstdlib>\n#define P(a, b) a##b\nint n = P(sys, tem)("true");', "system"),
    "the C library's own": ('extern "C" int __open64(const char *, int);\nint n = __open64("x", 0);', "open"),
    "a weak reference": (
        'static char *f(const char *) __attribute__((weakref("getenv")));\nextern "C" char *g() { return f("X"); }',
        "getenv",
    ),
    "data": ('extern "C" char **environ;\nextern "C" char *g() { return environ[0]; }', "environ"),
    "the loader's own list": ('struct r;\nextern "C" struct r _r_debug;\nvoid *g() { return &_r_debug; }', "_r_debug"),
    "the loader's table": ('extern "C" char _DYNAMIC[];\nextern "C" char *g() { return _DYNAMIC; }', "_DYNAMIC"),
    "by a pragma": (
        '#pragma redefine_extname f getenv\nextern "C" char *f(const char *);\nextern "C" char *g() { return f("X"); }',
        "getenv",
    ),
    "a builtin": ('extern "C" int g() { return __builtin_fork(); }', "fork"),
    "a thread": (
        '#include <thread>\nnamespace s = std;\nextern "C" void g() { s::thread([] {}).join(); }', "std::thread"
    ),
    "one of its own": ('#define P(a, b) a##b\nextern "C" int P(ptr, ace)() { return 0; }', "ptrace"),
    "the harness": (
        'extern "C" void f(void **) __attribute__((alias("g")));\n#define P(a, b) a##b\n'
        'extern "C" void P(cudaperf_, setup)(void **) { }\nextern "C" void g(void **) { }',
        "cudaperf_setup",
    ),
}  # fmt: skip
HONEST = {
    "names of its own": (
        "static int getenv(int x) { return x; }\nint open(int, int, int) { return 0; }\n"
        "namespace mine { int connect(int x) { return x; } }\n"
        'extern "C" int g(int signal) { return getenv(signal) + open(1, 2, 3) + mine::connect(signal); }'
    ),
    "of the libraries": (
        "#include <algorithm>\n#include <chrono>\n#include <cmath>\n#include <cstdio>\n#include <iostream>\n"
        "#include <mutex>\n#include <string>\n#include <vector>\n"
        'extern "C" int g() { std::mutex m; std::vector<int> v(3); std::cout << v.size() << std::string("x"); '
        'm.lock(); std::printf("%d", (int)std::chrono::steady_clock::now().time_since_epoch().count()); return 0; }'
    ),
}


async def reached(source: str) -> tuple[set[str], set[str]]:
    built = await build_emulated(KERNEL + source + "\n", "", wrap=detect().wrap, limits=LIMITS)
    compiled = await compile_cuda(find_nvcc(), KERNEL + source + "\n", "library", linked="", wrap=detect().wrap)
    assert compiled.ok, compiled.diagnostics
    assert built.artefact is not None or "thread" in (built.unsupported or ""), built.unsupported
    return set(compiled.reached), set(built.reached)


@pytest.mark.parametrize("name", REACHES)
async def test_the_linker_tells_what_a_candidate_reaches(name: str) -> None:
    source, reaches = REACHES[name]
    for names in await reached(source):
        finding = screen_linked(source, sorted(names))
        assert name == "a thread" or finding is not None
        assert finding is None or f"`{reaches}`" in finding.message


@pytest.mark.parametrize("name", HONEST)
async def test_names_of_its_own_reach_nothing(name: str) -> None:
    assert await reached(HONEST[name]) == (set(), set())


async def test_what_is_linked_beside_a_candidate_is_not_its_own() -> None:
    beside = '#include <stdlib.h>\nchar *home(void) { return getenv("HOME"); }\n'
    built = await build_emulated(KERNEL, beside, wrap=detect().wrap, limits=LIMITS)
    compiled = await compile_cuda(find_nvcc(), KERNEL, "library", linked=beside, wrap=detect().wrap)
    assert (built.artefact is not None, built.reached) == (True, ())
    assert (compiled.ok, compiled.reached) == (True, ())


async def test_the_emulators_own_functions_are_not_replaced() -> None:
    paste = "#define P(a, b) a##b\n"
    hidden = paste + '__attribute__((visibility("hidden"))) extern "C" void P(__tsan, _write4)(void *) { }\n'
    copies = (
        '#include <cuda_runtime.h>\nextern "C" cudaError_t cudaMemset(void *, int, size_t) { return cudaSuccess; }\n'
    )
    for source, name in ((hidden, "=__tsan_write4"), (copies, "=cudaMemset")):
        built = await build_emulated(KERNEL + source, "", wrap=detect().wrap, limits=LIMITS)
        assert built.reached == (name,)
        assert screen_linked(source, built.reached) is not None


def test_a_program_may_read_what_the_c_program_read() -> None:
    assert screen_linked("", ["getenv", "__open64_2"], program=True) is None
    assert screen_linked("", ["=getenv"], program=True) is not None
    assert screen_linked("", ["dlsym"], program=True) is not None


def test_a_name_has_its_line_where_the_text_has_it() -> None:
    finding = screen_linked("int n;\n// dlsym\nauto f = dlsym;\n", ["dlsym"])
    assert finding is not None
    assert finding.line == 3
    assert screen_linked("int n;\n", ["dlsym"]).line is None  # type: ignore[union-attr]


@pytest.mark.parametrize("linker", ["/usr/bin/ld: ", ""])
def test_the_linkers_words_are_read_and_left_out(linker: str) -> None:
    said = (
        f"candidate.cu:3: warning: words\n{linker}/tmp/cc a.o: reference to getenv\n"
        f"{linker}/usr/lib/crti.o: definition of _DYNAMIC\n"
        f"{linker}linked.o: reference to dlsym\nx.c:3: undefined reference to `f'\n"
        f"{linker}/opt/libcudart_static.a(cudart_static.o): reference to dlopen\n"
        f"{linker}/lib/libc.so.6: definition of getenv\nmore\n"
    )
    names, left = traced(said, ["linked.o"])
    assert names == ("getenv",)
    assert left == "candidate.cu:3: warning: words\nx.c:3: undefined reference to `f'\nmore\n"


async def test_what_was_reached_is_kept_with_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDAPERF_CACHE_DIR", str(tmp_path))
    source = KERNEL + '#include <cstdlib>\nextern "C" void *f() { return (void *)&getenv; }\n'
    first = await compile_cuda(find_nvcc(), source, "library", linked="", wrap=detect().wrap)
    again = await compile_cuda(find_nvcc(), source, "library", linked="", wrap=detect().wrap)
    assert again.cached
    assert again.reached == first.reached == ("getenv",)


async def test_a_flood_of_messages_hides_nothing() -> None:
    lines = [f"#define M{n + 1} " + f"M{n} " * 10 for n in range(4)]
    flood = "\n".join(['#define M0 _Pragma("message \\"' + "words " * 40 + '\\"")', *lines, "M4"]) + "\n"
    source = flood + KERNEL + '#include <cstdlib>\nextern "C" void *f() { return (void *)&getenv; }\n'
    built = await build_emulated(source, "", wrap=detect().wrap, limits=LIMITS)
    compiled = await compile_cuda(find_nvcc(), source, "library", linked="", wrap=detect().wrap)
    assert (built.artefact, compiled.artefact) == (None, None)
    assert "prints too much" in (built.unsupported or "")
    assert compiled.diagnostics[0].message.startswith("the compiler printed more than 256 KiB")
