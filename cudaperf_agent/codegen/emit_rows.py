"""One warp per row: lanes share the loops inside an iteration, reductions end in shuffles."""

from __future__ import annotations

from cudaperf_agent.codegen.emit import Emitter
from cudaperf_agent.codegen.emit_parallel import MAX_GRID_X
from cudaperf_agent.codegen.iterations import span, value_at
from cudaperf_agent.codegen.printer import INDENT, Printer, constant, spelled
from cudaperf_agent.codegen.scalars import Reduction
from cudaperf_agent.codegen.steps import Parallel, RowPart
from cudaperf_agent.tasks import ir

LANES = 32


def emit_rows(emitter: Emitter, step: Parallel, depth: int) -> list[str]:
    """Host lines of the launch; the kernel is added to the emitter."""
    pad, loop = INDENT * depth, step.nest.levels[0].loop
    printer = emitter.printer()
    scope = emitter.scope((step.nest.rebuilt(),), given=step.mapped)
    name, row = emitter.kernel_name("rows"), loop.variable
    count, at, lane = (emitter.fresh(n) for n in (f"{row}_count", f"{row}_at", "lane"))
    scope.add(f"long long {count}", count)
    lines = [
        f"{INDENT}const long long {at} = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / {LANES};",
        f"{INDENT}const int {lane} = threadIdx.x % {LANES};",
        f"{INDENT}if ({at} >= {count})",
        f"{INDENT * 2}return;",
        f"{INDENT}const {spelled(loop.type)} {row} = {value_at(printer, loop, at)};",
    ]
    for part in step.rows:
        if part.fence:
            lines.append(f"{INDENT}__syncwarp();")
        lines += _part(emitter, printer, part, lane)
    emitter.add_kernel(name, scope, lines)
    block = emitter.strategy.block
    grid = f"blocks_for({count}, {block // LANES}, {MAX_GRID_X})"
    return [
        f"{pad}{{",
        f"{pad}{INDENT}const long long {count} = {span(Printer(emitter.plan.symbols), loop)};",
        f"{pad}{INDENT}if ({count} > 0) {{",
        emitter.launch(name, grid, str(block), scope, depth + 2),
        f"{pad}{INDENT}}}",
        f"{pad}}}",
    ]


def _part(emitter: Emitter, printer: Printer, part: RowPart, lane: str) -> list[str]:
    if part.who == "all":
        return printer.statement(part.statement, 1)
    if part.who == "one":
        # The barrier orders the store before what other lanes read next.
        inside = printer.statement(part.statement, 2)
        return [f"{INDENT}if ({lane} == 0) {{", *inside, f"{INDENT}}}", f"{INDENT}__syncwarp();"]
    loop = part.statement
    assert isinstance(loop, ir.For)
    at = emitter.fresh(f"{loop.variable}_at")
    lines, after = [], []
    for reduction in part.reductions:
        place, kind = Printer({}).expr(reduction.place), spelled(reduction.type)
        neutral = {"+": 0, "|": 0, "^": 0, "*": 1, "&": -1}.get(reduction.kind)
        if neutral is not None:
            old = emitter.fresh(f"{place.replace('.', '_')}_old")
            start = f"({kind})-1" if neutral < 0 else constant(neutral, reduction.type)
            lines += [f"{INDENT}const {kind} {old} = {place};", f"{INDENT}{place} = {start};"]
        after += _combined(reduction, place, emitter.fresh("other"))
        if neutral is not None:
            after.append(f"{INDENT}{place} = {old} {reduction.kind} {place};")
    if part.stores:
        after.append(f"{INDENT}__syncwarp();")
    return [
        *lines,
        f"{INDENT}for (long long {at} = {lane}; {at} < {span(printer, loop)}; {at} += {LANES}) {{",
        f"{INDENT * 2}const {spelled(loop.type)} {loop.variable} = {value_at(printer, loop, at)};",
        *printer.block(loop.body, 2),
        f"{INDENT}}}",
        *after,
    ]


def _combined(reduction: Reduction, place: str, other: str) -> list[str]:
    kind = spelled(reduction.type)
    value = f"(int){place}" if reduction.type.size < 4 else place
    lines = [
        f"{INDENT}for (int offset = {LANES // 2}; offset > 0; offset /= 2) {{",
        f"{INDENT * 2}const {kind} {other} = ({kind})__shfl_xor_sync(0xffffffffu, {value}, offset);",
    ]
    if reduction.kind == "best" and reduction.relation.startswith("f"):
        single = "f" if reduction.type.size == 4 else ""
        function = f"fmin{single}" if reduction.relation == "f<" else f"fmax{single}"
        lines.append(f"{INDENT * 2}{place} = {function}({place}, {other});")
    elif reduction.kind == "best":
        lines.append(f"{INDENT * 2}{place} = {other} {reduction.relation} {place} ? {other} : {place};")
    elif reduction.kind == "set":
        assert reduction.constant is not None
        wanted = f"({kind})({Printer({}).expr(reduction.constant)})"
        lines.append(f"{INDENT * 2}{place} = {other} == {wanted} ? {other} : {place};")
    else:
        lines.append(f"{INDENT * 2}{place} {reduction.kind}= {other};")
    return [*lines, f"{INDENT}}}"]
