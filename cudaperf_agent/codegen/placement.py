"""Where the scalars of an entry live: with the host, or in device memory because kernels compute them."""

from __future__ import annotations

from collections.abc import Sequence

from cudaperf_agent.codegen.nests import has_jumps, has_loop, leaves_early, loop_variables, stores_memory
from cudaperf_agent.codegen.scalars import declared, stored_scalars
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import TypeKind


def device_scalars(body: Sequence[ir.Stmt], known: set[str]) -> set[str]:
    """Top-level scalars whose value comes out of memory or out of a loop over threads, and those known to."""
    found = set(known)
    while True:
        before = set(found)
        _spread_device(body, found)
        if found == before:
            return found


def _spread_device(body: Sequence[ir.Stmt], found: set[str]) -> None:
    for statement in body:
        if isinstance(statement, ir.Declare) and not statement.dims:
            parts = [*([statement.init] if statement.init else []), *(statement.values or ())]
            if statement.type.kind is TypeKind.STRUCT or on_device(parts, found):
                found.add(statement.name)
        elif isinstance(statement, ir.Assign):
            place = ir.root(statement.target)
            if isinstance(place, ir.Ref) and (
                on_device([statement.value], found) or not isinstance(statement.target, ir.Ref)
            ):
                found.add(place.name)
        elif isinstance(statement, ir.For | ir.While):
            if isinstance(statement, ir.For) and leaves_early(statement.body):
                found |= stored_scalars((statement,)) - declared((statement,))
            elif _sequential(statement):
                _spread_device(statement.body, found)
                if isinstance(statement, ir.While):
                    _spread_device(statement.update, found)
            else:
                found |= stored_scalars((statement,)) - declared((statement,)) - loop_variables((statement,))
        elif isinstance(statement, ir.If):
            stored = stored_scalars((statement,)) - declared((statement,))
            if not has_loop(statement) and not has_jumps(statement) and (stores_memory(statement) or stored & found):
                found |= stored
            if has_loop(statement) or not on_device([statement.condition], found):
                _spread_device((*statement.then, *statement.otherwise), found)
            else:
                found |= stored_scalars((statement,)) - declared((statement,))


def on_device(parts: Sequence[ir.Expr], found: set[str]) -> bool:
    """Whether expressions read memory or scalars of the device."""
    for part in parts:
        for node in ir.walk(part):
            if isinstance(node, ir.Load) or (isinstance(node, ir.Ref) and node.name in found):
                return True
            if isinstance(node, ir.Call) and any(isinstance(a, ir.Address) for a in node.arguments):
                return True
    return False


def _sequential(loop: ir.For | ir.While) -> bool:
    """Whether a loop holds further loops and no scalar work that only a thread could do."""
    return any(isinstance(n, ir.For | ir.While | ir.Copy | ir.Fill) for n in ir.walk(*loop.body))
