"""Lowering: the IR of small functions, printed, and what cannot be lowered with its line."""

from __future__ import annotations

import pytest

from cudaperf_agent.codegen.nests import symbols_of
from cudaperf_agent.codegen.printer import Printer
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower import lower_source
from cudaperf_agent.tasks.lowered import Module, Unlowered


def lowered(source: str, entry: str = "f") -> list[str]:
    """The body of a function as text, one line per element."""
    module = lower_source(source, entry)
    assert isinstance(module, Module), module
    tables = {h.name: tuple(t.name for t in h.tables) for h in module.helpers}
    return Printer(symbols_of(module.entry), tables).block(module.entry.body, 0)


def test_macros_are_expanded_and_operators_kept() -> None:
    source = "#define AT(r, c) ((r) * w + (c))\nvoid f(int w, float *a) { a[AT(1, w - 2)] -= 1.5f; }"
    assert lowered(source) == ["a[1 * w + (w - 2)] -= 1.5f;"]


def test_shadowed_names_become_unique() -> None:
    source = "void f(int n, int *a) { for (int i = 0; i < n; i++) { int n = i; a[n] = n; } }"
    assert lowered(source) == [
        "for (int i = 0; i < n; i++) {",
        "    int n_2 = i;",
        "    a[n_2] = n_2;",
        "}",
    ]


def test_side_effects_leave_the_expression_in_order() -> None:
    source = "void f(int n, int *a) { int k = 0; a[k++] = n; a[++k] = n; }"
    assert lowered(source) == ["int k = 0;", "a[k] = n;", "k++;", "k++;", "a[k] = n;"]


def test_a_loop_condition_with_more_than_a_bound_becomes_a_break() -> None:
    source = "int f(int n, const int *a) { int i; for (i = 0; i < n && a[i]; i++) ; return i; }"
    assert lowered(source) == [
        "int i;",
        "for (i = 0; i < n; i++) {",
        "    if (!a[i]) {",
        "        break;",
        "    }",
        "}",
        "return i;",
    ]


def test_a_loop_whose_bound_changes_is_no_counted_loop() -> None:
    module = lower_source("void f(int n, int *a) { for (int i = 0; i < n; i++) if (a[i]) n--; }", "f")
    assert isinstance(module, Module)
    assert any(isinstance(s, ir.While) for s in module.entry.body)
    assert not any(isinstance(n, ir.For) for n in ir.walk(*module.entry.body))


def test_missing_parts_of_a_for_are_told_apart() -> None:
    assert lowered("void f(int n) { for (; n > 3;) n--; }") == ["while (n > 3) {", "    n--;", "}"]
    assert lowered("void f(int n) { for (;; n--) if (n < 3) break; }")[0] == "for (; 1; n--) {"


def test_array_parameters_keep_their_dimensions() -> None:
    source = "void f(int n, double a[n][4][n + 1]) { a[n - 1][2][3] = 0; }"
    assert lowered(source) == ["a[((long long)(n - 1) * 4 + 2) * (n + 1) + 3] = 0;"]


def test_pointer_arithmetic_becomes_an_index() -> None:
    source = (
        "void f(int n, float *a, const float *b) { const float *r = b + n * 2; *(a + 1) = r[3] + *r + (&b[n])[1]; }"
    )
    assert lowered(source) == ["const float *r = b + n * 2;", "a[1] = r[3] + r[0] + b[n + 1];"]


def test_struct_members_through_pointers_and_values() -> None:
    source = "typedef struct { float x, y; } P; void f(P *p, int n) { P q = {1, n}; p->x = q.y; p[n].y += (*p).x; }"
    assert lowered(source) == ["P q = {1, (float)(n)};", "p[0].x = q.y;", "p[n].y += p[0].x;"]


def test_memory_functions_count_elements() -> None:
    module = lower_source(
        "#include <string.h>\nvoid f(int n, double *a, double *b) { memcpy(a, b, n * sizeof *a); }", "f"
    )
    assert isinstance(module, Module)
    copy = module.entry.body[0]
    assert isinstance(copy, ir.Copy)
    assert Printer({}).expr(copy.count) == "n"


def test_helpers_come_before_their_callers_with_their_tables() -> None:
    source = """static const int t[3] = {1, 2, 3};
static int g(int i) { return t[i]; }
static int h(int i) { return g(i) + 1; }
void f(int n, int *a) { a[0] = h(n); }"""
    module = lower_source(source, "f")
    assert isinstance(module, Module)
    assert [h.name for h in module.helpers] == ["g", "h"]
    assert [[t.name for t in h.tables] for h in module.helpers] == [["t"], ["t"]]
    assert lowered(source) == ["a[0] = h(n, t);"]


