"""Walking the loops of a function from the inside out, with what stands before each and what may be read after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.codegen.scalars import flow, reads
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Function


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a statement stands.

    Attributes:
        before: The statements before it in its block.
        live: Scalars that may be read after it.
    """

    before: tuple[ir.Stmt, ...]
    live: frozenset[str]


Change = Callable[[ir.Stmt, Surroundings], "Sequence[ir.Stmt] | None"]


def each_statement(body: Sequence[ir.Stmt], change: Change, live: frozenset[str] = frozenset()) -> tuple[ir.Stmt, ...]:
    """A block with `change` applied to every statement, those inside first; `None` keeps a statement."""
    made: list[ir.Stmt] = []
    for position, statement in enumerate(body):
        after = flow(body[position + 1 :]).exposed | live
        statement = _inside(statement, change, after)
        changed = change(statement, Surroundings(tuple(made), after))
        made += [statement] if changed is None else changed
    return tuple(made)


def _inside(statement: ir.Stmt, change: Change, live: frozenset[str]) -> ir.Stmt:
    if isinstance(statement, ir.For):
        around = live | flow(statement.body).exposed | reads(statement.bound)
        return replace(statement, body=each_statement(statement.body, change, around))
    if isinstance(statement, ir.While):
        again = flow((*statement.body, *statement.update)).exposed | flow(statement.update).exposed
        around = live | again | reads(statement.condition)
        return replace(
            statement,
            body=each_statement(statement.body, change, around),
            update=each_statement(statement.update, change, around),
        )
    if isinstance(statement, ir.If):
        return replace(
            statement,
            then=each_statement(statement.then, change, live),
            otherwise=each_statement(statement.otherwise, change, live),
        )
    return statement


def reaching(name: str, before: Sequence[ir.Stmt]) -> ir.Expr | None:
    """The value of a scalar after statements, where one of them sets it to what is still the same at their end."""
    for position in range(len(before) - 1, -1, -1):
        statement = before[position]
        value: ir.Expr | None = None
        if isinstance(statement, ir.Declare) and statement.name == name and not statement.dims:
            value = statement.init
        elif isinstance(statement, ir.Assign) and statement.op == "=" and isinstance(statement.target, ir.Ref):
            value = statement.value if statement.target.name == name else None
        if value is not None:
            touched = assigned(tuple(before[position + 1 :])) | {name}
            plain = not any(isinstance(n, ir.Load | ir.Call | ir.Address) for n in ir.walk(value))
            return value if plain and not reads(value) & touched else None
        if name in assigned((statement,)):
            return None
    return None


def substituted(statements: Sequence[ir.Stmt], name: str, value: ir.Expr) -> tuple[ir.Stmt, ...]:
    """Statements that read `value` wherever they read the scalar `name`, which they do not set."""

    def put(node: ir.Node) -> ir.Node:
        return value if isinstance(node, ir.Ref) and node.name == name else node

    return tuple(ir.rewrite(s, put) for s in statements)


def own_jumps(body: Sequence[ir.Stmt]) -> set[type]:
    """The kinds of jumps, `ir.Break`, `ir.Continue` or `ir.Return`, by which a loop's body leaves an iteration."""
    found: set[type] = set()
    for statement in body:
        if isinstance(statement, ir.Break | ir.Continue | ir.Return):
            found.add(type(statement))
        elif isinstance(statement, ir.If):
            found |= own_jumps((*statement.then, *statement.otherwise))
        elif isinstance(statement, ir.For | ir.While):
            found |= own_jumps(statement.body) & {ir.Return}
    return found


def aliased(function: Function) -> frozenset[str]:
    """Pointers of which there are others: what is stored through one may be read through the other."""
    points = [n for n in ir.walk(*function.body) if isinstance(n, ir.Point)]
    return frozenset({p.name for p in points} | {p.source.pointer for p in points if p.source is not None})


def names_of(function: Function) -> set[str]:
    """Every name in a function."""
    names = {p.name for p in function.params} | {t.name for t in function.tables}
    names |= assigned(function.body) | reads(*function.body)
    return names | {n.name for n in ir.walk(*function.body) if isinstance(n, ir.Call)}


class Fresh:
    """Unused names of one function, and what in the C each stands for.

    Attributes:
        taken: Names in use.
        origins: The variable in whose place a new one stands, by the new name.
    """

    def __init__(self, taken: set[str]) -> None:
        self.taken = set(taken)
        self.origins: dict[str, str] = {}

    def name(self, wanted: str, origin: str = "") -> str:
        """A name near to the wanted one."""
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}{number}", number + 1
        self.taken.add(name)
        self.origins[name] = self.origins.get(origin, origin) or name
        return name
