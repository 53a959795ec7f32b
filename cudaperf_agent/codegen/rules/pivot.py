"""Rules: a nest over rows and columns split at a pivot, and the min-plus closure.

**Split at a pivot.** The nest is ``for i in [a, b) for j in [c, d)`` inside a loop over k, with a <= k < b and
c <= k < d; its iterations meet only through row k and column k. Let the rows be cut into the strips i < k, i = k,
i > k, and each strip into the blocks j < k, j = k, j > k. isl proves (1) that no two iterations of one strip with
different i conflict, and (2) that no two iterations of one block with different j conflict. Run the nine blocks one
after another in row-major order, each in parallel. Two conflicting iterations in different strips keep their order,
since strips are run in the order of i. In one strip they have equal i by (1), so the sequential order is that of j,
and blocks are run in that order. Within one block there are none by (1) and (2). Every load reads the sequential
program's value, whatever the body computes.

**Min-plus closure.** The body is ``if (D[i][k] + D[k][j] < D[i][j]) D[i][j] = D[i][k] + D[k][j]`` (or a minimum of
the two). While D[k][k] >= 0, step k changes neither row k nor column k: at i = k the candidate is D[k][k] + D[k][j],
and adding a non-negative number to D[k][j] never gives less, in integers without overflow and in floating point with
its monotone rounding; likewise at j = k. NaN compares false. So all other iterations read only elements that step k
leaves alone, and one launch over all (i, j) per k is legal. Entries that are all >= 0 at the start stay so, being sums
and minima of such, hence D[k][k] >= 0 at every k. This is checked at run time, once, by reading the matrix; where it
does not hold the nine blocks above are launched instead, which need no such condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.accesses import Access, Constraint, bare, same
from cudaperf_agent.codegen.affine import Poly
from cudaperf_agent.codegen.dependence import always_within, carried
from cudaperf_agent.codegen.scalars import Reduction, carried_scalars
from cudaperf_agent.codegen.steps import Fetch, HostBranch, HostLoop, Level, Nest, Parallel, Reduce, Step
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import TypeKind

if TYPE_CHECKING:
    from cudaperf_agent.codegen.known import Context
    from cudaperf_agent.codegen.plan import Planner


def split_at_pivot(planner: Planner, nest: Nest, accesses: Sequence[Access], context: Context) -> list[Step]:
    """Nine launches; ``[]`` where the proof fails or there is no pivot."""
    if len(nest.levels) != 2 or nest.levels[0].prefix or carried_scalars(nest.inner, nest.variables, context.live):
        return []
    loops = [level.loop for level in nest.levels]
    if any(loop.step != 1 or loop.relation != "<" for loop in loops):
        return []
    if not all(planner.mappable(nest, v, ()) for v in nest.variables):
        return []
    for name in sorted(_fixed_subscripts(accesses)):
        symbol = planner.symbols.get(name)
        if symbol is None or symbol.pointer or symbol.type.kind not in (TypeKind.INT, TypeKind.UINT):
            continue
        steps = _split(planner, nest, ir.Ref(name, symbol.type), context)
        if steps:
            return steps
    return []


def _fixed_subscripts(accesses: Sequence[Access]) -> set[str]:
    """Sizes that occur in subscripts: where a pivot must be among."""
    names: set[str] = set()
    for access in accesses:
        variables = {*access.domain.dims, *access.domain.free}
        for poly in (*(access.indices or ()), *([access.flat] if access.flat is not None else [])):
            names |= {n for n in poly.names() if n not in variables}
    return names


def _split(planner: Planner, nest: Nest, pivot: ir.Ref, context: Context) -> list[Step]:
    rows, columns = (level.loop for level in nest.levels)
    if not all(_contains(planner, loop, pivot, context) for loop in (rows, columns)):
        return []
    steps: list[Step] = []
    for strip in _parts(rows, pivot):
        whole = _with(nest, strip, columns)
        if _conflicts(planner, whole, 0, context):
            return []
        for part in _parts(columns, pivot):
            block = _with(nest, strip, part)
            found = planner.accesses(block, context)
            both = carried(found, block.variables)
            if any(c.order or c.updates for c in both.values()):
                return []
            stored = frozenset(a.root for a in found if a.write)
            steps.append(Parallel(block, block.variables, frozenset(), stored))
    return steps


def _contains(planner: Planner, loop: ir.For, pivot: ir.Ref, context: Context) -> bool:
    """Whether the pivot is one of the loop's iterations."""
    start, bound, domain = planner.ends(loop, context)
    at = Poly.name(pivot.name)
    if start is None or bound is None:
        return False
    return always_within(domain, at - start, bound - start)


def _parts(loop: ir.For, pivot: ir.Ref) -> list[ir.For]:
    after = ir.Binary("+", pivot, ir.Const(1, ir.INT), loop.type)
    return [
        replace(loop, bound=pivot),
        replace(loop, start=pivot, bound=after),
        replace(loop, start=after),
    ]


def _with(nest: Nest, rows: ir.For, columns: ir.For) -> Nest:
    outer, inner = nest.levels
    return Nest((Level(rows, outer.prefix), Level(columns, inner.prefix)), nest.body)


def _conflicts(planner: Planner, nest: Nest, position: int, context: Context) -> bool:
    found = carried(planner.accesses(nest, context), nest.variables)[nest.variables[position]]
    return bool(found.order or found.updates)


