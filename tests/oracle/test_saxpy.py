"""The thin slice: saxpy's cases, expected values and comparison, end to end."""

from __future__ import annotations

import numpy as np
import pytest

from cudaperf_agent.tasks.cases import make_cases, sized_case
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.reference_build import Build
from tests.oracle.hand import SAXPY
from tests.oracle.running import judge


@pytest.fixture(params=[False, True], ids=["visible", "hidden"])
def cases(request):  # type: ignore[no-untyped-def]
    return make_cases(SAXPY, hidden=request.param)


async def test_the_c_itself_passes(cases) -> None:  # type: ignore[no-untyped-def]
    assert all(r.ok for r in await judge(SAXPY, cases))


async def test_a_contracted_build_passes(cases) -> None:  # type: ignore[no-untyped-def]
    assert all(r.ok for r in await judge(SAXPY, cases, build=Build.NATIVE))
    results = await judge(SAXPY, cases, SAXPY.source.replace("a * x[i]", "a * x[i] * 1.0000002f"))
    assert all(r.ok for r in results)
    assert 0 < max(r.worst_error for r in results) < 1


@pytest.mark.parametrize(
    ("old", "new"),
    [("i < n", "i < n - 1"), ("+ y[i]", "- y[i]"), ("x[i]", "x[i ? i - 1 : 0]"), ("a * x[i] + y[i]", "0"), ("a *", "")],
)
async def test_a_wrong_version_fails(cases, old: str, new: str) -> None:  # type: ignore[no-untyped-def]
    results = await judge(SAXPY, cases, SAXPY.source.replace(old, new))
    assert not all(r.ok for r in results)


async def test_a_changed_input_is_a_mismatch(cases) -> None:  # type: ignore[no-untyped-def]
    case = cases[-1]
    (expected,) = await Oracle(SAXPY).expected([case])
    changed = case.values["x"].copy()
    changed[3] += 1
    result = compare(SAXPY, case, expected, {"x": changed, "y": expected.output("y").value})
    assert not result.ok
    assert result.mismatch is not None
    assert (result.mismatch.output, result.mismatch.index, result.mismatch.count) == ("x", 3, 1)
    assert "must not change" in result.mismatch.expected


def test_cases_are_deterministic_and_sets_differ() -> None:
    again, other = make_cases(SAXPY, hidden=False), make_cases(SAXPY, hidden=True)
    first = make_cases(SAXPY, hidden=False)
    assert [c.name for c in first] == [c.name for c in again]
    assert all(np.array_equal(a.values["x"], b.values["x"]) for a, b in zip(first, again, strict=True))
    sizes = [{int(c.values["n"]) for c in cases} for cases in (first, other)]
    assert {0, 1, 257} <= sizes[0]
    assert {0, 1, 127, 1023} <= sizes[1]
    assert max(sizes[0]) > 512


def test_a_sized_case_has_that_size() -> None:
    case = sized_case(SAXPY, {"n": 100_000}, 3)
    assert case.values["x"].shape == (100_000,)
    assert case.values["x"].dtype == np.float32
