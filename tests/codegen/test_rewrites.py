"""Rewrites of the loop IR: what a function becomes, printed, and what must stay as it is."""

from __future__ import annotations

import pytest

from cudaperf_agent.codegen.nests import symbols_of
from cudaperf_agent.codegen.printer import Printer
from cudaperf_agent.codegen.rewrites import CARRIED, STRAIGHT, Rewrite, applied
from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower import lower_source
from cudaperf_agent.tasks.lowered import Module
from cudaperf_agent.tasks.parse import load_task


def rewritten(source: str, stages: tuple[Rewrite, ...] = STRAIGHT) -> list[str]:
    """The body of `f` in the form that the stages give, as text."""
    module = lower_source(source, "f")
    assert isinstance(module, Module), module
    chosen = applied(module, stages).module
    return [
        line.strip() for line in Printer(symbols_of(chosen.entry)).block(chosen.entry.body, 0) if line.strip() != "}"
    ]


def test_a_walking_pointer_becomes_an_index_of_its_buffer() -> None:
    source = "void f(int n, float *y, const float *x) { while (n--) *y++ += 2 * *x++; }"
    assert rewritten(source) == [
        "for (long n_now_turn = 0L; n_now_turn < (long)n; n_now_turn++) {",
        "y[n_now_turn] += 2 * x[n_now_turn];",
    ]


def test_a_pointer_compared_with_an_end_counts() -> None:
    source = "int f(const int *a, int n) { int s = 0; for (const int *p = a; p < a + n; ++p) s += *p; return s; }"
    assert rewritten(source)[1:3] == ["for (long p_at_now = 0L; p_at_now < (long)n; p_at_now++) {", "s += a[p_at_now];"]


def test_an_unsigned_loop_down_to_zero_counts_its_turns_in_its_own_type() -> None:
    source = "void f(unsigned n, int *a) { for (unsigned i = n; i-- > 0;) a[i] = i; }"
    assert rewritten(source) == [
        "for (unsigned int i_now_turn = 0u; i_now_turn < n; i_now_turn++) {",
        "a[n - i_now_turn - 1u] = n - i_now_turn - 1u;",
    ]


def test_what_is_needed_after_the_loop_is_set_to_what_it_became() -> None:
    source = "int f(int n, int *a) { int i = 0; while (i < n) { a[i] = 1; i += 3; } return i; }"
    assert rewritten(source)[-2:] == ["i = 0 < n ? (int)(3L * (((long)n + 2L) / 3L)) : 0;", "return i;"]


def test_counters_that_meet_take_half_the_turns() -> None:
    source = (
        "void f(int n, int *a) { for (int i = 0, j = n - 1; i < j; i++, j--) { int t = a[i]; a[i] = a[j]; a[j] = t; } }"
    )
    assert rewritten(source)[:3] == [
        "long turns = (long)n / 2L;",
        "for (long turn = 0L; turn < turns; turn++) {",
        "int t = a[(int)turn];",
    ]


def test_an_inner_loop_that_may_not_run_makes_two_versions() -> None:
    source = """void f(const int *s, int *d, int rows, int cols) {
for (int i = 0; i < rows; i++) { for (int j = 0; j < cols; j++) d[i] += *s++; d[i] *= 2; } }"""
    assert rewritten(source) == [
        "if (0 < cols) {",
        "for (int i = 0; i < rows; i++) {",
        "for (int j = 0; j < cols; j++) {",
        "d[i] += s[(long)i * (long)cols + (long)j];",
        "d[i] *= 2;",
        "} else {",
        "for (int i = 0; i < rows; i++) {",
        "d[i] *= 2;",
    ]


def test_every_version_leaves_behind_what_the_loop_stepped() -> None:
    source = """long f(const int *s, int *d, int rows, int cols) { const int *p = s, *q = s;
for (int i = 0; i < rows; i++) { p++; for (int j = 0; j < cols; j++) d[i] += *q++; } return p - q; }"""
    lines = rewritten(source)
    after = lines.index("return p_at - q_at;")
    assert lines[after - 1] == "p_at += 0 < rows ? (long)rows : 0L;"
    assert any(line.startswith("q_at +=") for line in lines)


