"""Rule: a nest of two loops run by fronts ``w*i + j = t``, for ``w`` = 1 or 2.

Let two iterations (i, j) and (i', j') touch one element, one of them storing, and let (i, j) come first in the
sequential order. If ``w*i' + j' > w*i + j`` for all such pairs, then running the fronts in ascending t, the iterations
of one front in any order, keeps every such pair in order; iterations of one front touch no common element. So every
load reads the very value that it reads in the sequential program, and results agree bit for bit (up to the compiler's
contraction of multiply and add). isl proves that the set of pairs with ``w*i' + j' <= w*i + j`` is empty.

Gauss-Seidel in place: (i, j) reads its neighbours at distances (±1, 0) and (0, ±1); every pair in sequential order is
(1, 0) or (0, 1) apart, so w = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.accesses import Access
from cudaperf_agent.codegen.dependence import comparable, empty, groups_by_root, meeting
from cudaperf_agent.codegen.scalars import carried_scalars, reads
from cudaperf_agent.codegen.steps import HostLoop, Level, Nest, Parallel, Step
from cudaperf_agent.tasks import ir

if TYPE_CHECKING:
    from cudaperf_agent.codegen.known import Context
    from cudaperf_agent.codegen.plan import Planner

WEIGHTS = (1, 2)


def wavefront(planner: Planner, nest: Nest, accesses: Sequence[Access], context: Context) -> list[Step]:
    """Steps of a wavefront; ``[]`` where the proof fails."""
    if len(nest.levels) != 2 or any(level.loop.step != 1 for level in nest.levels):
        return []
    if carried_scalars(nest.inner, nest.variables, context.live):
        return []
    outer, inner = (level.loop for level in nest.levels)
    if nest.levels[0].prefix or not all(planner.mappable(nest, v, ()) for v in nest.variables):
        return []
    if reads(inner.start) & {outer.variable} or reads(inner.bound) & {outer.variable}:
        return []
    weight = next((w for w in WEIGHTS if _legal(accesses, nest.variables, w)), None)
    if weight is None:
        return []
    return [_fronts(planner, nest, weight, frozenset(a.root for a in accesses if a.write))]


def _legal(accesses: Sequence[Access], variables: tuple[str, ...], weight: int) -> bool:
    i, j = variables
    ip, jp = f"{i}_p", f"{j}_p"
    for root, mine in groups_by_root(accesses).items():
        if root.startswith("?"):
            return False
        subscripts = comparable(mine)
        for one, two in combinations_with_replacement(range(len(mine)), 2):
            a, b = mine[one], mine[two]
            if not (a.write or b.write):
                continue
            late = f"{weight}*{ip} + {jp} <= {weight}*{i} + {j}"
            early = f"{weight}*{i} + {j} <= {weight}*{ip} + {jp}"
            for order in (
                [f"{i} < {ip}", late],
                [f"{i} = {ip}", f"{j} < {jp}", late],
                [f"{ip} < {i}", early],
                [f"{i} = {ip}", f"{jp} < {j}", early],
            ):
                if not empty(meeting(a, b, subscripts[one], subscripts[two], order)):
                    return False
    return True


def _fronts(planner: Planner, nest: Nest, weight: int, stored: frozenset[str]) -> Step:
    outer, inner = (level.loop for level in nest.levels)
    wide = ir.LONG_LONG
    front = ir.Ref(planner.new_host_scalar("front", wide).name, wide)

    def plus(left: ir.Expr, right: ir.Expr, op: str = "+") -> ir.Expr:
        return ir.Binary(op, left, right, wide)

    one, factor = ir.Const(1, wide), ir.Const(weight, wide)
    first_i, first_j = ir.Cast(outer.start, wide), ir.Cast(inner.start, wide)
    end_i, end_j = _end(outer), _end(inner)
    start = plus(plus(factor, first_i, "*"), first_j)
    bound = plus(plus(factor, plus(end_i, one, "-"), "*"), end_j)
    lines: tuple[ir.Stmt, ...] = (
        ir.Declare(
            inner.variable,
            inner.type,
            ir.Cast(plus(front, plus(factor, ir.Cast(ir.Ref(outer.variable, outer.type), wide), "*"), "-"), inner.type),
            line=inner.line,
        ),
    )
    column = ir.Ref(inner.variable, inner.type)
    inside = ir.Binary(
        "&&",
        ir.Binary(">=", column, inner.start, ir.INT),
        ir.Binary(inner.relation if inner.relation != "!=" else "<", column, inner.bound, ir.INT),
        ir.INT,
    )
    body = (*lines, ir.If(inside, (*nest.levels[1].prefix, *nest.body), (), inner.line))
    rows = replace(outer, body=(), declared=True)
    if weight == 1:
        low = plus(front, plus(end_j, one, "-"), "-")
        high = plus(plus(front, first_j, "-"), one)
        rows = replace(
            rows,
            relation="<",
            start=ir.Select(ir.Binary(">", first_i, low, ir.INT), first_i, low, wide),
            bound=ir.Select(ir.Binary("<", end_i, high, ir.INT), end_i, high, wide),
        )
    launch = Parallel(Nest((Level(rows),), body), (outer.variable,), frozenset(), stored)
    # An empty range in either direction leaves nothing to do; without this the other one could still make fronts.
    some = ir.Binary("&&", ir.Binary("<", first_i, end_i, ir.INT), ir.Binary("<", first_j, end_j, ir.INT), ir.INT)
    bound = ir.Select(some, bound, start, wide)
    return HostLoop(ir.For(front.name, wide, True, start, "<", bound, 1, (), outer.line), (launch,))


def _end(loop: ir.For) -> ir.Expr:
    bound = ir.Cast(loop.bound, ir.LONG_LONG)
    return ir.Binary("+", bound, ir.Const(1, ir.LONG_LONG), ir.LONG_LONG) if loop.relation == "<=" else bound
