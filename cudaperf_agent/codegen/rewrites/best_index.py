"""The position of an extreme, kept by index alone, gets a variable for the extreme itself.

``if (v[i] < v[k]) k = i;`` is ``if (v[i] < best) { best = v[i]; k = i; }`` with ``best = v[k]``: k changes only there,
so ``best`` stays the value at k, as long as the loop stores nothing that the value is read from. Before the loop the
value at k is read only where the loop runs, since C reads it then only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.codegen.accesses import bare
from cudaperf_agent.codegen.rewrites.blocks import Fresh, Surroundings, aliased, each_statement
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Function
from cudaperf_agent.tasks.model import TypeKind

_RELATIONS = ("<", "<=", ">", ">=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def with_best_values(function: Function, fresh: Fresh) -> Function:
    """Every loop that keeps the position of an extreme with the extreme beside it."""

    others = aliased(function)

    def change(statement: ir.Stmt, _place: Surroundings) -> Sequence[ir.Stmt] | None:
        if not isinstance(statement, ir.For) or reads(statement) & others:
            return None
        opening: list[ir.Stmt] = []
        for position, inner in enumerate(statement.body):
            made = _kept(statement, position, inner, fresh) if isinstance(inner, ir.If) else None
            if made is not None:
                opening.append(made[0])
                statement = made[1]
        return (*opening, statement) if opening else None

    return replace(function, body=each_statement(function.body, change))


def _kept(loop: ir.For, position: int, test: ir.If, fresh: Fresh) -> tuple[ir.Stmt, ir.For] | None:
    condition = test.condition
    if test.otherwise or not isinstance(condition, ir.Binary) or condition.op not in _RELATIONS:
        return None
    others = (*loop.body[:position], *loop.body[position + 1 :])
    for new, old, relation in (
        (condition.left, condition.right, condition.op),
        (condition.right, condition.left, _MIRRORED[condition.op]),
    ):
        for assign in test.then:
            if not isinstance(assign, ir.Assign) or assign.op != "=" or not isinstance(assign.target, ir.Ref):
                continue
            at = assign.target
            rest = [s for s in test.then if s is not assign]
            if at.name in reads(new, *others, *rest) or at.name in assigned((*others, *rest)):
                continue
            if bare(_put(old, at.name, assign.value)) != bare(new) or not _steady(old, at.name, loop):
                continue
            kind = new.type
            if kind is None or kind.kind is TypeKind.STRUCT or kind != old.type or at.name not in _positions(old):
                continue
            best = ir.Ref(fresh.name(f"{at.name}_value", at.name), kind, test.line)
            runs = ir.Binary(loop.relation, loop.start, loop.bound, ir.INT, loop.line)
            first = ir.Select(runs, old, ir.Const(0, kind), kind, loop.line)
            inner = ir.If(
                ir.Binary(relation, new, best, ir.INT, test.line),
                (ir.Assign(best, "=", new, test.line), *test.then),
                (),
                test.line,
            )
            body = (*loop.body[:position], inner, *loop.body[position + 1 :])
            return ir.Declare(best.name, kind, first, line=loop.line), replace(loop, body=body)
    return None


def _positions(value: ir.Expr) -> frozenset[str]:
    """The scalars that say where a value is loaded."""
    return reads(*(i for n in ir.walk(value) if isinstance(n, ir.Load) for i in n.indices))


def _put(expr: ir.Expr, name: str, value: ir.Expr) -> ir.Expr:
    def change(node: ir.Node) -> ir.Node:
        return value if isinstance(node, ir.Ref) and node.name == name else node

    result: ir.Expr = ir.rewrite(expr, change)
    return result


def _steady(value: ir.Expr, name: str, loop: ir.For) -> bool:
    """Whether a value changes in a loop with one variable only, and has no effects."""
    if any(isinstance(n, ir.Address) or (isinstance(n, ir.Call) and n.type is None) for n in ir.walk(value)):
        return False
    return not (reads(value) - {name}) & (assigned(loop.body) | {loop.variable})
