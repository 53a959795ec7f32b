"""How many elements a buffer has, from the accesses to it: the largest subscript over the loops, plus one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.tasks import expr
from cudaperf_agent.tasks.accesses import Access, Findings
from cudaperf_agent.tasks.algebra import quotient_text
from cudaperf_agent.tasks.poly import Bounds, Facts, Poly, dominates, non_negative

MAX_JOINT_GUARDS = 3
"""Conditions on sums of loop variables (``y + fy < h``) that are tried in every combination."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Elements that some accesses need.

    Attributes:
        count: As a polynomial.
        factored: The same with differences that are trip counts (``(h-r+1)``) kept as factors.
        needs: Polynomials, each ``>= 0`` where the access happens at all.
        line: Of the access.
    """

    count: Poly
    factored: Poly
    needs: tuple[Poly, ...]
    line: int

    def text(self, order: Sequence[str] = ()) -> str:
        """C expression; the loops that must run are named only where the count alone would be misleading."""
        conditions = [c for c in dict.fromkeys(map(_condition, self.relevant())) if c]
        texts = self.count.text(order), self.factored.text(order)
        text = min(texts, key=len)
        if not conditions:
            return text
        return f"({' && '.join(conditions)}) ? {text} : 0"

    def relevant(self) -> list[Poly]:
        """The needs without which the count could be positive although nothing is accessed."""
        rising = all(c >= 0 for _, c in self.count.terms)
        if rising and not any(map(_signed, self.count.atoms)):
            return []
        if sum(map(_signed, self.factored.atoms)) > 1:
            # Two negative factors would make a positive count.
            return [n for n in self.needs if any(c < 0 for _, c in n.plus(1).terms) or any(map(_signed, n.atoms))]
        if rising:
            return []
        kept = []
        for need in self.needs:
            shared = [a for a in need.atoms & self.count.atoms if need.coefficient(a).constant == 1]
            empty = [self.count.substitute(a, Poly.atom(a) - need.plus(1)) for a in shared]
            # At the last size for which the loop does not run, is the count zero or less anyway?
            if shared and not any(all(c <= 0 for _, c in e.terms) for e in empty):
                kept.append(need)
        return kept


def _signed(atom: str) -> bool:
    """Whether an opaque atom may be negative although all sizes are not."""
    return atom.startswith("(") and "-" in atom


def _condition(need: Poly) -> str:
    positive = Poly.of({m: c for m, c in need.terms if c > 0})
    negative = Poly.of({m: -c for m, c in need.terms if c < 0})
    if negative.constant is not None and negative.constant >= 1:
        return f"{positive.text()} > {negative.plus(-1).text()}"
    return f"{positive.text()} >= {negative.text()}" if negative.terms or any(map(_signed, need.atoms)) else ""


def reach(findings: Findings, base: str) -> tuple[Reach, ...] | None:
    """The elements of `base` that the entry can touch: one reach, or several none of which covers the others.

    Returns:
        `None` where some access cannot be bounded by the parameters; ``()`` where there is no access. Accesses whose
        subscripts are read from another buffer, or are a parameter that is no size, do not count beside others: the
        values there have to fit the extent.
    """
    found: list[Reach] = []
    led = False
    for access in findings.of(base):
        bound = access_bound(findings.facts, access)
        if bound is None and access.offset is not None and findings.facts.taint(access.offset):
            led = True
            continue
        if bound is None:
            return None
        needs = _needs(findings.facts, access)
        found.append(Reach(bound.whole.plus(1), bound.factored.plus(1), needs, access.line))
    if led and not found:
        return None
    # x[k] with a parameter k that is no size picks one of the elements that the other accesses tell of.
    chosen = picks(findings, base)
    sized = [r for r in found if not any(r.count == Poly.atom(p).plus(1) for p in chosen)]
    if sized and not any(r.count.atoms & chosen for r in sized):
        found = sized
    best: list[Reach] = []
    for one in sorted(found, key=lambda r: r.line):
        if any(dominates(other.count, one.count) for other in best):
            continue
        best = [other for other in best if not dominates(one.count, other.count)] + [one]
    return tuple(best)


def picks(findings: Findings, base: str) -> set[str]:
    """Scalar parameters that are, as they are, a subscript of `base`."""
    offsets = [a.offset for a in findings.of(base) if a.offset is not None]
    names = {o.terms[0][0][0] for o in offsets if len(o.terms) == 1 and o.terms[0][1] == 1 and len(o.terms[0][0]) == 1}
    return {n for n in names if n not in findings.facts.known and not n.startswith("(")}


def extent_text(reaches: Sequence[Reach], order: Sequence[str] = ()) -> str | None:
    """C expression of the largest of the reaches; `None` for more than two that cannot be ordered."""
    if not reaches:
        return "0"
    if len(reaches) == 1:
        return reaches[0].text(order)
    if len(reaches) > 2:
        return None
    a, b = (r.text(order) for r in reaches)
    return f"(({a}) > ({b})) ? ({a}) : ({b})"


@dataclass(frozen=True, slots=True)
class AccessBound:
    """The largest element an access can touch: multiplied out, and with trip counts kept as factors."""

    whole: Poly
    factored: Poly


def access_bound(facts: Facts, access: Access) -> AccessBound | None:
    """The largest element an access can touch, over parameters; `None` if unknown."""
    if access.offset is None:
        return None
    offset, constraints = access.offset, [c for g in access.guards for c in g.constraints]
    trips: dict[str, Poly] = {}
    for loop in access.loops:
        if loop.low is None or loop.high is None:
            continue
        # Where an access happens, each loop around it runs: h-r+1 is a size of its own there, and is not negative.
        count = _renamed((loop.high - loop.low).plus(1), trips)
        size = next((a for a in sorted(count.atoms) if count.coefficient(a).constant == 1), None)
        if non_negative(count) or size is None or any(a in facts.known for a in count.atoms):
            continue
        trips[f"({count.text()})"] = count
        stand_in = Poly.atom(f"({count.text()})") - count.without(size)
        facts = Facts({name: bounds.with_value(size, stand_in) for name, bounds in facts.known.items()})
        offset = offset.substitute(size, stand_in)
        constraints = [c.substitute(size, stand_in) for c in constraints]
    bound = _guarded_bound(facts, offset, constraints)
    return AccessBound(_expanded(bound, trips), bound) if bound is not None else None


def _renamed(poly: Poly, trips: Mapping[str, Poly]) -> Poly:
    """`poly` over the sizes that stand for trip counts already."""
    for name, count in trips.items():
        size = next(a for a in sorted(count.atoms) if count.coefficient(a).constant == 1)
        poly = poly.substitute(size, Poly.atom(name) - count.without(size))
    return poly


def _expanded(poly: Poly, trips: Mapping[str, Poly]) -> Poly:
    for name, count in reversed(list(trips.items())):
        poly = poly.substitute(name, count)
    return poly


def _guarded_bound(facts: Facts, offset: Poly, constraints: Sequence[Poly]) -> Poly | None:
    narrowed = Facts(facts.known)
    joint: dict[Poly, Bounds] = {}
    for constraint in constraints:
        inside = Poly.of({m: c for m, c in constraint.terms if any(a in facts.known for a in m)})
        outside = constraint - inside
        if not inside.terms:
            continue
        sign = 1 if inside.terms[0][1] > 0 else -1
        inside = inside.scaled(sign)
        limit = outside.scaled(-sign)
        if len(inside.terms) == 1 and len(inside.terms[0][0]) == 1 and inside.terms[0][1] == 1:
            atom = inside.terms[0][0][0]
            old = narrowed.known[atom]
            target = replace(old, lows=list(old.lows), highs=list(old.highs))
            narrowed.known[atom] = target
        else:
            target = joint.setdefault(inside, Bounds(0))
        limits = target.lows if sign > 0 else target.highs
        if limit not in limits:
            limits.append(limit)
    best: Poly | None = None
    groups = list(joint.items())[:MAX_JOINT_GUARDS]
    for size in range(len(groups) + 1):
        for chosen in itertools.combinations(groups, size):
            bound = _substituted_bound(narrowed, offset, chosen)
            if bound is not None and (best is None or _tighter(bound, best)):
                best = bound
    return best


def _tighter(bound: Poly, than: Poly) -> bool:
    """Whether to prefer a bound; of two that cannot be compared, the one of fewer terms used more of the guards."""
    if dominates(than, bound):
        return True
    return not dominates(bound, than) and len(bound.terms) < len(than.terms)


def _substituted_bound(facts: Facts, offset: Poly, chosen: Iterable[tuple[Poly, Bounds]]) -> Poly | None:
    """The bound of `offset` with one loop variable of each sum replaced by the sum, whose own limits then count."""
    local = Facts(facts.known)
    for total, bounds in chosen:
        usable = [a for a in total.atoms if a in facts.known and total.coefficient(a).constant in (1, -1)]
        usable = [a for a in usable if total.degree(a) == 1 and a in offset.atoms]
        if not usable:
            return None
        atom = max(usable, key=lambda a: facts.known[a].order)
        stand_in = local.new("sum", lows=bounds.lows, highs=bounds.highs)
        rest = total.without(atom)
        value = (Poly.atom(stand_in) - rest).scaled(total.coefficient(atom).constant or 1)
        offset = offset.substitute(atom, value)
    return local.upper(offset)


def _needs(facts: Facts, access: Access) -> tuple[Poly, ...]:
    needs = []
    for loop in access.loops:
        if loop.low is None or loop.high is None:
            continue
        need = facts.upper(loop.high - loop.low)
        if need is not None:
            needs.append(need)
    return tuple(needs)


def poly_of(text: str) -> Poly | None:
    """C expression text as a polynomial over its names; `None` where it is none."""
    try:
        return _poly(expr.parse(text))
    except expr.ExprError:
        return None


def _poly(node: expr.Node) -> Poly | None:
    if node.op == "num":
        return Poly.number(node.value) if isinstance(node.value, int) else None
    if node.op == "name":
        return Poly.atom(node.name)
    parts = [_poly(a) for a in node.args]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    if node.op in ("cast-int", "unary+"):
        return known[0]
    if node.op == "unary-":
        return known[0].scaled(-1)
    if node.op in ("+", "-", "*"):
        a, b = known
        return a + b if node.op == "+" else a - b if node.op == "-" else a * b
    if node.op == "/" and known[1].constant != 0:
        exact = known[0].divided(known[1])
        return exact if exact is not None else Poly.atom(quotient_text(*known))
    return None
