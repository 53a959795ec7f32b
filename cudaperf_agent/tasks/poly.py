"""Polynomials with integer coefficients over named quantities, and bounds of them over loop domains.

A quantity (an *atom*) is a scalar parameter by its name, an opaque C expression over parameters in parentheses
(``(ksize/2)``), a loop variable, or a value that nothing is known about. Sizes are taken as non-negative when signs
are decided, and as at least one when two bounds are compared: what is wrong at zero shows when the C is run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Monomial = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Poly:
    """A polynomial: coefficient by monomial (a sorted tuple of atoms), zero coefficients left out."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Poly:
        """Normal form of a coefficient table."""
        return Poly(tuple(sorted((m, c) for m, c in terms.items() if c)))

    @staticmethod
    def number(value: int) -> Poly:
        """A constant."""
        return Poly.of({(): value})

    @staticmethod
    def atom(name: str) -> Poly:
        """One quantity."""
        return Poly((((name,), 1),))

    def __add__(self, other: Poly) -> Poly:
        terms = dict(self.terms)
        for monomial, c in other.terms:
            terms[monomial] = terms.get(monomial, 0) + c
        return Poly.of(terms)

    def __sub__(self, other: Poly) -> Poly:
        return self + other.scaled(-1)

    def __mul__(self, other: Poly) -> Poly:
        terms: dict[Monomial, int] = {}
        for (a, x), (b, y) in itertools.product(self.terms, other.terms):
            monomial = tuple(sorted(a + b))
            terms[monomial] = terms.get(monomial, 0) + x * y
        return Poly.of(terms)

    def scaled(self, factor: int) -> Poly:
        """Times a constant."""
        return Poly.of({m: c * factor for m, c in self.terms})

    def plus(self, value: int) -> Poly:
        """Plus a constant."""
        return self + Poly.number(value)

    @property
    def constant(self) -> int | None:
        """Its value, if it is a constant."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == () else None

    @property
    def atoms(self) -> frozenset[str]:
        """The atoms in it."""
        return frozenset(a for m, _ in self.terms for a in m)

    def degree(self, atom: str) -> int:
        """Highest power of `atom`."""
        return max((m.count(atom) for m, _ in self.terms), default=0)

    def coefficient(self, atom: str) -> Poly:
        """What multiplies `atom`, in which the polynomial must be linear."""
        return Poly.of({tuple(a for a in m if a != atom): c for m, c in self.terms if atom in m})

    def without(self, atom: str) -> Poly:
        """The terms that do not hold `atom`."""
        return Poly.of({m: c for m, c in self.terms if atom not in m})

    def substitute(self, atom: str, value: Poly) -> Poly:
        """`value` put for `atom`, to any power."""
        result = Poly()
        for monomial, c in self.terms:
            term = Poly.of({tuple(a for a in monomial if a != atom): c})
            for _ in range(monomial.count(atom)):
                term = term * value
            result = result + term
        return result

    def divided(self, divisor: Poly) -> Poly | None:
        """The exact quotient by a single term, `None` where it does not go."""
        if len(divisor.terms) != 1:
            return None
        (by, c), terms = divisor.terms[0], {}
        for monomial, own in self.terms:
            rest = list(monomial)
            for atom in by:
                if atom not in rest:
                    return None
                rest.remove(atom)
            if own % c:
                return None
            terms[tuple(rest)] = own // c
        return Poly.of(terms)

    def text(self, order: Sequence[str] = ()) -> str:
        """C text; highest degree first, constants last, factors in the given order of names."""
        places = {name: index for index, name in enumerate(order)}
        parts = []
        for monomial, c in sorted(self.terms, key=lambda t: (t[1] < 0, -len(t[0]), t[0])):
            factors = ([str(abs(c))] if abs(c) != 1 or not monomial else []) + sorted(
                monomial, key=lambda a: (places.get(a, -1), a)
            )
            parts.append(("-" if c < 0 else "+") + "*".join(factors))
        return "".join(parts).removeprefix("+") or "0"


def non_negative(poly: Poly, at_least: int = 0) -> bool:
    """Whether it cannot be negative when every atom is `at_least` or more (opaque ones: zero or more)."""
    for atom in poly.atoms if at_least else ():
        if not atom.startswith("("):
            poly = poly.substitute(atom, Poly.atom(atom).plus(at_least))
    return all(c >= 0 for _, c in poly.terms)


def dominates(p: Poly, q: Poly) -> bool:
    """Whether ``p >= q`` for all sizes of one or more."""
    return non_negative(p - q) or non_negative(p - q, 1)


@dataclass(slots=True)
class Bounds:
    """What is known about an atom that is not a parameter.

    Attributes:
        order: Atoms made later may be bounded by earlier ones, never the other way round.
        lows: Each a lower bound.
        highs: Each an upper bound.
        choices: It is one of these, if there are any.
        taint: Buffers from whose elements it was computed.
    """

    order: int
    lows: list[Poly] = field(default_factory=list)
    highs: list[Poly] = field(default_factory=list)
    choices: tuple[Poly, ...] = ()
    taint: frozenset[str] = frozenset()

    def with_value(self, atom: str, value: Poly) -> Bounds:
        """The same with `value` put for `atom`."""
        lows, highs = ([p.substitute(atom, value) for p in polys] for polys in (self.lows, self.highs))
        choices = tuple(p.substitute(atom, value) for p in self.choices)
        return Bounds(self.order, lows, highs, choices, self.taint)


MAX_WORK = 20_000
"""Substitutions tried for one bound, before it counts as unknown."""


class Facts:
    """The bounds of every atom; answers how large or small a polynomial can get."""

    def __init__(self, known: Mapping[str, Bounds] | None = None) -> None:
        self.known: dict[str, Bounds] = dict(known or {})
        self._work = 0

    def new(self, stem: str, **known: Iterable[object]) -> str:
        """A fresh atom."""
        name = f"{stem}#{len(self.known)}"
        self.known[name] = Bounds(len(self.known), **known)  # type: ignore[arg-type]
        return name

    def taint(self, poly: Poly) -> frozenset[str]:
        """Buffers whose elements it depends on, also through the bounds of loops."""
        found: set[str] = set()
        seen: set[str] = set()
        pending = list(poly.atoms)
        while pending:
            atom = pending.pop()
            if atom in seen or atom not in self.known:
                continue
            seen.add(atom)
            bounds = self.known[atom]
            found |= bounds.taint
            for other in (*bounds.lows, *bounds.highs, *bounds.choices):
                pending += other.atoms
        return frozenset(found)

    def upper(self, poly: Poly) -> Poly | None:
        """The least upper bound found, over parameters only."""
        self._work = 0
        return self._bound(poly, True, 40)

    def lower(self, poly: Poly) -> Poly | None:
        """The greatest lower bound found, over parameters only."""
        self._work = 0
        return self._bound(poly, False, 40)

    def _bound(self, poly: Poly, upper: bool, depth: int) -> Poly | None:
        bounded = [a for a in poly.atoms if a in self.known]
        if not bounded:
            return poly
        self._work += 1
        if depth == 0 or self._work > MAX_WORK:
            return None
        atom = max(bounded, key=lambda a: self.known[a].order)
        if poly.degree(atom) > 1:
            return None
        sign = self._sign(poly.coefficient(atom), depth - 1)
        if sign is None:
            return None
        bounds = self.known[atom]
        rising = upper == (sign > 0)
        results = []
        for limit in bounds.highs if rising else bounds.lows:
            result = self._bound(poly.substitute(atom, limit), upper, depth - 1)
            if result is not None:
                results.append(result)
        if bounds.choices:
            worst = self._worst([poly.substitute(atom, c) for c in bounds.choices], upper, depth - 1)
            results += [worst] if worst is not None else []
        return _best(results, upper)

    def _worst(self, polys: list[Poly], upper: bool, depth: int) -> Poly | None:
        worst: Poly | None = None
        for poly in polys:
            result = self._bound(poly, upper, depth)
            if result is None:
                return None
            if worst is None or (dominates(result, worst) if upper else dominates(worst, result)):
                worst = result
            elif not (dominates(worst, result) if upper else dominates(result, worst)):
                return None
        return worst

    def _sign(self, poly: Poly, depth: int) -> int | None:
        low = self._bound(poly, False, depth)
        if low is not None and (non_negative(low) or non_negative(low, 1)):
            return 1
        high = self._bound(poly, True, depth)
        if high is not None and (non_negative(high.scaled(-1)) or non_negative(high.scaled(-1), 1)):
            return -1
        return None


def _best(results: list[Poly], upper: bool) -> Poly | None:
    best: Poly | None = None
    for result in results:
        if best is None or (dominates(best, result) if upper else dominates(result, best)):
            best = result
    return best
