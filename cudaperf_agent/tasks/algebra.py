"""Algebra of integer values: what operations and comparisons tell, minima, maxima and quotients as bounded atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cudaperf_agent.tasks.accesses import Pointer, Value
from cudaperf_agent.tasks.poly import Facts, Poly, non_negative


@dataclass(frozen=True, slots=True)
class Condition:
    """What a condition's truth or falsehood tells.

    Attributes:
        true: Each ``>= 0`` where it holds.
        false: Each ``>= 0`` where it does not.
        sure_true: It holds whenever sizes are at least one.
        sure_false: It fails whenever sizes are at least one.
        differs: Differences that are not zero where it holds.
        single: It is one comparison, so that it fails only where `false` says.
    """

    true: tuple[Poly, ...] = ()
    false: tuple[Poly, ...] = ()
    sure_true: bool = False
    sure_false: bool = False
    differs: tuple[Poly, ...] = ()
    single: bool = False


class Algebra:
    """Operations on values, with the facts about the atoms that they make."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def comparison(self, op: str, left: Value, right: Value) -> Condition:
        """What ``left op right`` tells."""
        a, b = left.poly, right.poly
        if left.pointer is not None or right.pointer is not None:
            if left.pointer is None or right.pointer is None:
                return Condition(sure_true=op == "!=", sure_false=op == "==")
            same = left.pointer.bases == right.pointer.bases and len(left.pointer.bases) == 1
            a, b = (left.pointer.offset, right.pointer.offset) if same else (None, None)
        if a is None or b is None:
            return Condition()
        if op in (">", ">="):
            a, b, op = b, a, "<" if op == ">" else "<="
        if op in ("<", "<="):
            slack = (b - a).plus(-1) if op == "<" else b - a
            other = (a - b) if op == "<" else (a - b).plus(-1)
            return Condition((slack,), (other,), self._sure(slack), self._sure(other), single=True)
        equal = (b - a, a - b)
        # An unsigned or counted-down quantity that is not zero is at least one.
        apart = (a.plus(-1),) if not b.terms and self.never_negative(a) else ()
        sure = any(self._sure(p) for p in apart)
        if op == "==":
            return Condition(equal, apart, False, sure, single=True)
        return Condition(apart, equal, sure, False, (a - b,), single=True)

    def select(self, condition: Condition, yes: Value, no: Value) -> Value:
        """``condition ? yes : no``: a minimum, a maximum, or one of two."""
        taint = yes.taint | no.taint
        if yes == no:
            return yes
        if yes.pointer is not None or no.pointer is not None:
            bases = frozenset().union(*(v.pointer.bases for v in (yes, no) if v.pointer is not None))
            return Value(pointer=Pointer(bases), taint=taint)
        a, b = yes.poly, no.poly
        if a is None or b is None:
            return Value(taint=taint)
        if a == b:
            return Value(a, taint=taint)
        for slack in condition.true if len(condition.true) == 1 else ():
            if a - b in (slack, slack.plus(1)):
                return Value(Poly.atom(self.facts.new("max", lows=[a, b], choices=(a, b), taint=taint)), taint=taint)
            if b - a in (slack, slack.plus(1)):
                return Value(Poly.atom(self.facts.new("min", highs=[a, b], choices=(a, b), taint=taint)), taint=taint)
        a, b = self._limited(a, condition.true), self._limited(b, condition.false)
        return Value(Poly.atom(self.facts.new("either", choices=(a, b), taint=taint)), taint=taint)

    def _limited(self, poly: Poly, constraints: Sequence[Poly]) -> Poly:
        """`poly` with what the constraints tell about it, where they bound it by parameters."""
        highs = [poly + c for c in constraints if not self._open(poly + c)]
        lows = [poly - c for c in constraints if not self._open(poly - c)]
        if not (highs or lows) or not self._open(poly):
            return poly
        return Poly.atom(self.facts.new("under", lows=[poly, *lows], highs=[poly, *highs]))

    def integer(self, op: str, left: Poly, right: Poly, taint: frozenset[str]) -> Poly | None:
        """The value of an integer operation; `None` where nothing is known of it."""
        if op == "+":
            return left + right
        if op == "-":
            return left - right
        if op == "*":
            return left * right
        by = right.constant
        if op == "<<" and by is not None and 0 <= by < 63:
            return left.scaled(1 << by)
        if op == ">>" and by is not None and 0 <= by < 63:
            return self._quotient(left, Poly.number(1 << by), taint)
        if op == "/":
            return self._quotient(left, right, taint)
        if op == "%":
            lows = [Poly()] if self.never_negative(left) else [right.scaled(-1).plus(1)]
            return Poly.atom(self.facts.new("mod", lows=lows, highs=[right.plus(-1)], taint=taint))
        if op == "&" and by is not None and by >= 0:
            return Poly.atom(self.facts.new("mask", lows=[Poly()], highs=[right], taint=taint))
        return None

    def _quotient(self, left: Poly, right: Poly, taint: frozenset[str]) -> Poly | None:
        if right.constant == 0:
            return None
        exact = left.divided(right)
        if exact is not None:
            return exact
        if not any(a in self.facts.known for a in left.atoms | right.atoms):
            return Poly.atom(quotient_text(left, right))
        high = self.facts.upper(left)
        highs = []
        if high is not None and not any(a in self.facts.known for a in right.atoms):
            whole = high.plus(1).divided(right)
            highs.append(whole.plus(-1) if whole is not None else Poly.atom(quotient_text(high, right)))
        lows = [Poly()] if self.never_negative(left) else []
        return Poly.atom(self.facts.new("div", lows=lows, highs=highs, taint=taint))

    def never_negative(self, poly: Poly) -> bool:
        """Whether it is zero or more for all sizes."""
        low = self.facts.lower(poly)
        return low is not None and (non_negative(low) or non_negative(low, 1))

    def _sure(self, poly: Poly) -> bool:
        return not any(a in self.facts.known for a in poly.atoms) and non_negative(poly, 1)

    def _open(self, poly: Poly) -> bool:
        return any(a in self.facts.known for a in poly.atoms)


def quotient_text(left: Poly, right: Poly) -> str:
    """The atom of a quotient of parameters: C text in parentheses."""
    top = left.text() if len(left.terms) == 1 and len(left.terms[0][0]) <= 1 else f"({left.text()})"
    bottom = right.text() if right.constant is not None or len(right.atoms) == 1 else f"({right.text()})"
    return f"({top}/{bottom})"
