"""Counts gathered per block in shared memory: updates of a small buffer of known size, added to memory at the end.

Each block updates a copy that starts at zero and adds it to the buffer once. Addition is associative and commutative
(for floats within their error budget), so the buffer ends as if every update had been made in it.
"""

from __future__ import annotations

from cudaperf_agent.codegen.accesses import update_of
from cudaperf_agent.codegen.atomics import atomic_type
from cudaperf_agent.codegen.emit import Emitter, NotApplicable
from cudaperf_agent.codegen.iterations import span, value_at
from cudaperf_agent.codegen.printer import INDENT, Printer, spelled
from cudaperf_agent.codegen.steps import Parallel
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import TypeKind

MAX_ELEMENTS = 4096
BLOCKS = 528
"""Two blocks of 256 threads for each multiprocessor of a large GPU."""


def emit_privatised(emitter: Emitter, step: Parallel, depth: int) -> list[str]:
    """Host lines of the launch.

    Raises:
        NotApplicable: The buffer is not small and of known size, or updated by more than sums.
    """
    nest = step.nest
    if len(step.atomic) != 1 or len(step.mapped) != 1 or len(nest.levels) != 1:
        raise NotApplicable
    buffer = next(iter(step.atomic))
    elements, kind = emitter.plan.extents.get(buffer, 0), emitter.plan.symbols[buffer].type
    if not 0 < elements <= MAX_ELEMENTS or kind.size not in (4, 8) or kind.kind is TypeKind.STRUCT:
        raise NotApplicable
    updates = [n for n in ir.walk(*nest.inner) if isinstance(n, ir.Assign) and isinstance(ir.root(n.target), ir.Load)]
    places = [p for n in updates if isinstance(p := ir.root(n.target), ir.Load) and p.pointer == buffer]
    if not places or any(
        update_of(n)[0] != "+" or not isinstance(n.target, ir.Load) for n in updates if ir.root(n.target) in places
    ):
        raise NotApplicable
    if any(isinstance(n, ir.Point | ir.Continue | ir.Return) for n in ir.walk(*nest.inner)):
        raise NotApplicable
    return _emit(emitter, step, depth, buffer, elements)


def _emit(emitter: Emitter, step: Parallel, depth: int, buffer: str, elements: int) -> list[str]:
    nest, loop, pad = step.nest, step.nest.levels[0].loop, INDENT * depth
    kind = emitter.plan.symbols[buffer].type
    local, at, count, bin_ = (emitter.fresh(n) for n in (f"{buffer}_here", "at", f"{loop.variable}_count", "bin"))
    name = emitter.kernel_name("privatised")
    scope = emitter.scope((nest.rebuilt(),), given=step.mapped)
    scope.add(f"long long {count}", count)

    def moved(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Load) and node.pointer == buffer:
            return ir.Load(local, node.indices, node.type, node.line)
        return node

    body = tuple(ir.rewrite(s, moved) for s in nest.inner)
    printer = emitter.printer([local])
    spelling, atomic = spelled(kind), atomic_type(kind)
    target = f"&{buffer}[{bin_}]" if atomic == kind.spelling else f"({atomic} *)&{buffer}[{bin_}]"
    lines = [
        f"{INDENT}__shared__ {spelling} {local}[{elements}];",
        f"{INDENT}for (int {bin_} = threadIdx.x; {bin_} < {elements}; {bin_} += blockDim.x)",
        f"{INDENT * 2}{local}[{bin_}] = 0;",
        f"{INDENT}__syncthreads();",
        f"{INDENT}for (long long {at} = (long long)blockIdx.x * blockDim.x + threadIdx.x; {at} < {count};",
        f"{INDENT}     {at} += (long long)gridDim.x * blockDim.x) {{",
        f"{INDENT * 2}const {spelled(loop.type)} {loop.variable} = {value_at(printer, loop, at)};",
        *printer.block(body, 2),
        f"{INDENT}}}",
        f"{INDENT}__syncthreads();",
        f"{INDENT}for (int {bin_} = threadIdx.x; {bin_} < {elements}; {bin_} += blockDim.x)",
        f"{INDENT * 2}if ({local}[{bin_}] != 0)",
        f"{INDENT * 3}atomicAdd({target}, ({atomic}){local}[{bin_}]);",
    ]
    emitter.add_kernel(name, scope, lines)
    block = emitter.strategy.block
    return [
        f"{pad}{{",
        f"{pad}{INDENT}const long long {count} = {span(Printer(emitter.plan.symbols), loop)};",
        f"{pad}{INDENT}if ({count} > 0) {{",
        emitter.launch(name, f"blocks_for({count}, {block * 4}, {BLOCKS})", str(block), scope, depth + 2),
        f"{pad}{INDENT}}}",
        f"{pad}}}",
    ]
