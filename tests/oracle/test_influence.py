"""Inputs that change nothing are named, and no others are."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.influence import without_influence
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

LOOP = "for (int i = 0; i < n; i++)"
SCALE = "void f(int n, float a, const float *x, float *y) { " + LOOP


@pytest.mark.parametrize(
    ("source", "idle"),
    [
        (SCALE + " y[i] = a * x[i]; }", ()),
        (SCALE + " y[i] = 2 * x[i]; }", ("a",)),
        (SCALE + " y[i] = 3 + 0 * (x[i] > a); }", ("a", "x")),
        ("void f(int n, int steps, float *y) { for (int t = 0; t < steps; t++) " + LOOP + " y[i] += 1; }", ()),
        ("int f(int n, const int *x) { int s = 0; " + LOOP + " s += x[i] - x[i]; return s; }", ("x",)),
    ],
)
async def test_inputs_without_influence_are_named(source: str, idle: tuple[str, ...]) -> None:
    task = await prepare(load_task(source=source))
    assert await without_influence(task) == idle
    said = [a for a in task.assumptions if "no result" in a]
    assert len(said) == bool(idle)
    assert all(f"`{name}`" in said[0] for name in idle)


@pytest.mark.parametrize("name", ["spmv_csr", "kmeans_assign", "jacobi2d", "find_first", "edit_distance", "mandelbrot"])
async def test_the_handed_files_use_all_their_inputs(c_cases: Path, name: str) -> None:
    assert await without_influence(await prepare(load_task(c_cases / f"{name}.c"))) == ()


async def test_values_that_index_a_local_array_are_not_all_zero() -> None:
    source = (
        "/* cudaperf: in data[n]; out mode[1] */\n"
        "void f(const unsigned char *data, int n, int *mode) {\n"
        "  int count[256] = {0}, where = 0;\n  " + LOOP + " count[data[i]]++;\n"
        "  for (int b = 0; b < 256; b++) if (count[b] > count[where]) where = b;\n  mode[0] = where;\n}\n"
    )
    task = await prepare(load_task(source=source))
    cases = make_cases(task, hidden=True)
    assert max(case.values["data"].max(initial=0) for case in cases) > 200
    assert await without_influence(task) == ()


async def test_values_that_are_always_the_same_are_named() -> None:
    task = await prepare(load_task(source="/* cudaperf: in x[n] in 3..3 */\n" + SCALE + " y[i] = a * x[i]; }"))
    assert await without_influence(task) == ("x",)
