"""How alike two C functions are for a compiler's purposes: counts of their loops and accesses, and a distance."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower import lower_task
from cudaperf_agent.tasks.lowered import Unlowered
from cudaperf_agent.tasks.model import Task, TypeKind

NAMES = (
    "depth",
    "loops",
    "uncounted",
    "loads",
    "stores",
    "unit",
    "fixed",
    "indirect",
    "neighbours",
    "accumulations",
    "updates",
    "branches",
    "operations",
    "calls",
    "floating",
)
"""What is counted, in the order of `distance`: the deepest nesting; loops, those of them without a counter; loads and
stores; the shares of accesses that move by one element with the innermost loop, that do not move with it, and whose
index is itself loaded; the most loads from one array at different places; scalars and elements that are accumulated
into; branches inside loops; arithmetic operations and calls; the share of floating-point accesses."""


def loop_features(task: Task) -> dict[str, float] | None:
    """The features of a task's C by name (counts as log1p); `None` where it cannot be analysed."""
    try:
        module = lower_task(task)
    except InputRefused:
        return None
    if isinstance(module, Unlowered):
        return None
    counts: dict[str, float] = defaultdict(float)
    places: dict[str, set[object]] = defaultdict(set)
    bodies = [module.entry.body, *(helper.body for helper in module.helpers)]
    for body in bodies:
        for node, loops in _nested(body, ()):
            _count(node, loops, counts, places)
    accesses = max(counts["loads"] + counts["stores"], 1.0)
    counts["neighbours"] = max((len(found) for found in places.values()), default=0)
    shares = {name: counts[name] / accesses for name in ("unit", "fixed", "indirect", "floating")}
    return {name: shares.get(name, math.log1p(counts[name])) for name in NAMES}


def distance(a: Mapping[str, float], b: Mapping[str, float], scale: Mapping[str, float]) -> float:
    """Euclidean, each feature divided by its `scale`; features that are missing count as 0."""
    return math.dist(*([values.get(name, 0.0) / scale[name] for name in NAMES] for values in (a, b)))


def spread(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Standard deviation of each feature over `rows`, 1 where it does not vary."""
    scale = {}
    for name in NAMES:
        values = [row.get(name, 0.0) for row in rows] or [0.0]
        mean = sum(values) / len(values)
        scale[name] = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values)) or 1.0
    return scale


def _nested(nodes: Sequence[ir.Node], loops: tuple[str, ...]) -> Iterator[tuple[ir.Node, tuple[str, ...]]]:
    """Every node with the counters of the loops around it, outermost first; a loop without one counts as ``""``."""
    for node in nodes:
        yield node, loops
        match node:
            case ir.For():
                yield from _nested([node.start, node.bound], loops)
                yield from _nested(node.body, (*loops, node.variable))
            case ir.While():
                yield from _nested([node.condition, *node.body, *node.update], (*loops, ""))
            case _:
                yield from _nested(list(ir.children(node)), loops)


def _count(node: ir.Node, loops: tuple[str, ...], counts: dict[str, float], places: dict[str, set[object]]) -> None:
    match node:
        case ir.For() | ir.While():
            counts["loops"] += 1
            counts["uncounted"] += isinstance(node, ir.While)
            counts["depth"] = max(counts["depth"], len(loops) + 1)
        case ir.Assign():
            stored = isinstance(node.target, ir.Load)
            # The walk meets the target once more, as a load.
            counts["stores"] += stored
            counts["loads"] -= stored
            if loops and (node.op != "=" or _mentions(node.value, node.target)):
                counts["updates" if stored else "accumulations"] += 1
        case ir.Load():
            counts["loads"] += 1
            places[node.pointer].add(node.indices)
            counts["floating"] += node.type.kind is TypeKind.FLOAT
            counts["indirect"] += any(isinstance(n, ir.Load) for n in ir.walk(*node.indices))
            step = _step(node.indices[-1], loops[-1]) if loops else 0
            counts["unit"] += step == 1
            counts["fixed"] += step == 0 and not any(_uses(i, loops[-1] if loops else "") for i in node.indices)
        case ir.If() | ir.Select():
            counts["branches"] += bool(loops)
        case ir.Binary():
            counts["operations"] += node.op in ("+", "-", "*", "/", "%")
        case ir.Call():
            counts["calls"] += 1


def _step(index: ir.Expr, variable: str) -> int | None:
    """How far an index moves with a variable: 0 and 1 are told apart, all else is `None`."""
    if not _uses(index, variable):
        return 0
    match index:
        case ir.Ref():
            return 1
        case ir.Cast():
            return _step(index.operand, variable)
        case ir.Binary(op="+"):
            sides = {_step(index.left, variable), _step(index.right, variable)}
            return 1 if sides == {0, 1} else None
        case ir.Binary(op="-"):
            return 1 if (_step(index.left, variable), _step(index.right, variable)) == (1, 0) else None
    return None


def _uses(expr: ir.Expr, variable: str) -> bool:
    return any(isinstance(node, ir.Ref) and node.name == variable for node in ir.walk(expr))


def _mentions(value: ir.Expr, target: ir.Place) -> bool:
    return any(node == target for node in ir.walk(value))
