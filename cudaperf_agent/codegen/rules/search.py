"""Rule: the first iteration for which a condition holds, as a minimum over all iterations.

The loop is ``for (i …) { declarations; if (C(i)) { …; break or return; } }``. Its body stores nothing and changes no
variable that lives outside, unless C holds. So C(i) does not depend on whether earlier iterations ran, and the loop
ends at the least i with C(i): a minimum, which may be taken in any order. What remains is run once, by one thread,
with that i (or with i one past the end).

C runs an iteration past the end of the sequential loop without having been asked. That is harmless because C has no
effects, and only if it stays inside its buffers: each of its accesses is proven to lie within the declared or inferred
extent for every i of the whole range. Without that proof the rule does not apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.accesses import Access
from cudaperf_agent.codegen.dependence import always_within
from cudaperf_agent.codegen.scalars import Reduction, reads, stored_scalars
from cudaperf_agent.codegen.steps import Declined, Finish, Level, Nest, Reduce, Step
from cudaperf_agent.tasks import ir

if TYPE_CHECKING:
    from cudaperf_agent.codegen.known import Context
    from cudaperf_agent.codegen.plan import Planner

NONE = (1 << 63) - 1
"""Iteration number that stands for "not found"."""


@dataclass(frozen=True, slots=True)
class _Form:
    prefix: tuple[ir.Stmt, ...]
    test: ir.If


def search(planner: Planner, loop: ir.For, context: Context, following: Sequence[ir.Stmt]) -> list[Step]:
    """Steps of a search loop.

    Raises:
        Declined: The loop leaves early in a form that is no search, or a proof failed.
    """
    form = _form(loop)
    if form is None:
        raise Declined("the loop may end early and is not a search without side effects", _leaving_line(loop))
    if any(isinstance(n, ir.Load) for n in ir.walk(loop.start, loop.bound)) or (
        (reads(loop.start) | reads(loop.bound)) & planner.device
    ):
        raise Declined("the range of a search depends on values in memory", loop.line)
    _within_extents(planner, loop, form, context)
    kind = ir.LONG_LONG
    first = planner.new_scalar(f"first_{loop.variable}", kind)
    number = _number(loop)
    better = ir.If(
        ir.Binary("<", number, first, ir.INT, loop.line), (ir.Assign(first, "=", number, loop.line),), (), loop.line
    )
    body = (*form.prefix, ir.If(form.test.condition, (better,), (), loop.line))
    nest = Nest((Level(replace(loop, body=(), declared=True)),), body)
    reduction = Reduction(first, "best", "<", line=loop.line)
    start = ir.Declare(first.name, kind, ir.Const(NONE, kind), line=loop.line)
    found = ir.Binary("<", first, ir.Const(NONE, kind), ir.INT, loop.line)
    at = _position(loop, first)
    after, finishes = _after(planner, loop, form, at, found, following)
    steps: list[Step] = [Reduce(nest, 1, (reduction,), (start,), (after,), frozenset(), frozenset())]
    return [*steps, Finish()] if finishes else steps


def _form(loop: ir.For) -> _Form | None:
    *prefix, test = loop.body or (None,)
    if not isinstance(test, ir.If) or test.otherwise or not test.then:
        return None
    if not isinstance(test.then[-1], ir.Break | ir.Return) or abs(loop.step) != 1:
        return None
    if not all(isinstance(s, ir.Declare) and not s.dims for s in prefix):
        return None
    early = test.then[:-1]
    if not all(isinstance(s, ir.Assign) and isinstance(s.target, ir.Ref) for s in early):
        return None
    statements = tuple(s for s in prefix if s is not None)
    if any(isinstance(n, ir.Call) and any(isinstance(a, ir.Address) for a in n.arguments) for n in ir.walk(*loop.body)):
        return None
    return _Form(statements, test)


def _leaving_line(loop: ir.For) -> int:
    return next((n.line for n in ir.walk(*loop.body) if isinstance(n, ir.Break | ir.Return)), loop.line)


def _within_extents(planner: Planner, loop: ir.For, form: _Form, context: Context) -> None:
    nest = Nest((Level(replace(loop, body=())),), (*form.prefix, ir.If(form.test.condition, (), (), loop.line)))
    for access in planner.accesses(nest, context):
        if not _safe(planner, access):
            raise Declined(
                f"the search may read '{access.root}' beyond the element where the C stops; that it stays in bounds is "
                "not proven",
                access.line,
            )


def _safe(planner: Planner, access: Access) -> bool:
    extent = planner.extents.get(access.root)
    variables = {*access.domain.dims, *access.domain.free}
    if access.flat is None or extent is None or not access.flat.affine_in(variables):
        return False
    return always_within(access.domain, access.flat, extent)


def _number(loop: ir.For) -> ir.Expr:
    """The iteration number of the loop variable: 0, 1, 2, …"""
    variable = ir.Cast(ir.Ref(loop.variable, loop.type), ir.LONG_LONG)
    start = ir.Cast(loop.start, ir.LONG_LONG)
    low, high = (start, variable) if loop.step > 0 else (variable, start)
    return ir.Binary("-", high, low, ir.LONG_LONG, loop.line)


def _position(loop: ir.For, number: ir.Expr) -> ir.Expr:
    start = ir.Cast(loop.start, ir.LONG_LONG)
    return ir.Cast(ir.Binary("+" if loop.step > 0 else "-", start, number, ir.LONG_LONG), loop.type)


def _after(
    planner: Planner, loop: ir.For, form: _Form, at: ir.Expr, found: ir.Expr, following: Sequence[ir.Stmt]
) -> tuple[ir.Stmt, bool]:
    """What one thread does with the position, and whether the function ends there."""
    variable = ir.Ref(loop.variable, loop.type, loop.line)
    early, leaving = form.test.then[:-1], form.test.then[-1]
    where: ir.Stmt = ir.Assign(variable, "=", at, loop.line)
    if loop.declared:
        where = ir.Declare(loop.variable, loop.type, at, line=loop.line)
    # Declarations of the iteration are repeated only where what follows needs them.
    later = reads(*early, *([leaving.value] if isinstance(leaving, ir.Return) and leaving.value else []))
    repeated = form.prefix if any(isinstance(s, ir.Declare) and s.name in later for s in form.prefix) else ()
    then: tuple[ir.Stmt, ...] = (where, *repeated, *early)
    if isinstance(leaving, ir.Break):
        otherwise: tuple[ir.Stmt, ...] = ()
        if not loop.declared:
            otherwise = (ir.Assign(variable, "=", _end(loop), loop.line),)
        return ir.If(found, then, otherwise, loop.line), False
    final = following[0] if len(following) == 1 else None
    if not isinstance(leaving, ir.Return) or not isinstance(final, ir.Return) or leaving.value is None:
        raise Declined("the function returns out of a loop and goes on after it", leaving.line)
    last = final.value
    if last is None or any(n in stored_scalars(early) for n in reads(last)):
        raise Declined("the function returns out of a loop and goes on after it", leaving.line)
    place = planner.result_place(leaving.line)
    yes = ir.Assign(place, "=", leaving.value, leaving.line)
    no = ir.Assign(place, "=", last, final.line)
    return ir.If(found, (*then, yes), (no,), loop.line), True


def _end(loop: ir.For) -> ir.Expr:
    """The loop variable after a search that found nothing."""
    bound = loop.bound
    if loop.relation in ("<=", ">="):
        bound = ir.Binary("+" if loop.step > 0 else "-", bound, ir.Const(1, ir.INT), loop.type)
    relation = "<" if loop.step > 0 else ">"
    goes = ir.Binary(relation, loop.start, bound, ir.INT)
    return ir.Select(goes, bound, loop.start, loop.type, loop.line)