def min_plus(planner: Planner, loop: ir.For, nest: Nest, context: Context) -> list[Step]:
    """A min-plus closure over three nested loops; ``[]`` where the nest is none."""
    if len(nest.levels) != 3 or any(level.prefix for level in nest.levels) or len(nest.body) != 1:
        return []
    pivots, rows, columns = (level.loop for level in nest.levels)
    if any(x.step != 1 or x.relation != "<" for x in (pivots, rows, columns)):
        return []
    if not all(same(pivots.start, x.start) and same(pivots.bound, x.bound) for x in (rows, columns)):
        return []
    place = _closed_place(nest.body[0])
    if place is None or not _is_closure(planner, nest, place, context):
        return []
    square = Nest(nest.levels[1:], nest.body)
    inside = planner.within(pivots, context)
    careful = _split(planner, square, ir.Ref(pivots.variable, pivots.type), inside)
    if not careful:
        return []
    stored = frozenset({place.pointer})
    header = replace(pivots, body=())
    quick = HostLoop(header, (Parallel(square, square.variables, frozenset(), stored),))
    negative = planner.new_scalar("negative", ir.INT)
    zero = ir.Const(0, place.type)
    below = ir.Unary("!", ir.Binary(">=", place, zero, ir.INT), ir.INT, loop.line)
    look = Nest(
        nest.levels[1:],
        (ir.If(below, (ir.Assign(negative, "=", ir.Const(1, ir.INT), loop.line),), (), loop.line),),
    )
    found = Reduction(negative, "set", line=loop.line, constant=ir.Const(1, ir.INT))
    start = ir.Declare(negative.name, ir.INT, ir.Const(0, ir.INT), line=loop.line)
    test = Reduce(look, 2, (found,), (start,), (), frozenset(), frozenset())
    decision = ir.Binary("==", negative, ir.Const(0, ir.INT), ir.INT, loop.line)
    return [
        test,
        Fetch(negative.name, ir.INT),
        HostBranch(decision, (quick,), (HostLoop(header, tuple(careful)),)),
    ]


def _closed_place(statement: ir.Stmt) -> ir.Load | None:
    """D[i][j] of ``if (x + y < D[i][j]) D[i][j] = x + y``, and of ``D[i][j] = min(D[i][j], x + y)``."""
    if isinstance(statement, ir.If) and not statement.otherwise and len(statement.then) == 1:
        assign, condition = statement.then[0], bare(statement.condition)
        if not isinstance(assign, ir.Assign) or assign.op != "=" or not isinstance(condition, ir.Binary):
            return None
        value = bare(assign.value)
        sides = {"<": (condition.left, condition.right), ">": (condition.right, condition.left)}.get(condition.op)
        if sides is None or sides[0] != value or sides[1] != bare(assign.target):
            return None
    elif isinstance(statement, ir.Assign) and statement.op == "=":
        assign, value = statement, bare(statement.value)
        if isinstance(value, ir.Call) and value.name in ("fmin", "fminf") and len(value.arguments) == 2:
            others = [a for a in value.arguments if a != bare(assign.target)]
        elif isinstance(value, ir.Select) and isinstance(value.condition, ir.Binary):
            test = value.condition
            if {value.yes, value.no} != {test.left, test.right} or bare(assign.target) not in (value.yes, value.no):
                return None
            takes_less = (value.yes == test.left) == (test.op in ("<", "<="))
            if test.op not in ("<", "<=", ">", ">=") or not takes_less:
                return None
            others = [v for v in (value.yes, value.no) if v != bare(assign.target)]
        else:
            return None
        if len(others) != 1:
            return None
        value = others[0]
    else:
        return None
    target = assign.target
    if not isinstance(target, ir.Load) or not isinstance(value, ir.Binary) or value.op != "+":
        return None
    if not isinstance(value.left, ir.Load) or not isinstance(value.right, ir.Load):
        return None
    alike = {value.left.pointer, value.right.pointer} == {target.pointer} and value.type == target.type
    signed = target.type.kind is TypeKind.FLOAT or (target.type.kind is TypeKind.INT and target.type.size >= 4)
    return target if alike and signed else None


def _is_closure(planner: Planner, nest: Nest, place: ir.Load, context: Context) -> bool:
    """Whether the accesses are exactly D[i][j], D[i][k] and D[k][j]."""
    k, i, j = (Poly.name(v) for v in nest.variables)
    accesses = planner.accesses(nest, context)
    if any(a.root != place.pointer for a in accesses):
        return False
    pairs = set()
    for access in accesses:
        pair = access.indices
        if pair is None:
            if access.flat is None:
                return False
            pair = _square(access.flat, nest.variables)
        if pair is None or len(pair) != 2:
            return False
        pairs.add((_key(pair[0]), _key(pair[1]), access.write))
    wanted = {(_key(i), _key(j), True), (_key(i), _key(j), False), (_key(i), _key(k), False), (_key(k), _key(j), False)}
    return pairs == wanted


def _key(poly: Poly) -> tuple[tuple[tuple[str, ...], int], ...]:
    return tuple(sorted(poly.terms.items()))


def _square(flat: Poly, variables: Sequence[str]) -> tuple[Poly, Poly] | None:
    """``row*n + column`` as (row, column), for single loop variables."""
    if len(flat.terms) != 2 or set(flat.terms.values()) != {1}:
        return None
    first, second = sorted(flat.terms, key=len, reverse=True)
    row = [n for n in first if n in variables]
    if len(first) != 2 or len(row) != 1 or len(second) != 1 or second[0] not in variables:
        return None
    return Poly.name(row[0]), Poly.name(second[0])


__all__ = ["Constraint", "min_plus", "split_at_pivot"]
