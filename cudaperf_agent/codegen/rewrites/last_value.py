"""The last of the values that iterations assign, as the value at the greatest iteration number that assigned one.

``if (c(i)) at = i;`` leaves in ``at`` what the last such iteration assigned, which is a maximum over iteration numbers
with the value beside it, as no iteration reads ``at``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.codegen.rewrites.blocks import Fresh, Surroundings, each_statement, own_jumps
from cudaperf_agent.codegen.rewrites.sums import WIDE, Sum, sum_of, wide
from cudaperf_agent.codegen.scalars import declared, reads, stored_scalars
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Function
from cudaperf_agent.tasks.model import TypeKind


def with_last_values(function: Function, fresh: Fresh) -> Function:
    """Every ascending loop that leaves a last value with the number of the iteration that set it."""

    def change(statement: ir.Stmt, place: Surroundings) -> Sequence[ir.Stmt] | None:
        if not isinstance(statement, ir.For) or statement.step < 0 or own_jumps(statement.body):
            return None
        opening: list[ir.Stmt] = []
        for name in sorted((stored_scalars(statement.body) - declared(statement.body)) & place.live):
            if name == statement.variable or name in reads(*statement.body) - _targets(statement, name):
                continue
            first, changed = _numbered(statement, name, fresh)
            if first is not None:
                opening.append(first)
                statement = changed
        return (*opening, statement) if opening else None

    return replace(function, body=each_statement(function.body, change))


def _targets(loop: ir.For, name: str) -> frozenset[str]:
    """The name itself, where all that mentions it is one assignment to it."""
    mentions = sum(isinstance(n, ir.Ref) and n.name == name for n in ir.walk(*loop.body))
    return frozenset({name}) if mentions == 1 else frozenset()


def _numbered(loop: ir.For, name: str, fresh: Fresh) -> tuple[ir.Stmt | None, ir.For]:
    if any(isinstance(s, ir.For | ir.While) and name in assigned((s,)) for s in ir.walk(*loop.body)):
        return None, loop
    turn = ir.Ref(fresh.name(f"{name}_turn", name), WIDE)
    number = wide(ir.Ref(loop.variable, loop.type))
    constant = False

    def put(node: ir.Node) -> ir.Node:
        nonlocal constant
        if not isinstance(node, ir.Assign) or not isinstance(node.target, ir.Ref) or node.target.name != name:
            return node
        value = node.value
        while isinstance(value, ir.Cast):
            value = value.operand
        # What is always set to one constant is a flag, and known as such.
        constant = node.op != "=" or isinstance(value, ir.Const) or node.target.type.kind is TypeKind.STRUCT
        later = ir.Binary(">", number, turn, ir.INT, node.line)
        return ir.If(later, (ir.Assign(turn, "=", number, node.line), node), (), node.line)

    body = tuple(ir.rewrite(s, put) for s in loop.body)
    if constant or body == loop.body:
        return None, loop
    before = sum_of(loop.start).plus(Sum(1), -1).expr()
    return ir.Declare(turn.name, WIDE, before, line=loop.line), replace(loop, body=body)
