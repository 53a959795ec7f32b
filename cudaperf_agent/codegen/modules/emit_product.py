"""Matrix products: tiles of both operands in shared memory, several elements a thread, the rest of the graph fused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.modules.evaluate import INDENT, Evaluator, Scope
from cudaperf_agent.codegen.modules.kernels import SKINNY, SKINNY_DEPTH, TileKernel
from cudaperf_agent.codegen.modules.sizes import Atom, Expr, Var, as_expr, product, step_of, substituted, unflattened
from cudaperf_agent.codegen.modules.tensors import Tensor

if TYPE_CHECKING:
    from cudaperf_agent.codegen.modules.emit import KernelWriter


@dataclass(frozen=True, slots=True)
class _Operand:
    """One of the two factors.

    Attributes:
        name: Of its array in shared memory.
        tensor: What is read.
        along: Extent of a tile along rows or columns.
        variable: Runs along it.
        start: Where the tile starts.
        each: Elements that a thread fetches.
    """

    name: str
    tensor: Tensor
    along: int
    variable: Var
    start: str
    each: int


def write_product(writer: KernelWriter, kernel: TileKernel, tile: tuple[int, int, int, int]) -> None:
    """Add a product in tiles of a size to the code of `writer`."""
    whole, evaluator = kernel.contraction, writer.evaluator
    rows, columns, each_row, each_column = tile
    depth = min(writer.style.depth, SKINNY_DEPTH) if tile == SKINNY else writer.style.depth
    across, threads = columns // each_column, (rows // each_row) * (columns // each_column)
    batch_shape, (m_extent, n_extent) = whole.shape[: whole.batch], whole.shape[whole.batch :]
    (k_extent,) = whole.reduced
    m, n, k = Var("m", m_extent), Var("n", n_extent), Var("k", k_extent)
    batch = Var("batch", product(batch_shape))
    for name in (
        "m",
        "n",
        "k",
        "batch",
        "thread",
        "tile",
        "left",
        "right",
        "sum",
        "step",
        "tile_m",
        "tile_n",
        "first",
        "u",
        "e",
        "a",
        "b",
        "i",
        "j",
        "p0",
        "p1",
        "q0",
        "q1",
    ):
        evaluator.reserve(name)
    scope = Scope(variables=frozenset({batch}))
    text = evaluator.text
    scope.lines += [
        f"{INDENT}__shared__ __align__(16) float left[{depth}][{rows + 4}], right[{depth}][{columns + 4}];",
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
    operands = (
        _Operand("left", whole.left, rows, m, "tile_m", rows * depth // threads),
        _Operand("right", whole.right, columns, n, "tile_n", columns * depth // threads),
    )
    for operand in operands:
        scope.add(f"float {operand.name}_next[{operand.each}];")
    loop = Scope(scope, depth=2)
    orders = [_fetch(writer, loop, operand, lead, k, depth, threads) for operand in operands]
    loop.add("if (first > 0) { // what was staged the last time, while the next values are on their way")
    loop.lines += _multiply(rows, columns, each_row, each_column, depth, across)
    loop.add(f"{INDENT}__syncthreads();")
    loop.add("}")
    loop.add(f"if (first >= {text(k_extent)})")
    loop.add(f"{INDENT}break;")
    for operand, (along, deep) in zip(operands, orders, strict=True):
        loop.add("#pragma unroll")
        loop.add(f"for (int u = 0; u < {operand.each}; u++) {{")
        loop.add(f"{INDENT}const int e = thread + u * {threads};")
        loop.add(f"{INDENT}{operand.name}[{deep}][{along}] = {operand.name}_next[u];")
        loop.add("}")
    loop.add("__syncthreads();")
    scope.add(f"for (long long first = 0;; first += {depth}) {{")
    scope.lines += loop.lines
    scope.add("}")
    inner = Scope(scope, variables=frozenset({m, n}), depth=3)
    inner.add(f"const long long m = tile_m + {_place(f'thread / {across}', 'i', rows, each_row)};")
    inner.add(f"const long long n = tile_n + {_place(f'thread % {across}', 'j', columns, each_column)};")
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
    writer.finish(scope, blocks_of(writer, kernel, tile), str(threads))


def blocks_of(writer: KernelWriter, kernel: TileKernel, tile: tuple[int, int, int, int]) -> str:
    """How many blocks a product has in tiles of a size, as a host expression."""
    whole, host = kernel.contraction, writer.host
    *batch, rows, columns = whole.shape
    text = f"blocks_for({host(rows)}, {tile[0]}) * blocks_for({host(columns)}, {tile[1]})"
    return f"{text} * {host(product(batch), inside=True)}" if batch else text


def _fetch(
    writer: KernelWriter, loop: Scope, operand: _Operand, lead: tuple[Expr, ...], k: Var, depth: int, threads: int
) -> tuple[str, str]:
    """Read one operand's part of a tile into registers, in the order in which it lies in memory.

    Returns:
        The place of element ``e`` along the tile, and in depth.
    """
    evaluator, name = writer.evaluator, operand.variable.name
    index = (*lead, as_expr(operand.variable), as_expr(k))
    probe = Evaluator(writer.main, evaluator.written)
    everything = frozenset(v for e in index for v in e.variables)
    probe.value(operand.tensor, index, Scope(variables=everything))
    inside_row = any(step_of(a, k) == 1 for _, a in probe.addresses)
    long_way = any(step_of(a, operand.variable) == 1 for _, a in probe.addresses)
    order = (f"e / {depth}", f"e % {depth}")
    if long_way and not inside_row:
        order = (f"e % {operand.along}", f"e / {operand.along}")
    along, deep = order
    body = Scope(loop, variables=frozenset({operand.variable, k}), depth=3)
    body.add(f"const int e = thread + u * {threads};")
    body.add(f"const long long {name} = {operand.start} + {along}, k = first + {deep};")
    body.add(f"{operand.name}_next[u] = 0.0f;")
    inside = Scope(body, guarded=True, depth=4)
    inside.add(f"{operand.name}_next[u] = {evaluator.value(operand.tensor, index, inside)};")
    limit = evaluator.text(operand.variable.extent)
    body.add(f"if ({name} < {limit} && k < {evaluator.text(k.extent)}) {{")
    body.lines += inside.lines
    body.add("}")
    loop.add("#pragma unroll")
    loop.add(f"for (int u = 0; u < {operand.each}; u++) {{")
    loop.lines += body.lines
    loop.add("}")
    return order


def _place(thread: str, item: str, extent: int, each: int) -> str:
    """Where in a tile the `item`-th element of a thread is: quads of neighbours, as far apart as they fit."""
    quad = f"{thread} * 4 + {item}" if "/" not in thread and "%" not in thread else f"({thread}) * 4 + {item}"
    return quad if each == 4 else f"{quad} % 4 + {item} / 4 * {extent // (each // 4)}"


def _multiply(rows: int, columns: int, each_row: int, each_column: int, depth: int, across: int) -> list[str]:
    def read(to: str, array: str, thread: str, extent: int, each: int) -> list[str]:
        return [
            f"                const float4 {to}{q} = "
            f"*(const float4 *)&{array}[step][({thread}) * 4 + {q * (extent // (each // 4))}];"
            for q in range(each // 4)
        ]

    def names(prefix: str, each: int) -> str:
        return ", ".join(f"{prefix}{q}.{c}" for q in range(each // 4) for c in "xyzw")

    return [
        "#pragma unroll",
        f"            for (int step = 0; step < {depth}; step++) {{",
        *read("p", "left", f"thread / {across}", rows, each_row),
        *read("q", "right", f"thread % {across}", columns, each_column),
        f"                const float a[{each_row}] = {{{names('p', each_row)}}};",
        f"                const float b[{each_column}] = {{{names('q', each_column)}}};",
        "#pragma unroll",
        f"                for (int i = 0; i < {each_row}; i++)",
        "#pragma unroll",
        f"                    for (int j = 0; j < {each_column}; j++)",
        "                        sum[i][j] += a[i] * b[j];",
        "            }",
    ]
