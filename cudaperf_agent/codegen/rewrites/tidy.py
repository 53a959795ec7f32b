"""``continue`` as a branch, ``do … while (0)`` as a block, and scalars that are set but never read left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.codegen.rewrites.blocks import Fresh, Surroundings, each_statement, own_jumps
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lowered import Function


def without_continues(function: Function, _fresh: Fresh) -> Function:
    """``if (c) continue; rest`` as ``if (!c) { rest }`` in every loop."""

    def change(statement: ir.Stmt, _place: Surroundings) -> Sequence[ir.Stmt] | None:
        if isinstance(statement, ir.While) and _once(statement):
            return statement.body
        if not isinstance(statement, ir.For | ir.While):
            return None
        body = _straight(statement.body)
        return None if body == statement.body else (replace(statement, body=body),)

    return replace(function, body=each_statement(function.body, change))


def _once(loop: ir.While) -> bool:
    """``do { … } while (0)``."""
    never = isinstance(loop.condition, ir.Const) and not loop.condition.value
    return loop.test_last and never and not own_jumps(loop.body) & {ir.Break, ir.Continue}


def _straight(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    for position, statement in enumerate(body):
        if isinstance(statement, ir.Continue):
            return body[:position]
        if not isinstance(statement, ir.If):
            continue
        rest = body[position + 1 :]
        yes, no = statement.then, statement.otherwise
        if yes and isinstance(yes[-1], ir.Continue):
            if len(yes) == 1 and not no:
                kept = _straight(rest)
                inner = (ir.If(negated(statement.condition), kept, (), statement.line),) if kept else ()
                return (*body[:position], *inner)
            changed = replace(statement, then=_straight(yes[:-1]), otherwise=_straight((*no, *rest)))
            return (*body[:position], changed)
        if no and isinstance(no[-1], ir.Continue):
            changed = replace(statement, then=_straight((*yes, *rest)), otherwise=_straight(no[:-1]))
            return (*body[:position], changed)
    return body


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def negated(condition: ir.Expr) -> ir.Expr:
    """The opposite of a condition, without ``!`` where that is the same for every value."""
    if isinstance(condition, ir.Unary) and condition.op == "!":
        return condition.operand
    if isinstance(condition, ir.Binary) and condition.op in _OPPOSITE:
        floats = any(s.type is not None and s.type.kind.value == "float" for s in (condition.left, condition.right))
        if not floats or condition.op in ("==", "!="):
            return replace(condition, op=_OPPOSITE[condition.op])
    return ir.Unary("!", condition, ir.INT, condition.line)


def without_idle(function: Function, _fresh: Fresh) -> Function:
    """Declarations and assignments of scalars that nothing reads left out, with the blocks that become empty."""
    while True:
        counters = {n.variable for n in ir.walk(*function.body) if isinstance(n, ir.For) and not n.declared}
        read = (reads(*function.body) - _only_set(function)) | counters

        def change(statement: ir.Stmt, _place: Surroundings, read: frozenset[str] = read) -> Sequence[ir.Stmt] | None:
            if isinstance(statement, ir.Declare) and not statement.dims and statement.name not in read:
                return () if _quiet(statement) else None
            if isinstance(statement, ir.Assign) and isinstance(statement.target, ir.Ref):
                return () if statement.target.name not in read and _quiet(statement) else None
            if isinstance(statement, ir.If) and not statement.then and not statement.otherwise:
                return () if _quiet(statement) else None
            if isinstance(statement, ir.For) and not statement.body and statement.declared:
                return ()
            return None

        body = each_statement(function.body, change)
        if body == function.body:
            return function
        function = replace(function, body=body)


def _only_set(function: Function) -> frozenset[str]:
    """Scalars whose every mention is as the target of an assignment."""
    targets: dict[str, int] = {}
    mentions: dict[str, int] = {}
    for node in ir.walk(*function.body):
        if isinstance(node, ir.Assign) and isinstance(node.target, ir.Ref):
            targets[node.target.name] = targets.get(node.target.name, 0) + 1
        if isinstance(node, ir.Ref):
            mentions[node.name] = mentions.get(node.name, 0) + 1
    return frozenset(n for n, count in mentions.items() if targets.get(n, 0) == count)


def _quiet(statement: ir.Stmt) -> bool:
    return not any(isinstance(n, ir.Call) for n in ir.walk(statement))
