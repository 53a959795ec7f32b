"""Texts in another layout are the same text, and nothing else is."""

from __future__ import annotations

import pytest

from cudaperf_agent.codegen.layout import tail_begins, tail_differs

OURS = """#include <cstdio>
static void check(int status) { if (status >= 1) std::fprintf(stderr, "%s: %d\\n", "f", status - -1); }
int f(int **x) { check(0); return 0; }
"""


@pytest.mark.parametrize(
    "theirs",
    [
        OURS,
        OURS.rstrip(),
        "/* moved */ " + OURS.replace("; ", ";\n").replace("(", "(\n  ").replace("#include ", "#include   "),
        OURS.replace("<cstdio>", "<cstdio> // for fprintf"),
        OURS.replace("check(0);", "check /* ( */ (0) ;  // done ;\n"),
        OURS.replace('"%s: %d\\n"', '"%s: "\n        "%d\\n"'),
        OURS.replace("int **x", "int** x").replace("- -1", "-\n-1"),
    ],
)
def test_layout_and_comments_make_no_difference(theirs: str) -> None:
    above = "int g() { return '\"'; }\n"
    at = tail_begins(above + theirs, OURS)
    assert at is not None
    assert (above + theirs)[:at].startswith(above)
    assert "check" not in (above + theirs)[:at]


@pytest.mark.parametrize(
    "theirs",
    [
        OURS + "int g;",
        OURS.replace("return 0", "return 1"),
        OURS.replace("- -1", "--1"),
        OURS.replace(">= 1", "> = 1"),
        OURS.replace("int **x", "int * const *x"),
        OURS.replace("\nstatic", " static"),
        OURS.replace("check(0);", "/* check(0); */"),
        OURS.replace("check(0);", "#define E\ncheck(0);"),
        OURS.replace("check(0);", "ch\\\neck(0);"),
        OURS.replace("check(0);", "// \\\ncheck(0);"),
        OURS.replace('"f"', '"g"'),
        OURS.replace('"f"', 'L"f"'),
        OURS.replace("<cstdio>", "<cstdio.h>"),
        OURS.replace("#include", "int x; #include"),
        'const char *s = R"x(' + OURS + '// )x";',
        "/* " + OURS + "*/",
        "",
    ],
)
def test_all_else_is_another_text(theirs: str) -> None:
    assert tail_begins(theirs, OURS) is None


def test_the_line_that_differs_is_told() -> None:
    assert tail_differs("\n\n" + OURS.replace("return 0", "return 1"), OURS) == 5
    assert tail_differs("\n" + OURS.replace("<cstdio>", "<stdio.h>"), OURS) == 2
    assert tail_differs("", OURS) == 1