def test_the_position_of_an_extreme_gets_its_value() -> None:
    source = "int f(const float *v, int n) { int k = 0; for (int i = 1; i < n; i++) if (v[i] < v[k]) k = i; return k; }"
    assert rewritten(source, CARRIED)[1:6] == [
        "float k_value = 1 < n ? v[k] : 0.0f;",
        "for (int i = 1; i < n; i++) {",
        "if (v[i] < k_value) {",
        "k_value = v[i];",
        "k = i;",
    ]


def test_an_element_that_a_loop_accumulates_into_is_a_variable_meanwhile() -> None:
    source = "void f(const int *v, int n, int *m) { *m = v[0]; for (int i = 1; i < n; i++) if (v[i] > *m) *m = v[i]; }"
    assert rewritten(source, CARRIED) == [
        "m[0] = v[0];",
        "int m_kept = m[0];",
        "for (int i = 1; i < n; i++) {",
        "if (v[i] > m_kept) {",
        "m_kept = v[i];",
        "m[0] = m_kept;",
    ]


def test_the_element_before_is_carried() -> None:
    source = "void f(int *a, int n) { for (int i = 1; i < n; i++) a[i] += a[i - 1]; }"
    assert rewritten(source, CARRIED)[1:] == [
        "for (int i = 1; i < n; i++) {",
        "a_last = a[i] + a_last;",
        "a[i] = a_last;",
    ]


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        # `continue` skips no step of a `for` with two of them.
        ("for (int i = 0, j = n; i < n; i++, j--) { if (a[i]) { b[i] = 1; continue; } b[j] = i; }", "b[(int)((long)n"),
        # An unsigned counter that ends by wrapping round is none.
        ("unsigned x = n; while (x) { b[x & 7] = 1; x++; }", "while (x) {"),
        # The start of one counter may change in the loop.
        ("int k = n, x = k; for (int i = 0; i < n; i++) { b[i] = a[x]; x += 2; k = a[i]; } b[0] = k;", "(long)x"),
        # A counter that the body changes otherwise.
        ("int i = 0; while (i < n) { if (a[i]) i++; b[i] = 1; i++; }", "while (i < n) {"),
        # A bound that the body changes.
        ("int i = 0; while (i < n) { b[i] = 1; i++; if (a[i]) n--; }", "while (i < n) {"),
        # A pointer with two buffers.
        ("const int *p = a; while (n--) { b[n] = *p++; if (n == 5) p = b; }", "p = p + 1;"),
    ],
)
def test_what_does_not_fit_keeps_its_meaning(body: str, kept: str) -> None:
    lines = rewritten(f"void f(int n, const int *a, int *b) {{ {body} }}")
    assert any(kept in line for line in lines), lines


def test_an_element_with_two_names_stays_in_memory() -> None:
    source = """void f(const int *v, int n, int *m) { int *other = m;
for (int i = 0; i < n; i++) { *m += v[i]; if (*other > 9) *m = 0; } }"""
    assert not any("_kept" in line for line in rewritten(source, CARRIED))


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 1; i < n; i++) b[i] = b[i - 1] ^ (b[i - 1] >> 3);",
        "for (int i = 2; i < n; i++) b[i] += b[i - 2];",
        "int m = 0; for (int i = 0; i < n; i++) { if (a[i] > m) m = a[i] / 2; b[i] = m; }",
        "int m = 0, l = 0; for (int i = 0; i < n; i++) { int x = a[i] + l; if (x > m) m = x; l = m; b[i] = m; }",
        "int *p = b; while (n-- > 1) { p[0] = p[1]; p++; }",
        "int i = n - 1; while (i > 0) { b[i] = b[i - 1]; i--; }",
    ],
)
def test_an_order_that_matters_is_declined(body: str) -> None:
    declined = generate(load_task(source=f"void f(int n, const int *a, int *b) {{ {body} }}")).declined
    assert declined is not None
    assert declined.line == 1
    assert declined.remedy


