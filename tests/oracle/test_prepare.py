"""Preparation: extents measured, inferred ranges narrowed and said so, declared ones held to, roles confirmed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.expr import evaluate
from cudaperf_agent.tasks.measure import measure_extents
from cudaperf_agent.tasks.model import Origin, Role, Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from tests.conftest import CASES
from tests.oracle.hand import FLOAT, SAXPY, buffer


def without_extents(name: str) -> Task:
    task = load_task(CASES / "c" / f"{name}.c")
    return replace(task, parameters=tuple(replace(p, extent=None) for p in task.parameters))


def parameter(task: Task, name: str):  # type: ignore[no-untyped-def]
    return next(p for p in task.inputs() if p.name == name)


@pytest.mark.parametrize(
    ("name", "extents"),
    [
        ("saxpy", {"x": "n", "y": "n"}),
        ("rgb_to_gray", {"rgb": "w > 0 && h > 0 ? (h-1)*s + 3*w : 0", "gray": "w*h"}),
        ("jacobi2d", {"grid": "h*w", "src": "h*w"}),
        ("find_first", {"haystack": "n"}),
        ("conv2d_same", {"img": "h*w", "filt": "k*k", "out": "h*w"}),
        ("nbody_forces", {"bodies": "n", "acc": "n"}),
    ],
)
async def test_extents_are_measured(name: str, extents: dict[str, str]) -> None:
    measured = await measure_extents(without_extents(name))
    names = {"width": "w", "height": "h", "stride": "s", "ksize": "k", "count": "n", "cols": "w"}
    for values in ({"w": 7, "h": 5, "s": 31, "k": 3, "n": 9}, {"w": 4, "h": 11, "s": 12, "k": 5, "n": 0}):
        env = {**values, **{long: values[short] for long, short in names.items()}}
        for buffer_name, expr in extents.items():
            found = parameter(measured, buffer_name).extent
            assert found.origin is Origin.MEASURED
            assert evaluate(found.expr, env) == evaluate(expr, env), found.expr
    assert len(measured.assumptions) >= len(extents)


async def test_triangular_extents_are_measured() -> None:
    source = (
        "void tri(int n, double *a) { for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) a[i*(i+1)/2+j] *= 2; }"
    )
    task = load_task(source=source)
    task = replace(task, parameters=tuple(replace(p, extent=None) for p in task.parameters))
    measured = await measure_extents(task)
    assert [evaluate(parameter(measured, "a").extent.expr, {"n": n}) for n in (0, 1, 5, 100)] == [0, 1, 15, 5050]


async def test_an_extent_without_a_rule_is_refused_with_the_line_to_write() -> None:
    task = load_task(CASES / "c" / "saxpy.c")
    source = (
        "void f(int n, float a, const float *x, float *y)\n{ for (int i = 0; i < n; i++) y[i] = x[i * i % 7 + i]; }"
    )
    task = replace(task, source=source, name="f")
    task = replace(task, parameters=tuple(replace(p, extent=None) for p in task.parameters))
    with pytest.raises(InputRefused) as refused:
        await measure_extents(task)
    assert "/* cudaperf: in x[n] */" in str(refused.value)


NARROWED = [
    ("int avg(const int *x, int n) { long s = 0; for (int i = 0; i < n; i++) s += x[i]; return (int)(s / n); }",
     "n", "at least 1", "division by zero (line 1)"),
    ("#include <math.h>\nvoid r(int n, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = sqrtf(x[i]); }",
     "x", "0.001..1000", "more than 5 % of `y` is not finite"),
    ("void s(int n, const int *x, int *y) { int t = 0; for (int i = 0; i < n; i++) y[i] = t += x[i]; }",
     "x", "-1000000..1000000", "signed integer overflow"),
    ("void q(int n, const float *x, int *y) { for (int i = 0; i < n; i++) y[i] = (int)(x[i] * 1e6f); }",
     "x", "-10..10", "outside the range of representable values"),
    ("void v(int n, const float *x, float *y) { float t[n]; for (int i = 0; i < n; i++) t[i] = x[i];"
     " for (int i = 0; i < n; i++) y[i] = t[n - 1 - i]; }",
     "n", "at least 1", "variable length array bound"),
    ("void h(int n, int k, const int *x, int *y) { for (int i = 0; i < n; i++) y[i] = x[i] << k; }",
     "k", "0..9", "shift exponent"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "name", "range_", "reason"), NARROWED, ids=[n[1] + " " + n[2] for n in NARROWED])
async def test_inferred_ranges_are_narrowed_and_the_narrowing_is_said(
    source: str, name: str, range_: str, reason: str
) -> None:
    task = await prepare(load_task(source=source))
    said = [a for a in task.assumptions if "assumed" in a]
    assert len(said) == 1
    assert said[0].startswith(f"`{name}` is assumed to ")
    assert range_ in said[0]
    assert reason in said[0]
    kept = parameter(task, name).range
    for case in make_cases(task, hidden=True):
        if case.values[name].size:
            assert case.values[name].min() >= float(kept.low)


REFUSED = [
    ("/* cudaperf: in d[n] in 0..5 */\nvoid f(int n, const int *d, int *y)\n"
     "{\n    for (int i = 0; i < n; i++)\n        y[i] = 100 / d[i];\n}", 5, "division by zero"),
    ("void f(int n, const float x[n], float y[n])\n"
     "{\n    for (int i = 0; i < n; i++)\n        y[i] = x[i] + x[i - 1];\n}",
     4, "reads `x[-1]`"),
    ("void f(int n, const int x[static n], int y[static n])\n"
     "{\n    for (int i = 0; i <= n; i++)\n        y[i] = x[i];\n}",
     4, "`x` has 0 elements"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "line", "message"), REFUSED, ids=[r[2] for r in REFUSED])
async def test_undefined_behaviour_on_declared_inputs_is_refused_with_its_line(
    source: str, line: int, message: str
) -> None:
    with pytest.raises(InputRefused) as refused:
        await prepare(load_task(source=source))
    assert message in refused.value.message
    assert refused.value.where is not None
    assert refused.value.where.endswith(f":{line}")
    assert refused.value.hint


async def test_reads_past_end_names_line_element_and_remedy() -> None:
    with pytest.raises(InputRefused) as refused:
        await prepare(load_task(CASES / "c" / "bad" / "reads_past_end.c"))
    assert refused.value.where is not None
    assert refused.value.where.endswith("reads_past_end.c:5")
    assert "reads `x[1]`, but `x` has 1 element" in refused.value.message
    assert "x[n+1]" in (refused.value.hint or "")


async def test_an_endless_c_is_narrowed_or_refused() -> None:
    source = "void f(int n, int *x)\n{\n    for (int i = 0; i < n; i++)\n        while (x[i] != 3) x[i] ^= 4;\n}"
    with pytest.raises(InputRefused, match="does not end"):
        await prepare(load_task(source=source), config=replace_seconds())


def replace_seconds():  # type: ignore[no-untyped-def]
    from cudaperf_agent.tasks.narrow import NARROW

    return replace(NARROW, seconds=0.4, seeds=(0,))


async def test_an_output_that_is_not_fully_written_is_inout() -> None:
    source = "void f(int n, const float *x, float *y) { for (int i = 0; i < n; i++) if (x[i] > 0) y[i] = x[i]; }"
    task = load_task(source=source)
    forced = [replace(p, role=Role.OUT) if p.name == "y" else p for p in task.parameters]
    task = await prepare(replace(task, parameters=tuple(forced)))
    assert parameter(task, "y").role is Role.INOUT
    assert any("`y` is treated as inout" in a for a in task.assumptions)


async def test_an_output_that_is_read_first_is_inout() -> None:
    forced = [replace(p, role=Role.OUT) if p.name == "y" else p for p in SAXPY.parameters]
    task = await prepare(replace(SAXPY, parameters=tuple(forced)))
    assert parameter(task, "y").role is Role.INOUT


async def test_an_input_that_is_changed_is_inout_or_refused() -> None:
    source = "void f(int n, float *x, float *y) { for (int i = 0; i < n; i++) { y[i] = x[i]; x[i] = 0; } }"
    task = load_task(source=source)
    inferred = replace(parameter(task, "x"), role=Role.IN, role_origin=Origin.DEFAULT)
    task = replace(task, parameters=tuple(inferred if p.name == "x" else p for p in task.parameters))
    assert parameter(await prepare(task), "x").role is Role.INOUT
    with pytest.raises(InputRefused, match="declared `in`, but the C changes it"):
        await prepare(load_task(source="/* cudaperf: in x[n] */\n" + source))


async def test_an_inferred_extent_that_is_too_small_is_measured() -> None:
    x = buffer("x", FLOAT, Role.IN, "n/2")
    task = replace(SAXPY, parameters=tuple(x if p.name == "x" else p for p in SAXPY.parameters))
    assert parameter(await prepare(task), "x").extent.expr == "n"


async def test_the_digest_depends_on_what_was_settled_and_on_nothing_else() -> None:
    first, again = await prepare(SAXPY), await prepare(replace(SAXPY, path="elsewhere.c"))
    other = await prepare(replace(SAXPY, source=SAXPY.source.replace("a *", "2 * a *")))
    assert first.digest == again.digest
    assert len(first.digest) == 64
    assert first.digest != other.digest


async def test_everything_runs_through_the_sandbox() -> None:
    seen: list[str] = []

    def wrap(argv: list[str], folder) -> list[str]:  # type: ignore[no-untyped-def]
        seen.append(argv[0])
        assert folder.is_dir()
        return ["/usr/bin/env", "INSIDE=1", *argv]

    task = await prepare(SAXPY, wrap=wrap)
    from cudaperf_agent.tasks.oracle import Oracle

    expected = await Oracle(task, wrap).expected(make_cases(task, hidden=False))
    assert len(seen) > 6
    assert np.isfinite(expected[-1].output("y").value).all()
