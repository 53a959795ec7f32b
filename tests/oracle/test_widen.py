"""Retyping one width up, token by token."""

from __future__ import annotations

import numpy as np
import pytest

from cudaperf_agent.tasks.model import CType, Field, Role, TypeKind
from cudaperf_agent.tasks.oracle import convert
from cudaperf_agent.tasks.reference_build import Build, require_library
from cudaperf_agent.tasks.usage import tokens
from cudaperf_agent.tasks.widen import has_floats, puns_bits, widen, widen_text, widen_type
from tests.oracle.hand import DOUBLE, FLOAT, INT, SAXPY, buffer, scalar, task


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("float x = 1.5f;", "double x = ((double)1.5f);"),
        ("double y = 1e-3;", "long double y = ((long double)1e-3);"),
        ("long double z = 2.0L;", "long double z = 2.0L;"),
        ("y = sqrtf(x) + expf(x);", "y = sqrt(x) + exp(x);"),
        ("int i = 10, j = 0x1f, k = 3u;", "int i = 10, j = 0x1f, k = 3u;"),
        ('char *s = "1.5 float"; // double', 'char *s = "1.5 float"; // double'),
        ("#include <float.h>\n", "#include <float.h>\n"),
        ("#define HALF 0.5f", "#define HALF ((double)0.5f)"),
        ("malloc(n * sizeof(float))", "malloc(n * sizeof(double))"),
        ("lerpf(a, b)", "lerpf(a, b)"),
        ("x = .5 + 2.;", "x = ((long double).5) + ((long double)2.);"),
    ],
)
def test_text(before: str, after: str) -> None:
    assert widen_text(before) == after


@pytest.mark.parametrize(
    ("text", "puns"),
    [
        ("float f; int i = *(int *)&f;", True),
        ("union { float f; unsigned u; } v;", True),
        ("float v; unsigned b; memcpy(&b, &v, sizeof b);", True),
        ("const float *p = (const float *)bytes;", True),
        ("float *p = (float *)malloc(4);", False),
        ("double *a, *b; memcpy(a, b, n);", False),
        ("int *p = (int *)q;", False),
    ],
)
def test_puns(text: str, puns: bool) -> None:
    assert puns_bits(tokens(text)) is puns


def test_struct_layout_follows_the_wider_members() -> None:
    mixed = CType("M", TypeKind.STRUCT, 12, 4, (Field("a", FLOAT, 0), Field("n", INT, 4), Field("b", FLOAT, 8)))
    wider = widen_type(mixed)
    assert wider is not None
    assert (wider.size, wider.align, [f.offset for f in wider.fields]) == (24, 8, [0, 8, 16])
    values = np.zeros(3, mixed.dtype)
    values["a"], values["n"], values["b"] = 0.1, 7, [1, 2, 3]
    converted = convert(values, wider.dtype)
    assert converted["b"].tolist() == [1, 2, 3]
    assert converted["a"][0] == np.float64(np.float32(0.1))
    packed = CType("P", TypeKind.STRUCT, 9, 1, (Field("c", INT, 0), Field("d", DOUBLE, 1)))
    assert widen_type(packed) is None


async def test_a_widened_task_compiles() -> None:
    wide = widen(SAXPY)
    assert wide is not None
    assert [p.type.spelling for p in wide.parameters] == ["int", "double", "double", "double"]
    assert (await require_library(wide, Build.WIDE)).exists()


def test_integer_tasks_have_no_floats() -> None:
    whole = task("f", "void f(int n, int *x) { for (int i = 0; i < n; i++) x[i] += 0x1e; }", scalar("n"),
                 buffer("x", INT, Role.INOUT))  # fmt: skip
    assert not has_floats(whole)
    assert has_floats(SAXPY)
