"""Integer expressions over run-time sizes and loop variables, simplified enough that a reshape costs no division.

An `Expr` is a polynomial with integer coefficients over atoms. Atoms are sizes (positive), loop variables (from zero to
below their extent), and quotients and remainders that could not be simplified away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache


@dataclass(frozen=True, slots=True)
class Size:
    """A size that is known at run time.

    Attributes:
        name: As in the generated code.
        formula: What it is computed from; empty for a size read from an input's shape.
    """

    name: str
    formula: str = ""


@dataclass(frozen=True, slots=True)
class Var:
    """A loop variable, or a looked-up subscript: ``0 <= name < extent``."""

    name: str
    extent: Expr


@dataclass(frozen=True, slots=True)
class Quotient:
    """``top / bottom`` rounded down, where neither is negative."""

    top: Expr
    bottom: Expr


@dataclass(frozen=True, slots=True)
class Remainder:
    """``top % bottom``, where neither is negative."""

    top: Expr
    bottom: Expr


Atom = Size | Var | Quotient | Remainder
Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Expr:
    """A sum of products: pairs of atoms (sorted, with repetition) and a non-zero coefficient, sorted."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Expr | int) -> Expr:
        return _normal([*self.terms, *as_expr(other).terms])

    __radd__ = __add__

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: Expr | int) -> Expr:
        return self + -as_expr(other)

    def __mul__(self, other: Expr | int) -> Expr:
        return _normal([((*a, *b), c * d) for a, c in self.terms for b, d in as_expr(other).terms])

    __rmul__ = __mul__

    def __floordiv__(self, other: Expr | int) -> Expr:
        """Rounded down; the operands are taken to be non-negative as wholes."""
        return _divided(self, as_expr(other))[0]

    def __mod__(self, other: Expr | int) -> Expr:
        return _divided(self, as_expr(other))[1]

    @property
    def constant(self) -> int | None:
        """The value, if it has no atoms."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def atoms(self) -> frozenset[Atom]:
        """All atoms, those inside quotients, remainders and extents of variables left out of the latter."""
        found: set[Atom] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                found.add(atom)
                if isinstance(atom, Quotient | Remainder):
                    found |= atom.top.atoms | atom.bottom.atoms
        return frozenset(found)

    @property
    def variables(self) -> frozenset[Var]:
        """The loop variables in it."""
        return frozenset(a for a in self.atoms if isinstance(a, Var))

    def only_variable(self) -> Var | None:
        """The variable that the whole expression is, if it is one."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            atom = self.terms[0][0][0]
            return atom if isinstance(atom, Var) else None
        return None

    def __str__(self) -> str:
        return text_of(self)


ZERO, ONE = Expr(), Expr((((), 1),))


