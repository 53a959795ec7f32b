"""The shape of loop nests and statements: what a plan asks before it asks isl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.codegen.accesses import Domain
from cudaperf_agent.codegen.scalars import stored_scalars
from cudaperf_agent.codegen.steps import (
    RESULT,
    Fetch,
    Finish,
    HostBranch,
    HostLoop,
    HostStatement,
    Level,
    Nest,
    ScalarWork,
    Step,
    Symbol,
)
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lowered import Function


def nest_of(loop: ir.For) -> Nest:
    """The deepest perfect nest that starts at a loop; declarations may stand between its loops."""
    levels: list[Level] = []
    current = loop
    while True:
        prefix: list[ir.Stmt] = []
        rest = list(current.body)
        while rest and isinstance(rest[0], ir.Declare | ir.Point) and pure_declaration(rest[0]):
            prefix.append(rest.pop(0))
        header = replace(current, body=())
        names = {s.name for s in prefix if isinstance(s, ir.Declare | ir.Point)}
        if len(rest) != 1 or not isinstance(rest[0], ir.For):
            return Nest((*levels, Level(header)), current.body)
        inner = rest[0]
        if names & stored_scalars((inner,)) or own_break(inner.body) or own_continue(current.body):
            return Nest((*levels, Level(header)), current.body)
        levels.append(Level(header, tuple(prefix)))
        current = inner


def pure_declaration(statement: ir.Stmt) -> bool:
    if isinstance(statement, ir.Declare):
        return not statement.dims
    return isinstance(statement, ir.Point) and statement.declares and statement.source is not None


def sunk(domain: Domain, whole: Domain) -> Domain:
    free = tuple(dict.fromkeys((*domain.free, *whole.free)))
    return Domain(whole.dims, free, tuple(dict.fromkeys((*domain.constraints, *whole.constraints))))


def symbols_of(entry: Function) -> dict[str, Symbol]:
    symbols = {p.name: Symbol(p.name, p.type, p.pointer, p.const, p.dims) for p in entry.params}
    for table in entry.tables:
        dims = tuple(ir.Const(d, ir.INT) for d in table.dims)
        symbols[table.name] = Symbol(table.name, table.type, True, True, dims)
    if entry.returns is not None:
        symbols[RESULT] = Symbol(RESULT, entry.returns, True)
    for node in ir.walk(*entry.body):
        if isinstance(node, ir.Declare):
            symbols[node.name] = Symbol(node.name, node.type, bool(node.dims), False, node.dims)
        elif isinstance(node, ir.Point):
            if node.declares:
                symbols[node.name] = Symbol(node.name, node.type, True, node.const)
        elif isinstance(node, ir.Allocate):
            symbols[node.name] = Symbol(node.name, node.type, True)
        elif isinstance(node, ir.For):
            symbols.setdefault(node.variable, Symbol(node.variable, node.type))
    return symbols


def all_steps(steps: Sequence[Step]) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        found.append(step)
        if isinstance(step, HostLoop):
            found += all_steps(step.steps)
        elif isinstance(step, HostBranch):
            found += all_steps((*step.then, *step.otherwise))
    return found


def is_parallel(step: Step) -> bool:
    return not isinstance(step, HostStatement | HostLoop | HostBranch | ScalarWork | Finish | Fetch)


def has_loop(statement: ir.Stmt) -> bool:
    return any(isinstance(n, ir.For | ir.While | ir.Copy | ir.Fill | ir.Allocate) for n in ir.walk(statement))


def has_jumps(statement: ir.Stmt) -> bool:
    return any(isinstance(n, ir.Return | ir.Break | ir.Continue) for n in ir.walk(statement))


def stores_memory(statement: ir.Stmt) -> bool:
    """Whether a statement may store to memory."""
    for node in ir.walk(statement):
        if isinstance(node, ir.Assign) and isinstance(ir.root(node.target), ir.Load):
            return True
        if isinstance(node, ir.Call) and any(isinstance(a, ir.Address) for a in node.arguments):
            return True
    return False


def ends_in_return(statements: Sequence[ir.Stmt]) -> bool:
    return bool(statements) and isinstance(statements[-1], ir.Return)


def has_own(body: Sequence[ir.Stmt], kind: type) -> bool:
    for statement in body:
        if isinstance(statement, kind):
            return True
        if isinstance(statement, ir.If) and has_own((*statement.then, *statement.otherwise), kind):
            return True
    return False


def own_break(body: Sequence[ir.Stmt]) -> bool:
    return has_own(body, ir.Break)


def leaves_early(body: Sequence[ir.Stmt]) -> bool:
    return own_break(body) or any(isinstance(n, ir.Return) for n in ir.walk(*body))


def own_continue(body: Sequence[ir.Stmt]) -> bool:
    return has_own(body, ir.Continue)


def loop_variables(body: Sequence[ir.Stmt]) -> set[str]:
    return {n.variable for n in ir.walk(*body) if isinstance(n, ir.For)}


def is_moved(body: Sequence[ir.Stmt], name: str) -> bool:
    return any(isinstance(n, ir.Point) and n.name == name and not n.declares for n in ir.walk(*body))


def known_value(value: ir.Expr) -> int | float | None:
    while isinstance(value, ir.Cast):
        value = value.operand
    return value.value if isinstance(value, ir.Const) else None


def declared_by(nest: Nest) -> frozenset[str]:
    return frozenset(level.variable for level in nest.levels if level.loop.declared)


def grows(nest: Nest, chosen: Sequence[str]) -> bool:
    """Whether the number of threads grows with the input, or nothing in the nest does."""
    loops = [nest.level(v).loop for v in chosen]
    if any(known_value(loop.bound) is None or known_value(loop.start) is None for loop in loops):
        return True
    others = [n for n in ir.walk(nest.rebuilt()) if isinstance(n, ir.For | ir.While)]
    return bool(loops) and all(
        isinstance(n, ir.For) and known_value(n.bound) is not None and known_value(n.start) is not None for n in others
    )
