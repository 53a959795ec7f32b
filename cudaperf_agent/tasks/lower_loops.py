"""Which C loops count: a `for` by a constant step towards a bound that its body leaves alone, as an `ir.For`."""

from __future__ import annotations

from cudaperf_agent.tasks import ir

_NEGATED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


def counted(
    before: tuple[ir.Stmt, ...],
    test: ir.Expr,
    steps: tuple[ir.Stmt, ...],
    body: tuple[ir.Stmt, ...],
    declares: bool,
    line: int,
) -> tuple[ir.Stmt, ...] | None:
    """The loop as a `For`, if it counts by a constant towards a bound that stays."""
    if len(steps) != 1 or not before or not isinstance(steps[0], ir.Assign):
        return None
    *other, start = before
    step = _constant_step(steps[0])
    if isinstance(start, ir.Declare) and start.init is not None and not start.dims:
        variable, kind, first = start.name, start.type, start.init
    elif isinstance(start, ir.Assign) and start.op == "=" and isinstance(start.target, ir.Ref):
        variable, kind, first = start.target.name, start.target.type, start.value
    else:
        return None
    target = steps[0].target
    if (
        step is None
        or not isinstance(target, ir.Ref)
        or target.name != variable
        or kind.kind.value not in ("int", "uint")
    ):
        return None
    tests = _conjuncts(test)
    limit = _limit(tests[0], variable)
    if limit is None:
        return None
    relation, bound = limit
    if (step > 0) != (relation in ("<", "<=")) and not (relation == "!=" and abs(step) == 1):
        return None
    changed = assigned(body)
    if variable in changed or changed & _depends(bound) or variable in _depends(bound):
        return None
    guard: tuple[ir.Stmt, ...] = ()
    if len(tests) > 1:
        rest = tests[1]
        for more in tests[2:]:
            rest = ir.Binary("&&", rest, more, ir.INT, line)
        guard = (ir.If(ir.Unary("!", rest, ir.INT, line), (ir.Break(line),), (), line),)
    loop = ir.For(variable, kind, declares, first, relation, bound, step, (*guard, *body), line)
    return (*other, loop)


def _conjuncts(test: ir.Expr) -> list[ir.Expr]:
    if isinstance(test, ir.Binary) and test.op == "&&":
        return [*_conjuncts(test.left), *_conjuncts(test.right)]
    return [test]


def _constant_step(update: ir.Assign) -> int | None:
    value = update.value
    while isinstance(value, ir.Cast):
        value = value.operand
    if update.op == "=" and isinstance(value, ir.Binary) and value.op in ("+", "-"):
        inner = value.left
        while isinstance(inner, ir.Cast):
            inner = inner.operand
        if inner != update.target and not (
            isinstance(inner, ir.Ref) and isinstance(update.target, ir.Ref) and inner.name == update.target.name
        ):
            return None
        return _constant_step(ir.Assign(update.target, f"{value.op}=", value.right))
    if update.op not in ("+=", "-=") or not isinstance(value, ir.Const) or not isinstance(value.value, int):
        return None
    return (value.value if update.op == "+=" else -value.value) or None


def _limit(test: ir.Expr, variable: str) -> tuple[str, ir.Expr] | None:
    if not isinstance(test, ir.Binary) or test.op not in _NEGATED:
        return None
    for side, other, relation in ((test.left, test.right, test.op), (test.right, test.left, _NEGATED[test.op])):
        while isinstance(side, ir.Cast) and side.implicit and side.type.kind.value != "float":
            side = side.operand
        if isinstance(side, ir.Ref) and side.name == variable:
            return relation, other
    return None


def _depends(expr: ir.Expr) -> set[str]:
    """Names of the variables and pointers that an expression reads."""
    return {n.name for n in ir.walk(expr) if isinstance(n, ir.Ref)} | {
        n.pointer for n in ir.walk(expr) if isinstance(n, ir.Load | ir.Address)
    }


def assigned(body: tuple[ir.Stmt, ...]) -> set[str]:
    """Names of the variables and pointers that statements assign, declare or store through."""
    names: set[str] = set()
    for node in ir.walk(*body):
        if isinstance(node, ir.Assign):
            place = ir.root(node.target)
            if place is not None:
                names.add(place.name if isinstance(place, ir.Ref) else place.pointer)
        elif isinstance(node, ir.Declare | ir.Point | ir.Allocate):
            names.add(node.name)
        elif isinstance(node, ir.For):
            names.add(node.variable)
        elif isinstance(node, ir.Copy | ir.Fill):
            names.add(node.target.pointer)
        elif isinstance(node, ir.Call):
            names.update(a.pointer for a in node.arguments if isinstance(a, ir.Address))
    return names


def divided(size: ir.Expr, element: int) -> ir.Expr | None:
    """``size / element`` as an expression, where that is exact by its form; `None` where it is not."""
    if element == 1:
        return size
    if isinstance(size, ir.Const):
        return ir.Const(int(size.value) // element, size.type, size.line) if size.value % element == 0 else None
    if isinstance(size, ir.Cast):
        inner = divided(size.operand, element)
        return None if inner is None else ir.Cast(inner, size.type, size.implicit, size.line)
    if not isinstance(size, ir.Binary):
        return None
    if size.op == "*":
        left = divided(size.left, element)
        if left is not None:
            return (
                size.right
                if isinstance(left, ir.Const) and left.value == 1
                else ir.Binary("*", left, size.right, size.type, size.line)
            )
        right = divided(size.right, element)
        if right is not None:
            return (
                size.left
                if isinstance(right, ir.Const) and right.value == 1
                else ir.Binary("*", size.left, right, size.type, size.line)
            )
    if size.op in ("+", "-"):
        sides = divided(size.left, element), divided(size.right, element)
        if sides[0] is not None and sides[1] is not None:
            return ir.Binary(size.op, sides[0], sides[1], size.type, size.line)
    return None
