"""Program mode: inputs from the clause or from files, expected text, budgets of printed numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.cases import make_cases, sized_case
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Comparison, Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from cudaperf_agent.tasks.program import run_program
from cudaperf_agent.tasks.reference_build import Build, require_library
from tests.conftest import CASES

MEAN = """/* cudaperf: stdin n in 1..500, x[n] in -10.0..10.0 */
#include <stdio.h>
#include <math.h>
int main(void)
{
    int n;
    if (scanf("%d", &n) != 1) return 1;
    double s = 0, q = 0;
    for (int i = 0; i < n; i++) { double x; if (scanf("%lf", &x) != 1) return 1; s += x; q += x * x; }
    printf("mean %.12f\\nnorm %.12g\\ncount %d\\n", s / n, sqrt(q), n);
    return 0;
}
"""


async def judged(task: Task, source: str, build: Build = Build.PLAIN) -> list[Comparison]:
    cases = [*make_cases(task, hidden=False), *make_cases(task, hidden=True)]
    expected = await Oracle(task).expected(cases)
    program = await require_library(replace(task, source=source), build)
    found = []
    for case, want in zip(cases, expected, strict=True):
        child = await run_program(program, case, wrap=None)
        found.append(compare(task, case, want, {"stdout": np.frombuffer(child.stdout, np.uint8)}))
    return found


@pytest.fixture
async def pairs() -> Task:
    return await prepare(load_task(CASES / "c" / "prog_pair_sums.c"))


async def test_inputs_follow_the_clause(pairs: Task) -> None:
    for hidden in (False, True):
        cases = make_cases(pairs, hidden=hidden)
        sizes = set()
        for case in cases:
            first, *rest = case.stdin.decode().split("\n", 1)
            n, k = map(int, first.split())
            values = [int(v) for v in rest[0].split()]
            assert len(values) == n
            assert 1 <= k <= 1000
            assert all(abs(v) <= 1_000_000 for v in values)
            sizes.add(n)
        assert {0, 1} <= sizes
        assert max(sizes) > 256


async def test_the_c_passes_and_mutants_fail(pairs: Task) -> None:
    assert all(r.ok for r in await judged(pairs, pairs.source, Build.NATIVE))
    for old, new in [
        ("j = i + 1", "j = i"),
        ("% k == 0", "% k == 1"),
        ("biggest = -1", "biggest = 0"),
        ("i < n; i++)\n        for", "i < n - 2; i++)\n        for"),
        ('"%lld %d\\n"', '"%lld, %d\\n"'),
    ]:
        assert old in pairs.source
        assert not all(r.ok for r in await judged(pairs, pairs.source.replace(old, new)))


async def test_printed_floats_have_a_budget() -> None:
    task = await prepare(load_task(source=MEAN))
    reordered = MEAN.replace("s += x; q += x * x;", "a[i] = x;").replace(
        "double s = 0", "static double a[500]; double s = 0"
    )
    reordered = reordered.replace(
        "    printf", "    while (n--) { s += a[n]; q = fma(a[n], a[n], q); }\n    n = m;\n    printf"
    )
    reordered = reordered.replace("return 1;\n    static", "return 1;\n    int m = n;\n    static")
    assert all(r.ok for r in await judged(task, MEAN, Build.NATIVE))
    assert all(r.ok for r in await judged(task, reordered))
    assert not all(r.ok for r in await judged(task, MEAN.replace("double s = 0", "float s = 0")))
    assert not all(r.ok for r in await judged(task, MEAN.replace("count %d\\n", "count %d\\n\\n.")))
    assert not all(r.ok for r in await judged(task, MEAN.replace("s / n, sqrt(q), n", "s / n, sqrt(q), n + 1")))


def test_a_sized_input_has_that_size() -> None:
    case = sized_case(load_task(CASES / "c" / "prog_pair_sums.c"), {"n": 15000}, 4)
    first, rest = case.stdin.decode().split("\n", 1)
    assert first.split()[0] == "15000"
    assert len(rest.split()) == 15000


async def test_a_program_with_a_sloppy_format_is_still_a_task() -> None:
    source = """/* cudaperf: stdin n in 1..9 */
#include <stdio.h>
int main(void)
{
    long n;
    if (scanf("%ld", &n) != 1) return 1;
    printf("%d\\n", n * n);
    return 0;
}
"""
    task = await prepare(load_task(source=source))
    assert all(r.ok for r in await judged(task, source))


async def test_the_users_files_are_inputs(tmp_path: Path) -> None:
    files = []
    for index, text in enumerate(["3 2 1 2 3\n", "0 1\n", "2 5 10 15\n"]):
        files.append(tmp_path / f"{index}.txt")
        files[-1].write_text(text)
    source = (CASES / "c" / "prog_pair_sums.c").read_text().replace("cudaperf: stdin", "once:")
    task = await prepare(load_task(source=source, stdin_files=files))
    assert [c.stdin for c in make_cases(task, hidden=False)] == [b"3 2 1 2 3\n", b"2 5 10 15\n"]
    hidden = make_cases(task, hidden=True)
    assert [c.name for c in hidden] == ["0.txt", "1.txt", "2.txt"]
    expected = await Oracle(task).expected(hidden)
    assert [e.stdout for e in expected] == [b"1 4\n", b"0 -1\n", b"1 25\n"]


async def test_a_program_with_undefined_behaviour_is_refused_with_its_line() -> None:
    source = (CASES / "c" / "prog_pair_sums.c").read_text().replace("static int a[20000]", "static int a[100]")
    with pytest.raises(InputRefused) as refused:
        await prepare(load_task(source=source))
    assert refused.value.where == "<stdin>:14"
    assert "global-buffer-overflow" in refused.value.message


def test_a_program_that_says_nothing_of_its_input_is_refused() -> None:
    task = load_task(CASES / "c" / "prog_pair_sums.c")
    with pytest.raises(InputRefused, match="program reads"):
        make_cases(replace(task, stdin=()), hidden=False)
