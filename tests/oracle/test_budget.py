"""The error budget from both sides: other right orders of operations pass, lost precision and wrong values fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cudaperf_agent.tasks.budget import BUDGET, FEW_BUILDS, Builds, Leaf, expect, float_part
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.compare import compare_part
from cudaperf_agent.tasks.model import Case, Role
from cudaperf_agent.tasks.oracle import Oracle
from tests.oracle.hand import DOUBLE, FLOAT, INT, buffer, scalar, task
from tests.oracle.running import judge

SUM = task(
    "total",
    "void total(int n, const float *x, float *out)\n"
    "{ float s = 0; for (int i = 0; i < n; i++) s += x[i]; out[0] = s; }",
    scalar("n"),
    buffer("x", FLOAT, Role.IN),
    buffer("out", FLOAT, Role.OUT, "1"),
)
PAIRWISE = """
static float pairwise(const float *x, int n)
{ return n == 0 ? 0 : n == 1 ? x[0] : pairwise(x, n / 2) + pairwise(x + n / 2, n - n / 2); }
void total(int n, const float *x, float *out) { out[0] = pairwise(x, n); }
"""
BLOCKED = """
void total(int n, const float *x, float *out)
{
    float part[256] = {0};
    for (int i = 0; i < n; i++) part[i % 256] += x[i];
    for (int step = 128; step; step /= 2)
        for (int t = 0; t < step; t++) part[t] += part[t + step];
    out[0] = part[0];
}
"""
REVERSED = "void total(int n, const float *x, float *out) { float s = 0; while (n--) s += x[n]; out[0] = s; }"
IN_DOUBLE = "void total(int n, const float *x, float *out) { double s = 0; while (n--) s += x[n]; out[0] = s; }"
IN_HALF = "void total(int n, const float *x, float *out) { _Float16 s = 0; while (n--) s += x[n]; out[0] = s; }"

SOFT = task(
    "soft",
    "#include <math.h>\nvoid soft(int n, const float *x, float *y)\n{\n"
    "    float s = 0;\n    for (int i = 0; i < n; i++) { y[i] = expf(-fabsf(x[i])); s += y[i] * y[i]; }\n"
    "    for (int i = 0; i < n; i++) y[i] = tanhf(y[i] / sqrtf(s + 1));\n}\n",
    scalar("n"),
    buffer("x", FLOAT, Role.IN),
    buffer("y", FLOAT, Role.OUT),
)

NORM = task(
    "norms",
    "#include <math.h>\nvoid norms(int n, const double *x, double *y)\n{\n"
    "    double mean = 0, var = 0;\n    for (int i = 0; i < n; i++) mean += x[i];\n    mean /= n;\n"
    "    for (int i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean);\n"
    "    for (int i = 0; i < n; i++) y[i] = (x[i] - mean) / sqrt(var / n + 1e-5);\n}\n",
    scalar("n"),
    buffer("x", DOUBLE, Role.IN),
    buffer("y", DOUBLE, Role.OUT),
)


@pytest.mark.parametrize(
    "source", [PAIRWISE, BLOCKED, REVERSED, IN_DOUBLE], ids=["pairwise", "blocked", "back", "wide"]
)
async def test_another_order_of_summation_passes(source: str) -> None:
    for seed in (0, 1, 2):
        cases = [*make_cases(SUM, hidden=False, seed=seed), *make_cases(SUM, hidden=True, seed=seed)]
        found = await judge(SUM, cases, source)
        assert [r.mismatch for r in found if not r.ok] == []


@pytest.mark.parametrize(
    "source",
    [
        IN_HALF,
        SUM.source.replace("i < n", "i < n - 1"),
        SUM.source.replace("int i = 0", "int i = 1"),
        SUM.source.replace("s += x[i]", "s += x[i] * 1.001f"),
        SUM.source.replace("out[0] = s", "out[0] = 0"),
    ],
    ids=["half", "tail", "head", "scaled", "zero"],
)
async def test_a_wrong_sum_fails(source: str) -> None:
    found = await judge(SUM, make_cases(SUM, hidden=False), source)
    assert sum(not r.ok for r in found) >= 5


async def test_other_libraries_of_functions_pass() -> None:
    off = SOFT.source.replace("expf(-fabsf(x[i]))", "expf(-fabsf(x[i])) * (1 + 2.4e-7f)").replace(
        "tanhf(y[i] / sqrtf(s + 1))", "tanhf(y[i] / sqrtf(s + 1)) * (1 - 2.4e-7f)"
    )
    assert off.count("e-7f") == 2
    cases = [*make_cases(SOFT, hidden=False), *make_cases(SOFT, hidden=True)]
    assert all(r.ok for r in await judge(SOFT, cases, off))


async def test_a_polynomial_in_place_of_the_function_fails() -> None:
    off = SOFT.source.replace("tanhf(", "(float)(").replace("sqrtf(s + 1))", "sqrtf(s + 1))")
    assert not all(r.ok for r in await judge(SOFT, make_cases(SOFT, hidden=False), off))


@pytest.mark.parametrize("part", ["mean = 0, var = 0", "double *x"], ids=["accumulators", "square root"])
async def test_float_for_double_fails(part: str) -> None:
    if part == "double *x":
        source = NORM.source.replace("/ sqrt(var / n + 1e-5)", "/ sqrtf(var / n + 1e-5)")
    else:
        source = NORM.source.replace("double mean = 0, var = 0", "float mean = 0, var = 0")
    cases = [c for c in make_cases(NORM, hidden=False) if c.values["n"] > 1]
    found = await judge(NORM, cases, source)
    assert sum(not r.ok for r in found) > len(found) / 2


async def test_one_pass_variance_passes_where_it_is_well_conditioned() -> None:
    source = NORM.source.replace("(x[i] - mean) * (x[i] - mean)", "x[i] * x[i]").replace(
        "var / n + 1e-5", "var / n - mean * mean + 1e-5"
    )
    cases = [c for c in make_cases(NORM, hidden=False) if c.values["n"] > 30]
    assert sum(r.ok for r in await judge(NORM, cases, source)) >= len(cases) - 2


def test_no_allowance_is_a_large_part_of_the_spread() -> None:
    rng = np.random.default_rng(1)
    plain = rng.normal(size=500).astype(np.float32)
    wild = plain + rng.normal(size=500).astype(np.float32)  # a badly conditioned task: builds disagree wholly
    part = float_part(Leaf("", plain), plain.astype(np.float64), [wild], [wild])
    assert part.allowed is not None
    assert part.allowed.max() < 0.03 * plain.std()
    assert compare_part(part, np.zeros_like(plain)).wrong.mean() > 0.9


def test_a_widened_build_that_computes_something_else_is_not_trusted() -> None:
    plain = np.linspace(-1, 1, 100).astype(np.float32)
    part = float_part(Leaf("", plain), -plain.astype(np.float64), [plain], [plain])
    assert part.others == ()
    assert compare_part(part, plain).worst == 0


def test_infinities_and_nans_must_be_where_the_reference_has_them() -> None:
    plain = np.array([1, np.inf, -np.inf, np.nan, 2], np.float32)
    part = float_part(Leaf("", plain), plain.astype(np.float64), [plain], [plain])
    assert not compare_part(part, plain).wrong.any()
    for index, value in [(0, np.nan), (1, -np.inf), (1, 3e38), (2, np.nan), (3, 0), (4, np.inf)]:
        other = plain.copy()
        other[index] = value
        assert compare_part(part, other).wrong.tolist() == [k == index for k in range(5)]


def test_integers_are_exact_where_builds_agree() -> None:
    plain = np.arange(1000, dtype=np.int32)
    output = expect("labels", plain, Builds(wide=plain, contracted=plain))
    got = plain.copy()
    got[7] += 1
    assert compare_part(output.parts[0], got).wrong.sum() == 1


def test_integers_from_floats_may_follow_another_build_and_little_else() -> None:
    plain = np.zeros(1000, np.int32)
    wide, contracted = plain.copy(), plain.copy()
    wide[:2], contracted[2:4] = 1, 1
    (part,) = expect("labels", plain, Builds(wide=wide, contracted=contracted)).parts
    assert not compare_part(part, wide).wrong.any()
    assert not compare_part(part, contracted).wrong.any()
    for count, ok in [(8, True), (9, False)]:  # twice the four elements on which the builds disagree
        other = plain.copy()
        other[100 : 100 + count] = 5
        assert (not compare_part(part, other).wrong.any()) is ok
    many = plain.copy()
    many[:500] = 1
    (part,) = expect("labels", plain, Builds(wide=many, contracted=plain)).parts
    assert part.slack == BUDGET.integer_share * 1000


def test_a_small_output_may_differ_where_rounding_decides() -> None:
    plain = np.zeros(10, np.int32)
    rounded = plain.copy()
    rounded[[2, 5, 7]] = 9
    (part,) = expect("labels", plain, Builds(wide=plain, contracted=plain, directed=(rounded,))).parts
    for places, ok in [([2], True), ([2, 7], True), ([2, 5, 7], False), ([3], False), ([2, 3], False)]:
        got = plain.copy()
        got[places] = 4
        assert (not compare_part(part, got).wrong.any()) is ok


async def test_punned_bits_fall_back_to_the_spread_of_builds() -> None:
    source = (
        "#include <string.h>\nvoid rough(int n, const float *x, float *y)\n{\n"
        "    for (int i = 0; i < n; i++) {\n        unsigned b;\n        float v = x[i] * 1.7f + 0.1f;\n"
        "        memcpy(&b, &v, sizeof b);\n        b &= 0xffff0000u;\n        memcpy(&y[i], &b, sizeof b);\n    }\n}\n"
    )
    rough = task("rough", source, scalar("n"), buffer("x", FLOAT, Role.IN), buffer("y", FLOAT, Role.OUT))
    cases = make_cases(rough, hidden=False)
    expected = await Oracle(rough).expected(cases)
    assert all(part.others == () for e in expected for o in e.outputs for part in o.parts)
    assert all(r.ok for r in await judge(rough, cases))
    assert not all(r.ok for r in await judge(rough, cases, source.replace("0xffff0000u", "0xfff00000u")))


async def test_rounding_to_integers_follows_the_rule_for_integers() -> None:
    source = (
        "void bins(int n, const float *x, int *y)\n"
        "{ for (int i = 0; i < n; i++) y[i] = (int)(x[i] * 3.3f + 0.7f * x[i]); }"
    )
    bins = task("bins", source, scalar("n"), buffer("x", FLOAT, Role.IN), buffer("y", INT, Role.OUT))
    cases = make_cases(bins, hidden=False)
    assert all(r.ok for r in await judge(bins, cases, source.replace("3.3f + 0.7f * x[i]", "4.0f")))
    assert not all(r.ok for r in await judge(bins, cases, source.replace("(int)(", "(int)(0.01f + ")))


async def test_struct_members_are_compared_one_by_one() -> None:
    from cudaperf_agent.tasks.model import CType, Field, TypeKind

    pair = CType("Pair", TypeKind.STRUCT, 16, 8, (Field("at", INT, 0), Field("v", DOUBLE, 8)))
    source = (
        "typedef struct { int at; double v; } Pair;\nvoid pairs(int n, Pair *p)\n"
        "{ for (int i = 0; i < n; i++) { p[i].at += 1; p[i].v *= 1.1; } }"
    )
    pairs = task("pairs", source, scalar("n"), buffer("p", pair, Role.INOUT))
    pairs = replace(pairs, type_declarations="typedef struct { int at; double v; } Pair;")
    small = [replace(p, range=replace(p.range, low="0", high="1000")) if p.pointer else p for p in pairs.parameters]
    pairs = replace(pairs, parameters=tuple(small))
    cases = make_cases(pairs, hidden=False)
    assert all(r.ok for r in await judge(pairs, cases))
    found = await judge(pairs, cases, source.replace("1.1", "1.1f"))
    bad = next(r.mismatch for r in found if r.mismatch)
    assert bad.expected.startswith("v=")
    found = await judge(pairs, cases, source.replace("+= 1", "+= 2"))
    assert next(r.mismatch for r in found if r.mismatch).expected.startswith("at=")


def test_with_few_builds_a_lucky_element_has_at_least_the_median_of_the_others() -> None:
    rng = np.random.default_rng(3)
    wide = rng.standard_normal(999)
    plain = (wide + rng.choice([-1, 1], 999) * rng.uniform(2e-5, 6e-5, 999)).astype(np.float32)
    plain[7] = np.float32(wide[7])  # the C's own error is nothing here, by luck
    alone = float_part(Leaf("", plain), wide, [], [])
    few = float_part(Leaf("", plain), wide, [], [], config=replace(BUDGET, neighbours=FEW_BUILDS))
    assert alone.allowed is not None
    assert few.allowed is not None
    typical = float(np.median(few.allowed))
    assert alone.allowed[7] < 0.1 * typical
    assert 0.9 * typical <= few.allowed[7] <= typical
    other = plain.copy()
    other[7] += np.float32(0.8 * typical)
    assert compare_part(alone, other).wrong.tolist().count(True) == 1
    assert not compare_part(few, other).wrong.any()
    other[7] += np.float32(0.8 * typical)
    assert compare_part(few, other).wrong[7]


def test_elements_that_builds_agree_on_stay_exact_where_most_are() -> None:
    wide = np.arange(1, 1000, dtype=np.float64)
    plain = wide.astype(np.float32)
    plain[500] += np.float32(1.0)
    few = float_part(Leaf("", plain), wide, [], [], config=replace(BUDGET, neighbours=FEW_BUILDS))
    assert few.allowed is not None
    assert few.allowed[0] < 1e-3


CANCELLING = """#include <math.h>
void apart(int n, const double *a, double *y)
{
    for (int i = 0; i < n; i++)
        y[i] = sqrt(1 + a[i] * a[i] * 1e8) - a[i] * 1e4;
}
"""
APART = task(
    "apart",
    CANCELLING,
    scalar("n"),
    buffer("a", DOUBLE, Role.IN),
    buffer("y", DOUBLE, Role.OUT),
)


async def test_of_many_elements_that_cancel_none_is_rejected_for_the_luck_of_its_builds() -> None:
    other = CANCELLING.replace("a[i] * a[i] * 1e8", "a[i] * (a[i] * 1e8)")
    a = np.random.default_rng(9).uniform(1, 2, 1 << 20)
    case = Case("many", {"n": np.array(a.size, np.int32), "a": a, "y": np.zeros_like(a)})
    assert (await judge(APART, [case], other))[0].ok
    alone = Oracle(APART, budget=replace(BUDGET, crowd=1 << 62))
    assert not (await judge(APART, [case], other, oracle=alone))[0].ok


def test_peers_are_of_one_magnitude_and_tell_nothing_of_others() -> None:
    rng = np.random.default_rng(2)
    small, large = rng.uniform(1, 1.5, 5000), rng.uniform(1e6, 1.5e6, 5000)
    plain = np.concatenate([small, large])
    # The large ones are badly conditioned, all but one whose builds agree by luck; the small ones are not.
    far = plain * np.where(plain > 1e5, 1 + 1e-9, 1)
    far[7000] = plain[7000]
    part = float_part(Leaf("", plain), plain.astype(np.longdouble), [far], [])
    assert part.allowed is not None
    assert part.allowed[7000] > 5e-9 * plain[7000]
    strict = BUDGET.spread_ulps * np.finfo(np.float64).eps * np.median(plain)
    assert (part.allowed[:5000] < 1e-14 * small + 2 * strict).all()


def test_a_few_elements_are_no_crowd() -> None:
    plain = np.linspace(1, 1.05, BUDGET.crowd - 1)
    far = plain * (1 + 1e-9)
    far[9] = plain[9]
    part = float_part(Leaf("", plain), plain.astype(np.longdouble), [far], [])
    assert part.allowed is not None
    assert part.allowed[9] < 1e-13 < part.allowed[8]
