"""Errors that a GPU's mathematical functions may have are no fault of a candidate; larger ones are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.execution.native import call_native
from cudaperf_agent.tasks import oracle as oracles
from cudaperf_agent.tasks.budget import Builds, expect, reach
from cudaperf_agent.tasks.cases import sized_case
from cudaperf_agent.tasks.device_math import MAXIMUM_ERRORS, PATTERNS, TURNS, device_functions
from cudaperf_agent.tasks.model import Case, Role, Task, Value
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.reference_build import Build, require_library
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name
from tests.oracle import hand
from tests.oracle.running import judge

CASES = Path(__file__).parent.parent / "cases" / "c"
ELEMENTS = 1 << 17
# Random errors of an erfc, which are not those that the budget is made from.
OFF = """
static double off(double right, double units)
{
    static unsigned long made;
    unsigned long mixed = ++made * 0x9E3779B97F4A7C15ul;
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9ul;
    return right + units * ((mixed >> 63) ? -1 : 1) * (nextafter(right, INFINITY) - right);
}
"""


def unary(function: str, type_: str = "double") -> Task:
    """``y[i] = f(x[i])``."""
    known = hand.FLOAT if type_ == "float" else hand.DOUBLE
    return hand.task(
        "apply",
        f"#include <math.h>\nvoid apply(int n, const {type_} *x, {type_} *y)\n"
        f"{{\n    for (int i = 0; i < n; i++)\n        y[i] = {function}(x[i]);\n}}\n",
        hand.scalar("n"),
        hand.buffer("x", known, Role.IN),
        hand.buffer("y", known, Role.OUT),
    )


async def turns(task: Task, case: Case) -> list[Value]:
    library = await require_library(task, Build.DEVICE_MATH)
    run = await call_native(library, [native_arguments(task, case)] * TURNS)
    return [outputs_by_name(task, outcome.outputs)["y"] for outcome in run.outcomes]


@pytest.mark.parametrize(("function", "type_"), [("erfc", "double"), ("exp", "double"), ("tanf", "float")])
async def test_functions_err_by_what_is_documented_in_both_directions(function: str, type_: str) -> None:
    task = unary(function, type_)
    dtype = np.dtype("f4" if type_ == "float" else "f8")
    x = np.linspace(0.1, 1.4, 1000).astype(dtype)
    case = Case("x", {"n": np.array(x.size, np.int32), "x": x, "y": np.zeros_like(x)})
    first, *patterns, upward = await turns(task, case)
    error = MAXIMUM_ERRORS[function.removesuffix("f")] if type_ == "float" else MAXIMUM_ERRORS[function]
    units = error.single if type_ == "float" else error.double
    size = np.spacing(np.abs(first))
    assert len(patterns) == PATTERNS
    for turn in patterns:
        steps = (turn - first) / size
        # Where the magnitude's exponent changes on the way, rounding may take half a step more or less.
        assert np.abs(np.abs(steps) - units).max() <= 1
        assert 0.3 < (steps > 0).mean() < 0.7
    assert ((upward - first) / size >= units - 1).all()


async def test_results_stay_in_the_functions_range() -> None:
    task = unary("sin")
    x = np.full(100, np.pi / 2)
    found = await turns(task, Case("x", {"n": np.array(100, np.int32), "x": x, "y": np.zeros(100)}))
    assert max(np.abs(turn).max() for turn in found) <= 1


def test_functions_are_found_by_name_and_type() -> None:
    assert device_functions(hand.SAXPY) == ()
    assert device_functions(unary("expf", "float")) == ("exp", "expf")
    assert device_functions(unary("__builtin_exp")) == ("exp", "expf")
    assert device_functions(unary("sqrt")) == ()
    assert device_functions(replace(hand.SAXPY, source=hand.SAXPY.source.replace("x[i]", "y0[i]"))) == ()
    macro = "#define TWICE(v) (2 * log1p (v))\n"
    assert device_functions(replace(hand.SAXPY, source=macro + hand.SAXPY.source)) == ("log1p", "log1pf")
    assert "cosh" in device_functions(replace(hand.SAXPY, source='#include "own.h"\n' + hand.SAXPY.source))


def test_the_effects_of_calls_add_up_although_they_cancel_in_every_turn() -> None:
    rng = np.random.default_rng(5)
    effects = rng.normal(size=(PATTERNS, 2000))
    effects[1] = effects[0]  # cancels in half of the turns …
    signs = np.array([[(-1) ** (k & j).bit_count() for j in range(PATTERNS)] for k in range(PATTERNS)])
    moved = signs @ (effects * rng.choice([-1, 1], effects.shape))
    found = reach([np.ones(2000), *(1 + moved), np.ones(2000)], (2000,))
    total = np.abs(effects).sum(axis=0)
    assert (found >= total * (1 - 1e-9)).all()  # … and still counts
    assert (found <= PATTERNS**0.5 * total).all()


def test_turns_that_are_missing_or_not_finite_allow_nothing() -> None:
    ones = np.ones(3)
    assert reach([ones] * (TURNS - 1), (3,)) == 0
    broken = [ones, *[np.array([np.nan, np.inf, 1.0])] * (TURNS - 1)]
    assert (reach(broken, (3,)) == 0).all()


def test_integers_that_the_functions_decide_may_differ_more_often() -> None:
    plain = np.arange(1000, dtype=np.int32)
    turned = plain.copy()
    turned[:3] += 1
    part = expect("y", plain, Builds(device=(turned,) * TURNS)).parts[0]
    assert part.slack == 6
    assert expect("y", plain, Builds(device=(plain,) * TURNS)).parts[0].slack == 0


@pytest.fixture(scope="module")
def options() -> Task:
    return load_task(CASES / "black_scholes.c")


@pytest.fixture(scope="module")
def option_case(options: Task) -> Case:
    case = sized_case(options, {"n": ELEMENTS}, 4)
    # Prices close to zero beside others: terms that cancel, in the inner range of erfc.
    return replace(case, values={**case.values, "rate": np.array(0.16), "vol": np.array(0.58)})


def options_off_by(options: Task, units: float) -> str:
    text = options.source.replace("erfc(-d * M_SQRT1_2)", f"off(erfc(-d * M_SQRT1_2), {units})")
    return text.replace("#include <math.h>\n", "#include <math.h>\n" + OFF)


async def test_a_candidate_with_documented_errors_is_right(options: Task, option_case: Case) -> None:
    units = MAXIMUM_ERRORS["erfc"].double
    assert (await judge(options, [option_case], options_off_by(options, units)))[0].ok


async def test_it_would_be_wrong_by_the_host_s_builds_alone(
    options: Task, option_case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oracles, "device_functions", lambda task: ())
    units = MAXIMUM_ERRORS["erfc"].double
    assert not (await judge(options, [option_case], options_off_by(options, units)))[0].ok


async def test_a_candidate_with_errors_beyond_them_is_wrong(options: Task, option_case: Case) -> None:
    units = 100 * MAXIMUM_ERRORS["erfc"].double
    assert not (await judge(options, [option_case], options_off_by(options, units)))[0].ok
