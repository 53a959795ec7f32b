"""Products of rows and columns by tiles in shared memory.

The nest is ``for i for j { declarations; for p acc += E; rest }`` where every load in E depends on (i, p) or on (p, j)
alone and from nothing that the nest stores. A block of 16 by 16 threads stages the two tiles that its threads share;
each thread still adds its terms in the order of p, so sums are those of the plain kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cudaperf_agent.codegen.emit import Emitter, NotApplicable
from cudaperf_agent.codegen.emit_parallel import MAX_GRID_X, MAX_GRID_YZ
from cudaperf_agent.codegen.iterations import plain, span
from cudaperf_agent.codegen.printer import INDENT, Printer, spelled
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.codegen.steps import Parallel
from cudaperf_agent.tasks import ir

TILE = 16


@dataclass(frozen=True, slots=True)
class Product:
    """The parts of such a nest: what comes before the loop, the loop, its loads by kind, and the rest."""

    before: tuple[ir.Stmt, ...]
    loop: ir.For
    row_loads: tuple[ir.Load, ...]
    column_loads: tuple[ir.Load, ...]
    rest: tuple[ir.Stmt, ...]


def find_product(step: Parallel) -> Product | None:
    """The parts of a nest, if it is a product."""
    nest = step.nest
    if len(step.mapped) != 2 or len(nest.levels) != 2 or nest.levels[0].prefix or step.atomic:
        return None
    i, j = nest.variables
    if not all(plain(level.loop) for level in nest.levels):
        return None
    if reads(nest.levels[0].loop.bound, nest.levels[1].loop.bound) & {i, j}:
        return None
    loops = [s for s in nest.body if isinstance(s, ir.For)]
    if len(loops) != 1:
        return None
    loop, position = loops[0], nest.body.index(loops[0])
    before, rest = nest.body[:position], nest.body[position + 1 :]
    if not plain(loop) or reads(loop.bound) & {i, j} or len(loop.body) != 1 or loop.variable in reads(*rest):
        return None
    if not all(isinstance(s, ir.Declare) and not any(isinstance(n, ir.Load) for n in ir.walk(s)) for s in before):
        return None
    update = loop.body[0]
    if not isinstance(update, ir.Assign) or not isinstance(update.target, ir.Ref) or update.op not in ("+=", "-="):
        return None
    if any(isinstance(n, ir.Continue | ir.Break | ir.Return) for n in ir.walk(*rest)):
        return None
    rows, columns = [], []
    for load in [n for n in ir.walk(update.value) if isinstance(n, ir.Load)]:
        needs = reads(*load.indices) & {i, j, loop.variable}
        if load.pointer in step.stored or any(isinstance(n, ir.Load) for x in load.indices for n in ir.walk(x)):
            return None
        if needs == {i, loop.variable}:
            rows.append(load)
        elif needs == {loop.variable, j}:
            columns.append(load)
        else:
            return None
    if not rows or not columns or any(isinstance(n, ir.Call | ir.Select) for n in ir.walk(update.value)):
        return None
    outside = ir.rewrite(update.value, lambda n: ir.Const(0, n.type) if isinstance(n, ir.Load) else n)
    if loop.variable in reads(outside) or any(x.type.fields for x in (*rows, *columns)):
        return None
    return Product(tuple(before), loop, tuple(dict.fromkeys(rows)), tuple(dict.fromkeys(columns)), tuple(rest))


def emit_tiled(emitter: Emitter, step: Parallel, depth: int) -> list[str]:
    """Host lines of the launch.

    Raises:
        NotApplicable: The nest is no product.
    """
    product = find_product(step)
    if product is None:
        raise NotApplicable
    pad, (i, j) = INDENT * depth, step.nest.variables
    outer, inner = (level.loop for level in step.nest.levels)
    name = emitter.kernel_name("tiled")
    scope = emitter.scope((step.nest.rebuilt(),), given=step.mapped)
    tile, base = emitter.fresh("row_tile"), emitter.fresh("base")
    counts = {v: emitter.fresh(f"{v}_count") for v in (i, j)}
    at = product.loop.variable
    kinds = spelled(outer.type), spelled(inner.type), spelled(product.loop.type)
    shared: dict[ir.Load, str] = {}
    lines: list[str] = []
    for load in (*product.row_loads, *product.column_loads):
        shared[load] = emitter.fresh(f"{load.pointer}_tile")
        lines.append(f"{INDENT}__shared__ {spelled(load.type)} {shared[load]}[{TILE}][{TILE} + 1];")
    printer = emitter.printer()
    rows_end, columns_end = printer.expr(outer.bound, 10), printer.expr(inner.bound, 10)
    ends = printer.expr(product.loop.bound)
    lines += [
        f"{INDENT}const {kinds[1]} {j} = ({kinds[1]})((long long)blockIdx.x * {TILE} + threadIdx.x);",
        f"{INDENT}for (long long {tile} = blockIdx.y; {tile} * {TILE} < {rows_end}; {tile} += gridDim.y) {{",
        f"{INDENT * 2}const {kinds[0]} {i} = ({kinds[0]})({tile} * {TILE} + threadIdx.y);",
        *printer.block(product.before, 2),
        f"{INDENT * 2}for (long long {base} = 0; {base} < {ends}; {base} += {TILE}) {{",
    ]
    for load, side, guard in [
        *((x, "x", f"{i} < {rows_end}") for x in product.row_loads),
        *((x, "y", f"{j} < {columns_end}") for x in product.column_loads),
    ]:
        lines += [
            f"{INDENT * 3}{{",
            f"{INDENT * 4}const {kinds[2]} {at} = ({kinds[2]})({base} + threadIdx.{side});",
            f"{INDENT * 4}{shared[load]}[threadIdx.y][threadIdx.x] = {guard} && {at} < {ends} ? "
            f"{printer.expr(load)} : ({spelled(load.type)})0;",
            f"{INDENT * 3}}}",
        ]
    step_name, many = emitter.fresh("q"), emitter.fresh("many")
    rows = set(product.row_loads)

    def staged(load: ir.Load) -> str | None:
        if load not in shared:
            return None
        index = f"[threadIdx.y][{step_name}]" if load in rows else f"[{step_name}][threadIdx.x]"
        return shared[load] + index

    inside = replace(printer, load=staged)
    lines += [
        f"{INDENT * 3}__syncthreads();",
        f"{INDENT * 3}const int {many} = {ends} - {base} < {TILE} ? (int)({ends} - {base}) : {TILE};",
        f"{INDENT * 3}for (int {step_name} = 0; {step_name} < {many}; {step_name}++)",
        *inside.block(product.loop.body, 4),
        f"{INDENT * 3}__syncthreads();",
        f"{INDENT * 2}}}",
        f"{INDENT * 2}if ({i} < {rows_end} && {j} < {columns_end}) {{",
        *printer.block(product.rest, 3),
        f"{INDENT * 2}}}",
        f"{INDENT}}}",
    ]
    emitter.add_kernel(name, scope, lines)
    host = Printer(emitter.plan.symbols)
    grid = f"dim3(blocks_for({counts[j]}, {TILE}, {MAX_GRID_X}), blocks_for({counts[i]}, {TILE}, {MAX_GRID_YZ}))"
    return [
        f"{pad}{{",
        f"{pad}{INDENT}const long long {counts[i]} = {span(host, outer)};",
        f"{pad}{INDENT}const long long {counts[j]} = {span(host, inner)};",
        f"{pad}{INDENT}if ({counts[i]} > 0 && {counts[j]} > 0) {{",
        emitter.launch(name, grid, f"dim3({TILE}, {TILE})", scope, depth + 2),
        f"{pad}{INDENT}}}",
        f"{pad}}}",
    ]
