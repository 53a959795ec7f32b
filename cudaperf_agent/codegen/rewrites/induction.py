"""Variables that a loop only steps, as functions of the loop's own variable.

In ``for (i …) { …; x += c; … }`` with a c that the loop leaves alone, and no other change of x, x has in iteration
number k (from 0) the value it had before the loop plus ``k * c``, and c more behind the step. So iterations no longer
need each other's x. A signed x cannot overflow in C, so the sum may be computed in 64 bits; an unsigned one is computed
in its own type, whose arithmetic is modular. After the loop x is set to what it had become.

Where c is the number of iterations of an inner loop, it is 0 if that loop does not run at all: the two cases become two
versions of the outer loop, chosen before it starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.codegen.accesses import bare
from cudaperf_agent.codegen.rewrites.blocks import Surroundings, own_jumps, reaching, substituted
from cudaperf_agent.codegen.rewrites.sums import WIDE, Sum, fitted, sum_of, wide
from cudaperf_agent.codegen.scalars import declared, reads, stored_scalars
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.model import CType, TypeKind


@dataclass(frozen=True, slots=True)
class _Step:
    position: int
    by: ir.Expr
    sign: int


def closed(loop: ir.For, place: Surroundings) -> tuple[ir.Stmt, ...] | None:
    """The loop with its stepped variables as functions of its own, and what follows it; `None` where it has none."""
    changed = False
    closing: list[ir.Stmt] = []
    jumps = own_jumps(loop.body)
    for name in sorted(stored_scalars(loop.body) - declared(loop.body) - {loop.variable}):
        steps = _steps_of(loop.body, name)
        live = name in place.live
        if not steps or ir.Continue in jumps or (live and jumps) or not _steady(loop, steps, name):
            continue
        kind = _type_of(loop.body, name)
        if kind is None:
            continue
        choice = next((s.by for s in steps if isinstance(_inner(s.by), ir.Select)), None)
        if choice is not None:
            return (*_versions(loop, place, choice), *closing)
        before = reaching(name, place.before)
        same = before is not None and before.type == kind.type
        if before is None or not same or reads(before) & (assigned(loop.body) | {loop.variable}):
            before = kind
        total = Sum()
        for step in steps:
            total = total.plus(sum_of(step.by), step.sign)
        made = _replaced(loop, kind, before, steps, total)
        if live:
            closing.append(_after(loop, kind, total))
        loop, changed = made, True
    return (loop, *closing) if changed else None


def _inner(expr: ir.Expr) -> ir.Expr:
    while isinstance(expr, ir.Cast):
        expr = expr.operand
    return expr


def _steps_of(body: Sequence[ir.Stmt], name: str) -> list[_Step]:
    """The steps of a variable, all at the top of the body; ``[]`` where anything else changes it."""
    steps = []
    for position, statement in enumerate(body):
        if name not in assigned((statement,)):
            continue
        if not isinstance(statement, ir.Assign) or not isinstance(statement.target, ir.Ref):
            return []
        if statement.op in ("+=", "-="):
            steps.append(_Step(position, statement.value, 1 if statement.op == "+=" else -1))
            continue
        value = _inner(statement.value) if statement.op == "=" else None
        if not isinstance(value, ir.Binary) or value.op not in ("+", "-"):
            return []
        left, right = _inner(value.left), _inner(value.right)
        if isinstance(left, ir.Ref) and left.name == name:
            steps.append(_Step(position, value.right, 1 if value.op == "+" else -1))
        elif value.op == "+" and isinstance(right, ir.Ref) and right.name == name:
            steps.append(_Step(position, value.left, 1))
        else:
            return []
    return steps


def _steady(loop: ir.For, steps: Sequence[_Step], name: str) -> bool:
    """Whether the steps are integers that the loop leaves alone."""
    changed = assigned(loop.body) | {loop.variable, name}
    for step in steps:
        kind = step.by.type
        if kind is None or kind.kind not in (TypeKind.INT, TypeKind.UINT):
            return False
        if any(isinstance(n, ir.Load | ir.Call | ir.Address | ir.Member) for n in ir.walk(step.by)):
            return False
        if reads(step.by) & changed:
            return False
    # The number of an iteration is of a start that stays: `for (i = i + 1; ...)` has none.
    return not (reads(loop.start) | reads(loop.bound)) & (assigned(loop.body) | {loop.variable})


def _type_of(body: Sequence[ir.Stmt], name: str) -> ir.Ref | None:
    """The variable, where it is an integer of at least the size of int."""
    for node in ir.walk(*body):
        if isinstance(node, ir.Ref) and node.name == name:
            good = node.type.kind in (TypeKind.INT, TypeKind.UINT) and node.type.size >= ir.INT.size
            return replace(node, line=0) if good else None
    return None


def _replaced(loop: ir.For, variable: ir.Ref, start: ir.Expr, steps: Sequence[_Step], total: Sum) -> ir.For:
    body: list[ir.Stmt] = []
    so_far = Sum()
    last = 0
    number = iteration(loop)
    for step in steps:
        value = _value(variable, start, number, total, so_far)
        body += substituted(loop.body[last : step.position], variable.name, value)
        so_far = so_far.plus(sum_of(step.by), step.sign)
        last = step.position + 1
    value = _value(variable, start, number, total, so_far)
    body += substituted(loop.body[last:], variable.name, value)
    return replace(loop, body=tuple(body))


def _value(variable: ir.Ref, start: ir.Expr, number: Sum, total: Sum, so_far: Sum) -> ir.Expr:
    kind = variable.type
    moved = number.times(total).plus(so_far)
    if kind.kind is TypeKind.UINT:
        return modular(start, moved, kind)
    return fitted(sum_of(start).plus(moved).expr(), kind)


def modular(start: ir.Expr, moved: Sum, kind: CType) -> ir.Expr:
    """``start + moved`` in an unsigned type."""
    if not moved.terms and not moved.constant:
        return start
    parts: list[tuple[ir.Expr, int]] = []
    for term, count in moved.terms.items():
        part: ir.Expr = term if term.type == kind else ir.Cast(term, kind)
        parts.append((part, count))
    if moved.constant:
        parts.append((ir.Const(abs(moved.constant), kind), 1 if moved.constant > 0 else -1))
    result = start
    for part, count in parts:
        if abs(count) != 1:
            part = ir.Binary("*", ir.Const(abs(count), kind), part, kind)
        result = ir.Binary("+" if count > 0 else "-", result, part, kind)
    return result


def iteration(loop: ir.For) -> Sum:
    """The number of an iteration, from 0, as a sum in the loop's variable."""
    variable = ir.Ref(loop.variable, loop.type)
    gap = sum_of(variable).plus(sum_of(loop.start), -1)
    if loop.step == 1:
        return gap
    if loop.step == -1:
        return Sum().plus(gap, -1)
    quotient = ir.Binary("/", gap.expr(), ir.Const(loop.step, WIDE), WIDE)
    return Sum(0, {quotient: 1})


