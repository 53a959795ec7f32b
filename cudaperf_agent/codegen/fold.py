"""Associative operations on running values: what is neutral, how two values combine, as IR and as text."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import CType, TypeKind


@dataclass(frozen=True, slots=True)
class Fold:
    """The sum of running values, or the better of two.

    Attributes:
        relation: Empty for the sum; ``<``, ``<=``, ``>`` or ``>=`` where a later value is taken if ``later relation
            earlier`` holds; ``f<`` and ``f>`` for ``fmin`` and ``fmax``.
    """

    relation: str = ""

    def neutral(self, kind: CType) -> ir.Const:
        """The value that changes nothing: 0, the worst that there is, or NaN, which ``fmin`` and ``fmax`` pass over."""
        if not self.relation:
            return ir.Const(0, kind)
        if self.relation.startswith("f"):
            return ir.Const(math.nan, kind)
        highest = self.relation.startswith("<")
        if kind.kind is TypeKind.FLOAT:
            return ir.Const(math.inf if highest else -math.inf, kind)
        bits = 8 * kind.size - (kind.kind is TypeKind.INT)
        lowest = -(1 << bits) if kind.kind is TypeKind.INT else 0
        return ir.Const((1 << bits) - 1 if highest else lowest, kind)

    def value(self, earlier: ir.Expr, later: ir.Expr, kind: CType) -> ir.Expr:
        """Both values combined."""
        if not self.relation:
            return ir.Binary("+", earlier, later, kind)
        if self.relation.startswith("f"):
            return ir.Call(self._function(kind), (earlier, later), kind)
        return ir.Select(ir.Binary(self.relation, later, earlier, ir.INT), later, earlier, kind)

    def taken(self, earlier: str, later: str, kind: CType) -> str:
        """A statement that combines a later value into a variable."""
        return f"{earlier} += {later};" if not self.relation else f"{earlier} = {self._text(earlier, later, kind)};"

    def preceded(self, later: str, earlier: str, kind: CType) -> str:
        """A statement that puts an earlier value before a variable's."""
        return f"{later} += {earlier};" if not self.relation else f"{later} = {self._text(earlier, later, kind)};"

    def _text(self, earlier: str, later: str, kind: CType) -> str:
        if self.relation.startswith("f"):
            return f"{self._function(kind)}({earlier}, {later})"
        return f"{later} {self.relation} {earlier} ? {later} : {earlier}"

    def _function(self, kind: CType) -> str:
        return ("fmin" if "<" in self.relation else "fmax") + ("f" if kind.size == 4 else "")


SUM = Fold()
