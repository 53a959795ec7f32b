"""The handed C files: role, extent and range of every parameter, by a table written by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks import expr
from cudaperf_agent.tasks.cases import sized_case
from cudaperf_agent.tasks.clang_c import system_includes
from cudaperf_agent.tasks.model import Origin, Task
from cudaperf_agent.tasks.parse import load_task, unsettled

LOOPS, TYPE, COMMENT, DEFAULT = Origin.LOOP_BOUNDS, Origin.TYPE, Origin.COMMENT, Origin.DEFAULT

# file: {buffer: (role, who says so, elements at the sizes below, who says so)}
GOLDEN: dict[str, tuple[dict[str, int], dict[str, tuple[str, Origin, int, Origin]]]] = {
    "black_scholes": (
        {"n": 7},
        {
            "spot": ("in", TYPE, 7, LOOPS),
            "strike": ("in", TYPE, 7, LOOPS),
            "years": ("in", TYPE, 7, LOOPS),
            "call": ("out", LOOPS, 7, LOOPS),
            "put": ("out", LOOPS, 7, LOOPS),
        },
    ),
    "conv2d_same": (
        {"h": 5, "w": 7, "ksize": 3},
        {
            "img": ("in", TYPE, 35, LOOPS),
            "filt": ("in", TYPE, 9, LOOPS),
            "out": ("out", LOOPS, 35, LOOPS),
        },
    ),
    "dot": ({"n": 9}, {"u": ("in", TYPE, 9, LOOPS), "v": ("in", TYPE, 9, LOOPS)}),
    "edit_distance": ({"la": 4, "lb": 6}, {"a": ("in", TYPE, 4, LOOPS), "b": ("in", TYPE, 6, LOOPS)}),
    "find_first": ({"n": 9}, {"haystack": ("in", TYPE, 9, LOOPS)}),
    "floyd_warshall": ({"n": 9}, {"dist": ("inout", COMMENT, 81, COMMENT)}),
    "gauss_seidel": ({"n": 6}, {"a": ("inout", LOOPS, 36, TYPE)}),
    "gemm": (
        {"m": 2, "n": 3, "k": 5},
        {
            "A": ("in", TYPE, 10, TYPE),
            "B": ("in", TYPE, 15, TYPE),
            "C": ("inout", LOOPS, 6, TYPE),
        },
    ),
    "histogram": ({"len": 9}, {"bytes": ("in", TYPE, 9, LOOPS), "counts": ("inout", LOOPS, 256, TYPE)}),
    "inclusive_scan": ({"n": 9}, {"in": ("in", TYPE, 9, LOOPS), "out": ("out", LOOPS, 9, LOOPS)}),
    "jacobi2d": (
        {"height": 5, "width": 7},
        {"grid": ("inout", LOOPS, 35, LOOPS), "src": ("inout", LOOPS, 35, LOOPS)},
    ),
    "kmeans_assign": (
        {"n": 3, "k": 5},
        {
            "points": ("in", COMMENT, 24, COMMENT),
            "label": ("out", COMMENT, 3, COMMENT),
            "values": ("in", COMMENT, 40, COMMENT),
        },
    ),
    "mandelbrot": ({"w": 5, "h": 3}, {"iters": ("out", LOOPS, 15, LOOPS)}),
    "nbody_forces": ({"count": 9}, {"bodies": ("in", TYPE, 9, LOOPS), "acc": ("out", LOOPS, 9, LOOPS)}),
    "rgb_to_gray": (
        {"width": 5, "height": 3, "stride": 20},
        {"rgb": ("in", TYPE, 55, LOOPS), "gray": ("out", LOOPS, 15, LOOPS)},
    ),
    "saxpy": ({"n": 9}, {"x": ("in", TYPE, 9, LOOPS), "y": ("inout", LOOPS, 9, LOOPS)}),
    "softmax_rows": (
        {"rows": 3, "cols": 5},
        {"logits": ("in", TYPE, 15, LOOPS), "probs": ("out", LOOPS, 15, LOOPS)},
    ),
    "spmv_csr": (
        {"rows": 3, "cols": 5, "nnz": 7},
        {
            "row_ptr": ("in", COMMENT, 4, COMMENT),
            "col": ("in", COMMENT, 7, COMMENT),
            "val": ("in", COMMENT, 7, COMMENT),
            "x": ("in", COMMENT, 5, COMMENT),
            "y": ("out", COMMENT, 3, COMMENT),
        },
    ),
}


def load(c_cases: Path, name: str) -> Task:
    return load_task(c_cases / f"{name}.c")


def test_every_case_is_in_the_table(c_cases: Path) -> None:
    functions = {p.stem for p in c_cases.glob("*.c")} - {"prog_pair_sums"}
    assert functions == set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_roles_and_extents(c_cases: Path, name: str) -> None:
    task = load(c_cases, name)
    sizes, expected = GOLDEN[name]
    assert task.name == name
    assert task.mode == "function"
    assert unsettled(task) == ()
    found = {}
    for parameter in task.inputs():
        if parameter.pointer:
            assert parameter.extent is not None
            count = expr.evaluate(parameter.extent.expr, sizes)
            found[parameter.name] = (parameter.role.value, parameter.role_origin, count, parameter.extent.origin)
    assert found == expected


@pytest.mark.parametrize("name", [n for n in GOLDEN if n != "spmv_csr"])
def test_no_buffer_has_elements_when_every_size_is_zero(c_cases: Path, name: str) -> None:
    task = load(c_cases, name)
    zero = {p.name: 0 for p in task.inputs() if not p.pointer}
    for parameter in task.inputs():
        if parameter.pointer and parameter.name not in ("counts", "filt"):
            assert parameter.extent is not None
            assert expr.evaluate(parameter.extent.expr, zero) <= 0


def test_an_image_with_padded_rows_ends_with_its_last_pixel(c_cases: Path) -> None:
    rgb = load(c_cases, "rgb_to_gray").parameters[0]
    assert rgb.extent is not None
    assert expr.evaluate(rgb.extent.expr, {"width": 4, "height": 2, "stride": 100}) == 112
    assert expr.evaluate(rgb.extent.expr, {"width": 4, "height": 0, "stride": 0}) == 0
    assert expr.evaluate(rgb.extent.expr, {"width": 0, "height": 2, "stride": 100}) == 0


@pytest.mark.parametrize(
    ("name", "parameter", "low", "high"),
    [
        ("floyd_warshall", "dist", "0", "1000000"),
        ("floyd_warshall", "n", "1", None),
        ("gemm", "k", "1", None),
        ("gemm", "m", "0", None),
        ("kmeans_assign", "k", "1", "64"),
        ("mandelbrot", "x0", "-2", "1"),
        ("spmv_csr", "col", "0", "cols-1"),
        ("spmv_csr", "row_ptr", "0", "nnz"),
        ("saxpy", "n", "0", None),
        ("saxpy", "a", None, None),
    ],
)
def test_ranges(c_cases: Path, name: str, parameter: str, low: str | None, high: str | None) -> None:
    found = {p.name: p for p in load(c_cases, name).inputs()}[parameter].range
    assert (found.low, found.high) == (low, high)


def test_indices_and_order(c_cases: Path) -> None:
    spmv = {p.name: p for p in load(c_cases, "spmv_csr").parameters}
    assert [n for n, p in spmv.items() if p.ascending] == ["row_ptr"]
    assert spmv["col"].index
    assert not spmv["x"].index
    assert {p.name: p for p in load(c_cases, "histogram").parameters}["bytes"].index


@pytest.mark.parametrize("seed", range(6))
def test_offsets_and_subscripts_of_large_buffers_range_over_all_of_them(c_cases: Path, seed: int) -> None:
    """Rows of four million elements stay as even as those of a few, whether or not the last one ends the buffer."""
    size = 1 << 22
    task = load(c_cases, "spmv_csr")
    case = sized_case(task, {"rows": size, "cols": size, "nnz": size}, seed)
    rows, columns = np.asarray(case.values["row_ptr"]), np.asarray(case.values["col"])
    assert np.diff(rows).min() >= 0
    assert np.diff(rows).max() < 100
    assert rows.max() > 0.99 * size
    assert columns.min() >= 0
    assert 0.99 * size < columns.max() < size
    assert 0.4 * size < columns.mean() < 0.6 * size


def test_setup_call_and_what_stays_c(c_cases: Path) -> None:
    task = load(c_cases, "kmeans_assign")
    assert task.setup == "set_centroids(values, k)"
    assert [p.name for p in task.setup_inputs] == ["values"]
    assert task.setup_inputs[0].declaration == "const float *values"
    assert task.kept_functions == ("set_centroids",)
    (table,) = task.tables
    assert (table.name, table.dims, table.constant, table.type.spelling) == ("centroid_table", (64, 8), False, "float")


def test_structs_come_with_their_declarations(c_cases: Path) -> None:
    task = load(c_cases, "nbody_forces")
    assert "} Body;" in task.type_declarations
    assert "} Vec3;" in task.type_declarations
    body = task.parameters[0].type
    assert (body.spelling, body.size) == ("Body", 16)
    assert [(f.name, f.offset) for f in body.fields] == [("x", 0), ("y", 4), ("z", 8), ("mass", 12)]
    assert task.parameters[1].declaration == "Vec3 *acc"


def test_array_parameters_become_pointers(c_cases: Path) -> None:
    gemm = {p.name: p for p in load(c_cases, "gemm").parameters}
    assert gemm["A"].declaration == "const float *A"
    assert gemm["A"].dims == ("m", "k")
    assert gemm["C"].dims == ("m", "n")


def test_a_program(c_cases: Path) -> None:
    task = load(c_cases, "prog_pair_sums")
    assert task.mode == "program"
    assert task.name == "main"
    assert [(i.name, i.extent, i.range.low, i.range.high) for i in task.stdin] == [
        ("n", None, "0", "20000"),
        ("k", None, "1", "1000"),
        ("a", "n", "-1000000", "1000000"),
    ]


@pytest.mark.parametrize(
    ("name", "line", "says", "remedy"),
    [
        ("linked_list", 1, "pointer", "indices"),
        ("no_function", 2, "no function", "defines the function"),
        ("side_effects", 5, "fopen", "arrays"),
        ("syntax_error", 3, "expected expression", "gcc"),
        ("two_entries", 1, "shift (line 2)", "--entry scale"),
    ],
)
def test_bad_files_are_refused(c_cases: Path, name: str, line: int, says: str, remedy: str) -> None:
    path = c_cases / "bad" / f"{name}.c"
    with pytest.raises(InputRefused) as caught:
        load_task(path)
    error = caught.value
    assert error.where is not None
    assert error.where.startswith(f"{path}:{line}")
    assert says in error.message
    assert error.hint is not None
    assert remedy in error.hint


def test_a_declared_extent_is_believed_until_the_code_runs(c_cases: Path) -> None:
    task = load_task(c_cases / "bad" / "reads_past_end.c")
    x = task.parameters[1]
    assert x.extent is not None
    assert (x.extent.expr, x.extent.origin, x.extent.line) == ("n", Origin.TYPE, 2)


def test_the_digest_follows_what_can_change_a_verdict(c_cases: Path) -> None:
    source = (c_cases / "saxpy.c").read_text()
    first = load_task(source=source)
    assert first.digest == load_task(source=source).digest
    assert first.digest == load_task(c_cases / "saxpy.c").digest
    assert first.digest != load_task(source=source + "\n").digest
    assert first.digest != load_task(source=source, defines=["N=3"]).digest
    assert first.digest != load_task(source=source, spec={"clauses": ["n in 0..5"]}).digest


def test_libclang_is_loaded_only_when_a_file_is_parsed() -> None:
    code = "import sys, cudaperf_agent.tasks.parse; print(any(m.startswith('clang') for m in sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.strip() == "False"


def test_headers_are_found_whatever_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    system_includes.cache_clear()
    source = (
        "#include <stdint.h>\n#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n#include <float.h>\n"
        "#include <stddef.h>\n#include <limits.h>\n#include <stdbool.h>\n#include <complex.h>\n"
        "#include <assert.h>\n#include <inttypes.h>\nvoid f(double *x) { *x = sqrt(*x) + FLT_MAX + INT_MAX; }\n"
    )
    assert load_task(source=source).name == "f"
