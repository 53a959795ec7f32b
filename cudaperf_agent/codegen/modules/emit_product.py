"""Matrix products: tiles of both operands in shared memory, several elements a thread, the rest of the graph fused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.modules.evaluate import INDENT, Evaluator, Scope
from cudaperf_agent.codegen.modules.kernels import TileKernel
from cudaperf_agent.codegen.modules.sizes import Atom, Expr, Var, as_expr, product, step_of, substituted, unflattened
from cudaperf_agent.codegen.modules.tensors import Tensor

if TYPE_CHECKING:
    from cudaperf_agent.codegen.modules.emit import KernelWriter


@dataclass(frozen=True, slots=True)
class _Operand:
    """One of the two factors: its array, the extent of a tile, and the variable that runs along it."""

    name: str
    tensor: Tensor
    along: int
    variable: Var
    start: str


def write_product(writer: KernelWriter, kernel: TileKernel) -> None:
    """Add a tiled product to the code of `writer`."""
    assert writer.style.tile is not None
    whole, evaluator = kernel.contraction, writer.evaluator
    rows, columns, each_row, each_column = writer.style.tile
    depth = writer.style.depth
    across, threads = columns // each_column, (rows // each_row) * (columns // each_column)
    batch_shape, (m_extent, n_extent) = whole.shape[: whole.batch], whole.shape[whole.batch :]
    (k_extent,) = whole.reduced
    m, n, k = Var("m", m_extent), Var("n", n_extent), Var("k", k_extent)
    batch = Var("batch", product(batch_shape))
    for name in ("m", "n", "k", "batch", "thread", "tile", "left", "right", "sum", "step", "tile_m", "tile_n", "first"):
        evaluator.reserve(name)
    scope = Scope(variables=frozenset({batch}))
    text = evaluator.text
    scope.lines += [
        f"{INDENT}__shared__ float left[{depth}][{rows + 1}], right[{depth}][{columns + 1}];",
        f"{INDENT}const int thread = threadIdx.x;",
        f"{INDENT}const long long down = ({text(m_extent)} + {rows - 1}) / {rows};",
        f"{INDENT}const long long wide = ({text(n_extent)} + {columns - 1}) / {columns};",
        f"{INDENT}const long long tile_m = blockIdx.x / wide % down * {rows}, tile_n = blockIdx.x % wide * {columns};",
    ]
    if batch_shape:
        scope.add("const long long batch = blockIdx.x / wide / down;")
    for name in ("down", "wide"):
        evaluator.reserve(name)
    place = (*unflattened(as_expr(batch), batch_shape), as_expr(m), as_expr(n))
    by: dict[Atom, Expr] = {v: p for e, p in zip(kernel.variables, place, strict=True) for v in e.variables}
    lead = tuple(substituted(e, by) for e in kernel.variables[: whole.batch])
    scope.add(f"float sum[{each_row}][{each_column}] = {{}};")
    loop = Scope(scope, depth=2)
    for operand in (
        _Operand("left", whole.left, rows, m, "tile_m"),
        _Operand("right", whole.right, columns, n, "tile_n"),
    ):
        _fill(writer, loop, operand, lead, k, depth, threads)
    loop.add("__syncthreads();")
    loop.lines += _multiply(rows, columns, each_row, each_column, depth, across)
    loop.add("__syncthreads();")
    scope.add(f"for (long long first = 0; first < {text(k_extent)}; first += {depth}) {{")
    scope.lines += loop.lines
    scope.add("}")
    inner = Scope(scope, variables=frozenset({m, n}), depth=3)
    inner.add(f"const long long m = tile_m + thread / {across} + i * {rows // each_row};")
    inner.add(f"const long long n = tile_n + thread % {across} + j * {across};")
    inner.add(f"if (m >= {text(m_extent)} || n >= {text(n_extent)})")
    inner.add(f"{INDENT}continue;")
    evaluator.ready[(id(whole), tuple(substituted(e, by) for e in kernel.variables))] = "sum[i][j]"
    guarded = Scope(inner, guarded=True, depth=3)
    for sink in kernel.sinks:
        writer.store(sink, tuple(substituted(e, by) for e in sink.index), guarded)
    scope.lines += [
        "#pragma unroll",
        f"{INDENT}for (int i = 0; i < {each_row}; i++)",
        "#pragma unroll",
        f"{INDENT * 2}for (int j = 0; j < {each_column}; j++) {{",
        *inner.lines,
        *guarded.lines,
        f"{INDENT * 2}}}",
    ]
    host = writer.host
    grid = f"blocks_for({host(m_extent)}, {rows}) * blocks_for({host(n_extent)}, {columns})"
    if batch_shape:
        grid += f" * {host(product(batch_shape), inside=True)}"
    writer.finish(scope, grid, str(threads))


def _fill(
    writer: KernelWriter, loop: Scope, operand: _Operand, lead: tuple[Expr, ...], k: Var, depth: int, threads: int
) -> None:
    """Stage one operand's part of a tile, in the order in which it lies in memory."""
    evaluator, name = writer.evaluator, operand.variable.name
    index = (*lead, as_expr(operand.variable), as_expr(k))
    probe = Evaluator(writer.main, evaluator.written)
    everything = frozenset(v for e in index for v in e.variables)
    probe.value(operand.tensor, index, Scope(variables=everything))
    inside_row = any(step_of(a, k) == 1 for _, a in probe.addresses)
    long_way = any(step_of(a, operand.variable) == 1 for _, a in probe.addresses)
    along, deep = (f"e / {depth}", f"e % {depth}") if inside_row or not long_way else (
        f"e % {operand.along}", f"e / {operand.along}"
    )  # fmt: skip
    body = Scope(loop, variables=frozenset({operand.variable, k}), depth=3)
    body.add(f"const long long {name} = {operand.start} + {along}, k = first + {deep};")
    value = evaluator.fresh(f"{operand.name}_value")
    body.add(f"float {value} = 0.0f;")
    inside = Scope(body, guarded=True, depth=4)
    inside.add(f"{value} = {evaluator.value(operand.tensor, index, inside)};")
    limit = evaluator.text(operand.variable.extent)
    body.add(f"if ({name} < {limit} && k < {evaluator.text(k.extent)}) {{")
    body.lines += inside.lines
    body.add("}")
    body.add(f"{operand.name}[{deep}][{along}] = {value};")
    loop.add(f"for (int e = thread; e < {operand.along * depth}; e += {threads}) {{")
    loop.lines += body.lines
    loop.add("}")


def _multiply(rows: int, columns: int, each_row: int, each_column: int, depth: int, across: int) -> list[str]:
    del columns
    return [
        "#pragma unroll",
        f"        for (int step = 0; step < {depth}; step++) {{",
        f"            float a[{each_row}], b[{each_column}];",
        "#pragma unroll",
        f"            for (int i = 0; i < {each_row}; i++)",
        f"                a[i] = left[step][thread / {across} + i * {rows // each_row}];",
        "#pragma unroll",
        f"            for (int j = 0; j < {each_column}; j++)",
        f"                b[j] = right[step][thread % {across} + j * {across}];",
        "#pragma unroll",
        f"            for (int i = 0; i < {each_row}; i++)",
        "#pragma unroll",
        f"                for (int j = 0; j < {each_column}; j++)",
        "                    sum[i][j] += a[i] * b[j];",
        "        }",
    ]
