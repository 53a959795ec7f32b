"""Which loops of the C get an OpenMP pragma: those that are proven parallel, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.codegen.openmp.pragmas import openmp_source, proven_loops
from cudaperf_agent.tasks.parse import load_task

CASES = Path(__file__).parent.parent / "cases" / "c"
ORDINARY = Path(__file__).parent / "ordinary"


def pragmas(text: str) -> list[tuple[int, str]]:
    return [(loop.line, loop.pragma) for loop in proven_loops(load_task(source=text))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("saxpy", {4: ""}),
        ("gemm", {4: ""}),
        ("jacobi2d", {10: ""}),  # inside the sweeps, which keep their order
        ("dot", {4: " reduction(+: s)"}),
        ("inclusive_scan", {}),
        ("gauss_seidel", {}),
        ("histogram", {}),
        ("find_first", {}),
        ("floyd_warshall", {}),
    ],
)
def test_handed_files(name: str, expected: dict[int, str]) -> None:
    found = {loop.line: loop.pragma for loop in proven_loops(load_task(CASES / f"{name}.c"))}
    assert found == {line: f"#pragma omp parallel for{clauses}" for line, clauses in expected.items()}


def test_the_pragma_stands_before_its_loop_and_nothing_else_changes() -> None:
    task = load_task(CASES / "gemm.c")
    made = openmp_source(task)
    assert made is not None
    assert made.lines == (4,)
    lines = made.text.split("\n")
    assert lines.pop(3) == "#pragma omp parallel for"
    assert "\n".join(lines) == task.source


def test_scalars_declared_outside_are_private() -> None:
    text = """void row_sums(int n, int m, const float *a, float *s)
{
    int i, j;
    float sum;
    for (i = 0; i < n; i++) {
        sum = 0;
        for (j = 0; j < m; j++)
            sum += a[i * m + j];
        s[i] = sum;
    }
}
"""
    assert pragmas(text) == [(5, "#pragma omp parallel for private(j, sum)")]


@pytest.mark.parametrize(
    "text",
    [
        # The last value is read after the loop.
        "int last(int n, int *a) { int t = 0;\nfor (int i = 0; i < n; i++) {\nt = a[i]; a[i] = t + 1; }\nreturn t; }",
        # An iteration needs the scalar of the one before.
        "void f(int n, float *a) { float t = 0;\nfor (int i = 0; i < n; i++) {\na[i] += t; t = a[i]; } }",
        # Two iterations may store to one element.
        "void f(int n, const int *p, float *a) {\nfor (int i = 0; i < n; i++)\na[p[i] % 4 & 3] = i; }",
        "void f(int n, float *a) {\nfor (int i = 1; i < n; i++)\na[i] = a[i - 1] + 1; }",
    ],
)
def test_loops_that_are_not_parallel_stay_as_they_are(text: str) -> None:
    assert pragmas(text) == []
    assert openmp_source(load_task(source=text)) is None


def test_a_name_declared_twice_is_not_made_private() -> None:
    text = """void f(int n, int m, float *a)
{
    for (int j = 0; j < 2; j++)
        a[j] = a[j] + j;
    int i, j;
    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            a[i * m + j] = j;
}
"""
    assert [line for line, _ in pragmas(text)] == [3]


def test_a_loop_that_makes_the_plan_begin_anew_is_proven_once() -> None:
    (loop,) = proven_loops(load_task(ORDINARY / "count_beside.c"))
    assert (loop.line, loop.pragma) == (4, "#pragma omp parallel for reduction(+: c) reduction(+: s)")


def test_whatever_ordinary_c_is_it_has_an_answer() -> None:
    found = {path.stem: openmp_source(load_task(path)) for path in ORDINARY.glob("*.c")}
    assert found["count_beside"] is not None
    assert found["ema"] is None


def test_two_loops_on_a_line_and_macros_are_left_alone() -> None:
    two = "void f(int n, float *a) {\nfor (int i = 0; i < n; i++) a[i] = 1; for (int i = 0; i < n; i++) a[i] += 1; }"
    macro = "#define EACH for (int i = 0; i < n; i++)\nvoid f(int n, float *a) {\nEACH a[i] = 1; }"
    for text in (two, macro):
        task = load_task(source=text)
        assert proven_loops(task)
        assert openmp_source(task) is None


def test_a_file_with_pragmas_is_taken_as_written() -> None:
    text = "void f(int n, float *a) {\n# pragma  omp parallel for\nfor (int i = 0; i < n; i++) a[i] = 1; }"
    made = openmp_source(load_task(source=text))
    assert made is not None
    assert made.text == text
    assert made.lines == ()
