"""C in many house styles: what is inferred of each, by a table written by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks import expr
from cudaperf_agent.tasks.model import Origin, Parameter, Task
from cudaperf_agent.tasks.parse import load_task, unsettled, unsettled_error

STYLES = Path(__file__).parent / "styles"

SIZES = {
    "n": 7, "m": 5, "k": 3, "w": 6, "h": 4, "rows": 4, "cols": 6, "dim": 3, "stride": 9, "nb": 11, "frames": 8,
    "nz": 2, "ny": 3, "nx": 5, "r": 2, "t": 2,
}  # fmt: skip

# file: {buffer: (role, elements at the sizes above)}; None where only a measured run can tell.
INFERRED: dict[str, dict[str, tuple[str, int | None]]] = {
    "argmax": {"v": ("in", 7), "where": ("out", 1), "best": ("out", 1)},
    "attr": {"a": ("in", 7), "b": ("inout", 7), "p": ("in", 7)},
    "boolout": {"flag": ("out", 7)},
    "clampidx": {"in": ("in", 7), "out": ("out", 7)},
    "countdown": {"out": ("out", 7)},
    "countdown2": {"out": ("out", 7), "in": ("in", 7)},
    "dowhile": {"a": ("inout", 7)},
    "early": {"v": ("inout", 7)},
    "early_out": {"v": ("out", 7)},
    "flat_idx": {"a": ("in", 24), "bias": ("in", 6), "o": ("out", 24)},
    "gather": {"src": ("in", 5), "idx": ("in", 7), "dst": ("out", 7)},
    "gswap": {"a": ("inout", None), "b": ("inout", None)},
    "half": {"out": ("inout", 7)},
    "interleave": {"lr": ("in", 16), "l": ("out", 8), "r": ("out", 8)},
    "macros": {"a": ("in", 24), "b": ("out", 24)},
    "memz": {"v": ("in", 7), "bins": ("out", 11)},
    "minmac": {"a": ("in", 7), "b": ("inout", 7)},
    "nested": {"p": ("in", 21), "q": ("in", 15), "out": ("out", 35)},
    "pmat": {"a": ("in", 28), "b": ("out", 28)},
    "ptr_end": {"v": ("in", 7)},
    "rowptr": {"m": ("in", 3 * 9 + 6), "out": ("out", 4)},
    "scan2": {"x": ("in", 7), "y": ("inout", 7)},
    "soa": {"in": ("in", 7), "out": ("out", 7)},
    "static2d": {"in": ("in", 24), "out": ("inout", 24 - 6 - 1)},
    "stencil1": {"u": ("in", 7), "v": ("inout", 6)},
    "stridedloop": {"x": ("in", 7), "y": ("inout", 7)},
    "string": {"s": ("in", None)},
    "structarg": {"x": ("in", None), "y": ("inout", None)},
    "switch": {"a": ("in", 7), "b": ("in", 7), "c": ("inout", 7)},
    "table": {"in": ("in", 7), "out": ("out", 7)},
    "tdmat": {"a": ("in", 9), "b": ("in", 9), "trace": ("out", 1)},
    "triangular": {"a": ("in", 49), "c": ("inout", 49)},
    "unroll": {"a": ("in", 7), "b": ("in", 7)},
    "vol3d": {"g": ("in", 30), "o": ("out", 30)},
    "walk_ptr": {"dst": ("out", 7), "src": ("in", 7)},
    "while_up": {"a": ("inout", 7)},
}

# Functions of odd_corners.c, in the same way.
ODD: dict[str, dict[str, tuple[str, int | None]]] = {
    "with_goto": {"a": ("inout", None)},
    "forever": {"a": ("inout", None)},
    "duff": {"to": ("inout", None), "from": ("in", None)},
    "statement_expression": {"a": ("out", 7)},
    "generic": {"a": ("inout", 7)},
    "comma": {"a": ("inout", 7)},
    "punned": {"x": ("in", 7), "bits": ("inout", 7)},
    "union_pun": {"x": ("in", 7), "bits": ("out", 7)},
    "cast_pun": {"x": ("in", 7), "bits": ("out", 7)},
    "bytewise": {"old_style": ("out", 1)},
    "reversed_subscript": {"a": ("out", 7)},
    "local_vla": {"a": ("in", 7), "o": ("out", 7)},
    "sized": {"o": ("out", 4)},
    "gcds": {"a": ("in", 7), "b": ("in", 7), "o": ("out", 7)},
    "asserted": {"a": ("out", 7)},
    "conditional_pointer": {"a": ("in", None), "b": ("in", None)},
    "do_once": {"a": ("inout", 7)},
    "chained": {"a": ("out", 7), "b": ("out", 7)},
    "nothing": {"unused": ("in", 0)},
    "rows_of_pointers": {"a": ("in", None), "b": ("in", None)},
    "viewed": {"a": ("in", None)},
    "by_address": {"a": ("inout", 7)},
    "case_carry": {"a": ("inout", None)},
    "picked": {"a": ("in", None), "b": ("in", None)},
    "reshaped": {"a": ("in", 35), "b": ("out", 35)},
    "hidden_if": {"a": ("inout", None)},
    "hidden_loop": {"a": ("in", None)},
    "literals": {"a": ("in", 7), "o": ("out", 7)},
}


def found(task: Task) -> dict[str, tuple[str, int | None]]:
    return {p.name: (p.role.value, elements(p)) for p in task.buffers}


def elements(parameter: Parameter) -> int | None:
    return None if parameter.extent is None else int(expr.evaluate(parameter.extent.expr, SIZES))


@pytest.mark.parametrize("name", INFERRED)
def test_roles_and_extents(name: str) -> None:
    assert found(load_task(STYLES / f"{name}.c")) == INFERRED[name]


@pytest.mark.parametrize("name", ODD)
def test_rarely_written_c(name: str) -> None:
    assert found(load_task(STYLES / "odd_corners.c", entry=name)) == ODD[name]


def test_every_style_is_in_a_table() -> None:
    assert {p.stem for p in STYLES.glob("*.c")} == {*INFERRED, "odd_corners", "bounds_alloc", "conv_layers"}
    text = (STYLES / "odd_corners.c").read_text()
    assert set(re.findall(r"^(?:void|int|float) (\w+)\(", text, re.MULTILINE)) == set(ODD)


LAYER_SIZES = {"N": 2, "C": 3, "H": 7, "W": 9, "K": 2, "R": 3, "S": 4, "stride": 2, "pad": 1}
LAYERS = {
    "conv_nchw": {"x": ("in", 378), "wt": ("in", 72), "bias": ("in", 2), "y": ("out", 2 * 2 * 5 * 6)},
    "maxpool": {"x": ("in", 3 * 7 * 9), "y": ("out", 3 * 4 * 5)},
    "layernorm": {"out": ("out", 6), "inp": ("in", 6), "weight": ("in", 3), "bias": ("in", 3)},
    "valid1d": {"x": ("in", 9), "h": ("in", 4), "y": ("out", 6)},
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_with_computed_sizes(name: str) -> None:
    task = load_task(STYLES / "conv_layers.c", entry=name)
    counts = {p.name: expr.evaluate(p.extent.expr, LAYER_SIZES) for p in task.buffers if p.extent}
    assert {p.name: (p.role.value, counts.get(p.name)) for p in task.buffers} == LAYERS[name]


def test_what_an_extent_divides_by_is_not_zero() -> None:
    sizes = {p.name: p for p in load_task(STYLES / "conv_layers.c", entry="maxpool").scalars}
    assert sizes["stride"].range.low == "1"
    assert sizes["pad"].range.low == "0"


def test_two_negative_factors_make_no_elements() -> None:
    y = load_task(STYLES / "conv_layers.c", entry="conv_nchw").parameters[3]
    assert y.extent is not None
    assert expr.evaluate(y.extent.expr, {**LAYER_SIZES, "R": 9, "S": 12}) == 0
    pooled = load_task(STYLES / "conv_layers.c", entry="maxpool").parameters[1]
    assert pooled.extent is not None
    assert expr.evaluate(pooled.extent.expr, {**LAYER_SIZES, "K": 20}) == 0


def test_call_sites_tell_what_loops_cannot() -> None:
    task = load_task(STYLES / "bounds_alloc.c", entry="work")
    extents = {p.name: p.extent for p in task.buffers}
    assert {n: (e.expr, e.origin) for n, e in extents.items() if e is not None} == {
        "idx": ("n", Origin.CALL_SITE),
        "a": ("m", Origin.CALL_SITE),
        "o": ("n", Origin.CALL_SITE),
    }
    assert any("call at line" in a for a in task.assumptions)


@pytest.mark.parametrize(
    ("signature", "subscript", "assumed"),
    [
        ("int n, int s, const float *x, float *y", "i * s", ["s is 0 or more, as sizes are made of it"]),
        ("int n, int off, const float *x, float *y", "i + off", ["off is 0 or more, as sizes are made of it"]),
        ("int n, unsigned off, const float *x, float *y", "i + off", []),
        ("int n, const float *x, float *y", "n - 1 - i", []),
    ],
)
def test_strides_and_offsets_are_assumed_not_to_be_negative(signature: str, subscript: str, assumed: list[str]) -> None:
    task = load_task(source=f"void f({signature}) {{ for (int i = 0; i < n; i++) y[i] = x[{subscript}]; }}")
    assert [a for a in task.assumptions if "or more" in a] == assumed


def test_constant_arrays_at_a_call_site() -> None:
    source = """