def as_expr(value: Expr | Atom | int) -> Expr:
    """A number or an atom as an expression."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, int):
        return Expr((((), value),)) if value else ZERO
    return Expr((((value,), 1),))


def product(values: Iterable[Expr]) -> Expr:
    """The product of all."""
    result = ONE
    for value in values:
        result = result * value
    return result


def _normal(pairs: Iterable[tuple[Monomial, int]]) -> Expr:
    found: dict[Monomial, int] = {}
    for monomial, coefficient in pairs:
        key = tuple(sorted(monomial, key=_order))
        found[key] = found.get(key, 0) + coefficient
    found = {m: c for m, c in found.items() if c}
    while any(isinstance(a, Remainder) for m in found for a in m) and (better := _recombined(found)) is not None:
        found = better
    return Expr(tuple(sorted(found.items(), key=lambda t: ([_order(a) for a in t[0]], t[1]))))


@lru_cache(maxsize=1 << 16)
def _order(atom: Atom) -> tuple[int, str]:
    """Sizes first, so that strides read ``n * i``."""
    kinds: Mapping[type, int] = {Size: 0, Var: 1, Quotient: 2, Remainder: 3}
    name = atom.name if isinstance(atom, Size | Var) else text_of(as_expr(atom))
    return kinds[type(atom)], name


def _recombined(found: dict[Monomial, int]) -> dict[Monomial, int] | None:
    """``c·b·(t / b) + c·(t % b) = c·t``: one step of it, or `None`."""
    for monomial, coefficient in found.items():
        for at, atom in enumerate(monomial):
            if not isinstance(atom, Remainder) or len(atom.bottom.terms) != 1:
                continue
            others = monomial[:at] + monomial[at + 1 :]
            bottom, factor = atom.bottom.terms[0]
            partner = tuple(sorted((*others, *bottom, Quotient(atom.top, atom.bottom)), key=_order))
            if found.get(partner) == coefficient * factor:
                rest = {m: c for m, c in found.items() if m not in (monomial, partner)}
                for top, c in atom.top.terms:
                    key = tuple(sorted((*others, *top), key=_order))
                    rest[key] = rest.get(key, 0) + c * coefficient
                return {m: c for m, c in rest.items() if c}
    return None


def _divided(top: Expr, bottom: Expr) -> tuple[Expr, Expr]:
    """Quotient and remainder."""
    if bottom == ONE:
        return top, ZERO
    if top == bottom:
        return ONE, ZERO
    a, b = top.constant, bottom.constant
    if a is not None and b:
        return as_expr(a // b), as_expr(a % b)
    if len(bottom.terms) == 1:
        whole: list[tuple[Monomial, int]] = []
        rest: list[tuple[Monomial, int]] = []
        for term in top.terms:
            quotient = _exact(term, bottom.terms[0])
            (whole if quotient is not None else rest).append(quotient if quotient is not None else term)
        left = _normal(rest)
        if never_negative(left):
            done = _normal(whole)
            if below(left, bottom):
                return done, left
            shared = _reduced(left, bottom)
            if shared is not None:
                inner, unit, remainder = shared
                quotient_, mod_ = _divided(inner, _divided(bottom, unit)[0])
                return done + quotient_, mod_ * unit + remainder
            return done + as_expr(Quotient(left, bottom)), as_expr(Remainder(left, bottom))
    elif below(top, bottom) and never_negative(top):
        return ZERO, top
    return as_expr(Quotient(top, bottom)), as_expr(Remainder(top, bottom))


def _reduced(top: Expr, bottom: Expr) -> tuple[Expr, Expr, Expr] | None:
    """``top = inner · unit + rest`` with ``rest < unit`` and `unit` a factor of `bottom`: the largest term's own."""
    (factors, number), units = bottom.terms[0], []
    for monomial, coefficient in top.terms:
        shared = [a for a in dict.fromkeys(monomial) for _ in range(min(monomial.count(a), factors.count(a)))]
        whole = _gcd(coefficient, number)
        if shared or whole > 1:
            units.append(_normal([(tuple(shared), whole)]))
    for unit in dict.fromkeys(units):
        if unit in (ONE, bottom):
            continue
        pairs = [(_exact(t, unit.terms[0]), t) for t in top.terms]
        rest = _normal(t for q, t in pairs if q is None)
        if any(q is not None for q, _ in pairs) and never_negative(rest) and below(rest, unit):
            return _normal(q for q, _ in pairs if q is not None), unit, rest
    return None


def _gcd(a: int, b: int) -> int:
    a, b = abs(a), abs(b)
    while b:
        a, b = b, a % b
    return a


