"""Integer arithmetic on IR expressions: sums of terms in 64 bits, simplified, so that bounds stay readable and affine.

Signed overflow is undefined in C, hence signed sums may be taken apart and computed in 64 bits. Unsigned ones are left
whole: they may have wrapped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cudaperf_agent.codegen.accesses import bare
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import CType, TypeKind

WIDE = ir.LONG


@dataclass
class Sum:
    """A constant and terms with factors."""

    constant: int = 0
    terms: dict[ir.Expr, int] = field(default_factory=dict)

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """``self + factor * other``."""
        terms = dict(self.terms)
        for term, count in other.terms.items():
            terms[term] = terms.get(term, 0) + factor * count
        return Sum(self.constant + factor * other.constant, {t: c for t, c in terms.items() if c})

    def times(self, other: Sum) -> Sum:
        """The product; of two sums with terms it is a single term."""
        for one, two in ((self, other), (other, self)):
            if not one.terms:
                return Sum().plus(two, one.constant)
        made = Sum()
        for left, left_count in self._parts():
            for right, right_count in other._parts():
                term = left if right is None else right
                if left is not None and right is not None:
                    term = ir.Binary("*", wide(left), wide(right), WIDE)
                made = made.plus(Sum(1) if term is None else Sum(0, {term: 1}), left_count * right_count)
        return made

    def _parts(self) -> list[tuple[ir.Expr | None, int]]:
        constant: list[tuple[ir.Expr | None, int]] = [(None, self.constant)] if self.constant else []
        return [*self.terms.items(), *constant]

    def expr(self) -> ir.Expr:
        """As an expression of 64 bits."""
        result: ir.Expr | None = None
        for term, count in sorted(self.terms.items(), key=lambda item: item[1] < 0):
            part = wide(term)
            if abs(count) != 1:
                part = ir.Binary("*", ir.Const(abs(count), WIDE), part, WIDE)
            if result is None:
                result = part if count > 0 else ir.Unary("-", part, WIDE)
            else:
                result = ir.Binary("+" if count > 0 else "-", result, part, WIDE)
        if result is None:
            return ir.Const(self.constant, WIDE)
        if self.constant:
            sign = "+" if self.constant > 0 else "-"
            result = ir.Binary(sign, result, ir.Const(abs(self.constant), WIDE), WIDE)
        return result


def sum_of(expr: ir.Expr) -> Sum:
    """An integer expression as a sum; what is no signed sum is one term."""
    if isinstance(expr, ir.Const) and isinstance(expr.value, int):
        return Sum(expr.value)
    if isinstance(expr, ir.Cast) and _widens(expr):
        return sum_of(expr.operand)
    if isinstance(expr, ir.Cast) and isinstance(expr.operand, ir.Const) and _fits(expr.operand.value, expr.type):
        return sum_of(expr.operand)
    signed = expr.type is not None and expr.type.kind is TypeKind.INT and expr.type.size >= ir.INT.size
    if signed and isinstance(expr, ir.Unary) and expr.op in ("-", "+"):
        return Sum().plus(sum_of(expr.operand), -1 if expr.op == "-" else 1)
    if signed and isinstance(expr, ir.Binary) and expr.op in ("+", "-"):
        return sum_of(expr.left).plus(sum_of(expr.right), -1 if expr.op == "-" else 1)
    if signed and isinstance(expr, ir.Binary) and expr.op == "*":
        left, right = sum_of(expr.left), sum_of(expr.right)
        if not left.terms or not right.terms:
            return left.times(right)
    return Sum(0, {_term(expr): 1})


def _fits(value: int | float, kind: CType) -> bool:
    return isinstance(value, int) and kind.kind in (TypeKind.INT, TypeKind.UINT) and 0 <= value < 1 << 31


def _widens(expr: ir.Cast) -> bool:
    inner, outer = expr.operand.type, expr.type
    if expr.exact:
        return True
    if inner is None or inner.kind is not TypeKind.INT or outer.kind is not TypeKind.INT:
        return False
    return outer.size >= inner.size


def _term(expr: ir.Expr) -> ir.Expr:
    kept = bare(expr)
    # A term keeps its own type: an implicit conversion at its top may be a wrapping one.
    return ir.Cast(kept, expr.type) if isinstance(expr, ir.Cast) and expr.implicit else kept


def wide(expr: ir.Expr) -> ir.Expr:
    """An expression in 64 bits."""
    if expr.type == WIDE:
        return expr
    if isinstance(expr, ir.Const):
        return ir.Const(expr.value, WIDE, expr.line)
    return ir.Cast(expr, WIDE)


def fitted(expr: ir.Expr, kind: CType) -> ir.Expr:
    """A sum of 64 bits, known to fit, as a value of a signed type."""
    if kind == WIDE:
        return expr
    if isinstance(expr, ir.Const):
        return ir.Const(expr.value, kind, expr.line)
    if isinstance(expr, ir.Cast) and expr.operand.type == kind:
        return expr.operand
    return ir.Cast(expr, kind, exact=True)
