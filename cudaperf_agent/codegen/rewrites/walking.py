"""Pointers that walk or are compared become offsets into the one buffer that they point into.

``p++`` moves by one element what is a pointer into a known buffer from its start on, so ``*p`` is ``buffer[p_at]`` with
``p_at++``. A pointer is rewritten where every value that it ever gets points into one and the same buffer (a parameter,
an allocation, a local array); pointers that change between buffers are left as they are. Two pointers into one buffer
compare, and differ, as their offsets do; C allows neither across buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.codegen.rewrites.blocks import Fresh
from cudaperf_agent.codegen.rewrites.sums import sum_of, wide
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lowered import Function
from cudaperf_agent.tasks.model import CType


def offsets(function: Function, fresh: Fresh) -> Function:
    """The function with its walking pointers as offsets."""
    points = [n for n in ir.walk(*function.body) if isinstance(n, ir.Point)]
    moved = {p.name for p in points if not p.declares}
    compared = {
        side.pointer
        for n in ir.walk(*function.body)
        if isinstance(n, ir.Binary)
        for side in (n.left, n.right)
        if isinstance(side, ir.Address)
    }
    if not moved and not compared:
        return function
    roots = _roots(function, points)
    # A parameter that stays where it is needs no offset.
    walking = {
        name: roots[name]
        for name in sorted({p.name for p in points} | moved)
        if name in roots and (name in moved or name != roots[name])
    }
    at = {name: fresh.name(f"{name}_at", name) for name in walking}
    opening = [
        ir.Declare(at[p.name], ir.LONG, ir.Const(0, ir.LONG), line=function.line)
        for p in function.params
        if p.name in walking
    ]
    kinds = {p.name: p.type for p in function.params} | {t.name: t.type for t in function.tables}
    kinds |= {n.name: n.type for n in ir.walk(*function.body) if isinstance(n, ir.Allocate | ir.Declare)}
    body = tuple(_rewritten(s, walking, at, kinds) for s in function.body)
    return replace(function, body=(*opening, *body))


def _roots(function: Function, points: Sequence[ir.Point]) -> dict[str, str]:
    """The buffer of each pointer that has only one; buffers are their own."""
    moved = {p.name for p in points if not p.declares}
    roots = {p.name: p.name for p in function.params if p.pointer and len(p.dims) < 2}
    roots |= {t.name: t.name for t in function.tables if len(t.dims) < 2}
    for node in ir.walk(*function.body):
        if isinstance(node, ir.Allocate) or (isinstance(node, ir.Declare) and len(node.dims) == 1):
            # An allocation whose own pointer walks has no name for its start.
            roots |= {} if node.name in moved else {node.name: node.name}
    values: dict[str, list[str]] = {}
    for point in points:
        if point.source is not None:
            values.setdefault(point.name, []).append(point.source.pointer)
    changed = True
    while changed:
        changed = False
        for name, sources in values.items():
            if name not in roots and any(s in roots for s in sources):
                roots[name] = next(roots[s] for s in sources if s in roots)
                changed = True
    wrong = {n for n, sources in values.items() if any(roots.get(s) != roots.get(n) for s in sources)}
    while True:  # what points into a pointer that is not understood is not understood either
        more = {n for n, sources in values.items() if n not in wrong and any(s in wrong for s in sources)}
        if not more:
            break
        wrong |= more
    return {name: root for name, root in roots.items() if name not in wrong}


def _rewritten(statement: ir.Stmt, walking: dict[str, str], at: dict[str, str], kinds: dict[str, CType]) -> ir.Stmt:
    def offset(pointer: str, index: ir.Expr) -> ir.Expr:
        if pointer not in walking:
            return index
        here = ir.Ref(at[pointer], ir.LONG, index.line)
        total = sum_of(here).plus(sum_of(index))
        return replace_line(total.expr(), index.line)

    def change(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Load | ir.Address) and node.pointer in walking and len(node.indices) == 1:
            root = walking[node.pointer]
            moved = replace(node, pointer=root, indices=(offset(node.pointer, node.indices[0]),))
            if isinstance(moved, ir.Address):
                return replace(moved, viewed=kinds[root] != moved.type)
            # An element of another integer type of the same size is a conversion of the buffer's own.
            own = replace(moved, type=kinds[root])
            return own if own.type == moved.type else ir.Cast(own, moved.type, line=moved.line)
        if isinstance(node, ir.Assign):
            target: ir.Expr = node.target
            return _stored(node, target) if isinstance(target, ir.Cast) else node
        if isinstance(node, ir.Point) and node.name in walking:
            name = at[node.name]
            # The source has been rewritten already: it is an offset into the buffer.
            value = None if node.source is None else wide(node.source.indices[0])
            if node.declares:
                return ir.Declare(name, ir.LONG, value, line=node.line)
            assert value is not None
            return _step(ir.Ref(name, ir.LONG, node.line), value, node.line)
        if isinstance(node, ir.Binary) and isinstance(node.left, ir.Address) and isinstance(node.right, ir.Address):
            left, right = node.left, node.right
            if left.pointer == right.pointer and left.pointer in kinds:
                return replace(node, left=wide(left.indices[0]), right=wide(right.indices[0]))
        return node

    result: ir.Stmt = ir.rewrite(statement, change)
    return result


def _stored(statement: ir.Assign, view: ir.Cast) -> ir.Stmt:
    """An assignment to an element that is viewed as another type."""
    place, value = view.operand, statement.value
    assert isinstance(place, ir.Load)
    if statement.op != "=":
        wide_enough = view.type if view.type.size >= ir.INT.size else ir.INT
        value = ir.Binary(statement.op[:-1], view, value, wide_enough, statement.line)
    return ir.Assign(place, "=", value, statement.line)


def _step(target: ir.Ref, value: ir.Expr, line: int) -> ir.Stmt:
    """``p_at = p_at + 1`` as ``p_at += 1``."""
    total = sum_of(value)
    mine = next((t for t in total.terms if isinstance(t, ir.Ref) and t.name == target.name), None)
    if mine is not None and total.terms[mine] == 1:
        by = total.plus(sum_of(mine), -1)
        if not any(isinstance(n, ir.Ref) and n.name == target.name for t in by.terms for n in ir.walk(t)):
            return ir.Assign(target, "+=", by.expr(), line)
    return ir.Assign(target, "=", value, line)


def replace_line(expr: ir.Expr, line: int) -> ir.Expr:
    """The expression with a source line for all that has none."""

    def put(node: ir.Node) -> ir.Node:
        return replace(node, line=line) if getattr(node, "line", 1) == 0 else node

    result: ir.Expr = ir.rewrite(expr, put)
    return result
