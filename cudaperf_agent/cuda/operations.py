"""How many floating-point operations the C does on given inputs, counted from its loops, where that can be told."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower import lower_task
from cudaperf_agent.tasks.lowered import Module, Unlowered
from cudaperf_agent.tasks.model import CType, Task, TypeKind

_ARITHMETIC = frozenset("+-*/")
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
_SAMPLED = 5  # values of a loop's variable at which its body is counted, where the body's own loops depend on it


@dataclass(frozen=True, slots=True)
class Operations:
    """Additions, subtractions, multiplications, divisions and calls of mathematical functions, each one.

    Attributes:
        total: Of one call.
        double: Whether most of them are of doubles.
    """

    total: float
    double: bool


@dataclass(frozen=True, slots=True)
class _Count:
    single: float = 0.0
    double: float = 0.0

    def __add__(self, other: _Count) -> _Count:
        return _Count(self.single + other.single, self.double + other.double)

    def times(self, factor: float) -> _Count:
        return _Count(self.single * factor, self.double * factor)


class _Unknown(Exception):
    """What depends on data, or on C that is not expressed in the loop form."""


def count_operations(task: Task, sizes: Mapping[str, int]) -> Operations | None:
    """Of a call with these integer parameters; `None` where loops depend on data.

    The two sides of a branch that depends on data count half each. A loop in whose body other loops depend on its
    variable is counted at a few of its values, exact where that dependence is linear.
    """
    module = lower_task(task)
    if isinstance(module, Unlowered):
        return None
    try:
        count = _statements(module, module.entry.body, dict(sizes))
    except _Unknown:
        return None
    return Operations(count.single + count.double, count.double > count.single)


def _statements(module: Module, body: Sequence[ir.Stmt], known: dict[str, int]) -> _Count:
    total = _Count()
    for statement in body:
        total = total + _statement(module, statement, known)
    return total


def _statement(module: Module, statement: ir.Stmt, known: dict[str, int]) -> _Count:
    if isinstance(statement, ir.For):
        return _loop(module, statement, known)
    if isinstance(statement, (ir.While, ir.Break, ir.Continue)):
        raise _Unknown
    if isinstance(statement, ir.If):
        chosen = _value(statement.condition, known)
        once = _expression(module, statement.condition, known)
        if chosen is not None:
            return once + _statements(module, statement.then if chosen else statement.otherwise, known)
        sides = [_statements(module, side, dict(known)) for side in (statement.then, statement.otherwise)]
        for name in _assigned(statement):
            known.pop(name, None)
        return once + sides[0].times(0.5) + sides[1].times(0.5)
    count = _Count()
    if isinstance(statement, ir.Assign) and statement.op.rstrip("=") in _ARITHMETIC and statement.op != "=":
        count = _one(statement.target.type)
    for child in ir.children(statement):
        count = count + _expression(module, child, known)
    _remember(statement, known)
    return count


def _loop(module: Module, loop: ir.For, known: dict[str, int]) -> _Count:
    start, bound = _value(loop.start, known), _value(loop.bound, known)
    if start is None or bound is None or loop.relation not in ("<", "<=", ">", ">=", "!="):
        raise _Unknown
    end = bound + (loop.relation == "<=") - (loop.relation == ">=")
    values = range(start, end, loop.step)
    if any(isinstance(n, ir.Return) for s in loop.body for n in ir.walk(s)):
        raise _Unknown
    for name in _assigned(loop):
        known.pop(name, None)
    if not values:
        return _Count()
    depends = any(isinstance(n, ir.Ref) and n.name == loop.variable for s in loop.body for n in _bounds(s))
    picked = _spread(values, _SAMPLED) if depends else [values[0]]
    total = _Count()
    for value in picked:
        inner = {**known, loop.variable: value} if depends else dict(known)
        total = total + _statements(module, loop.body, inner)
    return total.times(len(values) / len(picked))


def _spread(values: range, count: int) -> list[int]:
    """Up to `count` values from the first to the last, lying evenly."""
    if len(values) <= count:
        return list(values)
    return [values[round(i * (len(values) - 1) / (count - 1))] for i in range(count)]


def _bounds(statement: ir.Stmt) -> list[ir.Node]:
    """All that decides how often something inside runs, what is computed for it included."""
    found: list[ir.Node] = []
    for node in ir.walk(statement):
        if isinstance(node, ir.For):
            found += [*ir.walk(node.start), *ir.walk(node.bound)]
        elif isinstance(node, ir.If):
            found += ir.walk(node.condition)
        elif isinstance(node, ir.Declare) and node.init is not None and not node.type.has_floats:
            found += ir.walk(node.init)
    return found


def _assigned(statement: ir.Stmt) -> set[str]:
    targets = [n.target for n in ir.walk(statement) if isinstance(n, ir.Assign)]
    return {t.name for t in targets if isinstance(t, ir.Ref)}


def _remember(statement: ir.Stmt, known: dict[str, int]) -> None:
    """The new value of an integer variable, where it can be told."""
    name, value = "", None
    if isinstance(statement, ir.Declare) and not statement.dims:
        name = statement.name
        value = _value(statement.init, known) if statement.init is not None else None
    elif isinstance(statement, ir.Assign) and isinstance(statement.target, ir.Ref):
        name = statement.target.name
        value = _value(statement.value, known) if statement.op == "=" else None
    if name and value is not None:
        known[name] = value
    else:
        known.pop(name, None)


def _expression(module: Module, node: ir.Node, known: dict[str, int]) -> _Count:
    count = _Count()
    if isinstance(node, ir.Binary) and node.op in _ARITHMETIC:
        count = _one(node.type)
    elif isinstance(node, ir.Call):
        helper = module.helper(node.name)
        if helper is None:
            count = _one(node.type) if node.type is not None else count
        else:
            passed = {
                p.name: value
                for p, a in zip(helper.params, node.arguments, strict=False)
                if not p.pointer and (value := _value(a, known)) is not None
            }
            count = _statements(module, helper.body, passed)
    for child in ir.children(node):
        count = count + _expression(module, child, known)
    return count


def _one(kind: CType) -> _Count:
    if kind.kind is not TypeKind.FLOAT:
        return _Count()
    return _Count(single=1.0) if kind.size <= 4 else _Count(double=1.0)


def _value(node: ir.Node, known: Mapping[str, int]) -> int | None:
    """Of an integer expression; `None` where it depends on data."""
    if isinstance(node, ir.Const):
        return node.value if isinstance(node.value, int) else None
    if isinstance(node, ir.Ref):
        return known.get(node.name)
    if isinstance(node, ir.Cast):
        return _value(node.operand, known) if not node.type.has_floats else None
    if isinstance(node, ir.Unary):
        inner = _value(node.operand, known)
        return None if inner is None else {"-": -inner, "+": inner, "!": int(not inner), "~": ~inner}.get(node.op)
    if isinstance(node, ir.Binary):
        left, right = _value(node.left, known), _value(node.right, known)
        return None if left is None or right is None else _applied(node.op, left, right)
    return None


def _applied(op: str, left: int, right: int) -> int | None:
    if op in _INTEGER and not (op in ("<<", ">>") and not 0 <= right < 64):
        return _INTEGER[op](left, right)
    if op in ("/", "%") and right:
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if op == "/" else left - quotient * right
    if op in ("&&", "||"):
        return int(bool(left and right) if op == "&&" else bool(left or right))
    relations = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right, "==": left == right}
    relations["!="] = left != right
    return int(relations[op]) if op in relations else None
