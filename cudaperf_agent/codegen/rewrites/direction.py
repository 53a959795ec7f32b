"""Loops that count down become loops over the number of their iteration, counting up; the order stays the same.

``for (i = n - 1; i >= 0; i--)`` is ``for (k = 0; k < n; k++)`` with ``i = n - 1 - k``: the k-th iteration is the same
as before. Rules that want ascending loops, such as running sums, then see suffix sums too.
"""

from __future__ import annotations

from cudaperf_agent.codegen.rewrites.blocks import Fresh, Surroundings, substituted
from cudaperf_agent.codegen.rewrites.induction import modular, turns
from cudaperf_agent.codegen.rewrites.sums import WIDE, Sum, fitted, sum_of
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.model import TypeKind


def upward(loop: ir.For, place: Surroundings, fresh: Fresh) -> ir.For | None:
    """The loop counting up; `None` where it does, or where its variable is needed after it."""
    if loop.step > 0 or (loop.variable in place.live and not loop.declared):
        return None
    if reads(loop.start, loop.bound) & (assigned(loop.body) | {loop.variable}):
        return None
    if any(isinstance(n, ir.Load | ir.Call) for n in ir.walk(loop.start, loop.bound)):
        return None
    unsigned = loop.type.kind is TypeKind.UINT
    bound = sum_of(loop.bound)
    if unsigned and (bound.terms or bound.constant or loop.relation not in (">", "!=") or loop.step != -1):
        return None
    if not unsigned and (loop.bound.type is None or loop.bound.type.kind is not TypeKind.INT):
        return None
    turn = ir.Ref(fresh.name(f"{loop.variable}_turn", loop.variable), loop.type if unsigned else WIDE)
    moved = Sum(0, {turn: loop.step})
    if unsigned:  # down to 0: as many turns as the start says
        value, count = modular(loop.start, moved, loop.type), loop.start
    else:
        value = fitted(sum_of(loop.start).plus(moved).expr(), loop.type)
        count = turns(loop)[1].expr()
    body = substituted(loop.body, loop.variable, value)
    return ir.For(turn.name, turn.type, True, ir.Const(0, turn.type), "<", count, 1, body, loop.line)
