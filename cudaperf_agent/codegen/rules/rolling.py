"""Rule: two rows that a loop fills in turn and swaps become the rows of one table, so that iterations can overlap.

The form is ``row = malloc(W), prev = malloc(W); for j: prev[j] = …; for i { row[0] = …; for j { row[j] = … }; swap }``
and, after it, reads of ``prev``. In iteration number k (from 0) ``prev`` becomes row k of a table and ``row`` row
k + 1; after K iterations ``prev`` is row K. This renames storage, which changes no value as long as each read sees a
cell of the very row that it sees in C, and not one that an older use of the same buffer left behind:

* the first loop fills all of [0, W) of ``prev``, and every iteration fills all of [0, W) of ``row``: element 0 before
  the inner loop, and 1 … W-1 by an unconditional store in it. So ``prev`` holds only values of the iteration before;
* ``row`` is read at ``j - c`` with constant c >= 1 only, in the inner loop: a cell that this iteration has stored.

What the table allows (distribution of the store before the inner loop, wavefronts) is proven elsewhere, by isl. The
table takes (K + 1) * W elements of device memory; where that much is not there, the call returns CUDA's error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cudaperf_agent.codegen.accesses import bare
from cudaperf_agent.codegen.affine import Poly
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lowered import Function

WIDE = ir.LONG_LONG


@dataclass(frozen=True, slots=True)
class _Swap:
    position: int
    loop: ir.For
    row: str
    previous: str


def expanded(entry: Function) -> Function | None:
    """The function with the two rows in one table; `None` where the form is another."""
    body = list(entry.body)
    swap = _find_swap(body)
    if swap is None or swap.loop.step != 1 or swap.loop.relation not in ("<", "<="):
        return None
    made = {s.name: s for s in body[: swap.position] if isinstance(s, ir.Allocate)}
    if swap.row not in made or swap.previous not in made:
        return None
    row, previous = made[swap.row], made[swap.previous]
    if bare(row.count) != bare(previous.count) or row.type != previous.type or row.zero or previous.zero:
        return None
    width = _poly(row.count)
    if width is None or not _filled(body[: swap.position], swap, width) or not _iteration(swap, width):
        return None
    return replace(entry, body=_rewritten(entry, body, swap, row))


def _find_swap(body: list[ir.Stmt]) -> _Swap | None:
    for position, statement in enumerate(body):
        if not isinstance(statement, ir.For) or len(statement.body) < 4:
            continue
        last = statement.body[-3:]
        if not all(isinstance(s, ir.Point) and s.source is not None for s in last):
            continue
        keep, first, second = (s for s in last if isinstance(s, ir.Point))
        if not (keep.declares and not first.declares and not second.declares):
            continue
        sources = [s.source for s in (keep, first, second) if s.source is not None]
        if any(len(s.indices) != 1 or _poly(s.indices[0]) != Poly() for s in sources):
            continue
        names = [s.pointer for s in sources]
        if names == [first.name, second.name, keep.name]:
            rest = [n for s in statement.body[:-3] for n in ir.walk(s)]
            if not any(isinstance(n, ir.Point | ir.Allocate | ir.Address | ir.Break | ir.Return) for n in rest):
                return _Swap(position, statement, second.name, first.name)
    return None


def _poly(expr: ir.Expr) -> Poly | None:
    if isinstance(expr, ir.Const) and isinstance(expr.value, int):
        return Poly.of(expr.value)
    if isinstance(expr, ir.Ref):
        return Poly.name(expr.name)
    if isinstance(expr, ir.Cast):
        return _poly(expr.operand)
    if isinstance(expr, ir.Binary) and expr.op in ("+", "-"):
        left, right = _poly(expr.left), _poly(expr.right)
        if left is not None and right is not None:
            return left + right if expr.op == "+" else left - right
    return None


def _end(loop: ir.For) -> Poly | None:
    bound = _poly(loop.bound)
    return None if bound is None else bound + Poly.of(1) if loop.relation == "<=" else bound


def _fills(loop: ir.Stmt, pointer: str, start: int, width: Poly) -> bool:
    """Whether a loop stores ``pointer[j]``, always, for every j in [start, width)."""
    if not isinstance(loop, ir.For) or loop.step != 1 or loop.relation not in ("<", "<="):
        return False
    if _poly(loop.start) != Poly.of(start) or _end(loop) != width:
        return False
    if any(isinstance(n, ir.Break | ir.Continue | ir.Return) for n in ir.walk(*loop.body)):
        return False
    wanted = Poly.name(loop.variable)
    return any(
        isinstance(s, ir.Assign)
        and s.op == "="
        and isinstance(s.target, ir.Load)
        and s.target.pointer == pointer
        and _poly(s.target.indices[0]) == wanted
        for s in loop.body
    )


def _mentions(node: ir.Node, pointer: str) -> bool:
    return any(isinstance(n, ir.Load | ir.Address) and n.pointer == pointer for n in ir.walk(node))


def _filled(before: list[ir.Stmt], swap: _Swap, width: Poly) -> bool:
    if any(_mentions(s, swap.row) for s in before):
        return False
    users = [s for s in before if _mentions(s, swap.previous)]
    return len(users) == 1 and _fills(users[0], swap.previous, 0, width)


def _iteration(swap: _Swap, width: Poly) -> bool:
    """Whether an iteration stores all of the row, and reads of it only what it has stored."""
    *first, inner = swap.loop.body[:-3]
    if not isinstance(inner, ir.For) or not _fills(inner, swap.row, 1, width):
        return False
    zero = False
    for statement in first:
        if not isinstance(statement, ir.Assign) or statement.op != "=" or not isinstance(statement.target, ir.Load):
            return False
        if statement.target.pointer != swap.row or _mentions(statement.value, swap.row):
            return False
        zero = zero or _poly(statement.target.indices[0]) == Poly()
    for node in ir.walk(*inner.body):
        if isinstance(node, ir.Load) and node.pointer == swap.row:
            at = _poly(node.indices[0])
            back = None if at is None else (at - Poly.name(inner.variable)).constant
            if back is None or back > 0:
                return False
    stores = [s for s in inner.body if isinstance(s, ir.Assign) and _mentions(s.target, swap.row)]
    reading = [
        n
        for s in inner.body
        for n in ir.walk(*(ir.children(s) if s not in stores else [s.value]))
        if isinstance(n, ir.Load) and n.pointer == swap.row
    ]
    behind = all((_poly(n.indices[0]) or Poly()) != Poly.name(inner.variable) for n in reading)
    return zero and behind and len(stores) == 1 and swap.loop.variable not in reads(inner.start, inner.bound)


def _rewritten(entry: Function, body: list[ir.Stmt], swap: _Swap, row: ir.Allocate) -> tuple[ir.Stmt, ...]:
    taken = {n.name for n in ir.walk(*body) if hasattr(n, "name")} | {p.name for p in entry.params}

    def fresh(wanted: str) -> str:
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        return wanted

    table, loop = fresh("rows"), swap.loop
    width, trips = ir.Ref(fresh("width"), WIDE), ir.Ref(fresh("trips"), WIDE)
    start, bound = ir.Cast(loop.start, WIDE), ir.Cast(loop.bound, WIDE)
    count = _plus(bound, start, "-")
    if loop.relation == "<=":
        count = _plus(count, ir.Const(1, WIDE))
    count = ir.Select(ir.Binary(">", count, ir.Const(0, WIDE), ir.INT), count, ir.Const(0, WIDE), WIDE)
    number = _plus(ir.Cast(ir.Ref(loop.variable, loop.type), WIDE), start, "-")

    def put(statement: ir.Stmt, rows: dict[str, ir.Expr | None]) -> ir.Stmt:
        def change(node: ir.Node) -> ir.Node:
            if not isinstance(node, ir.Load) or node.pointer not in rows:
                return node
            at, place = rows[node.pointer], ir.Cast(node.indices[0], WIDE)
            index = place if at is None else _plus(_plus(at, width, "*"), place)
            return ir.Load(table, (index,), node.type, node.line)

        result: ir.Stmt = ir.rewrite(statement, change)
        return result

    def outside(statement: ir.Stmt, rows: dict[str, ir.Expr | None]) -> list[ir.Stmt]:
        if isinstance(statement, ir.Allocate | ir.Release) and statement.name in (swap.row, swap.previous):
            return []
        return [put(statement, rows)]

    inside: dict[str, ir.Expr | None] = {swap.previous: number, swap.row: _plus(number, ir.Const(1, WIDE))}
    filled = replace(loop, body=tuple(put(s, inside) for s in loop.body[:-3]))
    first = next(n for n, s in enumerate(body) if isinstance(s, ir.Allocate) and s.name in (swap.row, swap.previous))
    size = _plus(_plus(trips, ir.Const(1, WIDE)), width, "*")
    return (
        *body[:first],
        ir.Declare(width.name, WIDE, ir.Cast(row.count, WIDE), line=row.line),
        ir.Declare(trips.name, WIDE, count, line=loop.line),
        ir.Allocate(table, row.type, size, line=row.line),
        *(s for x in body[first : swap.position] for s in outside(x, {swap.previous: None})),
        # The loop stores element 0 of a row, so a row has one; said aloud, since the proofs need it.
        ir.If(ir.Binary(">", width, ir.Const(0, WIDE), ir.INT), (filled,), (), loop.line),
        *(s for x in body[swap.position + 1 :] for s in outside(x, {swap.previous: trips})),
    )


def _plus(left: ir.Expr, right: ir.Expr, op: str = "+") -> ir.Expr:
    return ir.Binary(op, left, right, WIDE)
