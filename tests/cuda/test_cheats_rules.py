"""The rules about launches, and the screen of names."""

from __future__ import annotations

import subprocess
import time

import pytest

from cudaperf_agent.cuda.cheats import CaseLaunches, grows, screen, unlaunched


def launches(*pairs: tuple[int, int]) -> list[CaseLaunches]:
    return [CaseLaunches(elements, 1 if threads else 0, threads) for elements, threads in pairs]


def test_a_launch_per_element_grows() -> None:
    assert grows(launches((1, 256), (257, 512), (1000, 1024)))


def test_one_thread_or_one_block_for_everything_does_not() -> None:
    assert not grows(launches((1, 1), (2000, 1)))
    assert not grows(launches((1, 256), (2000, 256)))


def test_a_grid_sized_to_the_device_is_wide_enough() -> None:
    assert grows(launches((1, 132 * 256), (2000, 132 * 256)))


def test_small_cases_decide_nothing() -> None:
    assert grows(launches((1, 256), (200, 256)))


def test_nothing_launched_is_found_whatever_is_empty() -> None:
    assert unlaunched(launches((0, 0), (5, 0), (100, 0))) is not None
    assert unlaunched(launches((0, 0), (5, 256), (100, 256))) is None
    assert unlaunched(launches((5, 256), (100, 0))) is not None
    assert unlaunched(launches((0, 0))) is None


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("void *p = dlsym(RTLD_DEFAULT, name);", True),
        ("int clock_gettime(clockid_t c, timespec *t)", True),
        ("std::thread worker(f);", True),
        ('char *p = (getenv)("X");', True),
        ('return ((&::std::getenv))("X");', True),
        ('char *p = :: std :: getenv("X");', True),
        ('FILE *f = fopen("/proc/self/maps", "r");', True),
        ('std::ifstream maps(R"-(/proc/self/maps)-");', True),
        ("extern const char *cudaperf_emulator_report();", True),
        ('__attribute__((no_sanitize("thread"))) __global__ void k();', True),
        ("[[gnu::no_sanitize_thread]] __global__ void k();", True),
        ("#ifdef __SANITIZE_THREAD__", True),
        ("// dlsym(RTLD_DEFAULT, name) would be a cheat", False),
        ('printf("fork(");', False),
        ("grid.connect(left, right); obj->signal(3);", False),
        ("float signal = x[i] * 2.0f;", False),
        ("if (signal) (*next)(3);", False),
        ("int n = made(signal)(3) + sizeof(signal) * (3);", False),
        ("for (int open = 0; (open); (void)(open)) { }", False),
        ("int threads = 256; async = true;", False),
    ],
)
def test_the_screen_finds_calls_and_not_words(line: str, found: bool) -> None:
    finding = screen(f"// first line\n{line}\n")
    assert (finding is not None) == found
    if finding:
        assert finding.line == 2


HIDING = {
    "a raw string": ('const char *s = R"x(" /* )x"; ', " // */"),
    "one of the longest delimiter": ('auto s = R"0123456789abcdef(" /* )0123456789abcdef"; ', " // */"),
    "u8R": ('auto s = u8R"(" /* )"; ', " // */"),
    "LR": ('auto s = LR"(" /* )"; ', " // */"),
    "uR": ('auto s = uR"(" /* )"; ', " // */"),
    "UR": ('auto s = UR"(" /* )"; ', " // */"),
    "a raw string that looks closed": ('auto s = R"x(" )" /* )x"; ', " // */"),
    "a raw string over lines": ('auto s = R"(\n" /* )"; ', " // */"),
    "a splice before a raw string": ('auto s = u\\\n8\\\nR\\\n"(" /* )"; ', " // */"),
    "what is no splice in a raw string": ('auto s = R"x(" )\\\nx" /* )x"; ', " // */"),
    "the R of another name": ('#define FOR\nauto s = FOR"("; ', ' s = ")";'),
    "the R of a number": ('#define NO(x)\nNO(1.R"(") ', ' NO(")")'),
    "what ends a literal": ('#define NO(x)\nNO(""R"(") ', ' NO(")")'),
    "an apostrophe in a number": ("int n = 1'000; ", " n = 1'000;"),
    "a splice in a comment": ('/\\\n* " */ ', ' /* " */'),
    "a splice in a string": ('auto s = "\\\\\n" /* "; ', " // */"),
    "a quote left open": ("#define NO ' /*\n", " // */"),
}


@pytest.mark.parametrize(("before", "after"), HIDING.values(), ids=HIDING.keys())
def test_no_literal_hides_a_name_from_the_screen(before: str, after: str) -> None:
    source = f"{before}CALL{after}\n"
    # As the compiler reads it, the call is there: a macro of its name is replaced, which it is in no literal.
    command = ["g++", "-E", "-P", "-std=c++17", "-DCALL=replaced", "-x", "c++", "-"]
    read = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    assert "replaced" in read
    finding = screen(source.replace("CALL", 'dlsym(0, "name");'))
    assert finding is not None
    assert finding.line == source[: source.index("CALL")].count("\n") + 1


@pytest.mark.parametrize(
    "call",
    [
        "dl\\\nsym(0)",
        "\\\ndlsym(0)",
        "dlsym\\\n\\ \t\r\n(0)",
        "d\\\nls\\\nym/**/\\\n(0)",
        'u\\\n8R\\\n"(""\\\n)" + dlsym(0)',
    ],
)
def test_a_spliced_call_is_a_call(call: str) -> None:
    finding = screen(f"int n;\n{call};\nint after = dlopen(0);\n")
    assert finding is not None
    assert "`dlsym`" in finding.message
    after = screen(f"int n;\n{call.replace('dlsym', 'sum').replace('d', 'x')};\ndlopen(0);\n")
    assert after is not None
    assert after.line == call.count("\n") + 3


@pytest.mark.parametrize(
    "text",
    [
        'R"(fork( " fork( " /* )"',
        'u8R"x()" fork( )x"',
        'L"fork("',
        "1'000 /* fork( */",
        '"\\\n fork("',
        "//\\\nfork(",
    ],
)
def test_a_name_in_a_literal_is_no_call(text: str) -> None:
    assert screen(f"{text}\n") is None


@pytest.mark.parametrize("filler", ["// filler\n", " ", "(", "(&*", "\n"])
def test_a_long_source_is_screened_in_its_time(filler: str) -> None:
    started = time.process_time()
    assert screen("int n;\n" + filler * (300_000 // len(filler)) + "\n(dlsym)(0);\n") is not None
    assert time.process_time() - started < 20
