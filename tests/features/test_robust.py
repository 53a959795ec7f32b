"""Bad sources: partial vectors with named gaps, no exception, no hang, and the next source is read as ever."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cudaperf_agent.features.extract import extract, extract_here, too_complex
from cudaperf_agent.features.model import LIMITS, ORDER, Features
from cudaperf_agent.features.worker import Worker

GOLDEN = [p.read_text() for p in sorted((Path(__file__).parent / "golden").glob("*.cu"))]
SAXPY = (Path(__file__).parent / "golden" / "saxpy.cu").read_text()
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
COUNT = 500


def damaged(seed: int) -> str:
    """One golden source, cut, shuffled, spliced or with bytes changed."""
    draw = random.Random(seed)
    source = draw.choice(GOLDEN)
    kind = seed % 6
    if kind == 0:
        return source[: draw.randrange(len(source))]
    if kind == 1:
        raw = bytearray(source.encode())
        for _ in range(draw.randrange(1, 20)):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
        return raw.decode("utf-8", "replace")
    tokens = TOKEN.findall(source)
    for _ in range(draw.randrange(1, 25)):
        at, other = draw.randrange(len(tokens)), draw.randrange(len(tokens))
        if kind == 2:
            del tokens[at]
        elif kind == 3:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 4:
            tokens.insert(at, draw.choice(TOKEN.findall(draw.choice(GOLDEN))))
        else:
            tokens[at:at] = tokens[at : at + draw.randrange(1, 12)]
    return "".join(tokens)


@pytest.mark.slow
def test_five_hundred_damaged_sources_give_no_crash_and_no_hang() -> None:
    slowest = 0.0
    for seed in range(COUNT):
        source = damaged(seed)
        start = time.monotonic()
        features = extract(source)
        slowest = max(slowest, time.monotonic() - start)
        assert tuple(features.values) == ORDER
        assert all(v == v and abs(v) != float("inf") for v in features.vector), seed
        assert not any("crash" in g.reason or "parser" in g.reason or "too long" in g.reason for g in features.gaps), (
            seed
        )
    assert slowest < LIMITS.answer_seconds
    assert extract(SAXPY) == extract_here(SAXPY)


def test_a_broken_statement_leaves_the_rest_and_names_its_line() -> None:
    features = extract(SAXPY.replace("return cudaGetLastError();", "retrun cudaGetLastError();"))
    assert features["tpb"] == 256
    assert features["gmem"] > 0
    (gap,) = features.gaps
    assert "does not parse" in gap.reason
    assert gap.line is not None
    assert "cudaGetLastError" in features_line(SAXPY, gap.line)
    assert features.missing == ORDER


def features_line(source: str, line: int) -> str:
    return source.splitlines()[line - 1]


@pytest.mark.parametrize(
    "source", ["", "\0\0\0", "hello", "int main() { return 0; }", "{{{{", "__global__", "#include <nowhere.h>\n"]
)
def test_sources_without_kernels_give_zeros_and_a_gap(source: str) -> None:
    features = extract(source)
    assert features["gmem"] == 0
    assert features.gaps


BOMBS = {
    "templates": "template<class A, class B> struct P {};\n"
    "template<int N, class T> struct G { typedef typename G<N-1, P<T, T>>::t t; };\n"
    "__global__ void k() {}\nG<60, int>::t x;",
    "parentheses": "int x = " + "(" * 3000 + "1" + ")" * 3000 + ";",
    "chain": "int f(int a) { return " + "a+" * 1900 + "a; }",
    "unary": "int f(int a) { return " + "- " * 1900 + "a; }",
    "braces": "void f() " + "{" * 20000 + "}" * 20000,
    "ifs": "__global__ void k(int *x) { " + "if (x[0]) " * 390 + "x[1] = 0; }",
    "blocks": "__global__ void k(int *x) { " + "if (x[0]) { " * 3000 + "x[1] = 0; " + "}" * 3000 + "}",
    "endless constant": "constexpr int f(int n) { int s = 0; for (int i = 0; i < n; ++i) s += i; return s; }\n"
    "int x[f(2000000000)];",
    "recursion": "__device__ int f(int n) { return n ? f(n - 1) + f(n - 2) : 1; }\n"
    "__global__ void k(int *x) { x[0] = f(30); }\nvoid h(int *x) { k<<<1, 32>>>(x); }",
    "calls": "".join(
        f"__device__ int f{i}(int n) {{ return f{i - 1}(n) + f{i - 1}(n + 1); }}\n"
        if i
        else "__device__ int f0(int n) { return n; }\n"
        for i in range(40)
    )
    + "__global__ void k(int *x) { x[0] = f39(x[1]); }\nvoid h(int *x) { k<<<1, 32>>>(x); }",
    "macros": "#define A0 1 +\n"
    + "".join(f"#define A{i} A{i - 1} A{i - 1}\n" for i in range(1, 34))
    + "int x = A33 1;",
    "polynomial": "__global__ void k(int *x, int a, int b) { int i = threadIdx.x + a;"
    + " i = i * (i + b);" * 60
    + " x[i] = 1; }",
    "device file": '#include "/dev/zero"\n',
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_a_gap_in_bounded_time(name: str) -> None:
    start = time.monotonic()
    features = extract(BOMBS[name])
    assert time.monotonic() - start < LIMITS.answer_seconds + LIMITS.start_seconds
    assert tuple(features.values) == ORDER
    assert extract(SAXPY)["gmem"] > 1


@pytest.mark.parametrize("path", ["/etc/passwd", "../../secret.h", "a/../../b.h"])
def test_files_of_the_host_are_not_read(path: str) -> None:
    features = extract(f'#include "{path}"\n' + SAXPY)
    assert [(g.reason.split()[1], g.line) for g in features.gaps] == [("#include", 1)]
    assert features["gmem"] > 1


def test_a_source_of_a_megabyte_is_not_parsed() -> None:
    features = extract("int x;\n" * 150_000)
    assert "longer than" in features.gaps[0].reason
    assert too_complex("int x[] = {" + "1, " * 20_000 + "1};") == ""


def test_a_dead_child_is_replaced_and_the_source_that_met_it_has_a_gap() -> None:
    worker = Worker()
    request = {"source": SAXPY, "ptxas": None, "entry": None}
    first = worker.ask(request)
    assert first.features is not None
    child = worker.process_id
    assert child is not None
    os.kill(child, 9)
    answers = [worker.ask(request) for _ in range(2)]
    worker.close()
    assert answers[-1].features is not None
    assert Features.from_dict(answers[-1].features) == extract_here(SAXPY)


INTERRUPTED = """
import os, signal
from cudaperf_agent.features.worker import Worker

worker, presses = Worker(), []
request = {"source": "__global__ void k(float *x) { x[threadIdx.x] = 0; }", "ptxas": None, "entry": None}
worker.ask(request)
child = worker.process_id
signal.signal(signal.SIGINT, lambda *_: presses.append(1))
os.killpg(0, signal.SIGINT)
answer = worker.ask(request)
print(len(presses), worker.process_id == child, answer.features is not None)
worker.close()
"""


def test_ctrl_c_at_the_terminal_does_not_reach_the_child() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        start_new_session=True,
        # Started in the background, a shell ignores the signal, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        check=False,
        timeout=120,
    )
    assert done.stdout == "1 True True\n", done.stderr


def test_features_survive_a_round_through_plain_values() -> None:
    import json

    features = extract_here(GOLDEN[3])
    assert Features.from_dict(json.loads(json.dumps(features.to_dict()))) == features
