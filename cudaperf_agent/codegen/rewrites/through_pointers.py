"""What a loop accumulates in ``*p`` or ``out[0]`` is accumulated in a variable and stored after the loop.

Parameters are taken not to overlap, and in the loop nothing else touches the element: every access to the buffer has a
constant index. So the element may live in a variable meanwhile. Where the loop does not run at all, the element gets
the value that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.codegen.rewrites.blocks import Fresh, aliased
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Function


def with_elements_in_scalars(function: Function, fresh: Fresh) -> Function:
    """Every outermost loop with the elements that it accumulates into as variables."""
    pointers = {p.name for p in function.params if p.pointer and len(p.dims) < 2} - aliased(function)

    def block(statements: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
        made: list[ir.Stmt] = []
        for statement in statements:
            if isinstance(statement, ir.If):
                statement = replace(statement, then=block(statement.then), otherwise=block(statement.otherwise))
            made += _kept(statement, pointers, fresh) if isinstance(statement, ir.For | ir.While) else [statement]
        return tuple(made)

    return replace(function, body=block(function.body))


def _kept(loop: ir.For | ir.While, pointers: set[str], fresh: Fresh) -> list[ir.Stmt]:
    opening: list[ir.Stmt] = []
    closing: list[ir.Stmt] = []
    changed: ir.Stmt = loop
    if any(isinstance(n, ir.Return) for n in ir.walk(loop)):
        return [loop]
    for pointer in sorted(pointers & assigned((loop,)) & reads(loop)):
        elements = _elements(loop, pointer)
        for element in elements or ():
            kept = ir.Ref(fresh.name(f"{pointer}_kept", pointer), element.type, loop.line)
            opening.append(ir.Declare(kept.name, kept.type, element, line=loop.line))
            closing.append(ir.Assign(element, "=", kept, loop.line))
            changed = _replaced(changed, element, kept)
    return [*opening, changed, *closing]


def _elements(loop: ir.Stmt, pointer: str) -> list[ir.Load] | None:
    """The elements of a buffer that a loop touches, if all have constant indices."""
    found: dict[int, ir.Load] = {}
    for node in ir.walk(loop):
        if isinstance(node, ir.Point | ir.Copy | ir.Fill) and pointer in reads(node):
            return None
        if isinstance(node, ir.Address) and node.pointer == pointer:
            return None
        if isinstance(node, ir.Load) and node.pointer == pointer:
            index = node.indices[0]
            while isinstance(index, ir.Cast):
                index = index.operand
            if not isinstance(index, ir.Const) or len(node.indices) != 1:
                return None
            found.setdefault(int(index.value), node)
    return list(found.values())


def _replaced(statement: ir.Stmt, element: ir.Load, by: ir.Ref) -> ir.Stmt:
    def put(node: ir.Node) -> ir.Node:
        return replace(by, line=node.line) if isinstance(node, ir.Load) and _same(node, element) else node

    result: ir.Stmt = ir.rewrite(statement, put)
    return result


def _same(node: ir.Load, element: ir.Load) -> bool:
    from cudaperf_agent.codegen.accesses import same

    return node.pointer == element.pointer and same(node.indices[0], element.indices[0])
