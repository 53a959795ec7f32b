"""Constant local arrays move into the loops that read them, so that each thread has its own or the compiler folds them.

An array that is declared with constants and never stored to has the same contents wherever it is declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.codegen.rewrites.blocks import Fresh
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Function


def sunk_tables(function: Function, _fresh: Fresh) -> Function:
    """Constant arrays at the top of a function as arrays of the innermost perfectly nested bodies that read them."""
    stored = assigned(tuple(n for n in function.body if not isinstance(n, ir.Declare)))
    tables = {s.name: s for s in function.body if isinstance(s, ir.Declare) and _constant(s) and s.name not in stored}
    if not tables:
        return function
    body: list[ir.Stmt] = []
    for statement in function.body:
        if isinstance(statement, ir.Declare) and statement.name in tables:
            continue
        outside = reads(*_heads(statement)) & set(tables)
        if outside:
            return function  # read between loops, where it has no place on the host
        body.append(_sunk(statement, tables))
    return replace(function, body=tuple(body))


def _constant(statement: ir.Declare) -> bool:
    values = statement.values
    return bool(statement.dims) and values is not None and all(_known(v) for v in values)


def _known(value: ir.Expr) -> bool:
    while isinstance(value, ir.Cast):
        value = value.operand
    return isinstance(value, ir.Const)


def _heads(statement: ir.Stmt) -> list[ir.Node]:
    """What the host evaluates of a statement."""
    if isinstance(statement, ir.For):
        return [statement.start, statement.bound]
    if isinstance(statement, ir.While):
        return [statement.condition]
    if isinstance(statement, ir.If):
        return [statement.condition, *(h for s in (*statement.then, *statement.otherwise) for h in _heads(s))]
    return [statement]


def _sunk(statement: ir.Stmt, tables: dict[str, ir.Declare]) -> ir.Stmt:
    if isinstance(statement, ir.If):
        yes = tuple(_sunk(s, tables) for s in statement.then)
        return replace(statement, then=yes, otherwise=tuple(_sunk(s, tables) for s in statement.otherwise))
    if not isinstance(statement, ir.For | ir.While):
        return statement
    body = statement.body
    heads = reads(*(h for s in body for h in _heads(s) if isinstance(s, ir.For | ir.While | ir.If)))
    plain = [s for s in body if not isinstance(s, ir.For | ir.While | ir.If)]
    if any(isinstance(s, ir.For) for s in body) and not (reads(*plain) | heads) & set(tables) and _nested(body):
        return replace(statement, body=tuple(_sunk(s, tables) for s in body))
    needed = [t for name, t in tables.items() if name in reads(statement)]
    return replace(statement, body=(*needed, *body))


def _nested(body: Sequence[ir.Stmt]) -> bool:
    """Whether a body is nothing but one loop, and declarations before it."""
    *first, last = body
    return isinstance(last, ir.For) and all(isinstance(s, ir.Declare) and not s.dims for s in first)
