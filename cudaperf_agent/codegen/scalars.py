"""Scalars in loops: which are private to an iteration, which are reductions, which carry an order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.codegen.accesses import bare, same, update_of
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned
from cudaperf_agent.tasks.lowered import Module
from cudaperf_agent.tasks.model import CType, TypeKind


@dataclass(frozen=True, slots=True)
class Flow:
    """What statements do to scalars.

    Attributes:
        exposed: Names that may be read before the statements assign them.
        definite: Names assigned on every path that runs off the end; `None` when no path does.
    """

    exposed: frozenset[str]
    definite: frozenset[str] | None


def reads(*nodes: ir.Node) -> frozenset[str]:
    """Names of the scalars and pointers that expressions read."""
    names = set()
    for node in ir.walk(*nodes):
        if isinstance(node, ir.Ref):
            names.add(node.name)
        elif isinstance(node, ir.Load | ir.Address):
            names.add(node.pointer)
    return frozenset(names)


def flow(statements: Iterable[ir.Stmt]) -> Flow:
    """Exposed and definitely assigned scalars of a sequence of statements."""
    exposed: set[str] = set()
    definite: set[str] = set()
    for statement in statements:
        step = _flow_of(statement)
        exposed |= step.exposed - definite
        if step.definite is None:
            return Flow(frozenset(exposed), None)
        definite |= step.definite
    return Flow(frozenset(exposed), frozenset(definite))


def _flow_of(statement: ir.Stmt) -> Flow:
    nothing: frozenset[str] = frozenset()
    if isinstance(statement, ir.Assign):
        whole = isinstance(statement.target, ir.Ref)
        read = reads(statement.value) | (nothing if whole else reads(statement.target))
        if whole and statement.op != "=":
            read |= reads(statement.target)
        return Flow(read, frozenset({statement.target.name}) if isinstance(statement.target, ir.Ref) else nothing)
    if isinstance(statement, ir.Declare):
        made = frozenset({statement.name})
        parts = [*(statement.values or ()), *statement.dims, *([statement.init] if statement.init else [])]
        return Flow(reads(*parts), made)
    if isinstance(statement, ir.For):
        body = flow(statement.body)
        read = reads(statement.start) | (reads(statement.bound) | body.exposed) - {statement.variable}
        return Flow(read, frozenset({statement.variable}))
    if isinstance(statement, ir.While):
        body = flow(statement.body)
        later = flow(statement.update).exposed | reads(statement.condition)
        if statement.test_last:
            jumps = any(isinstance(n, ir.Break | ir.Continue) for n in ir.walk(*statement.body))
            done = nothing if jumps else body.definite or nothing
            return Flow(body.exposed | (later - done), done)
        # The condition runs first; the update may follow a `continue`, so nothing of the body is sure by then.
        return Flow(reads(statement.condition) | body.exposed | later, nothing)
    if isinstance(statement, ir.If):
        yes, no = flow(statement.then), flow(statement.otherwise)
        read = reads(statement.condition) | yes.exposed | no.exposed
        if yes.definite is None:
            return Flow(read, no.definite)
        return Flow(read, yes.definite if no.definite is None else yes.definite & no.definite)
    if isinstance(statement, ir.Break | ir.Continue):
        return Flow(nothing, None)
    if isinstance(statement, ir.Return):
        return Flow(reads(statement.value) if statement.value is not None else nothing, None)
    if isinstance(statement, ir.Point):
        read = reads(*statement.source.indices) | {statement.source.pointer} if statement.source else nothing
        return Flow(read, frozenset({statement.name}))
    return Flow(reads(statement), nothing)


def declared(body: Sequence[ir.Stmt]) -> set[str]:
    """Names that statements declare."""
    names = set()
    for node in ir.walk(*body):
        if isinstance(node, ir.Declare) or (isinstance(node, ir.Point | ir.Allocate) and node.declares):
            names.add(node.name)
        elif isinstance(node, ir.For) and node.declared:
            names.add(node.variable)
    return names


def stored_scalars(body: Sequence[ir.Stmt]) -> set[str]:
    """Scalars and structs (not memory) that statements assign."""
    names = set()
    for node in ir.walk(*body):
        if isinstance(node, ir.Assign):
            place = ir.root(node.target)
            if isinstance(place, ir.Ref):
                names.add(place.name)
        elif isinstance(node, ir.For):
            names.add(node.variable)
        elif isinstance(node, ir.Point) and not node.declares:
            names.add(node.name)
    return names


@dataclass(frozen=True, slots=True)
class Reduction:
    """A scalar that iterations combine into, in an order that does not matter.

    Attributes:
        place: The variable, or the member of a struct variable.
        kind: ``+``, ``*``, ``&``, ``|``, ``^``, ``&&``, ``||``, ``best`` (minimum or maximum) or ``set`` (all
            assignments give one constant).
        relation: For ``best``: ``new relation old`` makes the new value the best.
        payload: For ``best``: variables assigned with it (the position of a minimum).
        line: Source line.
        constant: For ``set``: what is assigned.
    """

    place: ir.Ref | ir.Member
    kind: str
    relation: str = ""
    payload: tuple[ir.Ref, ...] = ()
    line: int = 0
    constant: ir.Expr | None = None

    @property
    def type(self) -> CType:
        """Of the accumulated value."""
        return self.place.type


def find_reductions(body: Sequence[ir.Stmt], names: Iterable[str], module: Module) -> list[Reduction] | str:
    """Explain scalars that a loop's iterations share as reductions.

    Args:
        body: The loop's body.
        names: Scalars that it carries from one iteration to the next.
        module: For small helpers such as ``max``.

    Returns:
        The reductions, or the name of the first scalar that is none.
    """
    wanted = list(names)
    found: list[Reduction] = []
    covered: set[str] = set()
    for name in wanted:
        if name in covered:
            continue
        mine = _reductions_of(tuple(body), name, module)
        if mine is None:
            continue
        found += mine
        covered.add(name)
        covered |= {p.name for r in mine for p in r.payload}
    missing = [n for n in wanted if n not in covered]
    carried = {p.name for r in found for p in r.payload}
    kept = [r for r in found if not (isinstance(r.place, ir.Ref) and r.place.name in carried)]
    return missing[0] if missing else kept


def _reductions_of(body: tuple[ir.Stmt, ...], name: str, module: Module) -> list[Reduction] | None:
    mentions = sum(isinstance(n, ir.Ref) and n.name == name for n in ir.walk(*body))
    found: dict[ir.Expr, Reduction] = {}
    seen = 0
    for node in ir.walk(*body):
        made = one_reduction(node, name, module)
        if made is None:
            continue
        reduction, uses = made
        key = bare(reduction.place)
        old = found.get(key)
        if old is not None and (old.kind, old.relation, old.payload) != (
            reduction.kind, reduction.relation, reduction.payload
        ):  # fmt: skip
            return None
        if old is not None and reduction.kind == "set" and not _same_constant(body, name):
            return None
        if old is not None and reduction.payload:
            return None
        found[key] = reduction
        seen += uses
    if not found or seen != mentions:
        return None
    if any(isinstance(k, ir.Ref) for k in found) and len(found) > 1:
        return None
    reductions = list(found.values())
    for reduction in reductions:
        for other in reduction.payload:
            inside = _mentions(body, other.name)
            if inside != 1:
                return None
    return reductions


def _mentions(body: tuple[ir.Stmt, ...], name: str) -> int:
    return sum(isinstance(n, ir.Ref) and n.name == name for n in ir.walk(*body))


def _same_constant(body: tuple[ir.Stmt, ...], name: str) -> bool:
    values = {
        bare(n.value)
        for n in ir.walk(*body)
        if isinstance(n, ir.Assign) and isinstance(n.target, ir.Ref) and n.target.name == name
    }
    return len(values) == 1


def one_reduction(node: ir.Node, name: str, module: Module) -> tuple[Reduction, int] | None:
    """A reduction that a statement makes of `name`, with how often the statement mentions it."""
    if isinstance(node, ir.If) and not node.otherwise:
        return _guarded_best(node, name)
    if not isinstance(node, ir.Assign):
        return None
    place = node.target
    owner = ir.root(place)
    if not isinstance(owner, ir.Ref) or owner.name != name or not isinstance(place, ir.Ref | ir.Member):
        return None
    update, value = update_of(node)
    if update is not None and name not in reads(value):
        if not _combines(place.type, value.type, update):
            return None
        return Reduction(place, update, line=node.line), 1 if node.op != "=" else 2
    if node.op != "=":
        return None
    best = _best_value(node, module)
    if best is not None:
        uses = sum(isinstance(n, ir.Ref) and n.name == name for n in ir.walk(node))
        return best, uses
    logical = node.value
    while isinstance(logical, ir.Cast):
        logical = logical.operand
    if isinstance(logical, ir.Binary) and logical.op in ("&&", "||"):
        for mine, other in ((logical.left, logical.right), (logical.right, logical.left)):
            if same(mine, place) and name not in reads(other):
                return Reduction(place, logical.op, line=node.line), 2
    if isinstance(bare(node.value), ir.Const) and isinstance(place, ir.Ref):
        return Reduction(place, "set", line=node.line, constant=bare(node.value)), 1
    return None


def _combines(target: CType, value: CType | None, op: str) -> bool:
    """Whether ``target op= value`` may be regrouped: modular integers exactly, floats within their error budget."""
    if target.kind is TypeKind.BOOL or value is None:
        return False
    if target.kind is TypeKind.FLOAT:
        return op in ("+", "*")
    return value.kind in (TypeKind.INT, TypeKind.UINT, TypeKind.BOOL)


def _guarded_best(node: ir.If, name: str) -> tuple[Reduction, int] | None:
    """``if (x < best) { best = x; where = i; }``"""
    condition = node.condition
    if not isinstance(condition, ir.Binary) or condition.op not in ("<", "<=", ">", ">="):
        return None
    assigns = [s for s in node.then if isinstance(s, ir.Assign) and s.op == "="]
    if len(assigns) != len(node.then):
        return None
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    for new, old, relation in (
        (condition.left, condition.right, condition.op),
        (condition.right, condition.left, mirrored[condition.op]),
    ):
        place = bare(old)
        if not isinstance(place, ir.Ref) or place.name != name or name in reads(new):
            continue
        mine = [a for a in assigns if same(a.target, place)]
        rest = [a for a in assigns if not same(a.target, place)]
        if len(mine) != 1 or not same(mine[0].value, new) or not _exact(mine[0].value, place.type):
            continue
        if any(not isinstance(a.target, ir.Ref) or name in reads(a.value) for a in rest):
            continue
        payload = tuple(a.target for a in rest if isinstance(a.target, ir.Ref))
        if any(p.name in reads(*(a.value for a in assigns)) for p in payload):
            continue
        plain = ir.Ref(place.name, place.type, node.line)
        return Reduction(plain, "best", relation, tuple(replace(p, line=0) for p in payload), node.line), 2
    return None


def _exact(value: ir.Expr, target: CType) -> bool:
    """Whether assigning the value keeps it: then comparing stored values is comparing what was computed."""
    inner = bare(value).type
    return inner is not None and (inner == target or (inner.kind is target.kind and inner.size <= target.size))


def _best_value(node: ir.Assign, module: Module) -> Reduction | None:
    """``best = x < best ? x : best``, ``best = fmin(best, x)`` and a helper that is one of these."""
    place = node.target
    if not isinstance(place, ir.Ref):
        return None
    value = bare(node.value)
    if isinstance(value, ir.Call):
        if value.name in ("fmin", "fminf", "fmax", "fmaxf") and len(value.arguments) == 2:
            mine = [a for a in value.arguments if same(a, place)]
            other = [a for a in value.arguments if not same(a, place)]
            # A value that is NaN never wins, as fmin and fmax have it; a NaN to begin with would differ.
            if len(mine) == 1 and place.name not in reads(*other) and _exact(other[0], place.type):
                relation = "<" if "min" in value.name else ">"
                return Reduction(place, "best", f"f{relation}", line=node.line)
            return None
        value = inlined(value, module)
    if not isinstance(value, ir.Select) or not isinstance(bare(value.condition), ir.Binary):
        return None
    condition = bare(value.condition)
    if not isinstance(condition, ir.Binary) or condition.op not in ("<", "<=", ">", ">="):
        return None
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    yes, no = bare(value.yes), bare(value.no)
    new, keeps = (yes, no) if same(no, place) else (no, yes)
    if not same(keeps, place) or place.name in reads(new) or not _exact(new, place.type):
        return None
    relation = condition.op if same(condition.left, new) and same(condition.right, place) else ""
    if same(condition.right, new) and same(condition.left, place):
        relation = mirrored[condition.op]
    if not relation:
        return None
    if new == no:
        if place.type.kind is TypeKind.FLOAT:
            return None  # a NaN would be taken here but not by the negated comparison
        relation = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[relation]
    return Reduction(ir.Ref(place.name, place.type, node.line), "best", relation, line=node.line)


def inlined(call: ir.Call, module: Module) -> ir.Expr:
    """A call of a helper that only returns an expression, replaced by the expression."""
    helper = module.helper(call.name)
    if helper is None or len(helper.body) != 1 or not isinstance(helper.body[0], ir.Return):
        return call
    value = helper.body[0].value
    if value is None or any(isinstance(a, ir.Address) for a in call.arguments):
        return call
    given = dict(zip((p.name for p in helper.params), call.arguments, strict=True))

    def put(node: ir.Node) -> ir.Node:
        return given[node.name] if isinstance(node, ir.Ref) and node.name in given else node

    result: ir.Expr = ir.rewrite(value, put)
    return bare(result)


def carried_scalars(body: Sequence[ir.Stmt], loops: Iterable[str], live_after: frozenset[str]) -> set[str]:
    """Scalars declared outside a nest that its iterations share: read before written, or used after the nest."""
    mine = (stored_scalars(body) | set(loops)) - declared(body) - {v for v in loops if v not in live_after}
    exposed = flow(body).exposed
    return {n for n in mine if n in exposed or n in live_after}


__all__ = [
    "Flow", "Reduction", "assigned", "carried_scalars", "declared", "find_reductions", "flow", "inlined",
    "one_reduction", "reads", "stored_scalars",
]  # fmt: skip
