"""Loops that compare a signed counter with an unsigned bound, which C does as if the counter were unsigned.

``for (int i = -1; i < m; i++)`` with an unsigned m does not run at all, since -1 counts as the greatest number there
is. An `ir.For` compares numbers, so the two agree only where the counter starts at 0 or above, which has to be seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_types import CannotLower
from cudaperf_agent.tasks.lowered import Function
from cudaperf_agent.tasks.model import TypeKind


def require_signs(function: Function) -> None:
    """See that no loop of a function goes by another order than its C.

    Raises:
        CannotLower: A signed counter that may start below zero is compared with an unsigned bound.
    """
    _check(function.body, frozenset(_kept(function)))


def _check(body: Sequence[ir.Stmt], known: frozenset[str]) -> None:
    for statement in body:
        if isinstance(statement, ir.For):
            rising = statement.step > 0 and _from_zero(statement.start, known)
            if _mixed(statement) and not rising:
                what = f"the signed '{statement.variable}', which may start below zero, is compared as unsigned"
                raise CannotLower(what, statement.line)
            inside = known | {statement.variable} if rising else known - {statement.variable}
            _check(statement.body, inside)
        elif isinstance(statement, ir.While):
            _check((*statement.body, *statement.update), known)
        elif isinstance(statement, ir.If):
            _check((*statement.then, *statement.otherwise), known)


def _mixed(loop: ir.For) -> bool:
    bound = loop.bound.type
    unsigned = bound is not None and bound.kind is TypeKind.UINT
    return unsigned and loop.type.kind is TypeKind.INT and loop.step > 0 and loop.relation in ("<", "<=")


def _kept(function: Function) -> list[str]:
    """Scalars that are declared with a value of 0 or above, one after the other, and not changed any more."""
    changed = {
        n.target.name for n in ir.walk(*function.body) if isinstance(n, ir.Assign) and isinstance(n.target, ir.Ref)
    } | {n.variable for n in ir.walk(*function.body) if isinstance(n, ir.For) and not n.declared}
    found: list[str] = []
    for node in ir.walk(*function.body):
        if isinstance(node, ir.For) and node.declared and node.step > 0 and _from_zero(node.start, frozenset(found)):
            found.append(node.variable)
        if isinstance(node, ir.Declare) and node.init is not None and node.name not in changed:
            found += [node.name] if _from_zero(node.init, frozenset(found)) else []
    return found


def _from_zero(value: ir.Expr, known: frozenset[str]) -> bool:
    """Whether an integer is seen to be 0 or above; what was converted from unsigned is taken to fit."""
    kind = value.type.kind if value.type is not None else None
    if isinstance(value, ir.Const):
        return value.value >= 0
    if isinstance(value, ir.Cast):
        return _from_zero(value.operand, known)
    if isinstance(value, ir.Select):
        return _from_zero(value.yes, known) and _from_zero(value.no, known)
    if isinstance(value, ir.Binary):
        if value.op in ("+", "*", "/", "%", ">>"):
            return _from_zero(value.left, known) and _from_zero(value.right, known)
        if value.op == "&":
            return _from_zero(value.left, known) or _from_zero(value.right, known)
        return value.op in ("<", "<=", ">", ">=", "==", "!=", "&&", "||")
    if isinstance(value, ir.Ref):
        return kind in (TypeKind.UINT, TypeKind.BOOL) or value.name in known
    return isinstance(value, ir.Load | ir.Member) and kind in (TypeKind.UINT, TypeKind.BOOL)


__all__ = ["require_signs"]
