"""Rows: the body of a parallel loop as parts that the threads of a warp share, with the proof that they may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.accesses import Access, Domain
from cudaperf_agent.codegen.dependence import carried
from cudaperf_agent.codegen.scalars import Reduction, carried_scalars, declared, find_reductions, flow
from cudaperf_agent.codegen.steps import Nest, RowPart
from cudaperf_agent.tasks import ir

if TYPE_CHECKING:
    from cudaperf_agent.codegen.known import Context
    from cudaperf_agent.codegen.plan import Planner


def row_parts(planner: Planner, nest: Nest, context: Context) -> tuple[RowPart, ...]:
    """Parts of a nest of one loop: loops whose iterations the lanes share, and what every lane or one lane does.

    A loop is shared when its iterations, for one iteration of the row loop, conflict in no element and carry no
    scalar but reductions.

    Returns:
        ``()`` where a part is neither, or no loop is shared.
    """
    if len(nest.levels) != 1:
        return ()
    outer = nest.levels[0]
    collector = planner._collector((nest.rebuilt(),))
    domain = collector.inside(outer.loop, Domain((), (), context.facts))
    statements = (*outer.prefix, *nest.body)
    parts: list[RowPart] = []
    unordered: set[str] = set()
    for position, statement in enumerate(statements):
        before = len(collector.accesses)
        collector.statement(statement, domain)
        added = collector.accesses[before:]
        rest = flow(statements[position + 1 :]).exposed
        if isinstance(statement, ir.For):
            reductions = _shared(planner, statement, added, rest, outer.variable)
            if reductions is None:
                return ()
            part = RowPart(statement, "loop", reductions, any(a.write for a in added))
        else:
            who = _who(statement)
            if who is None:
                return ()
            part = RowPart(statement, who)
        # Shuffles order no memory accesses: only a barrier keeps a store behind what other lanes read before.
        fence = any(a.write and a.root in unordered for a in added)
        if fence or part.stores or part.who == "one":
            unordered = set()
        if not part.stores and part.who != "one":
            unordered |= {a.root for a in added}
        parts.append(replace(part, fence=fence))
    return tuple(parts) if any(p.who == "loop" for p in parts) else ()


def _shared(
    planner: Planner, loop: ir.For, accesses: Sequence[Access], live: frozenset[str], row: str
) -> tuple[Reduction, ...] | None:
    if any(isinstance(n, ir.Return) for n in ir.walk(*loop.body)) or _jumps_out(loop.body):
        return None
    shared = carried_scalars(loop.body, (loop.variable,), live)
    found = carried(accesses, (loop.variable,), fixed=(row,))[loop.variable]
    if found.order or found.updates:
        return None
    if not shared:
        return ()
    reductions = find_reductions(loop.body, sorted(shared), planner.module)
    if isinstance(reductions, str) or any(r.payload or r.kind in ("&&", "||") for r in reductions):
        return None
    return tuple(reductions)


def _jumps_out(body: Sequence[ir.Stmt]) -> bool:
    for statement in body:
        if isinstance(statement, ir.Break | ir.Continue):
            return True
        if isinstance(statement, ir.If) and _jumps_out((*statement.then, *statement.otherwise)):
            return True
    return False


def _who(statement: ir.Stmt) -> str | None:
    """``all`` lanes for work on scalars, ``one`` lane for stores; `None` for what is both or neither."""
    if any(
        isinstance(n, ir.For | ir.While | ir.Break | ir.Continue | ir.Return | ir.Evaluate) for n in ir.walk(statement)
    ):
        return None
    if isinstance(statement, ir.Declare):
        return "all" if not statement.dims else None
    if isinstance(statement, ir.Point):
        return "all" if statement.declares else None
    stores, scalars = False, False
    for node in ir.walk(statement):
        if isinstance(node, ir.Assign):
            memory = isinstance(ir.root(node.target), ir.Load)
            stores, scalars = stores or memory, scalars or not memory
        if isinstance(node, ir.Call) and any(isinstance(a, ir.Address) for a in node.arguments):
            return None
    if not isinstance(statement, ir.Assign | ir.If) or (stores and scalars) or (stores and declared((statement,))):
        return None
    return "one" if stores else "all"
