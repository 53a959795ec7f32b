# ruff: noqa: E501  (a table of one loop a line)
"""A table of small loops with the known answer: what runs in parallel, how, and what must be declined."""

from __future__ import annotations

import pytest

from cudaperf_agent.codegen.plan import make_plan
from cudaperf_agent.codegen.steps import (
    Declined,
    HostBranch,
    HostLoop,
    Parallel,
    Reduce,
    ScanSums,
    Step,
)
from cudaperf_agent.tasks.lower import lower_source
from cudaperf_agent.tasks.lowered import Module

FIRST_LINE = 4
EXTENTS = {"a": "n", "b": "n", "x": "n", "y": "n", "m": "n*n", "idx": "n"}


def classify(parameters: str, body: str, returns: str = "void") -> str:
    """One word for how a function body is run."""
    source = f"#include <math.h>\n#include <stddef.h>\n#include <string.h>\n{returns} f({parameters})\n{{\n{body}\n}}\n"
    module = lower_source(source, "f")
    assert isinstance(module, Module), module
    try:
        plan = make_plan(module, EXTENTS)
    except Declined as stop:
        return "serial" if stop.line >= FIRST_LINE else f"declined without a line of the function: {stop.reason}"
    words = sorted({word for step in plan.steps for word in _words(step)})
    return "+".join(words)


def _words(step: Step) -> list[str]:
    if isinstance(step, Parallel):
        names = ",".join(step.mapped)
        return [f"atomic({names})" if step.atomic else f"parallel({names})"]
    if isinstance(step, Reduce):
        return ["reduce"]
    if isinstance(step, ScanSums):
        return ["scan"]
    if isinstance(step, HostLoop):
        return [f"host[{w}]" for s in step.steps for w in _words(s)]
    if isinstance(step, HostBranch):
        return [w for s in (*step.then, *step.otherwise) for w in _words(s)]
    return []


ARRAYS = "int n, float *a, const float *b"
MATRIX = "int n, float *m, const float *b"
INTS = "int n, int *a, const int *b, const int *idx"

PARALLEL = [
    ("elementwise", ARRAYS, "for (int i = 0; i < n; i++) a[i] = 2 * a[i] + b[i];", "parallel(i)"),
    ("reversed into another", ARRAYS, "for (int i = 0; i < n; i++) a[i] = b[n - 1 - i];", "parallel(i)"),
    ("even from odd", ARRAYS, "for (int i = 0; 2 * i + 1 < n; i++) a[2 * i] = a[2 * i + 1];", "serial"),
    ("even from odd, bound", ARRAYS, "for (int i = 0; i < n / 2; i++) a[2 * i] = a[2 * i + 1];", "parallel(i)"),
    ("copy half", ARRAYS, "int h = n / 2; for (int i = 0; i < h; i++) a[i] = a[h + i];", "parallel(i)"),
    ("strided", ARRAYS, "for (int i = 0; i < n; i += 3) a[i] = b[i];", "parallel(i)"),
    ("downwards", ARRAYS, "for (int i = n - 1; i >= 0; i--) a[i] = b[i];", "parallel(i)"),
    ("private scalar", ARRAYS, "float t; for (int i = 0; i < n; i++) { t = b[i]; a[i] = t * t; }", "parallel(i)"),
    ("gather", INTS, "for (int i = 0; i < n; i++) a[i] = b[idx[i]];", "parallel(i)"),
    ("rows", MATRIX, "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) m[i*n+j] += b[j];", "parallel(i,j)"),
    ("transposed", MATRIX, "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) m[j*n+i] = b[i];", "parallel(i,j)"),
    ("triangle", MATRIX, "for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) m[i*n+j] = 0;", "parallel(i,j)"),
    (
        "triangle mirrored in place",
        MATRIX,
        "for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) m[j*n+i] = m[i*n+j];",
        "parallel(i,j)",
    ),
    ("columns only", MATRIX, "for (int i = 1; i < n; i++) for (int j = 0; j < n; j++) m[i*n+j] += m[(i-1)*n+j];",
     "parallel(j)"),
    ("array parameter", "int n, float m[n][n]", "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) m[i][j] = i;",
     "parallel(i,j)"),
    ("row pointer", MATRIX, "for (int i = 0; i < n; i++) { float *r = m + (long)i * n; for (int j = 0; j < n; j++)"
     " r[j] = b[j]; }", "parallel(i,j)"),
    ("interleaved", "int n, int w, float *a", "for (int i = 0; i < n; i++) for (int j = 0; j < w; j++)"
     " { a[3*(i*w+j)] = 0; a[3*(i*w+j)+1] = 1; a[3*(i*w+j)+2] = 2; }", "parallel(i,j)"),
    ("size_t", "size_t n, double *a", "for (size_t i = 0; i < n; ++i) a[i] *= 0.5;", "parallel(i)"),
    ("local array", ARRAYS, "for (int i = 0; i < n; i++) { float t[2] = {b[i], 1}; a[i] = t[0] / t[1]; }", "parallel(i)"),
    ("modulo row", "int n, float *a, const float *b, int w", "for (int i = 0; i < n; i++) a[i] = b[i % w];", "parallel(i)"),
    ("memcpy rows", MATRIX, "for (int i = 0; i < n; i++) memcpy(m + (long)i * n, b, sizeof(float) * n);", "parallel(i)"),
]  # fmt: skip