def _exact(term: tuple[Monomial, int], by: tuple[Monomial, int]) -> tuple[Monomial, int] | None:
    left = list(term[0])
    for atom in by[0]:
        if atom not in left:
            return None
        left.remove(atom)
    return (tuple(left), term[1] // by[1]) if term[1] % by[1] == 0 else None


def never_negative(value: Expr) -> bool:
    """Whether it is provably at least zero, sizes being at least one."""
    return _positive_terms(_bound(value, upper=False))


def below(value: Expr, limit: Expr) -> bool:
    """Whether ``value < limit`` provably."""
    return _positive_terms(limit - 1 - _bound(value, upper=True))


def _bound(value: Expr, *, upper: bool) -> Expr:
    """A bound that has no loop variables."""
    total = ZERO
    for monomial, coefficient in value.terms:
        most = (coefficient > 0) == upper
        part = as_expr(coefficient)
        for atom in monomial:
            part = part * (_most(atom) if most else (as_expr(atom) if isinstance(atom, Size) else ZERO))
        total = total + part
    return total


def _most(atom: Atom) -> Expr:
    if isinstance(atom, Size):
        return as_expr(atom)
    if isinstance(atom, Var):
        return atom.extent - 1
    if isinstance(atom, Remainder):
        return atom.bottom - 1
    top = _bound(atom.top, upper=True)
    if len(atom.bottom.terms) == 1:
        # (k·a + r) / k <= a + (r / k), and below a if r is negative.
        exact = [_exact(t, atom.bottom.terms[0]) for t in top.terms]
        if all(q is not None or not t[0] for q, t in zip(exact, top.terms, strict=True)):
            whole = _normal(q for q in exact if q is not None)
            rest = sum(t[1] for q, t in zip(exact, top.terms, strict=True) if q is None)
            if rest <= 0:
                return whole - (1 if rest < 0 else 0)
    return top


def _positive_terms(value: Expr) -> bool:
    """Whether a polynomial in sizes is at least zero where all of them are at least one."""
    if all(c >= 0 for _, c in value.terms):
        return True
    shifted: list[tuple[Monomial, int]] = []
    for monomial, coefficient in value.terms:
        parts: list[Monomial] = [()]
        for atom in monomial:
            parts = [p for part in parts for p in (part, (*part, atom))]
        shifted += [(p, coefficient) for p in parts]
    return all(c >= 0 for _, c in _normal(shifted).terms)


def substituted(value: Expr, by: Mapping[Atom, Expr]) -> Expr:
    """The expression with atoms replaced, simplified again."""
    if not value.atoms & by.keys():
        return value
    total = ZERO
    for monomial, coefficient in value.terms:
        part = as_expr(coefficient)
        for atom in monomial:
            if atom in by:
                part = part * by[atom]
            elif isinstance(atom, Quotient):
                part = part * (substituted(atom.top, by) // substituted(atom.bottom, by))
            elif isinstance(atom, Remainder):
                part = part * (substituted(atom.top, by) % substituted(atom.bottom, by))
            else:
                part = part * as_expr(atom)
        total = total + part
    return total


def flattened(index: Sequence[Expr], shape: Sequence[Expr]) -> Expr:
    """The position of an index in a contiguous tensor."""
    total = ZERO
    for at, size in zip(index, shape, strict=True):
        total = total * size + at
    return total


def unflattened(flat: Expr, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """The index at a position in a contiguous tensor."""
    index: list[Expr] = []
    for size in reversed(shape[1:]):
        flat, last = _divided(flat, size)
        index.insert(0, last)
    return (flat, *index) if shape else ()


def step_of(address: Expr, variable: Var) -> int | None:
    """How far an address moves with a variable, if that is a constant."""
    return (substituted(address, {variable: as_expr(variable) + 1}) - address).constant


def evaluated(value: Expr, sizes: Mapping[str, int]) -> int:
    """Its value for given sizes, such as those of the example inputs.

    Raises:
        KeyError: It has variables, or a size that is not given.
    """
    total = 0
    for monomial, coefficient in value.terms:
        part = coefficient
        for atom in monomial:
            if isinstance(atom, Quotient):
                part *= evaluated(atom.top, sizes) // evaluated(atom.bottom, sizes)
            elif isinstance(atom, Remainder):
                part *= evaluated(atom.top, sizes) % evaluated(atom.bottom, sizes)
            else:
                part *= sizes[atom.name]
        total += part
    return total


def text_of(value: Expr, *, inside: bool = False, python: bool = False) -> str:
    """C++ or Python text; in parentheses if `inside` a product and more than one factor."""
    if not value.terms:
        return "0"
    parts: list[str] = []
    for monomial, coefficient in sorted(value.terms, key=lambda t: (-len(t[0]), t[1] < 0)):
        factors = [_atom_text(a, python) for a in monomial]
        size = abs(coefficient)
        if size != 1 or not factors:
            factors.append(str(size))
        body = " * ".join(factors)
        parts.append((" - " if coefficient < 0 else " + ") + body if parts else ("-" if coefficient < 0 else "") + body)
    text = "".join(parts)
    return f"({text})" if inside and (len(value.terms) > 1 or "*" in text or text.startswith("-")) else text


def _atom_text(atom: Atom, python: bool) -> str:
    if isinstance(atom, Size | Var):
        return atom.name
    sign = "%" if isinstance(atom, Remainder) else "//" if python else "/"
    top, bottom = (text_of(e, inside=True, python=python) for e in (atom.top, atom.bottom))
    return f"({top} {sign} {bottom})"
