"""What an iteration takes from the element that the one before it stored is carried in a variable instead.

``for (i = 1; …) a[i] += a[i - 1];`` is ``t = a[0]; for (i = 1; …) { t = a[i] + t; a[i] = t; }``. The loop stores to the
buffer in one statement at the top of its body, and loads of it only the element it is about to store and the one that
the iteration before stored; so t is that element. Before the loop it is read only where the loop runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.codegen.rewrites.blocks import Fresh, Surroundings, aliased, each_statement, own_jumps
from cudaperf_agent.codegen.rewrites.sums import Sum, fitted, sum_of
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Function
from cudaperf_agent.tasks.model import TypeKind


def with_carried_elements(function: Function, fresh: Fresh) -> Function:
    """Every loop over in-place recurrences with the carried element as a variable."""

    others = aliased(function)

    def change(statement: ir.Stmt, _place: Surroundings) -> Sequence[ir.Stmt] | None:
        return _carried(statement, others, fresh) if isinstance(statement, ir.For) else None

    return replace(function, body=each_statement(function.body, change))


def _carried(loop: ir.For, others: frozenset[str], fresh: Fresh) -> tuple[ir.Stmt, ...] | None:
    if own_jumps(loop.body) or any(isinstance(n, ir.For | ir.While | ir.Call) for n in ir.walk(*loop.body)):
        return None
    for position, found in enumerate(loop.body):
        statement = _unconditional(found)
        if not isinstance(statement, ir.Assign) or not isinstance(statement.target, ir.Load):
            continue
        place = statement.target
        if (
            place.pointer in others
            or len(place.indices) != 1
            or place.pointer in assigned((*loop.body[:position], *loop.body[position + 1 :]))
        ):
            continue
        before = _shifted(place.indices[0], loop)
        loads = _loads((*loop.body[:position], statement, *loop.body[position + 1 :]), place.pointer)
        previous = [n for n in loads if sum_of(n.indices[0]) == sum_of(before)]
        own = [n for n in loads if sum_of(n.indices[0]) == sum_of(place.indices[0])]
        later = _loads(loop.body[position + 1 :], place.pointer)
        if not previous or len(previous) + len(own) != len(loads) or later:
            continue
        return _made(loop, position, statement, place, before, fresh)
    return None


def _unconditional(statement: ir.Stmt) -> ir.Stmt:
    """``if (c) a[i] = v;`` as ``a[i] = c ? v : a[i];``: what is stored besides is what is there."""
    if not isinstance(statement, ir.If) or statement.otherwise or len(statement.then) != 1:
        return statement
    store = statement.then[0]
    if not isinstance(store, ir.Assign) or store.op != "=" or not isinstance(store.target, ir.Load):
        return statement
    value = ir.Select(statement.condition, store.value, store.target, store.target.type, store.line)
    return replace(store, value=value)


def _loads(statements: Sequence[ir.Stmt], pointer: str) -> list[ir.Load]:
    return [n for n in ir.walk(*statements) if isinstance(n, ir.Load) and n.pointer == pointer]


def _shifted(index: ir.Expr, loop: ir.For) -> ir.Expr:
    """The index in the iteration before."""
    variable = ir.Ref(loop.variable, loop.type)
    if loop.type.kind is TypeKind.UINT:
        back = ir.Binary("-" if loop.step > 0 else "+", variable, ir.Const(abs(loop.step), loop.type), loop.type)
        return substituted_in(index, loop.variable, back)
    moved = fitted(sum_of(variable).plus(Sum(-loop.step)).expr(), loop.type)
    return substituted_in(index, loop.variable, moved)


def substituted_in(expr: ir.Expr, name: str, value: ir.Expr) -> ir.Expr:
    """An expression that reads `value` in place of a variable."""

    def put(node: ir.Node) -> ir.Node:
        return value if isinstance(node, ir.Ref) and node.name == name else node

    result: ir.Expr = ir.rewrite(expr, put)
    return result


def _made(
    loop: ir.For, position: int, statement: ir.Assign, place: ir.Load, before: ir.Expr, fresh: Fresh
) -> tuple[ir.Stmt, ...]:
    kept = ir.Ref(fresh.name(f"{place.pointer}_last", place.pointer), place.type, statement.line)

    def put(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Load) and node.pointer == place.pointer:
            return kept if sum_of(node.indices[0]) == sum_of(before) else node
        return node

    value: ir.Expr = ir.rewrite(statement.value, put)
    if statement.op != "=":
        whole = place.type if place.type.size >= ir.INT.size else ir.INT
        value = ir.Binary(statement.op[:-1], place, value, whole, statement.line)
        if whole != place.type:
            value = ir.Cast(value, place.type, implicit=True, line=statement.line)
    head = tuple(ir.rewrite(s, put) for s in loop.body[:position])
    body = (
        *head,
        ir.Assign(kept, "=", value, statement.line),
        ir.Assign(place, "=", kept, statement.line),
        *loop.body[position + 1 :],
    )
    first = ir.Load(place.pointer, (substituted_in(before, loop.variable, loop.start),), place.type, loop.line)
    runs = ir.Binary(loop.relation, loop.start, loop.bound, ir.INT, loop.line)
    start = ir.Select(runs, first, ir.Const(0, place.type), place.type, loop.line)
    return ir.Declare(kept.name, place.type, start, line=loop.line), replace(loop, body=body)
