"""Comparison of outputs and of printed text: one clear mismatch, everything else lets pass."""

from __future__ import annotations

import numpy as np
import pytest

from cudaperf_agent.tasks.budget import Expected, Part
from cudaperf_agent.tasks.cases import make_cases, sized_case
from cudaperf_agent.tasks.compare import compare, compare_stdout
from cudaperf_agent.tasks.oracle import Oracle
from tests.oracle.hand import SAXPY


@pytest.fixture
async def setting():  # type: ignore[no-untyped-def]
    case = make_cases(SAXPY, hidden=False)[-1]
    (expected,) = await Oracle(SAXPY).expected([case])
    return case, expected, {"x": case.values["x"].copy(), "y": expected.output("y").value.copy()}


def test_the_first_mismatch_is_described(setting) -> None:  # type: ignore[no-untyped-def]
    case, expected, outputs = setting
    outputs["y"][[5, 9, 100]] += 1
    found = compare(SAXPY, case, expected, outputs).mismatch
    assert found is not None
    assert (found.output, found.index, found.count, found.total) == ("y", 5, 3, case.values["n"])
    assert found.error == pytest.approx(1, rel=1e-5)
    assert found.allowed is not None
    assert 0 < found.allowed < 0.01
    assert float(found.got) == pytest.approx(float(found.expected) + 1, rel=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_fail(setting, value: float) -> None:  # type: ignore[no-untyped-def]
    case, expected, outputs = setting
    outputs["y"][3] = value
    result = compare(SAXPY, case, expected, outputs)
    assert not result.ok
    assert result.mismatch is not None
    assert result.mismatch.error is None


def test_missing_short_and_mistyped_outputs_fail(setting) -> None:  # type: ignore[no-untyped-def]
    case, expected, outputs = setting
    for wrong in ({}, {"y": outputs["y"][:-1]}, {"y": outputs["y"].astype(np.float64)}):
        assert not compare(SAXPY, case, expected, wrong).ok


def test_an_input_changed_from_zero_to_minus_zero_is_a_change(setting) -> None:  # type: ignore[no-untyped-def]
    case, expected, outputs = setting
    case.values["x"][7] = outputs["x"][7] = 0.0
    outputs["x"][7] = -0.0
    assert not compare(SAXPY, case, expected, outputs).ok


async def test_expected_values_are_made_once_per_content() -> None:
    oracle = Oracle(SAXPY)
    cases = make_cases(SAXPY, hidden=False)
    first = await oracle.expected(cases)
    again = await oracle.expected(cases[::-1])
    assert all(a.outputs is b.outputs for a, b in zip(first, again[::-1], strict=True))
    assert [e.case for e in again] == [c.name for c in cases[::-1]]


async def test_a_large_case_has_a_budget_of_its_own_and_little_memory() -> None:
    case = sized_case(SAXPY, {"n": 1_300_000}, 1)
    (expected,) = await Oracle(SAXPY, batch_bytes=1 << 20).expected([case])
    (part,) = expected.output("y").parts
    assert part.others == ()
    assert part.allowed is not None
    wide = case.values["a"].astype(np.float64) * case.values["x"] + case.values["y"]
    got = {"x": case.values["x"], "y": wide.astype(np.float32)}
    assert compare(SAXPY, case, expected, got).ok
    got["y"][-1] = np.float32(wide[-1] * 1.001)
    result = compare(SAXPY, case, expected, got)
    assert result.mismatch is not None
    assert result.mismatch.index == 1_299_999


def printed(text: bytes, allowed: list[float]) -> Expected:
    return Expected("p", (), text, Part("", np.zeros(len(allowed)), np.array(allowed)))


@pytest.mark.parametrize(
    ("got", "ok"),
    [
        (b"sum 3.50\n7 done\n", True),
        (b"sum  3.50  \r\n7 done", True),
        (b"sum 3.5\n7 done\n\n\n", True),
        (b"sum 3.501\n7 done\n", True),
        (b"sum 3.52\n7 done\n", False),
        (b"sum nan\n7 done\n", False),
        (b"sum 3.50\n8 done\n", False),
        (b"sum 3.50\n07 done\n", True),
        (b"sum 3.50\n7.0 done\n", False),
        (b"sum 3.50\n7 Done\n", False),
        (b"sum 3.50 7 done\n", False),
        (b"sum 3.50\n7 done\nmore\n", False),
        (b"sum 3.50\n7\n", False),
        (b"", False),
    ],
)
def test_printed_text(got: bytes, ok: bool) -> None:
    assert compare_stdout(printed(b"sum 3.50\n7 done\n", [0.01, 0]), got).ok is ok


def test_a_printed_mismatch_names_word_and_line() -> None:
    found = compare_stdout(printed(b"1 2\n3 4\n", [0, 0, 0, 0]), b"1 2\n3 5\n").mismatch
    assert found is not None
    assert (found.output, found.index, found.expected, found.got) == ("stdout", 6, "4 (line 2)", "5 (line 2)")
    cut = compare_stdout(printed(b"1 2\n3 4\n", [0, 0, 0, 0]), b"1 2\n").mismatch
    assert cut is not None
    assert cut.got == "the end of the output"
    assert cut.count == 2


def test_long_integers_are_compared_exactly() -> None:
    text = b"123456789012345678901\n"
    assert compare_stdout(printed(text, [0]), text).ok
    assert not compare_stdout(printed(text, [0]), b"123456789012345678902\n").ok
