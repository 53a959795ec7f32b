"""Loops that end by swapping two pointers: each iteration knows by its number which buffer is which.

``for (t …) { …; tmp = cur; cur = next; next = tmp; }`` runs its body with the two exchanged in every second iteration,
starting from how they stood before; after it they are exchanged if it ran an odd number of times. So the body is
written twice, and so is what follows, where it mentions them. Nothing else may move the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cudaperf_agent.codegen.rewrites.blocks import Fresh, own_jumps
from cudaperf_agent.codegen.rewrites.induction import iteration, turns
from cudaperf_agent.codegen.rewrites.sums import WIDE
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Function


@dataclass(frozen=True, slots=True)
class _Swap:
    one: str
    other: str


def alternating(function: Function, _fresh: Fresh) -> Function:
    """The function with its swapping loops, outside of other loops, as loops over fixed buffers."""
    return replace(function, body=_block(function.body, function, frozenset()))


def _block(statements: Sequence[ir.Stmt], function: Function, later: frozenset[str]) -> tuple[ir.Stmt, ...]:
    """A block, after which the names `later` are used: what stands behind it is not written twice."""
    made: list[ir.Stmt] = []
    for position, statement in enumerate(statements):
        if isinstance(statement, ir.If):
            rest = statements[position + 1 :]
            behind = later | reads(*rest) | assigned(tuple(rest))
            yes, no = _block(statement.then, function, behind), _block(statement.otherwise, function, behind)
            made.append(replace(statement, then=yes, otherwise=no))
            continue
        swap = _swap_at_end(statement, function) if isinstance(statement, ir.For) else None
        if swap is None or not isinstance(statement, ir.For) or {swap.one, swap.other} & later:
            made.append(statement)
            continue
        made.append(_alternated(statement, swap))
        rest = _block(statements[position + 1 :], function, later)
        if {swap.one, swap.other} & (reads(*rest) | assigned(rest)):
            runs, count = turns(statement)
            odd: ir.Expr = _parity(count.expr(), 1, statement.line)
            if runs is not None:
                odd = ir.Binary("&&", runs, odd, ir.INT, statement.line)
            return (*made, ir.If(odd, _exchanged(rest, swap), rest, statement.line))
        return (*made, *rest)
    return tuple(made)


def _swap_at_end(loop: ir.For, function: Function) -> _Swap | None:
    last = loop.body[-3:]
    if len(loop.body) < 4 or own_jumps(loop.body):
        return None
    if reads(loop.start, loop.bound) & (assigned(loop.body) | {loop.variable}):
        return None  # the number of an iteration is of the values before the loop
    first, second, third = last
    if not (isinstance(first, ir.Point) and isinstance(second, ir.Point) and isinstance(third, ir.Point)):
        return None
    sources = [_whole(point) for point in (first, second, third)]
    if None in sources or second.declares or third.declares:
        return None
    spare, one, other = first.name, second.name, third.name
    if sources != [one, other, spare] or len({spare, one, other}) != 3:
        return None
    moves = [p for p in ir.walk(*function.body) if isinstance(p, ir.Point) and not p.declares]
    if [p for p in moves if p.name in (one, other)] != [second, third]:
        return None
    if sum(spare in reads(p) for p in ir.walk(*function.body) if isinstance(p, ir.Stmt)) > _around(loop, function):
        return None
    started = {s.name for s in function.params} | {
        p.name for p in ir.walk(*function.body) if isinstance(p, ir.Point) and p.declares and p.source is not None
    }
    return _Swap(one, other) if {one, other} <= started else None


def _around(loop: ir.For, function: Function) -> int:
    """How many statements hold the last one of a loop, itself included."""
    return sum(any(n is loop.body[-1] for n in ir.walk(s)) for s in ir.walk(*function.body) if isinstance(s, ir.Stmt))


def _whole(point: ir.Point) -> str | None:
    """The pointer that a pointer is set to, if it is set to just that."""
    source = point.source
    if source is None or len(source.indices) != 1:
        return None
    index = source.indices[0]
    return source.pointer if isinstance(index, ir.Const) and index.value == 0 else None


def _alternated(loop: ir.For, swap: _Swap) -> ir.For:
    body = loop.body[:-3]
    even = _parity(iteration(loop).expr(), 0, loop.line)
    return replace(loop, body=(ir.If(even, body, _exchanged(body, swap), loop.line),))


def _parity(number: ir.Expr, rest: int, line: int) -> ir.Binary:
    return ir.Binary("==", ir.Binary("%", number, ir.Const(2, WIDE), WIDE), ir.Const(rest, WIDE), ir.INT, line)


def _exchanged(statements: Sequence[ir.Stmt], swap: _Swap) -> tuple[ir.Stmt, ...]:
    names = {swap.one: swap.other, swap.other: swap.one}

    def put(node: Any) -> Any:
        if isinstance(node, ir.Load | ir.Address) and node.pointer in names:
            return replace(node, pointer=names[node.pointer])
        if isinstance(node, ir.Release) and node.name in names:
            return replace(node, name=names[node.name])
        return node

    return tuple(ir.rewrite(s, put) for s in statements)