def test_helpers_do_not_have_the_names_of_cudas_functions() -> None:
    helpers = "static int max(int a, int b) { return a > b ? a : b; }\nstatic int min_(int a) { return a; }\n"
    source = f"{helpers}static int min(int a, int b) {{ return min_(-max(-a, -b)); }}\n"
    module = lower_source(f"{source}void f(int max_, int *a) {{ a[0] = min(a[1], max_) + max(1, 2); }}", "f")
    assert isinstance(module, Module), module
    assert [h.name for h in module.helpers] == ["min_", "max_", "min__"]
    assert [p.name for p in module.entry.params] == ["max__2", "a"]


@pytest.mark.parametrize(
    ("body", "line", "word"),
    [
        ("switch (n) { case 0: while (n) { case 1: n--; } }", 2, "`case`"),
        ("switch (n) {\ncase 0:\n  if (a[0]) { if (a[1]) break; n++; }\n  a[2] = n; }", 4, "deep inside"),
        ("a[0] = 1;\ngoto end; end: ;", 3, "goto"),
        ("int *p = &n;\n(void)p;", 2, "address"),
        ("a[0] = *(float *)&a[1];", 2, "read as"),
        ("static int s;\ns++;", 2, "local declaration"),
        ("a[0] = g(n);", 2, "no device counterpart"),
        ("if (n)\n  a[n = 2, n] = 1;", 3, "comma"),
        ("long double d = n;\na[0] = d;", 2, "long double"),
        ("f(n - 1, a);", 1, "recursive"),
        ("int b[4] = {[2] = 3};", 2, "initialiser"),
        ("while (n > 0 || n--) a[n] = 1;", 2, "inside a condition"),
    ],
)
def test_what_cannot_be_lowered_names_its_line(body: str, line: int, word: str) -> None:
    found = lower_source(f"extern int g(int); void f(int n, int *a) {{\n{body}\n}}", "f")
    assert isinstance(found, Unlowered), found
    assert word in found.reason
    assert found.line == line


def test_a_walk_meets_everything_in_order_and_asks_a_type_for_its_fields_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[type] = []
    fields = ir.fields

    def counted(kind: type) -> object:
        asked.append(kind)
        return fields(kind)

    monkeypatch.setattr(ir, "fields", counted)
    monkeypatch.setattr(ir, "_NAMES", {})
    module = lower_source("float f(int n, float *a) { float s = a[n - 1]; if (n > 1) s = s * a[0]; return s; }", "f")
    assert isinstance(module, Module)
    met = [type(node).__name__ for statement in module.entry.body for node in ir.walk(statement)]
    assert [name for name in met if name not in ("Cast", "Ref", "Const")] == [
        *("Declare", "Load", "Binary"),
        *("If", "Binary", "Assign", "Binary", "Load"),
        "Return",
    ]
    assert met[:2] == ["Declare", "Load"]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for (int i = -1; i < m; i++)", "the signed 'i', which may start below zero, is compared as unsigned"),
        ("for (int i = s; i < m; i++)", "the signed 'i', which may start below zero, is compared as unsigned"),
        ("for (long i = s - 1; i < (unsigned long)n; i++)", "compared as unsigned"),
        ("for (int i = 0; i < m; i++)", ""),
        ("for (int i = s; i < n; i++)", ""),
        ("for (unsigned k = 1; k < m; k++) for (int i = k + 1; i < m; i++)", ""),
        ("for (int k = 0; k < n; k++) for (int i = k / 2 + 1; i <= m; i++)", ""),
        ("int from = m; for (int i = from; i < m; i++)", ""),
    ],
)
def test_a_counter_below_zero_does_not_count_up_to_an_unsigned_bound(loop: str, reason: str) -> None:
    made = lower_source(f"void f(int n, unsigned m, int s, int *a) {{ {loop} a[i] = 1; }}", "f")
    assert isinstance(made, Unlowered) if reason else isinstance(made, Module)
    assert reason in getattr(made, "reason", "")


def test_a_range_of_case_values_is_declined_with_its_line() -> None:
    source = "void f(int n, int *a) {\n for (int i = 0; i < n; i++)\n switch (a[i]) {\n case 1 ... 9: a[i] = 0;\n } }"
    made = lower_source(source, "f")
    assert isinstance(made, Unlowered)
    assert (made.line, made.reason) == (4, "a range of `case` values is not supported")
