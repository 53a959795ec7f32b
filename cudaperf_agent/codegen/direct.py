"""Nests that are one launch as they stand: parallel loops, updates with atomics, or reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.accesses import Access
from cudaperf_agent.codegen.atomics import supported
from cudaperf_agent.codegen.dependence import Carried
from cudaperf_agent.codegen.known import Context
from cudaperf_agent.codegen.nests import grows
from cudaperf_agent.codegen.rows import row_parts
from cudaperf_agent.codegen.scalars import declared, find_reductions
from cudaperf_agent.codegen.steps import Nest, Parallel, Reduce, Step
from cudaperf_agent.tasks import ir

if TYPE_CHECKING:
    from cudaperf_agent.codegen.plan import Planner

MAX_MAPPED = 3
"""Grids have three dimensions."""


def direct(
    planner: Planner,
    nest: Nest,
    shared: set[str],
    found: dict[str, Carried],
    accesses: Sequence[Access],
    context: Context,
) -> list[Step] | None:
    """The nest as one launch: parallel loops, updates with atomics, or reductions."""
    stored = frozenset(a.root for a in accesses if a.write)
    if shared:
        reductions = find_reductions(nest.inner, sorted(shared), planner.module)
        if isinstance(reductions, str):
            return None
        ordered = any(r.payload for r in reductions)
        spread = 0
        for level in nest.levels[: 1 if ordered else 2]:
            if found[level.variable].order or not planner.mappable(nest, level.variable, nest.variables[:spread]):
                break
            spread += 1
        if not spread or not grows(nest, nest.variables[:spread]):
            return None
        atomic = frozenset(c.root for v in nest.variables[:spread] for c in found[v].updates)
        if not _atomics_exist(planner, nest, atomic):
            return None
        planner.need_on_device(shared)
        return [Reduce(nest, spread, tuple(reductions), (), (), atomic, stored)]
    free = [v for v in nest.variables if not found[v].order and not found[v].updates]
    chosen = _choose(planner, nest, free)
    if chosen and grows(nest, chosen):
        rows = row_parts(planner, nest, context) if len(nest.levels) == 1 else ()
        return [Parallel(nest, chosen, frozenset(), stored, rows)]
    loose = [v for v in nest.variables if not found[v].order]
    chosen = _choose(planner, nest, loose)
    if chosen and grows(nest, chosen):
        atomic = frozenset(c.root for v in chosen for c in found[v].updates)
        if _atomics_exist(planner, nest, atomic):
            return [Parallel(nest, chosen, atomic, stored)]
    return None


def _atomics_exist(planner: Planner, nest: Nest, atomic: frozenset[str]) -> bool:
    for node in ir.walk(*nest.inner):
        if isinstance(node, ir.Assign):
            place = ir.root(node.target)
            if isinstance(place, ir.Load):
                alias = planner.aliases.get(place.pointer)
                names = {place.pointer, alias.root if alias else place.pointer}
                if (names & atomic or place.pointer in declared(nest.inner)) and atomic and not supported(node):
                    return False
    return True


def _choose(planner: Planner, nest: Nest, candidates: Sequence[str]) -> tuple[str, ...]:
    """Loops to spread over the grid: those whose range the host can compute."""
    chosen: list[str] = []
    for variable in candidates:
        if planner.mappable(nest, variable, chosen):
            chosen.append(variable)
    growing = [v for v in chosen if grows(nest, (v,))]
    return tuple((growing if len(growing) >= 1 else chosen)[:MAX_MAPPED])
