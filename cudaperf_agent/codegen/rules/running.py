"""Rule: a running minimum or maximum that iterations also read, in chunks.

The loop changes one variable m, and nothing else that it carries, by one statement at the top of its body: the better
of m and a value that does not depend on m, ``if (x > m) m = x;`` in any spelling. Let ``f_x(m) = x > m ? x : m``. One
after the other, such steps are one step with the best of their values: where m is a number, comparisons with it and
among the values order totally; a NaN among the values is never taken; and an m that is NaN stays, whatever follows.
So a chunk is summed up by running it from the worst value there is, and equal values (0 and -0) are taken or kept
just as one by one. For integers the same holds without NaN. ``fmin`` and ``fmax`` pass over NaN on either side, so that
a chunk of them starts from NaN.

The rest is as for running sums (see `rules.scan`): all else in different iterations is proven independent by isl, and
the first pass, which leaves the stores out, loads nothing that the loop has stored by then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.dependence import carried
from cudaperf_agent.codegen.fold import Fold
from cudaperf_agent.codegen.rules.chunks import chunked
from cudaperf_agent.codegen.rules.scan import loads_first, tainted_by
from cudaperf_agent.codegen.scalars import one_reduction, reads
from cudaperf_agent.codegen.steps import Level, Nest, Step
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Module
from cudaperf_agent.tasks.model import TypeKind

if TYPE_CHECKING:
    from cudaperf_agent.codegen.known import Context
    from cudaperf_agent.codegen.plan import Planner


def running_best(planner: Planner, loop: ir.For, nest: Nest, shared: set[str], context: Context) -> list[Step]:
    """Steps of a running minimum or maximum; ``[]`` where the loop is none."""
    if len(shared) != 1 or loop.step != 1 or loop.relation not in ("<", "<="):
        return []
    name = next(iter(shared))
    found = _best(loop.body, name, planner.module)
    if found is None or not planner.mappable(nest, nest.variables[0], ()):
        return []
    variable, relation = found
    outer = Nest((Level(replace(loop, body=())),), loop.body)
    accesses = planner.accesses(outer, context)
    conflicts = carried(accesses, outer.variables)[loop.variable]
    if not loads_first(loop.body, accesses) or conflicts.order or conflicts.updates:
        return []
    return chunked(planner, loop, variable, Fold(relation), frozenset(a.root for a in accesses if a.write))


def _best(body: tuple[ir.Stmt, ...], name: str, module: Module) -> tuple[ir.Ref, str] | None:
    """The running value and its relation, if one statement at the top of the body is all that changes it."""
    changing = [s for s in body if name in assigned((s,))]
    if len(changing) != 1:
        return None
    made = one_reduction(changing[0], name, module)
    mentions = sum(isinstance(n, ir.Ref) and n.name == name for n in ir.walk(changing[0]))
    if made is None or made[1] != mentions:
        return None
    best = made[0]
    place = best.place
    if best.kind != "best" or best.payload or not isinstance(place, ir.Ref):
        return None
    if place.type.kind is TypeKind.BOOL or any(
        isinstance(n, ir.Break | ir.Continue | ir.Return) for n in ir.walk(*body)
    ):
        return None
    if any(isinstance(n, ir.Evaluate) for n in ir.walk(*body)):
        return None
    # What the running value has flowed into must not flow back.
    if reads(changing[0]) - {name} & (tainted_by(body, name) - {name}):
        return None
    return place, best.relation