def turns(loop: ir.For) -> tuple[ir.Expr | None, Sum]:
    """When a loop runs at all (`None`: it always does), and how often it does then."""
    start, bound = sum_of(loop.start), sum_of(loop.bound)
    gap = bound.plus(start, -1)
    if loop.step < 0:
        gap = Sum().plus(gap, -1)
    if loop.relation in ("<=", ">="):
        gap = gap.plus(Sum(1))
    size = abs(loop.step)
    if size > 1:
        gap = gap.plus(Sum(size - 1))
        if gap.terms:
            gap = Sum(0, {ir.Binary("/", gap.expr(), ir.Const(size, WIDE), WIDE): 1})
        else:
            gap = Sum(max(gap.constant, 0) // size)
    if not gap.terms:
        return None, Sum(max(gap.constant, 0))
    if loop.relation == "!=":
        return None, gap
    return ir.Binary(loop.relation, loop.start, loop.bound, ir.INT), gap


def _after(loop: ir.For, variable: ir.Ref, total: Sum) -> ir.Stmt:
    runs, count = turns(loop)
    moved = count.times(total)
    value: ir.Expr = moved.expr()
    if runs is not None:
        value = ir.Select(runs, value, ir.Const(0, WIDE), WIDE)
    if variable.type.kind is TypeKind.UINT:
        value = value if variable.type == WIDE else ir.Cast(value, variable.type)
    elif variable.type != WIDE:
        value = ir.Cast(value, variable.type, exact=True)
    return ir.Assign(variable, "+=", value, loop.line)


def _versions(loop: ir.For, place: Surroundings, choice: ir.Expr) -> tuple[ir.Stmt, ...]:
    """The loop where an inner one runs, and where it does not."""
    chosen = _inner(choice)
    assert isinstance(chosen, ir.Select)
    test = bare(chosen.condition)

    def settle(running: bool) -> ir.For:
        def put(node: ir.Node) -> ir.Node:
            if isinstance(node, ir.Select) and bare(node.condition) == test:
                return node.yes if running else node.no
            return node

        body = [ir.rewrite(s, put) for s in loop.body]
        if not running:
            body = _without(body, test)
        kept = [s for s in body if not _idle(s)]
        return replace(loop, body=tuple(kept))

    versions = []
    for running in (True, False):
        one = settle(running)
        made = closed(one, place) or (one,)
        versions.append(() if not one.body else made)
    return (ir.If(chosen.condition, versions[0], versions[1], loop.line),)


def _without(body: Sequence[ir.Stmt], test: ir.Expr) -> list[ir.Stmt]:
    """Statements without the loops that run only where a condition holds, which here it does not."""
    return [
        s for s in body if not (isinstance(s, ir.For) and bare(ir.Binary(s.relation, s.start, s.bound, ir.INT)) == test)
    ]


def _idle(statement: ir.Stmt) -> bool:
    """Whether a statement steps by nothing."""
    if not isinstance(statement, ir.Assign) or statement.op not in ("+=", "-="):
        return False
    by = sum_of(statement.value)
    return isinstance(statement.target, ir.Ref) and not by.terms and not by.constant


__all__ = ["closed", "iteration", "modular", "turns", "wide"]