ORDERED = [
    ("from the left", ARRAYS, "for (int i = 1; i < n; i++) a[i] = a[i-1] + b[i];", "serial"),
    ("from the right, in place", ARRAYS, "for (int i = 0; i < n - 1; i++) a[i] = a[i+1];", "serial"),
    ("reversed in place", ARRAYS, "for (int i = 0; i < n; i++) a[i] = a[n-1-i];", "serial"),
    ("overlapping writes", ARRAYS, "for (int i = 0; i < n - 1; i++) { a[i] = b[i]; a[i+1] = 2; }", "serial"),
    ("one element", ARRAYS, "for (int i = 0; i < n; i++) a[0] = b[i];", "serial"),
    ("scatter", INTS, "for (int i = 0; i < n; i++) a[idx[i]] = b[i];", "serial"),
    ("decay", "int n, const float *x", "float s = 0; for (int i = 0; i < n; i++) s = s * 0.5f + x[i]; return s;", "serial"),
    ("carried scalar", ARRAYS, "float p = 0; for (int i = 0; i < n; i++) { a[i] = p; p = b[i]; }", "serial"),
    ("float scan", ARRAYS, "float s = 0; for (int i = 0; i < n; i++) { s += b[i]; a[i] = s; }", "serial"),
    ("break with stores", ARRAYS, "for (int i = 0; i < n; i++) { if (b[i] < 0) break; a[i] = b[i]; }", "serial"),
    ("stencil in place", ARRAYS, "for (int i = 1; i < n - 1; i++) a[i] = a[i-1] + a[i+1];", "serial"),
    ("halving", ARRAYS, "for (int i = 0; i < n; i++) a[i / 2] = b[i];", "serial"),
    ("folded", ARRAYS, "for (int i = 0; i < n; i++) a[i % 7] = b[i];", "serial"),
    ("truncated index", "long n, float *a, const float *b", "for (long i = 0; i < n; i++) a[(unsigned char)i] = b[i];", "serial"),
    ("wide rows", "int n, int w, float *a", "for (int i = 0; i < n; i++) for (int j = 0; j <= w; j++) a[i*w+j] = i;", "host[parallel(j)]"),
    ("unsigned wrap below zero", "unsigned n, float *a", "for (unsigned i = 0; i < n; i++) a[(i - 1u) % 3] = i;", "serial"),
    ("unsigned wrap through a variable", "unsigned n, float *a", "for (unsigned i = 0; i < n; i++) { unsigned d = i - 5;"
     " if (d < 3) a[d] = i; }", "parallel(i)"),
    ("unsigned condition that wraps", "unsigned n, float *a", "for (unsigned i = 0; i < 9; i++) { unsigned d = i - 5;"
     " if (d > 100) a[0] = i; }", "serial"),
    ("a fact about a reused counter", MATRIX, "int i; for (i = 1; i < n; i++) { int h = i + 1; for (int j = 0; j < n; j++)"
     " m[i*n+j] = m[(i-1)*n+j] + h; } for (i = 1; i < n; i++) m[i] = m[i - 1];", "serial"),
    ("a fact about a changed size", "int n, float *a", "if (n < 2) { n = n + 9; for (int i = 0; i < n; i++) a[i % 2] = i; }", "serial"),
    ("unsigned hash", "unsigned n, float *a", "for (unsigned i = 0; i < n; i++) a[i * 2654435761u] = i;", "serial"),
    ("moving pointer", ARRAYS, "for (int i = 0; i < n; i++) { *a = b[i]; a++; }", "serial"),
    ("last value", "int n, const int *x", "int v = 0; for (int i = 0; i < n; i++) v = x[i]; return v;", "serial"),
    ("conditional carried", "int n, const int *x", "int s = 0; for (int i = 0; i < n; i++) if (s < 10) s += x[i]; return s;",
     "serial"),
]  # fmt: skip

