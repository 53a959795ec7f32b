"""Cases: sizes that matter, legal values only, different distributions for the visible and the hidden set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.cases import make_cases, sized_case
from cudaperf_agent.tasks.model import CType, Field, Origin, Role, TypeKind, ValueRange
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.usage import tokens, usage
from cudaperf_agent.tasks.values import Bounds, Profile, draw
from tests.oracle.hand import DOUBLE, FLOAT, INT, SAXPY, buffer, scalar, task

UCHAR = CType("unsigned char", TypeKind.UINT, 1, 1)
CHAR = CType("char", TypeKind.INT, 1, 1)
SHORT = CType("short", TypeKind.INT, 2, 2)
LONG = CType("long", TypeKind.INT, 8, 8)
ULONG = CType("unsigned long", TypeKind.UINT, 8, 8)
LONG_DOUBLE = CType("long double", TypeKind.FLOAT, 16, 16)


def declared(low: str | None, high: str | None, odd: bool = False) -> ValueRange:
    return ValueRange(low, high, odd, Origin.COMMENT)


SPMV = task(
    "spmv",
    "void spmv(int rows, int cols, int nnz, const int *ptr, const int *col, double *y)\n"
    "{ for (int r = 0; r < rows; r++) for (int k = ptr[r]; k < ptr[r + 1]; k++) y[r] += col[k]; }",
    scalar("rows"),
    scalar("cols"),
    scalar("nnz"),
    buffer("ptr", INT, Role.IN, "rows+1", ascending=True, range=declared("0", "nnz")),
    buffer("col", INT, Role.IN, "nnz", index=True, range=declared("0", "cols-1")),
    buffer("y", DOUBLE, Role.INOUT, "rows"),
)
FIND = task(
    "find",
    "int find(const int *hay, int n, int needle)\n"
    "{ for (int i = 0; i < n; i++) { int v = hay[i]; if (v == needle) return i; } return -1; }",
    buffer("hay", INT, Role.IN),
    scalar("n"),
    scalar("needle"),
    returns=INT,
)
GRID = task(
    "grid",
    "void grid(int h, int w, int sweeps, double a[h][w])\n{ for (int s = 0; s < sweeps; s++) a[0][0] += 1; }",
    scalar("h"),
    scalar("w"),
    scalar("sweeps"),
    buffer("a", DOUBLE, Role.INOUT, "h*w", dims=("h", "w")),
)


def both(wanted) -> list:  # type: ignore[no-untyped-def, type-arg]
    return [*make_cases(wanted, hidden=False), *make_cases(wanted, hidden=True)]


def test_correlated_buffers_are_legal_together() -> None:
    cases = both(SPMV)
    assert len(cases) >= 20
    full = 0
    for case in cases:
        rows, cols, nnz = (int(case.values[n]) for n in ("rows", "cols", "nnz"))
        ptr, col = case.values["ptr"], case.values["col"]
        assert ptr.shape == (rows + 1,)
        assert col.shape == (nnz,)
        assert (np.diff(ptr) >= 0).all()
        assert ptr.min() >= 0
        assert ptr.max() <= nnz
        assert col.size == 0 or (col.min() >= 0 and col.max() < cols)
        full += int(ptr[0] == 0 and ptr[-1] == nnz and nnz > 0)
    assert full >= 5
    assert any(c.values["rows"] == 0 for c in cases)


def test_sizes_inside_variably_modified_types_are_positive() -> None:
    cases = both(GRID)
    assert min(int(c.values["w"]) for c in cases) == 1
    assert min(int(c.values["h"]) for c in cases) == 0
    assert any(int(c.values["w"]) > 256 for c in cases)
    assert any(int(c.values["h"]) > 256 for c in cases)


def test_iteration_counts_stay_small_and_are_zero_at_times() -> None:
    counts = {int(c.values["sweeps"]) for c in both(GRID)}
    assert 0 in counts
    assert max(counts) <= 5
    assert len(counts) >= 4


def test_a_declared_count_is_used_widely() -> None:
    parameters = [replace(p, range=declared("0", "1000")) if p.name == "sweeps" else p for p in GRID.parameters]
    counts = {int(c.values["sweeps"]) for c in both(replace(GRID, parameters=tuple(parameters)))}
    assert max(counts) > 20
    assert max(counts) <= 1000


def test_needles_are_found_about_half_the_time() -> None:
    assert usage(FIND).compared == {"needle": ("hay",)}
    cases = [c for c in both(FIND) if c.values["n"] > 0]
    found = [bool((c.values["hay"] == c.values["needle"]).any()) for c in cases]
    assert 0.25 < sum(found) / len(found) < 0.95


def test_a_needle_of_another_type_is_found_too() -> None:
    hay = buffer("hay", UCHAR, Role.IN)
    task_ = replace(FIND, parameters=(hay, *FIND.parameters[1:]))
    cases = [c for c in both(task_) if c.values["n"] > 0]
    assert sum(bool((c.values["hay"] == c.values["needle"]).any()) for c in cases) > len(cases) / 4


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("type_", [INT, UCHAR, SHORT, LONG, ULONG], ids=lambda t: t.spelling)
def test_free_integers_fill_their_type(type_: CType, profile: Profile) -> None:
    values = draw(type_, 300, Bounds(), profile, np.random.default_rng(3))
    info = np.iinfo(type_.dtype)
    if profile is Profile.SPECIAL:
        assert values.max() == info.max
        assert values.min() == info.min
    assert len(np.unique(values)) > 1


def test_hidden_values_have_other_signs_and_scales() -> None:
    def widest(cases) -> tuple[float, float]:  # type: ignore[no-untyped-def]
        values = np.concatenate([c.values["x"] for c in cases])
        nonzero = np.abs(values[values != 0])
        return float(nonzero.max()), float(nonzero.min())

    visible, hidden = make_cases(SAXPY, hidden=False), make_cases(SAXPY, hidden=True)
    assert widest(hidden)[0] > 10 * widest(visible)[0]
    assert widest(hidden)[1] < widest(visible)[1]
    assert any(c.values["x"].size and c.values["x"].max() < 0 for c in hidden)
    assert any(np.signbit(c.values["x"]).any() and (c.values["x"] == 0).any() for c in hidden)
    scalars = {float(c.values["a"]) for c in (*visible, *hidden)}
    assert len(scalars) > 15
    assert min(scalars) < 0 < max(scalars)


def test_another_seed_gives_other_contents() -> None:
    a, b = make_cases(SAXPY, hidden=True, seed=0)[-1], make_cases(SAXPY, hidden=True, seed=1)[-1]
    assert not np.array_equal(a.values["x"][:10], b.values["x"][:10])


def test_case_names_are_unique() -> None:
    for one in (SAXPY, SPMV, GRID, FIND):
        for hidden in (False, True):
            names = [c.name for c in make_cases(one, hidden=hidden)]
            assert len(set(names)) == len(names)


def test_work_is_bounded_even_where_helpers_hide_the_loops() -> None:
    cubic = task(
        "cubic",
        "static float row(const float *a, int n) { float s = 0; for (int j = 0; j < n; j++)"
        " for (int k = 0; k < n; k++) s += a[j] * a[k]; return s; }\n"
        "void cubic(int n, const float *a, float *o) { for (int i = 0; i < n; i++) o[i] = row(a, n); }",
        scalar("n"),
        buffer("a", FLOAT, Role.IN),
        buffer("o", FLOAT, Role.OUT),
    )
    assert usage(cubic).depth == 3
    assert max(int(c.values["n"]) for c in both(cubic)) < 90


def test_impossible_ranges_are_refused() -> None:
    parameters = [replace(p, range=declared("5", "3")) if p.name == "n" else p for p in SAXPY.parameters]
    with pytest.raises(InputRefused, match="no combination of sizes"):
        make_cases(replace(SAXPY, parameters=tuple(parameters)), hidden=False)


def test_odd_sizes_are_odd_and_respect_their_range() -> None:
    parameters = [replace(p, range=declared("3", "64", odd=True)) if p.name == "n" else p for p in SAXPY.parameters]
    sizes = {int(c.values["n"]) for c in both(replace(SAXPY, parameters=tuple(parameters)))}
    assert all(n % 2 == 1 and 3 <= n <= 63 for n in sizes)
    assert 63 in sizes


def test_a_sized_case_must_be_legal() -> None:
    case = sized_case(SPMV, {"rows": 5000, "cols": 300, "nnz": 40000}, 1)
    assert case.values["col"].shape == (40000,)
    assert case.values["col"].max() > 250
    with pytest.raises(InputRefused, match="not legal"):
        sized_case(SPMV, {"rows": 3, "cols": 0, "nnz": 4}, 1)


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize(
    "type_", [FLOAT, DOUBLE, LONG_DOUBLE, INT, UCHAR, CHAR, SHORT, LONG, ULONG], ids=lambda t: t.spelling
)
def test_values_stay_inside_their_range(type_: CType, profile: Profile) -> None:
    rng = np.random.default_rng(5)
    for bounds in (Bounds(2, 9), Bounds(-5, -3), Bounds(100, 120), Bounds(7, None), Bounds(None, 3), Bounds(4, 4)):
        if type_ in (UCHAR, ULONG) and bounds.high is not None and bounds.high < 0:
            continue
        values = draw(type_, 200, bounds, profile, rng)
        assert values.dtype == type_.dtype
        assert bounds.low is None or values.min() >= bounds.low
        assert bounds.high is None or values.max() <= bounds.high


def test_struct_members_are_drawn_one_by_one() -> None:
    body = CType(
        "B", TypeKind.STRUCT, 24, 8, (Field("p", FLOAT, 0, (3,)), Field("id", INT, 12), Field("m", DOUBLE, 16))
    )
    values = draw(body, 50, Bounds(), Profile.UNIT, np.random.default_rng(0))
    assert values["p"].shape == (50, 3)
    assert len(np.unique(values["p"])) > 100
    assert len(np.unique(values["id"])) > 10
    assert np.abs(values["m"]).max() <= 1


def test_tokens_know_their_lines() -> None:
    found = tokens('#define A \\\n 1\n/* x\n*/ int f(void)\n{ return \'a\' == "b\\"c"[0]; }')
    assert [(t.text, t.line) for t in found][:3] == [("int", 4), ("f", 4), ("(", 4)]
    assert "'a'" in [t.text for t in found]


@pytest.mark.parametrize("parameters", ["const float a[128][128], float b[128][128]", "int k, float a[128][128]"])
def test_large_fixed_arrays_get_cases_of_several_contents(parameters: str) -> None:
    body = "for (int i = 0; i < 128; i++) for (int j = 0; j < 128; j++) "
    body += "for (int t = 0; t < k; t++) a[i][j] += 1;" if "int k" in parameters else "b[i][j] = a[i][j];"
    for hidden in (False, True):
        cases = make_cases(load_task(source=f"void f({parameters}) {{ {body} }}"), hidden=hidden)
        assert len({case.values["a"].tobytes() for case in cases}) > 2
        assert all(np.size(case.values["a"]) == 128 * 128 for case in cases)
