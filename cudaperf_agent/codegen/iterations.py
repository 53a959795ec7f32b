"""How a counted loop becomes threads: the number of its iterations, and its variable at one of them, as C++ text."""

from __future__ import annotations

from cudaperf_agent.codegen.printer import Printer, is_zero, spelled
from cudaperf_agent.codegen.scalars import reads
from cudaperf_agent.codegen.steps import Nest
from cudaperf_agent.tasks import ir


def span(printer: Printer, loop: ir.For, start: ir.Expr | None = None, bound: ir.Expr | None = None) -> str:
    """C++ text of the number of iterations of a counted loop (it may be negative for none)."""
    first, last = start or loop.start, bound or loop.bound
    low, high = (first, last) if loop.step > 0 else (last, first)
    text = f"(long long)({printer.expr(high)})"
    if not is_zero(low):
        text += f" - (long long)({printer.expr(low)})"
    if loop.relation in ("<=", ">="):
        text += " + 1"
    step = abs(loop.step)
    return text if step == 1 else f"({text} + {step - 1}) / {step}"


def extreme(nest: Nest, loop: ir.For, expr: ir.Expr, *, low: bool) -> ir.Expr:
    """The least or greatest value of a range's end over the loops that it depends on (it is affine in them)."""
    needs = reads(expr) & set(nest.variables)
    for variable in sorted(needs):
        other = nest.level(variable).loop
        last = other.bound
        if other.relation in ("<", ">", "!="):
            shift = ir.Const(1, ir.INT)
            last = ir.Binary("-" if other.step > 0 else "+", other.bound, shift, ir.LONG_LONG)
        ends = _at(expr, variable, other.start), _at(expr, variable, last)
        kind = ir.LONG_LONG
        wide = [ir.Cast(e, kind) for e in ends]
        relation = "<" if low else ">"
        expr = ir.Select(ir.Binary(relation, wide[0], wide[1], ir.INT), wide[0], wide[1], kind)
    return expr


def _at(expr: ir.Expr, variable: str, value: ir.Expr) -> ir.Expr:
    def put(node: ir.Node) -> ir.Node:
        return value if isinstance(node, ir.Ref) and node.name == variable else node

    result: ir.Expr = ir.rewrite(expr, put)
    return result


def value_at(printer: Printer, loop: ir.For, at: str) -> str:
    """The loop variable at an iteration number."""
    kind, step = spelled(loop.type), abs(loop.step)
    factor = at if step == 1 else f"{at} * {step}"
    if is_zero(loop.start) and loop.step > 0:
        return f"({kind})({factor})" if step > 1 else f"({kind}){at}"
    sign = "+" if loop.step > 0 else "-"
    return f"({kind})((long long)({printer.expr(loop.start)}) {sign} {factor})"


def plain(loop: ir.For) -> bool:
    """Whether a loop counts up from 0 by 1 below its bound."""
    return (
        loop.step == 1 and loop.relation == "<" and is_zero(loop.start)
        and loop.type.size >= 4
    )  # fmt: skip