COMBINED = [
    ("sum", "int n, const float *x", "float s = 0; for (int i = 0; i < n; i++) s += x[i]; return s;", "reduce"),
    ("sum by assignment", "int n, const float *x", "float s = 0; for (int i = 0; i < n; i++) s = x[i] + s; return s;", "reduce"),
    ("product", "int n, const double *x", "double s = 1; for (int i = 0; i < n; i++) s *= x[i]; return s;", "reduce"),
    ("maximum", "int n, const int *x", "int s = x[0]; for (int i = 1; i < n; i++) s = x[i] > s ? x[i] : s; return s;", "reduce"),
    ("fmin", "int n, const float *x", "float s = 1e9f; for (int i = 0; i < n; i++) s = fminf(s, x[i]); return s;", "reduce"),
    ("position", "int n, const float *x", "float s = 1e9f; int w = -1; for (int i = 0; i < n; i++) if (x[i] < s)"
     " { s = x[i]; w = i; } return w;", "reduce"),
    ("truncating sum", "int n, const float *x", "int s = 0; for (int i = 0; i < n; i++) s += x[i]; return s;", "serial"),
    ("first match", "int n, const int *x", "for (int i = 0; i < n; i++) if (x[i] == 3) return i; return -1;", "reduce"),
    ("sentinel", "int n, const int *x", "int i = 0; for (i = 0; i < n + 1; i++) if (x[i] == 3) break; return i;", "serial"),
    ("histogram", INTS, "for (int i = 0; i < n; i++) a[idx[i]]++;", "atomic(i)"),
    ("weighted", "int n, float *a, const float *b, const int *idx", "for (int i = 0; i < n; i++) a[idx[i]] += b[i];", "atomic(i)"),
    ("histogram that looks", INTS, "for (int i = 0; i < n; i++) if (a[idx[i]] < 5) a[idx[i]]++;", "serial"),
    ("bytes have no atomics", "int n, unsigned char *a, const int *idx", "for (int i = 0; i < n; i++) a[idx[i]]++;", "serial"),
    ("mixed operators", INTS, "for (int i = 0; i < n; i++) { a[idx[i]] += 1; a[b[i]] |= 2; }", "serial"),
    ("scan", INTS, "int s = 0; for (int i = 0; i < n; i++) { s += b[i]; a[i] = s; }", "parallel(chunk)+scan"),
    ("scan that looks at itself", INTS, "int s = 0; for (int i = 0; i < n; i++) { if (s < 9) s += b[i]; a[i] = s; }", "serial"),
    ("compaction", INTS, "int k = 0; for (int i = 0; i < n; i++) if (b[i]) a[k++] = b[i];", "parallel(chunk)+scan"),
    ("compaction through a byte", INTS, "unsigned char k = 0; for (int i = 0; i < n; i++) if (b[i]) { a[k] = b[i]; k++; }", "serial"),
    ("compaction through a short", INTS, "short k = 0; for (int i = 0; i < n; i++) { a[k] = b[i]; k++; }", "serial"),
    ("compaction by ones", INTS, "unsigned k = 0; for (int i = 0; i < n; i++) if (b[i]) { a[k] = b[i]; k++; }", "parallel(chunk)+scan"),
    ("compaction in leaps", INTS, "unsigned k = 0; for (int i = 0; i < n; i++) if (b[i]) { a[k] = b[i]; k += 1048576; }", "serial"),
    ("running sum of bytes", INTS, "unsigned char s = 0; for (int i = 0; i < n; i++) { s += 3; a[i] = s; }", "parallel(chunk)+scan"),
    ("compaction that skips back", INTS, "int k = 0; for (int i = 0; i < n; i++) { a[k] = b[i]; k += b[i]; }", "serial"),
]  # fmt: skip