void add(const int *a, int *b, int n, int m) { for (int i = 0; i < n; i++) b[a[i]] += m; }
static int a[100], b[50];
int main(void) { add(a, b, 100, 50); return b[0]; }
"""
    task = load_task(source=source, entry="add")
    assert {p.name: p.extent.expr for p in task.buffers if p.extent} == {"a": "n", "b": "m"}


def test_access_attributes() -> None:
    task = load_task(STYLES / "attr.c")
    origins = {p.name: p.extent.origin for p in task.buffers if p.extent}
    assert origins == {"a": Origin.ATTRIBUTE, "b": Origin.ATTRIBUTE, "p": Origin.LOOP_BOUNDS}


def test_subscripts_get_the_range_of_what_they_index() -> None:
    idx = {p.name: p for p in load_task(STYLES / "gather.c").parameters}["idx"]
    assert idx.index
    assert (idx.range.low, idx.range.high, idx.range.origin) == ("0", "m-1", Origin.LOOP_BOUNDS)
    byte = {p.name: p for p in load_task(STYLES / "table.c").parameters}["in"]
    assert (byte.index, byte.range.high) == (True, "255")


def test_a_scalar_subscript_stays_inside() -> None:
    source = "void f(int *d, int n, int from) { for (int i = 0; i < n; i++) d[i] = -1; d[from] = 0; }"
    d, n, start = load_task(source=source).parameters
    assert d.extent is not None
    assert d.extent.expr == "n"
    assert (start.range.low, start.range.high) == ("0", "n-1")
    assert n.range.high is None
    size = "int f(const int *d, int n) { int s = d[n]; for (int i = 0; i < n; i++) s += d[i]; return s; }"
    assert [p.extent.expr for p in load_task(source=size).buffers if p.extent] == ["n+1"]


def test_an_enum_takes_its_constants() -> None:
    o = load_task(STYLES / "switch.c").parameters[0]
    assert (o.type.spelling, o.range.low, o.range.high) == ("unsigned int", "0", "2")


def test_a_constant_table_is_constant() -> None:
    (table,) = load_task(STYLES / "static2d.c").tables
    assert (table.name, table.dims, table.constant) == ("kernel3", (3, 3), True)


def test_what_nothing_settles_says_which_line_to_write() -> None:
    task = load_task(STYLES / "structarg.c")
    assert [p.name for p in unsettled(task)] == ["x", "y"]
    source = "float f(const float *x, int n) { int i = 1; while (x[i] > 0) i = 2 * i + n; return x[i]; }"
    error = unsettled_error(load_task(source=source))
    assert error.hint is not None
    assert "/* cudaperf: in x[n] */" in error.hint


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("for (int i = 0; i < n; i++) y[i] = i;", "out"),
        ("for (int i = 0; i < n; i += 1) { y[i] = i; y[i] += 2; }", "out"),
        ("for (int i = 1; i < n; i++) y[i] = i;", "inout"),
        ("for (int i = 0; i < n - 1; i++) y[i] = i; y[n - 1] = 0;", "inout"),
        ("for (int i = 0; i < n; i += 2) y[i] = i;", "inout"),
        ("for (int i = 0; i < n; i++) if (i % 2) y[i] = i;", "inout"),
        ("for (int i = 0; i < n; i++) { if (i == 3) break; y[i] = i; }", "inout"),
        ("for (int i = 0; i < n; i++) { if (i == 3) continue; y[i] = i; }", "inout"),
        ("for (int i = 0; i < n && y[0] >= 0; i++) y[i] = i;", "inout"),
        ("for (int i = 0; i < n; i++) y[i] += i;", "inout"),
        ("for (int i = 0; i < n; i++) { int t = y[i]; y[i] = t; }", "inout"),
        ("for (int i = 0; i < n; i++) y[i] = i ? y[i - 1] : 0;", "inout"),
        ("for (int s = 0; s < k; s++) for (int i = 0; i < n; i++) y[i] = s;", "inout"),
        ("for (int s = 0; s < 3; s++) for (int i = 0; i < n; i++) y[i] = s;", "out"),
        ("if (n > 4) for (int i = 0; i < n; i++) y[i] = 1;", "inout"),
        ("if (n < 1) return; for (int i = 0; i < n; i++) y[i] = 1;", "out"),
        ("if (k <= 0) return; for (int i = 0; i < n; i++) y[i] = 1;", "inout"),
        ("for (int i = 0; i < n; i++) y[n - 1 - i] = 1;", "out"),
        ("for (int i = 0; i < n; i++) y[(i * 3) % n] = 1;", "inout"),
        ("int i = 0; while (i < n) { y[i] = 1; i++; }", "out"),
        ("int i = 0; while (i < n) { if (k) i++; y[i] = 1; i++; }", "inout"),
        ("for (int i = 0; i < n; i++) { y[i] = 1; if (k > 3) return; }", "inout"),
    ],
)
def test_out_is_claimed_only_when_every_element_is_written_first(body: str, role: str) -> None:
    task = load_task(source=f"void f(int *y, int n, int k) {{ {body} }}")
    assert task.parameters[0].role.value == role


@pytest.mark.parametrize(
    ("parameters", "loop", "extent"),
    [
        ("unsigned n", "for (unsigned i = 0; i < n; ++i) s += x[i];", "n"),
        ("unsigned long long n", "for (unsigned long long i = 0; i != n; ++i) s += x[i];", "n"),
        ("short n", "for (short i = 0; i < n; ++i) s += x[i];", "n"),
        ("int a, int b", "for (int i = a; i < b; ++i) s += x[i];", "b"),
        ("int n", "for (int i = 0; i <= n; ++i) s += x[i];", "n+1"),
        ("int n", "for (int i = 0; i < 2 * n; ++i) s += x[i];", "2*n"),
        ("int n", "for (int i = 0; i < n / 2; ++i) s += x[2 * i] + x[2 * i + 1];", "2*(n/2)"),
        ("int n", "for (int i = 0; n > i; ++i) s += x[i];", "n"),
        ("int n", "for (int i = n; i > 0; --i) s += x[i - 1];", "n"),
        ("int n", "for (int i = n; i; --i) s += x[i - 1];", "n"),
        ("int n", "int i = n; while (--i >= 0) s += x[i];", "n"),
        ("int n", "const float *p = x; int i = n; while (i-- > 0) s += *p++;", "n"),
        ("int n", "for (const float *p = x; p < x + n; p++) s += *p;", "n"),
        ("int n", "for (const float *p = &x[n]; p-- > x;) s += *p;", "n"),
        ("int n, int m", "for (int i = 0, j = m; i < n; i++, j += 2) s += x[j];", "(n > 0) ? m+2*n-1 : 0"),
        ("int h, int w", "for (int y = 0; y < h; y++) for (int c = 0; c < w; c++) s += x[y * w + c];", "h*w"),
        ("int h, int w", "for (int i = 0; i < h * w; i++) s += x[i];", "h*w"),
        ("int n", "for (int i = 0; i < n; i++) for (int j = i; j < n; j++) s += x[j];", "n"),
        ("int n", "for (int i = 0; i < n; i++) if (i + 1 < n) s += x[i + 1];", "n"),
        ("int n", "for (int i = 0; i < n; i++) { if (i + 1 >= n) continue; s += x[i + 1]; }", "n"),
        ("int n", "for (int i = 0; i < n; i++) s += i + 1 < n ? x[i + 1] : 0;", "n"),
        ("int n", "for (int i = 0; i < n; i++) { int j = i + 1; if (j >= n) j = n - 1; s += x[j]; }", "n"),
        ("int n, int k", "for (int b = 0; b < n; b++) for (int i = 0; i < 8; i++) s += x[b * 8 + i];", "8*n"),
        ("int n", "for (int i = 0; i < n; i++) s += x[i >> 1];", "((n-1)/2)+1"),
        ("", "s = x[0] + x[3];", "4"),
    ],
)
def test_extents_by_the_bounds_of_loops(parameters: str, loop: str, extent: str) -> None:
    comma = ", " if parameters else ""
    task = load_task(source=f"float f(const float *x{comma}{parameters}) {{ float s = 0; {loop} return s; }}")
    assert task.parameters[0].extent is not None
    assert task.parameters[0].extent.expr == extent


def test_deep_nesting_is_refused_and_not_a_traceback() -> None:
    terms = " + ".join("x[0]" for _ in range(5000))
    with pytest.raises(InputRefused, match=r"nest|valid C"):
        load_task(source=f"float f(const float *x) {{ return {terms}; }}")


def test_many_helper_calls_stay_quick() -> None:
    layers = ["static float f0(const float *x, int n) { return x[n - 1]; }"]
    layers += [
        f"static float f{i}(const float *x, int n) {{ return f{i - 1}(x, n) + f{i - 1}(x, n); }}" for i in range(1, 20)
    ]
    task = load_task(source="\n".join([*layers, "float g(const float *x, int n) { return f19(x, n); }"]))
    # Too many to follow: unknown rather than wrong.
    assert task.parameters[0].extent is None


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, b in INFERRED.items() if all(count is not None for _, count in b.values())])
async def test_what_is_inferred_holds_when_the_code_runs(name: str) -> None:
    """Guard pages and sanitizers at many sizes find no element beyond an extent, poison no `out` that is kept."""
    from cudaperf_agent.tasks.prepare import prepare

    task = load_task(STYLES / f"{name}.c")
    ready = await prepare(task)
    assert [(p.role, p.extent) for p in ready.inputs()] == [(p.role, p.extent) for p in task.inputs()]
