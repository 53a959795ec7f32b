"""Rule: a running integer sum that iterations also read (a scan), in chunks.

The loop adds to one integer variable s, and to nothing else that it carries: ``s += e`` where neither e nor the
conditions around it depend on s. Integers are added modulo 2^b (signed overflow being undefined), which is
associative, so the value of s before iteration i is s_0 plus the sum of the additions of all earlier iterations,
grouped in any way. All else in different iterations is proven independent by isl. Cut the range into chunks: first
every chunk's additions are summed (running the body without its stores), then the sums are scanned, then every chunk
runs the loop as written, starting from its own s. Each thread does so with its chunk, so the body may be anything.

The first pass must see the values that the sequential loop sees. Additions therefore load no buffer that the loop
stores to, or only in a body without inner loops and before the iteration's first store to it (in-place scans).

Floating-point sums are not associative; the rule declines them.

A store ``out[s] = …`` directly followed by ``s += c`` with a constant c > 0, where s only ever grows by such
constants, hits a different element each time (compaction): no two stores see the same s. That needs an s that cannot
wrap round: a signed int or long (overflow is undefined), 64 bits, or 32 bits that grow by ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cudaperf_agent.codegen.accesses import Access, bare, update_of
from cudaperf_agent.codegen.dependence import carried
from cudaperf_agent.codegen.fold import SUM
from cudaperf_agent.codegen.rules.chunks import chunked
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.codegen.steps import (
    Declined,
    Level,
    Nest,
    Step,
)
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import TypeKind

if TYPE_CHECKING:
    from cudaperf_agent.codegen.known import Context
    from cudaperf_agent.codegen.plan import Planner


def scan(planner: Planner, loop: ir.For, nest: Nest, shared: set[str], context: Context) -> list[Step]:
    """Steps of a scan; ``[]`` where the loop is none.

    Raises:
        Declined: It would be one, but over floating-point numbers.
    """
    if len(shared) != 1 or loop.step != 1 or loop.relation not in ("<", "<="):
        return []
    total = _total(loop.body, next(iter(shared)))
    if total is None or not planner.mappable(nest, nest.variables[0], ()):
        return []
    if total.type.kind not in (TypeKind.INT, TypeKind.UINT):
        raise Declined(
            f"'{total.name}' is a running sum of floating-point numbers, whose order matters",
            _update_line(loop.body, total.name),
        )
    outer = Nest((Level(replace(loop, body=())),), loop.body)
    accesses = planner.accesses(outer, context)
    if not loads_first(loop.body, accesses):
        return []
    grown = _compacted(loop.body, total)
    kept = [a for a in accesses if a.root not in grown or not a.write]
    if any(a.root in grown and not a.write for a in accesses):
        return []
    found = carried(kept, outer.variables)[loop.variable]
    if found.order or found.updates:
        return []
    return chunked(planner, loop, total, SUM, frozenset(a.root for a in accesses if a.write))


def _total(body: tuple[ir.Stmt, ...], name: str) -> ir.Ref | None:
    """The running sum, if all that changes it are additions that do not depend on it."""
    tainted = tainted_by(body, name)
    place: ir.Ref | None = None
    for node in ir.walk(*body):
        if isinstance(node, ir.Assign) and isinstance(node.target, ir.Ref) and node.target.name == name:
            update, value = update_of(node)
            whole = value.type is not None and value.type.kind in (TypeKind.INT, TypeKind.UINT, TypeKind.BOOL)
            if node.target.type.kind is TypeKind.FLOAT:
                whole = True
            if update != "+" or reads(value) & tainted or not whole:
                return None
            place = node.target
        controls: list[ir.Expr] = []
        if isinstance(node, ir.If | ir.While):
            controls = [node.condition]
        elif isinstance(node, ir.For):
            controls = [node.start, node.bound]
        if controls and reads(*controls) & tainted and _assigns(node, name):
            return None
        if isinstance(node, ir.Break | ir.Continue | ir.Return | ir.Evaluate):
            return None
    return place


def tainted_by(body: tuple[ir.Stmt, ...], name: str) -> set[str]:
    """Scalars whose value in an iteration depends on a variable, itself included."""
    tainted = {name}
    while True:
        more = _spread(body, tainted, name)
        if more <= tainted:
            return tainted
        tainted |= more


def _spread(body: tuple[ir.Stmt, ...], tainted: set[str], name: str) -> set[str]:
    more: set[str] = set()
    for node in ir.walk(*body):
        if isinstance(node, ir.Declare) and node.init is not None and reads(node.init) & tainted:
            more.add(node.name)
        elif isinstance(node, ir.Assign):
            place = ir.root(node.target)
            if isinstance(place, ir.Ref) and place.name != name and reads(node.value, node.target) & tainted:
                more.add(place.name)
        elif isinstance(node, ir.If) and reads(node.condition) & tainted:
            for inner in ir.walk(*node.then, *node.otherwise):
                if isinstance(inner, ir.Assign) and isinstance(ir.root(inner.target), ir.Ref):
                    owner = ir.root(inner.target)
                    more |= {owner.name} if isinstance(owner, ir.Ref) else set()
    return more


def _assigns(node: ir.Node, name: str) -> bool:
    return any(
        isinstance(n, ir.Assign) and isinstance(n.target, ir.Ref) and n.target.name == name for n in ir.walk(node)
    )


def _update_line(body: tuple[ir.Stmt, ...], name: str) -> int:
    return next((n.line for n in ir.walk(*body) if isinstance(n, ir.Assign) and _assigns(n, name)), 0)


def loads_first(body: tuple[ir.Stmt, ...], accesses: Sequence[Access]) -> bool:
    """Whether what the additions load is loaded before the iteration stores to the same buffer."""
    stored = {a.root for a in accesses if a.write}
    loops = any(isinstance(n, ir.For | ir.While | ir.Copy | ir.Fill) for n in ir.walk(*body))
    for root in stored:
        loads = [a.order for a in accesses if a.root == root and not a.write]
        stores = [a.order for a in accesses if a.root == root and a.write]
        if loads and (loops or max(loads) > min(stores)):
            return False
    # An update loads its own element; the first pass leaves it out, which matters to no one else.
    return True


def _compacted(body: tuple[ir.Stmt, ...], total: ir.Ref) -> set[str]:
    """Buffers whose every store is ``out[s] = …`` followed by a constant positive step of an s that cannot wrap."""
    name = total.name
    if total.type.size < ir.INT.size:
        return set()
    most = 1 if total.type.kind is TypeKind.UINT and total.type.size == ir.INT.size else None
    steps = [
        n for n in ir.walk(*body) if isinstance(n, ir.Assign) and isinstance(n.target, ir.Ref) and n.target.name == name
    ]
    for step in steps:
        _, value = update_of(step)
        inner = bare(value)
        if step.op == "-=" or not isinstance(inner, ir.Const) or inner.value <= 0:
            return set()
        if most is not None and inner.value > most:
            return set()
    good: set[str] = set()
    bad: set[str] = set()
    for block in _blocks(body):
        for position, statement in enumerate(block):
            if not isinstance(statement, ir.Assign) or not isinstance(ir.root(statement.target), ir.Load):
                continue
            place = ir.root(statement.target)
            assert isinstance(place, ir.Load)
            index = bare(place.indices[0]) if len(place.indices) == 1 else None
            following = block[position + 1] if position + 1 < len(block) else None
            exact = isinstance(index, ir.Ref) and index.name == name
            if exact and following is not None and isinstance(following, ir.Assign) and following in steps:
                good.add(place.pointer)
            else:
                bad.add(place.pointer)
    return good - bad


def _blocks(body: tuple[ir.Stmt, ...]) -> list[tuple[ir.Stmt, ...]]:
    blocks = [body]
    for node in ir.walk(*body):
        if isinstance(node, ir.If):
            blocks += [node.then, node.otherwise]
        elif isinstance(node, ir.For | ir.While):
            blocks.append(node.body)
    return blocks
