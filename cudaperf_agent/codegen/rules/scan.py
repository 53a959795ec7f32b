"""Rule: a running integer sum that iterations also read (a scan), in chunks.

The loop adds to one integer variable s, and to nothing else that it carries: ``s += e`` where neither e nor the
conditions around it depend on s. Integers are added modulo 2^b (signed overflow being undefined), which is
associative, so the value of s before iteration i is s_0 plus the sum of the additions of all earlier iterations,
grouped in any way. All else in different iterations is proven independent by isl. Cut the range into chunks: first
every chunk's additions are summed (running the body without its stores), then the sums are scanned, then every chunk
runs the loop as written, starting from its own s. Each thread does so with its chunk, so the body may be anything.

The first pass must see the values that the sequential loop sees. Additions therefore load no buffer that the loop
stores to, or only in a body without inner loops and before the iteration's first store to it (in-place scans).

Floating-point sums are not associative; the rule declines them.

A store ``out[s] = …`` directly followed by ``s += c`` with a constant c > 0, where s only ever grows by such
constants, hits a different element each time (compaction): no two stores see the same s. That needs an s that cannot
wrap round: a signed int or long (overflow is undefined), 64 bits, or 32 bits that grow by ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.accesses import Access, bare, update_of
from cudaperf_agent.codegen.dependence import carried
from cudaperf_agent.codegen.printer import INDENT, spelled
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.codegen.steps import (
    Declined,
    HostStatement,
    Level,
    Nest,
    Parallel,
    ScalarWork,
    ScanSums,
    Step,
    Symbol,
)
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import TypeKind

if TYPE_CHECKING:
    from cudaperf_agent.codegen.emit import Emitter
    from cudaperf_agent.codegen.plan import Context, Planner

MAX_CHUNKS = 65536
MIN_CHUNK = 16


def scan(planner: Planner, loop: ir.For, nest: Nest, shared: set[str], context: Context) -> list[Step]:
    """Steps of a scan; ``[]`` where the loop is none.

    Raises:
        Declined: It would be one, but over floating-point numbers.
    """
    if len(shared) != 1 or loop.step != 1 or loop.relation not in ("<", "<="):
        return []
    total = _total(loop.body, next(iter(shared)))
    if total is None or not planner.mappable(nest, nest.variables[0], ()):
        return []
    if total.type.kind not in (TypeKind.INT, TypeKind.UINT):
        raise Declined(
            f"'{total.name}' is a running sum of floating-point numbers, whose order matters",
            _update_line(loop.body, total.name),
        )
    outer = Nest((Level(replace(loop, body=())),), loop.body)
    accesses = planner.accesses(outer, context)
    if not _additions_first(loop.body, accesses):
        return []
    grown = _compacted(loop.body, total)
    kept = [a for a in accesses if a.root not in grown or not a.write]
    if any(a.root in grown and not a.write for a in accesses):
        return []
    found = carried(kept, outer.variables)[loop.variable]
    if found.order or found.updates:
        return []
    return _steps(planner, loop, total, frozenset(a.root for a in accesses if a.write))


def _total(body: tuple[ir.Stmt, ...], name: str) -> ir.Ref | None:
    """The running sum, if all that changes it are additions that do not depend on it."""
    tainted = {name}
    while True:
        more = _spread(body, tainted, name)
        if more <= tainted:
            break
        tainted |= more
    place: ir.Ref | None = None
    for node in ir.walk(*body):
        if isinstance(node, ir.Assign) and isinstance(node.target, ir.Ref) and node.target.name == name:
            update, value = update_of(node)
            whole = value.type is not None and value.type.kind in (TypeKind.INT, TypeKind.UINT, TypeKind.BOOL)
            if node.target.type.kind is TypeKind.FLOAT:
                whole = True
            if update != "+" or reads(value) & tainted or not whole:
                return None
            place = node.target
        controls: list[ir.Expr] = []
        if isinstance(node, ir.If | ir.While):
            controls = [node.condition]
        elif isinstance(node, ir.For):
            controls = [node.start, node.bound]
        if controls and reads(*controls) & tainted and _assigns(node, name):
            return None
        if isinstance(node, ir.Break | ir.Continue | ir.Return | ir.Evaluate):
            return None
    return place


def _spread(body: tuple[ir.Stmt, ...], tainted: set[str], name: str) -> set[str]:
    more: set[str] = set()
    for node in ir.walk(*body):
        if isinstance(node, ir.Declare) and node.init is not None and reads(node.init) & tainted:
            more.add(node.name)
        elif isinstance(node, ir.Assign):
            place = ir.root(node.target)
            if isinstance(place, ir.Ref) and place.name != name and reads(node.value, node.target) & tainted:
                more.add(place.name)
        elif isinstance(node, ir.If) and reads(node.condition) & tainted:
            for inner in ir.walk(*node.then, *node.otherwise):
                if isinstance(inner, ir.Assign) and isinstance(ir.root(inner.target), ir.Ref):
                    owner = ir.root(inner.target)
                    more |= {owner.name} if isinstance(owner, ir.Ref) else set()
    return more


def _assigns(node: ir.Node, name: str) -> bool:
    return any(
        isinstance(n, ir.Assign) and isinstance(n.target, ir.Ref) and n.target.name == name for n in ir.walk(node)
    )


def _update_line(body: tuple[ir.Stmt, ...], name: str) -> int:
    return next((n.line for n in ir.walk(*body) if isinstance(n, ir.Assign) and _assigns(n, name)), 0)


def _additions_first(body: tuple[ir.Stmt, ...], accesses: Sequence[Access]) -> bool:
    """Whether what the additions load is loaded before the iteration stores to the same buffer."""
    stored = {a.root for a in accesses if a.write}
    loops = any(isinstance(n, ir.For | ir.While | ir.Copy | ir.Fill) for n in ir.walk(*body))
    for root in stored:
        loads = [a.order for a in accesses if a.root == root and not a.write]
        stores = [a.order for a in accesses if a.root == root and a.write]
        if loads and (loops or max(loads) > min(stores)):
            return False
    # An update loads its own element; the first pass leaves it out, which matters to no one else.
    return True


def _compacted(body: tuple[ir.Stmt, ...], total: ir.Ref) -> set[str]:
    """Buffers whose every store is ``out[s] = …`` followed by a constant positive step of an s that cannot wrap."""
    name = total.name
    if total.type.size < ir.INT.size:
        return set()
    most = 1 if total.type.kind is TypeKind.UINT and total.type.size == ir.INT.size else None
    steps = [
        n for n in ir.walk(*body) if isinstance(n, ir.Assign) and isinstance(n.target, ir.Ref) and n.target.name == name
    ]
    for step in steps:
        _, value = update_of(step)
        inner = bare(value)
        if step.op == "-=" or not isinstance(inner, ir.Const) or inner.value <= 0:
            return set()
        if most is not None and inner.value > most:
            return set()
    good: set[str] = set()
    bad: set[str] = set()
    for block in _blocks(body):
        for position, statement in enumerate(block):
            if not isinstance(statement, ir.Assign) or not isinstance(ir.root(statement.target), ir.Load):
                continue
            place = ir.root(statement.target)
            assert isinstance(place, ir.Load)
            index = bare(place.indices[0]) if len(place.indices) == 1 else None
            following = block[position + 1] if position + 1 < len(block) else None
            exact = isinstance(index, ir.Ref) and index.name == name
            if exact and following is not None and isinstance(following, ir.Assign) and following in steps:
                good.add(place.pointer)
            else:
                bad.add(place.pointer)
    return good - bad


def _blocks(body: tuple[ir.Stmt, ...]) -> list[tuple[ir.Stmt, ...]]:
    blocks = [body]
    for node in ir.walk(*body):
        if isinstance(node, ir.If):
            blocks += [node.then, node.otherwise]
        elif isinstance(node, ir.For | ir.While):
            blocks.append(node.body)
    return blocks


def _steps(planner: Planner, loop: ir.For, total: ir.Ref, stored: frozenset[str]) -> list[Step]:
    wide = ir.LONG_LONG

    def op(left: ir.Expr, sign: str, right: ir.Expr) -> ir.Expr:
        return ir.Binary(sign, left, right, wide)

    def number(value: int) -> ir.Expr:
        return ir.Const(value, wide)

    count = planner.new_host_scalar("count", wide)
    length = planner.new_host_scalar("chunk_length", wide)
    chunks = planner.new_host_scalar("chunks", wide)
    start, bound = ir.Cast(loop.start, wide), ir.Cast(loop.bound, wide)
    trips = op(bound, "-", start) if loop.relation == "<" else op(op(bound, "-", start), "+", number(1))
    even = op(op(count, "+", number(MAX_CHUNKS - 1)), "/", number(MAX_CHUNKS))
    longest = ir.Select(ir.Binary(">", even, number(MIN_CHUNK), ir.INT), even, number(MIN_CHUNK), wide)
    needed = op(op(op(count, "+", length), "-", number(1)), "/", length)
    some = ir.Select(ir.Binary(">", count, number(0), ir.INT), needed, number(0), wide)
    sums = planner.new_buffer("chunk_sums", total.type)
    chunk = planner.new_host_scalar("chunk", wide)
    here = planner.new_host_scalar(f"{total.name}_here", total.type)
    first = op(start, "+", op(chunk, "*", length))
    last = op(first, "+", length)
    end = op(start, "+", count)
    inner = ir.For(
        loop.variable, loop.type, True, ir.Cast(first, loop.type), "<",
        ir.Select(ir.Binary("<", last, end, ir.INT), last, end, wide), 1, (), loop.line,
    )  # fmt: skip
    body = tuple(_renamed(s, total.name, here.name) for s in loop.body)
    quiet = tuple(_without_stores(body))
    place = ir.Load(sums, (chunk,), total.type, loop.line)
    after = ir.Load(sums, (chunks,), total.type, loop.line)
    level = Level(ir.For(chunk.name, wide, True, number(0), "<", chunks, 1, (), loop.line))
    old = ir.Ref(total.name, total.type, loop.line)
    summing = (
        ir.Declare(here.name, total.type, ir.Const(0, total.type), line=loop.line),
        replace(inner, body=quiet),
        ir.Assign(place, "=", ir.Ref(here.name, total.type), loop.line),
    )
    running = (
        ir.Declare(here.name, total.type, ir.Binary("+", old, place, total.type), line=loop.line),
        replace(inner, body=body),
    )
    return [
        HostStatement(ir.Declare(count.name, wide, trips, line=loop.line)),
        HostStatement(ir.Declare(length.name, wide, longest, line=loop.line)),
        HostStatement(ir.Declare(chunks.name, wide, some, line=loop.line)),
        HostStatement(ir.Allocate(sums, total.type, op(chunks, "+", number(1)), line=loop.line)),
        Parallel(Nest((level,), summing), (chunk.name,), frozenset(), frozenset({sums})),
        ScanSums(sums, total.type, chunks),
        Parallel(Nest((level,), running), (chunk.name,), frozenset(), stored),
        ScalarWork((ir.Assign(old, "=", ir.Binary("+", old, after, total.type), loop.line),)),
    ]


def _renamed(statement: ir.Stmt, old: str, new: str) -> ir.Stmt:
    def put(node: ir.Node) -> ir.Node:
        return replace(node, name=new) if isinstance(node, ir.Ref) and node.name == old else node

    result: ir.Stmt = ir.rewrite(statement, put)
    return result


def _without_stores(body: Sequence[ir.Stmt]) -> list[ir.Stmt]:
    kept: list[ir.Stmt] = []
    for statement in body:
        if isinstance(statement, ir.Assign) and isinstance(ir.root(statement.target), ir.Load):
            continue
        if isinstance(statement, ir.Copy | ir.Fill):
            continue
        if isinstance(statement, ir.If):
            then, other = _without_stores(statement.then), _without_stores(statement.otherwise)
            if then or other:
                kept.append(replace(statement, then=tuple(then), otherwise=tuple(other)))
        elif isinstance(statement, ir.For | ir.While):
            kept.append(replace(statement, body=tuple(_without_stores(statement.body))))
        else:
            kept.append(statement)
    return kept


def emit_scan_sums(emitter: Emitter, step: ScanSums, depth: int) -> list[str]:
    """One block turns chunk sums into the sums of all chunks before; the grand total follows the last."""
    kind = spelled(step.type)
    name = emitter.kernel_name("scan_sums")
    emitter.kernels.append(
        f"""// Exclusive sums of `count` values in place, by one block of 256 threads; the total goes to sums[count].
static __global__ void {name}({kind} *sums, long long count)
{{
    __shared__ {kind} parts[256];
    const long long each = (count + 255) / 256;
    const long long first = threadIdx.x * each;
    const long long last = first + each < count ? first + each : count;
    {kind} mine = 0;
    for (long long at = first; at < last; at++)
        mine += sums[at];
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (int reach = 1; reach < 256; reach *= 2) {{
        const {kind} before = (int)threadIdx.x >= reach ? parts[threadIdx.x - reach] : ({kind})0;
        __syncthreads();
        parts[threadIdx.x] += before;
        __syncthreads();
    }}
    {kind} running = threadIdx.x > 0 ? parts[threadIdx.x - 1] : ({kind})0;
    for (long long at = first; at < last; at++) {{
        const {kind} value = sums[at];
        sums[at] = running;
        running += value;
    }}
    if (threadIdx.x == 255)
        sums[count] = parts[255];
}}"""
    )
    return [f"{INDENT * depth}{name}<<<1, 256, 0, stream>>>({step.sums}, {step.count.name});"]


__all__ = ["Symbol", "emit_scan_sums", "scan"]
