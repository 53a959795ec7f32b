"""The handed C files: each is prepared, its faithful rebuilds pass, and its wrong versions fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from cudaperf_agent.tasks.budget import leaves
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Case, Comparison, Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from cudaperf_agent.tasks.reference_build import Build
from tests.conftest import CASES
from tests.oracle.running import judge

FUNCTIONS = sorted(p.stem for p in (CASES / "c").glob("*.c") if not p.stem.startswith("prog_"))


@dataclass
class Prepared:
    """A task with its oracle and cases, made once for all tests of this module."""

    task: Task
    oracle: Oracle
    visible: tuple[Case, ...]
    hidden: tuple[Case, ...]


_KNOWN: dict[str, Prepared] = {}


async def prepared(name: str) -> Prepared:
    if name not in _KNOWN:
        task = await prepare(load_task(CASES / "c" / f"{name}.c"))
        cases = [make_cases(task, hidden=hidden) for hidden in (False, True)]
        _KNOWN[name] = Prepared(task, Oracle(task), *cases)
    return _KNOWN[name]


async def results(name: str, source: str | None = None, build: Build = Build.PLAIN) -> list[Comparison]:
    made = await prepared(name)
    return await judge(made.task, [*made.visible, *made.hidden], source, build=build, oracle=made.oracle)


@pytest.mark.parametrize("build", [Build.NATIVE, Build.REASSOCIATED, Build.CONTRACTED])
@pytest.mark.parametrize("name", FUNCTIONS)
async def test_a_faithful_rebuild_passes(name: str, build: Build) -> None:
    found = await results(name, build=build)
    assert [r.mismatch for r in found if not r.ok] == []
    assert max(r.worst_error for r in found) <= 1
    if name in ("find_first", "gauss_seidel", "inclusive_scan") and build is not Build.REASSOCIATED:
        assert max(r.worst_error for r in found) == 0


class Mutant(NamedTuple):
    name: str
    old: str
    new: str
    fault: str


MUTANTS = [
    Mutant("saxpy", "i < n", "i < n - 1", "last element missing"),
    Mutant("saxpy", "i < n", "i < n / 256 * 256", "tail after whole blocks missing"),
    Mutant("saxpy", "+ y[i]", "- y[i]", "wrong operator"),
    Mutant("saxpy", "a * x[i]", "x[i]", "a scalar ignored"),
    Mutant("saxpy", "a * x[i] + y[i]", "0", "always zeros"),
    Mutant("dot", "double s = 0.0", "float s = 0.0", "float for double in the sum"),
    Mutant("dot", "u[i] * v[i]", "(float)u[i] * (float)v[i]", "float for double in the product"),
    Mutant("dot", "long i = 0", "long i = 1", "first element missing"),
    Mutant("dot", "i < n", "i < n - 1", "last element missing"),
    Mutant("dot", "return s", "return 0", "always zero"),
    Mutant("dot", "i < n", "i < (n < 1024 ? n : 1024)", "a fixed bound"),
    Mutant("gemm", "A[i][p] * B[p][j]", "A[i][p] * B[p][(j + 1) % n]", "wrong neighbour"),
    Mutant("gemm", "+ beta * C[i][j]", "+ beta", "a term lost"),
    Mutant("gemm", "beta * C[i][j]", "C[i][j]", "a scalar ignored"),
    Mutant("gemm", "alpha * acc", "acc", "a scalar ignored"),
    Mutant("gemm", "p < k", "p < k / 16 * 16", "tail of the inner loop missing"),
    Mutant("gemm", "acc += A[i][p] * B[p][j]", "acc = A[i][p] * B[p][j]", "no accumulation"),
    Mutant("conv2d_same", "yy >= 0", "yy > 0", "top row missed"),
    Mutant("conv2d_same", "xx < w)", "xx < w - 1)", "last column missed"),
    Mutant("conv2d_same", "(fx + half)", "(half - fx)", "flipped filter"),
    Mutant("conv2d_same", "fy = -half", "fy = -half + 1", "first filter row missed"),
    Mutant("softmax_rows", "- biggest", "", "overflows without the maximum"),
    Mutant("softmax_rows", "float biggest = in[0]", "float biggest = 0", "wrong start of the maximum"),
    Mutant("softmax_rows", "out[c] /= total", "out[c] /= cols", "wrong divisor"),
    Mutant("softmax_rows", "in[c] > biggest", "0", "first element for the maximum"),
    Mutant("nbody_forces", "+ softening", "", "a scalar ignored"),
    Mutant("nbody_forces", "a.z += dz * s", "a.z += dy * s", "wrong component"),
    Mutant("nbody_forces", "inv * inv * inv", "inv * inv", "wrong power"),
    Mutant("nbody_forces", "int j = 0", "int j = 1", "first body missed"),
    Mutant("black_scholes", "0.5 * erfc(-d * M_SQRT1_2)", "0.5f * erfcf(-(float)d * (float)M_SQRT1_2)", "float cdf"),
    Mutant("black_scholes", "norm_cdf(-d2)", "norm_cdf(d2)", "wrong sign"),
    Mutant("black_scholes", "0.5 * vol * vol", "0.5 * vol", "wrong power"),
    Mutant("black_scholes", "double df = exp(-rate * years[i])", "double df = expf(-rate * years[i])", "float exp"),
    Mutant("spmv_csr", "k < row_ptr[r + 1]", "k < row_ptr[r + 1] - 1", "last entry of a row missing"),
    Mutant("spmv_csr", "x[col[k]]", "x[k % cols]", "index ignored"),
    Mutant("spmv_csr", "double sum = 0.0", "float sum = 0.0", "float for double"),
    Mutant("histogram", "counts[bytes[i]]++", "counts[bytes[i]] = 1", "no counting"),
    Mutant("histogram", "counts[bytes[i]]++", "counts[bytes[i] & 127]++", "bins folded"),
    Mutant("histogram", "size_t i = 0", "size_t i = 1", "first byte missed"),
    Mutant("inclusive_scan", "out[i] = running", "out[i] = running - in[i]", "exclusive scan"),
    Mutant("inclusive_scan", "int running = 0", "int running = 0; if (n > 1024) n = 1024", "one block only"),
    Mutant("inclusive_scan", "running += in[i]", "running = (i % 256 ? running : 0) + in[i]", "no carry of blocks"),
    Mutant("find_first", "return i;", "{ int at = i; while (++i < n) if (haystack[i] == needle) at = i; return at; }",
           "last instead of first"),
    Mutant("find_first", "return -1", "return n", "wrong when absent"),
    Mutant("find_first", "return -1", "return 0", "wrong when absent"),
    Mutant("gauss_seidel", "a[i - 1][j] + a[i + 1][j]", "a[i + 1][j] + a[i + 1][j]", "wrong neighbour"),
    Mutant("gauss_seidel", "int i = 1; i < n - 1; i++", "int i = n - 2; i >= 1; i--", "another order"),
    Mutant("gauss_seidel", "int j = 1; j < n - 1; j++",
           "int h = 0; h < 2; h++) for (int j = 1 + (i + h) % 2; j < n - 1; j += 2", "red-black within a row"),
    Mutant("gauss_seidel", "t < iters", "t < (iters > 1)", "iterations ignored"),
    Mutant("jacobi2d", "0.25 *", "0.2f *", "wrong constant"),
    Mutant("jacobi2d", "grid[IDX(r, c)] = 0.25 * (src", "grid[IDX(r, c)] = 0.25 * (grid", "in place: a stale halo"),
    Mutant("jacobi2d", "c < width - 1", "c < width", "border overwritten"),
    Mutant("jacobi2d", "memcpy(src, grid, sizeof(double)", "memcpy(src, grid, sizeof(float)", "half copied"),
    Mutant("floyd_warshall", "int k = 0; k < n", "int k = 0; k < n - 1", "last vertex missing"),
    Mutant("floyd_warshall", "dist[i][k] + dist[k][j];", "dist[i][k] + dist[k][j] + 1;", "off by one"),
    Mutant("rgb_to_gray", "77 * r + 150 * g", "150 * r + 77 * g", "swapped channels"),
    Mutant("rgb_to_gray", "(long)y * stride", "(long)y * width * 3", "stride ignored"),
    Mutant("rgb_to_gray", ">> 8", "/ 255", "wrong scale"),
    Mutant("edit_distance", "row[j - 1] + 1", "row[j - 1] + 2", "wrong cost"),
    Mutant("edit_distance", "row[0] = i", "row[0] = 0", "wrong border"),
    Mutant("edit_distance", "a[i - 1] != b[j - 1]", "a[i - 1] == b[j - 1]", "wrong comparison"),
    Mutant("edit_distance", "prev[j] = j", "prev[j] = 0", "wrong border"),
    Mutant("mandelbrot", "> 4.0", "> 2.0", "wrong radius"),
    Mutant("mandelbrot", "zx * zx - zy * zy + cx", "zx * zx - zy * zy - cx", "wrong sign"),
    Mutant("mandelbrot", "double zx = 0, zy = 0", "float zx = 0, zy = 0", "float for double"),
    Mutant("mandelbrot", "it < limit", "it < limit - 1", "one iteration short"),
    Mutant("kmeans_assign", "d2 < best", "d2 <= best", "last of equals"),
    Mutant("kmeans_assign", "c < k; c++) {\n            float d2", "c < k - 1; c++) {\n            float d2",
           "last centroid missed"),
    Mutant("kmeans_assign", "d < DIM; d++) {", "d < DIM - 1; d++) {", "last dimension missed"),
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.name}: {m.fault}")
async def test_a_mutant_fails(mutant: Mutant) -> None:
    source = (CASES / "c" / f"{mutant.name}.c").read_text()
    assert mutant.old in source
    found = await results(mutant.name, source.replace(mutant.old, mutant.new))
    assert not all(r.ok for r in found)


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_zeros_fail(name: str) -> None:
    made = await prepared(name)
    expected = await made.oracle.expected(made.hidden)
    verdicts = []
    for case, want in zip(made.hidden, expected, strict=True):
        zeros = {o.name: np.zeros_like(o.value) for o in want.outputs}
        verdicts.append(compare(made.task, case, want, zeros).ok)
    assert not all(verdicts)
    telling = [
        any(np.count_nonzero(leaf.values) > 0.1 * leaf.values.size for o in w.outputs for leaf in leaves(o.value))
        for w in expected
    ]
    assert not any(ok and told for ok, told in zip(verdicts, telling, strict=True))
    assert sum(telling) >= 5


@pytest.mark.parametrize("seed", [0, 3])
async def test_other_contractions_of_a_chaotic_iteration_pass(seed: int) -> None:
    made = await prepared("mandelbrot")
    cases = [c for hidden in (False, True) for c in make_cases(made.task, hidden=hidden, seed=seed)]
    for changes in [
        [("zx * zx - zy * zy + cx", "__builtin_fma(zx, zx, __builtin_fma(-zy, zy, cx))"),
         ("2 * zx * zy + cy", "__builtin_fma(2 * zx, zy, cy)"), ("x0 + px * step", "__builtin_fma(px, step, x0)")],
        [("zx * zx - zy * zy + cx", "(zx - zy) * (zx + zy) + cx"), ("2 * zx * zy + cy", "zx * zy + zx * zy + cy")],
    ]:  # fmt: skip
        source = made.task.source
        for old, new in changes:
            assert old in source
            source = source.replace(old, new)
        found = await judge(made.task, cases, source, oracle=made.oracle)
        assert [r.mismatch for r in found if not r.ok] == []


def test_every_handed_function_is_covered() -> None:
    assert {m.name for m in MUTANTS} == set(FUNCTIONS)
    assert Path(CASES / "c" / "saxpy.c").exists()
