"""Strides and warp-uniform conditions, on formulas built by hand, and the extended set on small kernels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudaperf_agent.features.extract import extract_here
from cudaperf_agent.features.lanes import same_trips, splits_warp, stride_along_x
from cudaperf_agent.features.sampling import evaluate
from cudaperf_agent.features.symbolic import Poly, Space, number


def space(x: int | None = 256, y: int | None = 1) -> Space:
    return Space((x, y, 1), (None, None, 1))


def stride(offset: Poly, at: Space) -> int | None:
    return stride_along_x(offset, at, 1).size


def test_linear_formulas_are_differentiated() -> None:
    at = space()
    x, block = at.builtins["threadIdx.x"], at.builtins["blockIdx.x"]
    n = at.fresh("n")
    global_id = at.binary("*", block, number(256)) + x
    assert stride(global_id.scaled(4), at) == 4
    assert stride(n - global_id, at) == 1
    assert stride(at.binary("*", n, block), at) == 0
    found = stride_along_x(at.binary("*", global_id, n).scaled(8), at, 4)
    assert (found.size, found.text) == (None, "2*n")


def test_what_is_not_linear_is_sampled() -> None:
    at = space()
    x = at.builtins["threadIdx.x"]
    n = at.fresh("n")
    row, column = at.binary("/", x, number(16)), at.binary("%", x, number(16))
    assert stride(at.binary("*", row, n) + column, at) == 1
    assert stride(row, at) == 0
    assert stride(at.binary("^", x, number(1)), at) == 1
    assert stride(at.binary("min", x + number(1), n), at) == 1
    assert stride(at.select(at.binary("<", x, n), x.scaled(3), number(0)), at) == 3
    assert stride(at.binary("*", at.binary("%", x, number(2)), n), at) is None


def test_indirect_and_unknown_are_told_apart() -> None:
    at = space()
    assert stride_along_x(at.fresh("p", "load", 1), at, 1).text == "indirect"
    assert stride_along_x(at.fresh("p", "unknown", 1), at, 1).text == "unknown"
    assert stride_along_x(at.fresh("p", "load", 2), at, 1).size == 0


@given(a=st.integers(-9, 9), c=st.integers(-999, 999), by=st.integers(1, 64), x=st.integers(0, 255))
def test_division_and_remainder_fold_to_what_c_gives(a: int, c: int, by: int, x: int) -> None:
    at = space()
    thread = at.builtins["threadIdx.x"]
    ((atom,),) = thread.terms
    value = thread.scaled(a) + number(c)
    exact = a * x + c
    if exact < 0:
        return
    for operator, expected in (("/", exact // by), ("%", exact % by)):
        folded = at.binary(operator, value, number(by))
        assert int(evaluate(folded, {atom: x}, 1)[0]) == expected


@pytest.mark.parametrize(
    ("condition", "block", "splits"),
    [
        ("x == 0", (256, 1), True),
        ("x < 64", (256, 1), False),
        ("x < 40", (256, 1), True),
        ("x < n", (256, 1), True),
        ("x / 32 == 1", (256, 1), False),
        ("x / 32 < n", (256, 1), False),
        ("x / 16 < n", (256, 1), True),
        ("x % 32 == 0", (256, 1), True),
        ("y == 0", (32, 8), False),
        ("y == 0", (16, 16), True),
        ("y < n", (16, 16), True),
        ("y < n", (None, None), False),
        ("n > 3", (256, 1), False),
    ],
)
def test_conditions_that_split_a_warp(condition: str, block: tuple[int | None, int | None], splits: bool) -> None:
    at = space(*block)
    names = {"x": at.builtins["threadIdx.x"], "y": at.builtins["threadIdx.y"], "n": at.fresh("n")}
    left, operator, right = condition.rsplit(" ", 2)
    parts = left.split()
    value = names[parts[0]] if len(parts) == 1 else at.binary(parts[1], names[parts[0]], number(int(parts[2])))
    test = at.binary(operator, value, names[right] if right in names else number(int(right)))
    assert splits_warp(test, at) is splits


def test_loops_of_the_same_length() -> None:
    at = space()
    x, n, k = at.builtins["threadIdx.x"], at.fresh("n"), at.fresh("k", "loop")
    assert same_trips(at.binary("<", x + k.scaled(256), n))
    assert same_trips(at.binary("<", x + at.binary("*", k, at.fresh("step")), n))
    assert not same_trips(at.binary("<", k, x))
    assert not same_trips(at.binary("<", x + k, n))
    assert not same_trips(at.binary("<", k, at.fresh("end", "load", 1)))


EXTENDED = """#include <mma.h>
using namespace nvcuda;
__global__ void k(const float *x, const half *a, float *y) {
  __shared__ float s[1024];
  int i = blockIdx.x * 128 + threadIdx.x;
  s[2 * threadIdx.x] = x[i] + x[i] + x[i + 1];
  float4 v = ((const float4 *)x)[i];
  s[threadIdx.x] = v.x;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, a + 256, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(y, fc, 16, wmma::mem_row_major);
}
extern "C" void f(const float *x, const half *a, float *y) { k<<<66, 128>>>(x, a, y); }
"""


def test_the_extended_set_is_computed_beside_the_eleven() -> None:
    features = extract_here(EXTENDED)
    assert features.gaps == ()
    found = features.extended
    assert found["bank_conflict"] == (2 + 1) / 2
    # Loads: x[i] twice, x[i + 1], the float4, and two tiles: six, of which x[i] repeats.
    assert found["load_reuse"] == 6 / 5
    assert found["vector_loads"] == 1 / 6
    # Seven accesses: three floats, 16 bytes, two halves, one float.
    assert found["access_width"] == (3 * 4 + 16 + 2 * 2 + 4) / 7
    assert found["stride_bytes"] == (3 * 4 + 16 + 2 * 2 + 4) / 7
    assert found["tensor_ops"] == 1
    assert found["grid_fill"] == 66 / 132
    assert found["registers"] is None
    # Two additions, and a warp's 2 * 16^3 operations shared by its 32 threads.
    assert sum(e.value for e in features.evidence if e.feature == "ops") == 2 + 256