def test_a_decline_speaks_of_the_variables_of_the_c() -> None:
    source = (
        "unsigned f(const unsigned char *p, int n) {\nunsigned h = 5;\nwhile (n--)\n  h = h * 33 ^ *p++;\nreturn h; }"
    )
    declined = generate(load_task(source=source)).declined
    assert declined is not None
    assert "'h'" in declined.reason
    assert declined.line == 4


def test_an_unused_flag_keeps_its_old_value() -> None:
    """The first kernel of a reduction starts from the flag that an earlier kernel left."""
    source = """int f(const int *v, int n, int *out) { int any = v[0] > 3; out[0] = 5;
for (int i = 0; i < n; i++) if (v[i] < 0) any = 1; return any; }"""
    naive = generate(load_task(source=source)).naive
    assert naive is not None
    assert "int any = *any_value;" in naive.source


def test_names_that_isl_has_a_meaning_for() -> None:
    source = "void f(int max, int mod, int *floor) { for (int min = 0; min < max; min++) floor[min] = mod; }"
    assert generate(load_task(source=source)).declined is None


def test_a_loop_that_starts_from_its_own_variable_has_no_numbers_for_its_iterations() -> None:
    source = "void f(int n, int *a) { int i = 1, k = 0; for (i = i + 1; i < n; i++) { a[i] = k; k++; } }"
    assert rewritten(source)[-2:] == ["a[i] = k;", "k++;"]


SWAPPING = (
    "for (int t = {start}; t < k; t++) {{ for (int i = 0; i < n; i++) b[i] = a[i] + 1; {more} "
    "float *r = a; a = b; b = r; }}"
)


def swapping(before: str, after: str, start: str = "0", more: str = "") -> str:
    """A function whose loop ends by swapping two buffers."""
    loop = SWAPPING.format(start=start, more=more)
    return f"void f(int n, int k, float *a, float *b) {{ {before} {{ {loop} }} {after} }}"


@pytest.mark.parametrize(
    ("source", "moves"),
    [
        (swapping("", "a[0] = 1;"), False),
        (swapping("if (n > 5)", "k = 1;"), False),
        (swapping("if (n > 5)", "a[0] = 1;"), True),
        (swapping("if (n > 5) { if (k > 2)", "} a[0] = 1;"), True),
        (swapping("int s = 1;", "a[0] = 1;", start="s", more="s = n;"), True),
    ],
)
def test_a_swap_whose_outcome_is_seen_elsewhere_stays(source: str, moves: bool) -> None:
    module = lower_source(source, "f")
    assert isinstance(module, Module), module
    made = applied(module, STRAIGHT).module
    points = [n for n in ir.walk(*made.entry.body) if isinstance(n, ir.Point) and not n.declares]
    assert bool(points) == moves


def test_a_start_whose_variables_the_loop_changes_is_read_from_the_counter_itself() -> None:
    source = "int f(int n, int s, int *a) { int i = s; while (i < n) { a[i] = 1; i += 3; s = n; } return i; }"
    made = rewritten(source)
    assert made[:2] == ["int i = s;", "for (int i_now = i; i_now < n; i_now += 3) {"]
    assert made[-2:] == ["i = i < n ? (int)((long)i + 3L * (((long)n - (long)i + 2L) / 3L)) : i;", "return i;"]


def test_a_reduction_beside_an_inner_loop_is_kept_on_the_device() -> None:
    source = """int f(const int *a, int n, int m, int *out) { int c = 0, s = 0;
for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) s += a[i * m + j]; c += 2; } out[0] = s; return c; }"""
    naive = generate(load_task(source=source)).naive
    assert naive is not None
    finish = naive.source[naive.source.index("void f_finish(") :]
    assert "    int c = 0;\n" in finish[: finish.index("\n}\n")]


def test_two_quotients_in_one_plan_are_told_apart() -> None:
    """``half`` bounds the loop and ``(x - 1) % 1000`` is its index: facts about one say nothing about the other."""
    source = """void f(int *b, int m) { int x = 1; int half = (m + 1) / 2;
for (int i = 0; i < half; i++) b[((x - 1) % 1000) & 7] += i; }"""
    naive = generate(load_task(source=source)).naive
    assert naive is not None
    assert "atomicAdd(&b[" in naive.source
