"""Running sums and products: a warp, or a thread, per row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudaperf_agent.codegen.modules.evaluate import INDENT, Scope, literal, value_type
from cudaperf_agent.codegen.modules.kernels import ScanKernel
from cudaperf_agent.codegen.modules.sizes import Var, as_expr, flattened, product, unflattened

if TYPE_CHECKING:
    from cudaperf_agent.codegen.modules.emit import KernelWriter

_LANES = 32


def write_scan(writer: KernelWriter, kernel: ScanKernel) -> None:
    """Add a scan to the code of `writer`."""
    scan, evaluator = kernel.scan, writer.evaluator
    *outer, length = scan.shape
    count = product(outer)
    row, at = Var("row", count), Var("r", length)
    for name in ("row", "r", "lane", "running", "value", "other", "first"):
        evaluator.reserve(name)
    warp = kernel.worker == "warp"
    each = _LANES if warp else 1
    scope = Scope(variables=frozenset({row}))
    thread = f"((long long)blockIdx.x * {writer.style.block} + threadIdx.x)"
    scope.add(f"const long long row = {thread}{f' / {_LANES}' if warp else ''};")
    if warp:
        scope.add(f"const int lane = threadIdx.x % {_LANES};")
    scope.add(f"if (row >= {evaluator.text(count)})")
    scope.add(f"{INDENT}return;")
    kind, sign = value_type(scan.dtype), "+" if scan.kind == "sum" else "*"
    start = literal(0 if scan.kind == "sum" else 1, scan.dtype)
    scope.add(f"{kind} running = {start};")
    index = (*unflattened(as_expr(row), tuple(outer)), as_expr(at))
    address = flattened(index, scan.shape)
    limit = evaluator.text(length)
    if warp:
        loop = Scope(scope, depth=2)
        loop.add("const long long r = first + lane;")
        loop.add(f"{kind} value = {start};")
        inside = Scope(loop, variables=frozenset({at}), guarded=True, depth=3)
        inside.add(f"value = {evaluator.value(scan.source, index, inside)};")
        loop.add(f"if (r < {limit}) {{")
        loop.lines += inside.lines
        loop.add("}")
        loop.add(f"for (int away = 1; away < {_LANES}; away *= 2) {{")
        loop.add(f"{INDENT}const {kind} other = __shfl_up_sync(0xffffffffu, value, away);")
        loop.add(f"{INDENT}if (lane >= away)")
        loop.add(f"{INDENT * 2}value = other {sign} value;")
        loop.add("}")
        loop.add(f"value = running {sign} value;")
        store = Scope(loop, guarded=True, depth=3)
        writer.put(kernel.buffer, address, "value", store)
        loop.add(f"if (r < {limit}) {{")
        loop.lines += store.lines
        loop.add("}")
        loop.add(f"running = __shfl_sync(0xffffffffu, value, {_LANES - 1});")
        scope.add(f"for (long long first = 0; first < {limit}; first += {_LANES}) {{")
    else:
        loop = Scope(scope, variables=frozenset({at}), depth=2)
        value = evaluator.value(scan.source, index, loop)
        loop.add(f"running = running {sign} {value};")
        writer.put(kernel.buffer, address, "running", loop)
        scope.add(f"for (long long r = 0; r < {limit}; r++) {{")
    scope.lines += loop.lines
    scope.add("}")
    blocks = f"blocks_for({writer.host(count)}, {writer.style.block // each})"
    writer.finish(scope, blocks, str(writer.style.block))