NESTED = [
    ("time steps", "int n, int t, float *a, float *c", "for (int s = 0; s < t; s++) { for (int i = 1; i < n - 1; i++)"
     " c[i] = a[i-1] + a[i+1]; for (int i = 0; i < n; i++) a[i] = c[i]; }", "host[parallel(i)]+host[parallel(i_2)]"),
    ("wavefront", MATRIX, "for (int i = 1; i < n; i++) for (int j = 1; j < n; j++) m[i*n+j] = m[(i-1)*n+j] + m[i*n+j-1];",
     "host[parallel(i)]"),
    ("knight's move", MATRIX, "for (int i = 1; i < n; i++) for (int j = 1; j < n - 1; j++)"
     " m[i*n+j] = m[(i-1)*n+j+1] + m[i*n+j-1];", "host[parallel(i)]"),
    ("row then everything", MATRIX, "for (int i = 1; i < n; i++) for (int j = 1; j < n; j++) m[i*n+j] = m[(i-1)*n+n-j]"
     " + m[i*n+j-1];", "serial"),
    ("min-plus", "int n, int *m", "for (int k = 0; k < n; k++) for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)"
     " if (m[i*n+k] + m[k*n+j] < m[i*n+j]) m[i*n+j] = m[i*n+k] + m[k*n+j];", "host[parallel(i,j)]+reduce"),
    ("elimination", MATRIX, "for (int k = 0; k < n; k++) for (int i = k + 1; i < n; i++) for (int j = k + 1; j < n; j++)"
     " m[i*n+j] -= m[i*n+k] * m[k*n+j];", "host[parallel(i,j)]"),
]  # fmt: skip


def _rows(rows: list[tuple[str, str, str, str]]) -> list[object]:
    return [pytest.param(*row[1:], id=row[0]) for row in rows]


@pytest.mark.parametrize(("parameters", "body", "expected"), _rows(PARALLEL + ORDERED + COMBINED + NESTED))
def test_each_loop_has_the_known_answer(parameters: str, body: str, expected: str) -> None:
    returns = "void" if "return" not in body else "float" if "float s" in body else "int"
    assert classify(parameters, body, returns) == expected


def test_an_update_inside_a_helper_is_not_taken_for_an_atomic_one() -> None:
    source = """static void bump(int *p) { *p += 1; }
void f(int n, int *a, const int *idx) { for (int i = 0; i < n; i++) bump(&a[idx[i]]); }"""
    module = lower_source(source, "f")
    assert isinstance(module, Module)
    with pytest.raises(Declined):
        make_plan(module, {})


def test_a_helper_that_stores_to_its_own_element_is_parallel() -> None:
    source = """static void bump(int *p, int by) { p[0] += by; }
void f(int n, int *a, const int *b) { for (int i = 0; i < n; i++) bump(a + i, b[i]); }"""
    module = lower_source(source, "f")
    assert isinstance(module, Module)
    assert [type(s) for s in make_plan(module, {}).steps] == [Parallel]
