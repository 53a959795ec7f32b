"""The quick look never accepts what the comparison rejects, and accepts what is within half the budget."""

from __future__ import annotations

import numpy as np
import pytest

from cudaperf_agent.tasks.bounds import bounds_of, surely_right
from cudaperf_agent.tasks.budget import Builds, Expected, expect
from cudaperf_agent.tasks.compare import compare_part

POINT = np.dtype([("x", np.float32), ("k", np.int32)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_lies_within_bounds_compares_as_right(dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(1)
    plain = (rng.standard_normal(200_000) * 10.0 ** rng.integers(-30, 30, 200_000)).astype(dtype)
    wide = plain.astype(np.longdouble if dtype is np.float64 else np.float64) * (1 + 1e-9)
    output = expect("y", plain, Builds(wide=wide))
    part = output.parts[0]
    assert part.allowed is not None
    bounds = bounds_of(Expected("case", (output,)))
    for share in (0.0, 0.5, 0.9, 0.999, 1.0, 1.001, 1.2):
        for sign in (-1, 1):
            moved = (plain + sign * share * part.allowed).astype(dtype)
            inside = (moved >= bounds.outputs["y"].parts[0].low) & (moved <= bounds.outputs["y"].parts[0].high)
            right = ~compare_part(part, moved).wrong
            assert not (inside & ~right).any(), share
            if share <= 0.9:
                assert surely_right(bounds, {"y": moved})


def test_infinities_are_right_as_themselves_and_nan_is_left_to_the_comparison() -> None:
    plain = np.array([1.0, np.inf, -np.inf], np.float32)
    bounds = bounds_of(Expected("case", (expect("y", plain, Builds()),)))
    assert surely_right(bounds, {"y": plain})
    assert not surely_right(bounds, {"y": np.array([1.0, -np.inf, -np.inf], np.float32)})
    assert not surely_right(bounds, {"y": np.array([np.inf, np.inf, -np.inf], np.float32)})
    with_nan = np.array([1.0, np.nan], np.float32)
    bounds = bounds_of(Expected("case", (expect("y", with_nan, Builds()),)))
    assert not surely_right(bounds, {"y": with_nan})
    assert not surely_right(bounds, {"y": np.ones(2, np.float32)})


def test_every_member_of_a_struct_and_the_form_of_an_output_are_looked_at() -> None:
    plain = np.zeros(4, POINT)
    plain["x"], plain["k"] = [1, 2, 3, 4], [5, 6, 7, 8]
    bounds = bounds_of(Expected("case", (expect("p", plain, Builds()),)))
    assert surely_right(bounds, {"p": plain.copy()})
    for member in ("x", "k"):
        other = plain.copy()
        other[member][3] += 1
        assert not surely_right(bounds, {"p": other})
    assert not surely_right(bounds, {"p": plain[:3]})
    assert not surely_right(bounds, {})
    assert not surely_right(bounds, {"p": plain.view(np.float32)})
