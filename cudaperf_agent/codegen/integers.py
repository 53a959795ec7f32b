"""Integers of the loop IR as polynomials, and conditions and loops as parts of an iteration domain.

Signed overflow is taken not to happen, as C lets one. Unsigned arithmetic is modular: an
index of 64 bits that is in bounds equals its integer polynomial, and so does one of 32 bits while the coefficients
are small (`MAX_UNSIGNED_FACTOR`). Where a value below zero would matter (conditions, division, remainder) unsigned
operands are proven not to be negative first, or the condition or value is unknown.
"""

from __future__ import annotations

from dataclasses import replace

from cudaperf_agent.codegen.accesses import Constraint, Domain, Names
from cudaperf_agent.codegen.affine import Poly
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import TypeKind

MAX_UNSIGNED_FACTOR = 1024
"""Largest factor of a variable in 32-bit unsigned index arithmetic that is taken not to wrap."""


class Integers:
    """What integer expressions are worth where they stand; `Collector` adds statements.

    Args:
        varying: Scalars without a known value are unknown if they are among these. All others are sizes.

    Attributes:
        env: Known values of scalars, `None` where a value is unknown.
        names: Gives free variables, and one name to the same quotient of sizes.
    """

    def __init__(self, varying: set[str]) -> None:
        self.varying = varying
        self.env: dict[str, Poly | None] = {}
        self.names = Names()
        self._extra: list[Constraint] = []
        self._always: list[Constraint] = []
        self._fresh: list[str] = []

    # Polynomials ----------------------------------------------------------------------------------------------

    def poly(self, expr: ir.Expr, domain: Domain) -> Poly:
        """The value of an integer expression; what is unknown becomes a free variable (see `take_free`)."""
        known = self._poly(expr, domain)
        return self._unknown() if known is None else known

    def _unknown(self) -> Poly:
        name = self.names.free()
        self._fresh.append(name)
        return Poly.name(name)

    def take_free(self, domain: Domain) -> Domain:
        """The domain extended by the free variables and constraints that polynomials needed since the last call."""
        constraints = dict.fromkeys((*domain.constraints, *self._extra, *self._always))
        domain = replace(domain, free=(*domain.free, *self._fresh), constraints=tuple(constraints))
        self._fresh, self._extra = [], []
        return domain

    def _poly(self, expr: ir.Expr, domain: Domain) -> Poly | None:
        if isinstance(expr, ir.Const):
            return Poly.of(expr.value) if isinstance(expr.value, int) else None
        if isinstance(expr, ir.Ref):
            return self._scalar(expr, domain)
        if isinstance(expr, ir.Cast):
            return self._cast(expr, domain)
        if isinstance(expr, ir.Unary) and expr.op in ("-", "+"):
            inner = self._poly(expr.operand, domain)
            return inner if inner is None or expr.op == "+" else -inner
        if isinstance(expr, ir.Binary) and expr.type.kind in (TypeKind.INT, TypeKind.UINT):
            return self._binary(expr, domain)
        return None

    def _scalar(self, expr: ir.Ref, domain: Domain) -> Poly | None:
        if expr.type.kind not in (TypeKind.INT, TypeKind.UINT):
            return None
        if expr.name in domain.dims:
            return Poly.name(expr.name)
        if expr.name in self.env:
            return self.env[expr.name]
        if expr.name in self.varying:
            return None
        if expr.type.kind is TypeKind.UINT:
            self._always.append(Constraint(Poly.name(expr.name)))
        return Poly.name(expr.name)

    def _cast(self, expr: ir.Cast, domain: Domain) -> Poly | None:
        inner, outer = expr.operand.type, expr.type
        if inner is None or inner.kind not in (TypeKind.INT, TypeKind.UINT):
            return None
        if outer.kind not in (TypeKind.INT, TypeKind.UINT):
            return None
        narrows = outer.size < inner.size or (
            outer.size == inner.size and outer.size < 8 and inner.kind is TypeKind.UINT and outer.kind is TypeKind.INT
        )
        return None if narrows and not expr.exact else self._poly(expr.operand, domain)

    def _binary(self, expr: ir.Binary, domain: Domain) -> Poly | None:
        left = self._poly(expr.left, domain)
        right = self._poly(expr.right, domain)
        if expr.op in ("+", "-", "*"):
            # Both sides may be unknown alone and still matter together: x[3*k + col[j]] keeps its shape.
            left = self._unknown() if left is None else left
            right = self._unknown() if right is None else right
            result = left + right if expr.op == "+" else left - right if expr.op == "-" else left * right
            if expr.type.kind is TypeKind.UINT and expr.type.size < 8:
                wild = any(abs(f) > MAX_UNSIGNED_FACTOR for m, f in result.terms.items() if m)
                return None if wild else result
            return result
        if left is None or right is None or not right.constant:
            return None
        divisor = right.constant
        if expr.op in (">>", "<<"):
            divisor = 1 << divisor if 0 <= divisor < 31 else 0
        if expr.op == "<<" and divisor:
            return left * Poly.of(divisor)
        if expr.op in ("/", "%", ">>") and divisor > 0:
            if expr.type.kind is TypeKind.UINT and not self._nonnegative(left, domain):
                return None
            quotient = self._quotient(left, divisor, domain, floor=expr.op == ">>")
            return left - quotient * Poly.of(divisor) if expr.op == "%" else quotient
        return None

    def _quotient(self, value: Poly, divisor: int, domain: Domain, *, floor: bool) -> Poly:
        """``value / divisor``: exactly for values that cannot be negative by their form, else within one."""
        key = f"{sorted(value.terms.items())}/{divisor}{' down' if floor else ''}"
        if not value.names() & {*domain.dims, *domain.free, *self._fresh}:
            name = self.names.terms.setdefault(key, f"q{len(self.names.terms)}_")
        else:
            name = self.names.free()
            self._fresh.append(name)
        rest = value - Poly.name(name) * Poly.of(divisor)
        low = rest if floor else rest + Poly.of(divisor - 1)
        self._extra += [Constraint(low), Constraint(Poly.of(divisor - 1) - rest)]
        return Poly.name(name)

    def _nonnegative(self, poly: Poly, domain: Domain) -> bool:
        """Whether a polynomial is proven not to be negative: then unsigned arithmetic has not wrapped below zero."""
        from cudaperf_agent.codegen.dependence import never_negative

        constraints = (*domain.constraints, *self._extra, *self._always)
        return never_negative(Domain(domain.dims, (*domain.free, *self._fresh), constraints), poly)

    # Conditions -----------------------------------------------------------------------------------------------

    def holds(self, condition: ir.Expr, domain: Domain, *, negate: bool = False) -> Domain:
        """The part of the domain where a condition holds (or does not), as far as that is understood."""
        if isinstance(condition, ir.Cast) and condition.type.kind is not TypeKind.FLOAT:
            return self.holds(condition.operand, domain, negate=negate)
        if isinstance(condition, ir.Unary) and condition.op == "!":
            return self.holds(condition.operand, domain, negate=not negate)
        if not isinstance(condition, ir.Binary):
            return domain
        if condition.op == ("||" if negate else "&&"):
            return self.holds(condition.right, self.holds(condition.left, domain, negate=negate), negate=negate)
        relation = condition.op
        if negate:
            relation = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}.get(relation, "")
        if relation not in ("<", "<=", ">", ">=", "==") or _wraps(condition):
            return domain
        for side in (condition.left, condition.right):
            if side.type is None or side.type.kind not in (TypeKind.INT, TypeKind.UINT):
                return domain
        left, right = self.poly(condition.left, domain), self.poly(condition.right, domain)
        unsigned = any(s.type is not None and s.type.kind is TypeKind.UINT for s in (condition.left, condition.right))
        if unsigned and not (self._nonnegative(left, domain) and self._nonnegative(right, domain)):
            return self.take_free(domain)
        difference = left - right
        domain = self.take_free(domain)
        one = Poly.of(1)
        made = {
            "<": Constraint(-difference - one),
            "<=": Constraint(-difference),
            ">": Constraint(difference - one),
            ">=": Constraint(difference),
            "==": Constraint(difference, equal=True),
        }[relation]
        return domain.within(made)

    def inside(self, loop: ir.For, domain: Domain) -> Domain:
        """The domain of a loop's body."""
        start = self.poly(loop.start, domain)
        bound = self.poly(loop.bound, domain)
        domain = self.take_free(domain)
        variable = Poly.name(loop.variable)
        made = [Constraint(variable - start if loop.step > 0 else start - variable)]
        breaks = any(isinstance(n, ir.Break | ir.Return) for n in ir.walk(*loop.body))
        wraps = loop.bound.type is not None and loop.bound.type.kind is TypeKind.UINT
        if not (breaks and wraps and not self._nonnegative(bound, domain)):
            reach = bound - variable if loop.step > 0 else variable - bound
            made.append(Constraint(reach if loop.relation in ("<=", ">=") else reach - Poly.of(1)))
        free = domain.free
        if abs(loop.step) != 1:
            count = self.names.free()
            free = (*free, count)
            made.append(Constraint(variable - start - Poly.name(count) * Poly.of(loop.step), equal=True))
        return Domain((*domain.dims, loop.variable), free, (*domain.constraints, *made))


def _wraps(expr: ir.Expr) -> bool:
    """Whether an expression holds an unsigned difference, which may wrap below zero."""
    return any(
        isinstance(n, ir.Binary | ir.Unary) and n.op == "-" and n.type.kind is TypeKind.UINT for n in ir.walk(expr)
    )
