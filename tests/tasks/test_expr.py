"""C expressions as text: values as C gives them, names, and errors with their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudaperf_agent.tasks import expr


@pytest.mark.parametrize(
    ("text", "env", "value"),
    [
        ("n*n", {"n": 5}, 25),
        ("(h > 0 && w > 0) ? (h-1)*stride + 3*w : 0", {"h": 2, "w": 3, "stride": 10}, 19),
        ("(h > 0 && w > 0) ? (h-1)*stride + 3*w : 0", {"h": 0, "w": 3, "stride": 10}, 0),
        ("-7/2", {}, -3),
        ("7/-2", {}, -3),
        ("-7%3", {}, -1),
        ("7%-3", {}, 1),
        ("2+3*4-1", {}, 13),
        ("10-3-2", {}, 5),
        ("100/10/2", {}, 5),
        ("1<<4|1", {}, 17),
        ("~0 & 0xff", {}, 255),
        ("6^3", {}, 5),
        ("!n + !!n", {"n": 3}, 1),
        ("a < b == 1", {"a": 1, "b": 2}, 1),
        ("a ? b ? 1 : 2 : 3", {"a": 1, "b": 0}, 2),
        ("0 && 1/0", {}, 0),
        ("1 || 1/0", {}, 1),
        ("0 ? 1/0 : 4", {}, 4),
        ("(size_t)n*sizeof(float)", {"n": 3}, 12),
        ("sizeof(unsigned short)+sizeof(long double)+sizeof(uint8_t)", {}, 19),
        ("(int)2.9", {}, 2),
        ("(double)1/2", {}, 0.5),
        ("max(a, min(b, 3))", {"a": 1, "b": 9}, 3),
        ("abs(-4)", {}, 4),
        ("010 + 0b11 + 0x1F", {}, 42),
        ("10UL", {}, 10),
        ("1e3*n", {"n": 2}, 2000.0),
        ("-1.5f", {}, -1.5),
        (".5 + 1.", {}, 1.5),
        ("'a'", {}, 97),
        ("'\\n'", {}, 10),
        ("n", {"n": 2**40}, 2**40),
    ],
)
def test_values(text: str, env: dict[str, int], value: float) -> None:
    found = expr.evaluate(text, env)
    assert found == value
    assert type(found) is type(value)


def test_products_of_sizes_never_wrap() -> None:
    assert expr.evaluate("n*n*n", {"n": 2**31 - 1}) == (2**31 - 1) ** 3


def test_names() -> None:
    assert expr.names("(h > 0) ? h*stride + max(w, 3) : (size_t)n") == {"h", "stride", "w", "n"}


def test_divisors() -> None:
    assert expr.divisors("(h + k)/s * w % (t - 1) + n/2") == {"s", "t"}


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("n +", 3),
        ("n @ 2", 2),
        ("(n", 2),
        ("n m", 2),
        ("", 0),
        ("f(n)", 0),
        ("sizeof n", 7),
        ("min(n)", 0),
        ("a ? b", 5),
    ],
)
def test_faults_have_a_place(text: str, position: int) -> None:
    with pytest.raises(expr.ExprError) as caught:
        expr.parse(text)
    assert caught.value.position == position


@pytest.mark.parametrize("text", ["1/0", "n%0", "missing", "1 << -1", "1.5 & 1"])
def test_what_has_no_value(text: str) -> None:
    with pytest.raises(expr.ExprError):
        expr.evaluate(text, {"n": 4})


@given(st.integers(-50, 50), st.integers(-50, 50).filter(bool))
def test_division_is_that_of_c(a: int, b: int) -> None:
    quotient, remainder = expr.evaluate("a/b", {"a": a, "b": b}), expr.evaluate("a%b", {"a": a, "b": b})
    assert quotient * b + remainder == a
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder < 0) == (a < 0)
