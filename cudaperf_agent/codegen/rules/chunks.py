"""Loops with a running value, cut into chunks: each chunk's own value, their scan, then every chunk as written.

What a rule must have proven: the running value is combined with values that do not depend on it, by an associative
operation; all else in different iterations is independent; and the loop without its stores computes the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.fold import SUM, Fold
from cudaperf_agent.codegen.printer import INDENT, Printer, spelled
from cudaperf_agent.codegen.steps import (
    HostStatement,
    Level,
    Nest,
    Parallel,
    ScalarWork,
    ScanSums,
    Step,
)
from cudaperf_agent.tasks import ir

if TYPE_CHECKING:
    from cudaperf_agent.codegen.emit import Emitter
    from cudaperf_agent.codegen.plan import Planner

MAX_CHUNKS = 65536
MIN_CHUNK = 16


def chunked(planner: Planner, loop: ir.For, total: ir.Ref, fold: Fold, stored: frozenset[str]) -> list[Step]:
    """Steps that run a loop in chunks.

    Args:
        planner: For new names.
        loop: Counts up by one; all that its iterations share is `total`.
        total: The running value.
        fold: How values combine.
        stored: Buffers that the loop stores to.
    """
    planner.need_on_device([total.name])
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
        ir.Declare(here.name, total.type, fold.neutral(total.type), line=loop.line),
        replace(inner, body=quiet),
        ir.Assign(place, "=", ir.Ref(here.name, total.type), loop.line),
    )
    running = (
        ir.Declare(here.name, total.type, fold.value(old, place, total.type), line=loop.line),
        replace(inner, body=body),
    )
    return [
        HostStatement(ir.Declare(count.name, wide, trips, line=loop.line)),
        HostStatement(ir.Declare(length.name, wide, longest, line=loop.line)),
        HostStatement(ir.Declare(chunks.name, wide, some, line=loop.line)),
        HostStatement(ir.Allocate(sums, total.type, op(chunks, "+", number(1)), line=loop.line)),
        Parallel(Nest((level,), summing), (chunk.name,), frozenset(), frozenset({sums})),
        ScanSums(sums, total.type, chunks, fold),
        Parallel(Nest((level,), running), (chunk.name,), frozenset(), stored),
        ScalarWork((ir.Assign(old, "=", fold.value(old, after, total.type), loop.line),)),
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
    """One block turns the chunks' values into those of all chunks before; the grand total follows the last."""
    kind = spelled(step.type)
    name = emitter.kernel_name("scan_sums")
    fold = step.fold
    neutral = Printer({}).expr(fold.neutral(step.type))
    what = "sums" if fold == SUM else "extremes"
    alone = "0" if fold == SUM else f"({kind})({neutral})"
    emitter.kernels.append(
        f"""// Exclusive {what} of `count` values in place, by one block of 256 threads; the total goes to sums[count].
static __global__ void {name}({kind} *sums, long long count)
{{
    __shared__ {kind} parts[256];
    const long long each = (count + 255) / 256;
    const long long first = threadIdx.x * each;
    const long long last = first + each < count ? first + each : count;
    {kind} mine = {alone};
    for (long long at = first; at < last; at++)
        {fold.taken("mine", "sums[at]", step.type)}
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (int reach = 1; reach < 256; reach *= 2) {{
        const {kind} before = (int)threadIdx.x >= reach ? parts[threadIdx.x - reach] : {_other(alone, kind)};
        __syncthreads();
        {fold.preceded("parts[threadIdx.x]", "before", step.type)}
        __syncthreads();
    }}
    {kind} running = threadIdx.x > 0 ? parts[threadIdx.x - 1] : {_other(alone, kind)};
    for (long long at = first; at < last; at++) {{
        const {kind} value = sums[at];
        sums[at] = running;
        {fold.taken("running", "value", step.type)}
    }}
    if (threadIdx.x == 255)
        sums[count] = parts[255];
}}"""
    )
    return [f"{INDENT * depth}{name}<<<1, 256, 0, stream>>>({step.sums}, {step.count.name});"]


def _other(neutral: str, kind: str) -> str:
    return neutral if neutral.startswith("(") else f"({kind}){neutral}"


__all__ = ["chunked", "emit_scan_sums"]
