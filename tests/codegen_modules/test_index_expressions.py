"""Index arithmetic: simplified expressions have the value of the plain ones, and reshapes in order cost nothing."""

from __future__ import annotations

import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from cudaperf_agent.codegen.modules.sizes import (
    Atom,
    Expr,
    Size,
    Var,
    as_expr,
    below,
    evaluated,
    flattened,
    never_negative,
    substituted,
    text_of,
    unflattened,
)

NAMES = ("a", "b", "c", "d")


def _shape(kinds: list[int]) -> tuple[Expr, ...]:
    """Known sizes for positive numbers, named ones for others."""
    return tuple(as_expr(k) if k > 0 else as_expr(Size(NAMES[-k % len(NAMES)])) for k in kinds)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-3, 6), min_size=1, max_size=4), st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_unflatten_then_flatten_is_the_identity(kinds: list[int], seed: int, chance: random.Random) -> None:
    shape = _shape(kinds)
    count = as_expr(1)
    for size in shape:
        count = count * size
    flat = as_expr(Var("i", count))
    index = unflattened(flat, shape)
    assert flattened(index, shape) == flat
    sizes = {name: chance.randint(1, 7) for name in NAMES}
    total = evaluated(count, sizes)
    at = seed % total
    values = [evaluated(e, sizes | {"i": at}) for e in index]
    extents = [evaluated(n, sizes) for n in shape]
    want = []
    for extent in reversed(extents):
        want.insert(0, at % extent)
        at //= extent
    assert values == want


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-3, 5), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_text_has_the_value_of_the_expression(kinds: list[int], chance: random.Random) -> None:
    shape = _shape(kinds)
    variables = [Var(f"i{k}", n) for k, n in enumerate(shape)]
    flat = flattened([as_expr(v) for v in variables], shape)
    divisor = as_expr(Size("a")) * chance.randint(1, 3)
    sizes = {name: chance.randint(1, 7) for name in NAMES}
    place = {v.name: chance.randrange(evaluated(v.extent, sizes)) for v in variables}
    plain = 0
    for variable in variables:
        plain = plain * evaluated(variable.extent, sizes) + place[variable.name]
    by = evaluated(divisor, sizes)
    for found, want in ((flat, plain), (flat // divisor, plain // by), (flat % divisor, plain % by)):
        assert evaluated(found, sizes | place) == want
        assert eval(text_of(found, python=True), {}, sizes | place) == want


def test_rows_of_a_group_need_no_division() -> None:
    batch, height, width = (as_expr(Size(n)) for n in ("n", "h", "w"))
    plane = height * width
    n, g = as_expr(Var("i0", batch)), as_expr(Var("i1", as_expr(16)))
    c, p = as_expr(Var("r0", as_expr(4))), as_expr(Var("r1", plane))
    flat = flattened((n, g, c, p), (batch, as_expr(16), as_expr(4), plane))
    index = unflattened(flat, (batch, as_expr(64), height, width))
    assert index[0] == n
    assert index[1] == g * 4 + c
    assert index[1] // 4 == g
    assert flattened(index, (batch, as_expr(64), height, width)) == flat


def test_what_cannot_be_proved_is_not_claimed() -> None:
    n, m = as_expr(Size("n")), as_expr(Size("m"))
    i = as_expr(Var("i", n))
    assert below(i, n)
    assert not below(i, m)
    assert never_negative(n - 1)
    assert not never_negative(n - 2)
    assert not never_negative(i - 1)
    assert text_of(i // m) == "(i / m)"
    assert text_of((i - 1) // as_expr(2)) == "((i - 1) / 2)"


def test_substitution_simplifies_again() -> None:
    n = as_expr(Size("n"))
    i, j = Var("i", n * 4), Var("j", n)
    by: dict[Atom, Expr] = {i: as_expr(j) * 4 + 3}
    assert substituted(as_expr(i) // 4, by) == as_expr(j)
    assert substituted(as_expr(i) % 4, by) == as_expr(3)
    assert math.prod([2, 3]) == evaluated(as_expr(6), {})
