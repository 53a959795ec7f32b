"""Generation: every variant compiles with nvcc and gives what the C gives; what is declined names its line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cudaperf_agent.codegen.variants import Generation, generate
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from tests.nvcc_batches import refused

from .running import check

HANDED = sorted((Path(__file__).parent.parent / "cases" / "c").glob("*.c"))
PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.c"))
DECLINED = {"prog_pair_sums"}
TRANSLATED = [p for p in HANDED if p.stem not in DECLINED]


async def prepared(path: Path) -> tuple[Task, Generation]:
    """The task of a file, and what is generated for it."""
    task = await prepare(load_task(path))
    return task, generate(task)


@pytest.mark.parametrize("path", TRANSLATED, ids=lambda p: p.stem)
async def test_the_naive_variant_gives_what_the_c_gives(path: Path, tmp_path: Path) -> None:
    task, generation = await prepared(path)
    assert generation.declined is None
    naive = generation.naive
    assert naive is not None
    assert sum(v.naive for v in generation.variants) == 1
    cases = [*make_cases(task, hidden=False), *make_cases(task, hidden=True)]
    trouble = await check(task, naive.source, cases, tmp_path, oracle=Oracle(task), orders=("forward", "reverse"))
    assert trouble.text == ""


@pytest.mark.parametrize("name", ["clone", "send", "wcslen"])
async def test_an_entry_may_be_called_as_a_function_of_the_c_library(name: str, tmp_path: Path) -> None:
    source = f"void {name}(int n, const float *x, float *y) {{\n for (int i = 0; i < n; i++) y[i] = 2 * x[i];\n}}\n"
    task = await prepare(load_task(source=source))
    naive = generate(task).naive
    assert naive is not None
    cases = make_cases(task, hidden=False)
    assert (await check(task, naive.source, cases, tmp_path, oracle=Oracle(task))).text == ""


@pytest.mark.slow
@pytest.mark.parametrize("path", TRANSLATED + PROGRAMS, ids=lambda p: p.stem)
async def test_every_variant_passes_visible_and_hidden_cases(path: Path, tmp_path: Path) -> None:
    task, generation = await prepared(path)
    oracle = Oracle(task)
    cases = [*make_cases(task, hidden=False), *make_cases(task, hidden=True)]
    for variant in generation.variants:
        if variant.naive and path in TRANSLATED:
            continue  # the test before this one
        trouble = await check(task, variant.source, cases, tmp_path, oracle=oracle, orders=("forward", "reverse"))
        assert trouble.text == "", variant.strategy


def test_fifteen_of_the_handed_functions_have_several_variants() -> None:
    counts = {p.stem: len(generate(load_task(p)).variants) for p in TRANSLATED}
    assert len([c for c in counts.values() if c >= 2]) >= 15, counts


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
async def test_every_variant_compiles_with_nvcc() -> None:
    sources = {
        f"{p.stem}/{v.strategy}": v.source for p in TRANSLATED + PROGRAMS for v in generate(load_task(p)).variants
    }
    assert len(sources) > 200
    assert await refused(sources) == {}


def test_a_whole_program_is_declined_with_its_line(c_cases: Path) -> None:
    declined = generate(load_task(c_cases / "prog_pair_sums.c")).declined
    assert declined is not None
    assert declined.line == 8
    assert "program" in declined.reason


@pytest.mark.parametrize(
    ("body", "line", "reason"),
    [
        ("for (int i = 1; i < n; i++)\n  a[i] = a[i - 1] + b[i];", 3, "'a' is a running sum"),
        ("float s = 0;\nfor (int i = 0; i < n; i++) {\n  s += b[i];\n  a[i] = s;\n}", 4, "whose order matters"),
        ("float p = 0;\nfor (int i = 0; i < n; i++) {\n  a[i] = p;\n  p = b[i];\n}", 5, "'p' of the one before"),
        ("for (int i = 0; i < n; i++) {\n  if (b[i] < 0)\n    break;\n  a[i] = 1;\n}", 4, "end early"),
        ("a[0] = b[0];", 1, "nothing in the function"),
        ("for (int i = 0; i < n; i++)\n  if (b[i] > 0) goto out;\nout: a[0] = 1;", 3, "goto"),
    ],
)
def test_what_is_declined_names_the_line_and_the_reason(body: str, line: int, reason: str) -> None:
    source = f"void f(int n, float *a, const float *b) {{\n{body}\n}}"
    declined = generate(load_task(source=source)).declined
    assert declined is not None
    assert declined.line == line
    assert reason in declined.reason
    assert declined.remedy


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("row[0] = i;", "if (i > 2) row[0] = i;"),
        ("for (int j = 1; j <= lb; j++)\n            row", "for (int j = 2; j <= lb; j++)\n            row"),
        ("row[j - 1] + 1", "row[j] + 1"),
        ("row[j - 1] + 1", "row[j + 1] + 1"),
        ("for (int j = 0; j <= lb; j++)", "for (int j = 1; j <= lb; j++)"),
    ],
)
def test_rows_that_keep_older_values_are_not_put_into_a_table(c_cases: Path, was: str, becomes: str) -> None:
    source = (c_cases / "edit_distance.c").read_text()
    assert was in source
    assert generate(load_task(source=source.replace(was, becomes), entry="edit_distance")).declined is not None


async def test_a_broken_reduction_is_seen(c_cases: Path, tmp_path: Path) -> None:
    task, generation = await prepared(c_cases / "dot.c")
    assert generation.naive is not None
    broken = generation.naive.source.replace("a.s += b.s;", "a.s = b.s;")
    assert broken != generation.naive.source
    trouble = await check(task, broken, make_cases(task, hidden=False), tmp_path, oracle=Oracle(task))
    assert "return" in trouble.text


@pytest.mark.parametrize(
    "body",
    [
        # Every lane reads y[i], the first one stores it.
        """float s = y[i];
           for (int j = 0; j < m; j++) s += a[i][j];
           y[i] = s;""",
        # Each lane stores what another one has read.
        """float s = 0;
           for (int j = 0; j < m; j++) s += a[i][j];
           for (int j = 0; j < m; j++) a[i][m - 1 - j] = s + y[i];""",
    ],
)
async def test_lanes_store_only_after_all_of_them_have_read(body: str, tmp_path: Path) -> None:
    source = f"void f(int n, int m, float a[n][m], float *y)\n{{\n    for (int i = 0; i < n; i++) {{ {body} }}\n}}\n"
    task = await prepare(load_task(source=source))
    variant = next(v for v in generate(task).variants if v.strategy == "warp_rows")
    cases, oracle = make_cases(task, hidden=False), Oracle(task)
    trouble = await check(task, variant.source, cases, tmp_path, oracle=oracle)
    assert trouble.text == ""
    # The barriers are what it takes: without them the race checker objects.
    unordered = variant.source.replace("    __syncwarp();\n", "")
    assert unordered != variant.source
    trouble = await check(task, unordered, cases, tmp_path, oracle=oracle)
    assert "race" in trouble.text


def test_rows_that_are_only_read_have_no_barrier_before_the_store(c_cases: Path) -> None:
    for name in ("spmv_csr", "nbody_forces"):
        variants = {v.strategy: v.source for v in generate(load_task(c_cases / f"{name}.c")).variants}
        lines = [line.strip() for line in variants["warp_rows"].splitlines()]
        assert all(lines[i - 1] == "}" for i, line in enumerate(lines) if line == "__syncwarp();")
