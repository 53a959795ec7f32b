"""The ``cudaperf:`` comment and the spec: the grammar, what it does to a task, and errors that show the remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.clauses import find_comments
from cudaperf_agent.tasks.model import Origin, Parameter, Role, Task
from cudaperf_agent.tasks.parse import load_task

BODY = """#define WIDE 4
enum { DEEP = 3 };
void f(int n, int k, const float *x, int *col, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = x[col[i]];
}
"""


def parameters(task: Task) -> dict[str, Parameter]:
    return {p.name: p for p in task.inputs()}


def with_comment(comment: str) -> dict[str, Parameter]:
    return parameters(load_task(source=f"{comment}\n{BODY}"))


def extent(parameter: Parameter) -> str:
    assert parameter.extent is not None
    return parameter.extent.expr


def test_both_forms_of_comment_and_several_of_them() -> None:
    found = with_comment(
        "// cudaperf: in x[k]; n in 0..100\n/* a\n * note\n * cudaperf: inout y[n+1];\n *   k in 1.. */"
    )
    assert extent(found["x"]) == "k"
    assert found["x"].extent is not None
    assert (found["x"].extent.origin, found["x"].extent.line) == (Origin.COMMENT, 1)
    assert found["y"].extent is not None
    assert (found["y"].extent.expr, found["y"].extent.line) == ("n+1", 4)
    assert found["y"].role is Role.INOUT
    assert (found["n"].range.low, found["n"].range.high) == ("0", "100")
    assert (found["k"].range.low, found["k"].range.high) == ("1", None)


def test_a_comment_inside_the_function_counts() -> None:
    task = load_task(source=BODY.replace("{\n    for", "{\n    /* cudaperf: in x[k*2] */\n    for"))
    assert extent(parameters(task)["x"]) == "k*2"


def test_index_ascending_odd_and_open_ranges() -> None:
    found = with_comment("/* cudaperf: index col[n] ascending in 0..k-1; k in ..9 odd; x[k] in -1.5..1e3 */")
    assert found["col"].index
    assert found["col"].ascending
    assert found["col"].role is Role.IN
    assert (found["col"].range.low, found["col"].range.high) == ("0", "k-1")
    assert (found["k"].range.low, found["k"].range.high, found["k"].range.odd) == (None, "9", True)
    assert (found["x"].range.low, found["x"].range.high) == ("-1.5", "1e3")
    assert found["x"].range.origin is Origin.COMMENT


def test_macros_and_enumerators_are_expanded() -> None:
    found = with_comment("/* cudaperf: in x[WIDE*DEEP*k] in 0..FLT_MAX */\n#include <float.h>")
    assert extent(found["x"]) == "4*3*k"
    assert found["x"].range.high is not None
    assert float(found["x"].range.high) == pytest.approx(3.4028235e38)


def test_a_role_may_be_left_to_the_body() -> None:
    found = with_comment("/* cudaperf: y[n] in 0..1; x[k]; col[n] in 0..k-1 */")
    assert (found["y"].role, found["y"].role_origin) == (Role.OUT, Origin.LOOP_BOUNDS)


def test_parameters_that_are_called_like_the_words() -> None:
    source = "void g(int n, const int *in, int *out) { for (int i = 0; i < n; i++) out[i] = in[i]; }"
    found = parameters(load_task(source=f"/* cudaperf: in in[n] in 0..5; out out[n] */ {source}"))
    assert (extent(found["in"]), found["in"].range.high) == ("n", "5")
    assert found["out"].role is Role.OUT


def test_text_in_strings_is_no_comment() -> None:
    text = 'const char *s = "/* cudaperf: entry */"; // "quoted" cudaperf: entry\n'
    (comment,) = find_comments(text, "x.c")
    assert [c.kind for c in comment.clauses] == ["entry"]


@pytest.mark.parametrize(
    ("clause", "says", "remedy"),
    [
        ("in xx[n]", "unknown name `xx`", "Did you mean x?"),
        ("in x[m]", "unknown name `m` in `m`", "n"),
        ("in x[n", "not closed", "NAME[EXPR]"),
        ("in x[n+]", "expected a value", "clauses are"),
        ("in x", "does not say how many elements", "in x[n]"),
        ("out x[n]", "const", "in x"),
        ("in n[3]", "scalar", "n in A..B"),
        ("n in 5", "not a range", "clauses are"),
        ("n in ..", "not a range", "clauses are"),
        ("input x[n]", "not a clause", "clauses are"),
        ("in x[n] sorted", "neither `ascending` nor", "clauses are"),
        ("setup load", "not a setup call", "C call"),
        ("setup load(x)", "unknown name `load`", "f"),
        ("n in 0..3; n in 0..4", "twice", "Keep one"),
        ("stdin n in 0..3", "whole program", "--entry main"),
        ("x[n] in 0..y", "unknown name `y`", "k, n"),
    ],
)
def test_faulty_clauses(clause: str, says: str, remedy: str) -> None:
    with pytest.raises(InputRefused) as caught:
        load_task(source=f"\n/* cudaperf: {clause} */\n{BODY}", path=Path("f.c"))
    assert caught.value.where == "f.c:2"
    assert says in caught.value.message
    assert caught.value.hint is not None
    assert remedy in caught.value.hint


def test_the_line_of_a_fault_is_that_of_its_clause() -> None:
    with pytest.raises(InputRefused) as caught:
        load_task(source=f"/* cudaperf: n in 0..3;\n\n k in 0..2;\n in z[n] */\n{BODY}", path=Path("f.c"))
    assert caught.value.where == "f.c:4"


SPEC = {
    "entry": "f",
    "parameters": {
        "x": {"role": "in", "extent": "k", "range": "0..WIDE"},
        "col": {"role": "index", "extent": ["n"], "range": [0, "k-1"], "ascending": True},
        "k": {"range": "1..", "odd": True},
    },
}


def check_spec(task: Task) -> None:
    found = parameters(task)
    assert found["x"].extent is not None
    assert (found["x"].extent.expr, found["x"].extent.origin) == ("k", Origin.SPEC)
    assert (found["x"].range.low, found["x"].range.high) == ("0", "4")
    assert (found["col"].range.low, found["col"].range.high, found["col"].index) == ("0", "k-1", True)
    assert found["col"].ascending
    assert (found["k"].range.low, found["k"].range.high, found["k"].range.odd) == ("1", None, True)


def test_a_spec_says_the_same_as_a_comment(tmp_path: Path) -> None:
    check_spec(load_task(source=BODY, spec=SPEC))
    as_json = tmp_path / "spec.json"
    as_json.write_text(json.dumps(SPEC))
    check_spec(load_task(source=BODY, spec=as_json))
    as_toml = tmp_path / "spec.toml"
    as_toml.write_text(
        'entry = "f"\n[parameters]\nx = {role = "in", extent = "k", range = "0..WIDE"}\n'
        'col = {role = "index", extent = "n", range = [0, "k-1"], ascending = true}\nk = {range = "1..", odd = true}\n'
    )
    check_spec(load_task(source=BODY, spec=as_toml))
    clauses = ["in x[k] in 0..WIDE", "index col[n] ascending in 0..k-1", "k in 1.. odd"]
    check_spec(load_task(source=BODY, spec={"clauses": clauses}))


def test_a_spec_wins_over_a_comment() -> None:
    task = load_task(source=f"/* cudaperf: in x[n] in 0..9; n in 0..7 */\n{BODY}", spec={"clauses": ["in x[k]"]})
    found = parameters(task)
    assert extent(found["x"]) == "k"
    assert (found["x"].range.high, found["x"].range.origin) == ("9", Origin.COMMENT)
    assert found["n"].range.high == "7"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"entri": "f"}, "unknown key `entri`"),
        ({"parameters": {"x": {"roll": "in"}}}, "unknown key `roll`"),
        ({"parameters": {"x": {"role": "both"}}}, "parameters.x.role"),
        ({"parameters": {"z": {"role": "in"}}}, "unknown name `z`"),
        ({"parameters": {"x": {"extent": "n+"}}}, "expected a value"),
        ({"parameters": {"x": {"range": 5}}}, "parameters.x.range"),
        ({"parameters": {"n": {"odd": "yes"}}}, "parameters.n.odd"),
        ({"parameters": 3}, "parameters"),
        ({"clauses": "in x[n]"}, "clauses"),
        ({"clauses": ["entry"]}, "names the entry"),
        ({"entry": "g"}, "no function `g`"),
    ],
)
def test_faulty_specs(spec: dict[str, object], says: str) -> None:
    with pytest.raises(InputRefused) as caught:
        load_task(source=BODY, spec=spec)
    assert says in caught.value.message
    assert caught.value.hint


def test_a_spec_file_with_broken_syntax(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text('{"entry":\n ]')
    with pytest.raises(InputRefused) as caught:
        load_task(source=BODY, spec=path)
    assert caught.value.where == f"{path}:2"


def test_setup_inputs_take_roles_and_extents_from_the_setup_function() -> None:
    source = """
static float table[8];
void fill(const float *from, int count, float scale) { for (int i = 0; i < count; i++) table[i] = scale * from[i]; }
/* cudaperf: entry; setup fill(values, 8, s) */
void use(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = x[i] * table[i % 8]; }
"""
    task = load_task(source=source)
    assert [(p.name, p.declaration) for p in task.setup_inputs] == [("values", "const float *values"), ("s", "float s")]
    assert extent(task.setup_inputs[0]) == "8"
    assert task.setup_inputs[0].role is Role.IN
    assert [t.name for t in task.tables] == ["table"]
    assert task.kept_functions == ("fill",)


def test_a_setup_call_with_too_few_arguments() -> None:
    source = (
        "static int t; void fill(int a, int b) { t = a + b; }\n"
        "/* cudaperf: entry; setup fill(v) */ int f(int *x) { return t + *x; }"
    )
    with pytest.raises(InputRefused, match="takes 2 arguments") as caught:
        load_task(source=source)
    assert caught.value.hint is not None
    assert "a, b" in caught.value.hint
