"""Integer expressions as polynomials over atoms: thread and block indices, unknowns, and what is not linear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

X, Y, Z = 1, 2, 4
"""Bits of a mask: along which dimension of the thread index a value may vary."""
ANY_THREAD = X | Y | Z
_MOST_TERMS = 48
_LONGEST_NAME = 80
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})


class Atom:
    """Something a polynomial multiplies. Interned by the `Space` that made it.

    Attributes:
        name: For people.
        mask: Thread dimensions it may vary along.
        operator, arguments: Set for what is not linear (``/``, ``%``, ``min``, ``<``, ``?:``, …).
        sort: ``thread``, ``block``, ``loop``, ``unknown``, ``load`` or ``formula``.
        low, high: Range where known.
    """

    __slots__ = ("arguments", "high", "low", "mask", "name", "operator", "serial", "sort")

    def __init__(
        self,
        name: str,
        sort: str,
        mask: int,
        serial: int,
        operator: str = "",
        arguments: tuple[Poly, ...] = (),
        low: int | None = None,
        high: int | None = None,
    ) -> None:
        self.name = name
        self.sort = sort
        self.mask = mask
        self.serial = serial
        self.operator = operator
        self.arguments = arguments
        self.low = low
        self.high = high


Monomial = tuple[Atom, ...]


class Poly:
    """A polynomial with integer coefficients; immutable.

    Attributes:
        terms: Coefficient by product of atoms, atoms in order of their serial; the empty product is the constant.
        mask: Thread dimensions that the value may vary along.
    """

    __slots__ = ("mask", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {m: c for m, c in terms.items() if c}
        mask = 0
        for monomial in self.terms:
            for atom in monomial:
                mask |= atom.mask
        self.mask = mask

    @property
    def constant(self) -> int | None:
        """The value if it is a plain number."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def __add__(self, other: Poly) -> Poly:
        terms = dict(self.terms)
        for monomial, c in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + c
        return Poly(terms)

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def scaled(self, factor: int) -> Poly:
        """The polynomial times a number."""
        return Poly({m: c * factor for m, c in self.terms.items()})

    def times(self, other: Poly) -> Poly | None:
        """The product, `None` if it grows too long."""
        if len(self.terms) * len(other.terms) > _MOST_TERMS:
            return None
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in other.terms.items():
                key = tuple(sorted((*m1, *m2), key=_serial))
                terms[key] = terms.get(key, 0) + c1 * c2
        return Poly(terms)

    def same(self, other: Poly) -> bool:
        """Whether the two are equal term by term."""
        return self.terms == other.terms

    def atoms(self) -> Iterator[Atom]:
        """Every atom once, those inside formulas too."""
        seen: set[int] = set()
        waiting: list[Poly] = [self]
        while waiting:
            for monomial in waiting.pop().terms:
                for atom in monomial:
                    if atom.serial not in seen:
                        seen.add(atom.serial)
                        waiting.extend(atom.arguments)
                        yield atom

    def bounds(self) -> tuple[int | None, int | None]:
        """Lowest and highest value, `None` where not known."""
        low: int | None = 0
        high: int | None = 0
        for monomial, c in self.terms.items():
            mlow: int | None = 1
            mhigh: int | None = 1
            for atom in monomial:
                if mlow is None or atom.low is None or atom.low < 0:
                    mlow, mhigh = None, None
                    break
                mlow *= atom.low
                mhigh = None if mhigh is None or atom.high is None else mhigh * atom.high
            if c < 0:
                mlow, mhigh = mhigh, mlow
            low = None if low is None or mlow is None else low + c * mlow
            high = None if high is None or mhigh is None else high + c * mhigh
        return low, high

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts = []
        for monomial, c in sorted(self.terms.items(), key=lambda t: (len(t[0]) == 0, [a.serial for a in t[0]])):
            names = "*".join(a.name for a in monomial)
            if not names:
                parts.append(str(c))
            elif c in (1, -1):
                parts.append(names if c == 1 else f"-{names}")
            else:
                parts.append(f"{c}*{names}")
        return " + ".join(parts).replace("+ -", "- ")


def _serial(atom: Atom) -> int:
    return atom.serial


def number(value: int) -> Poly:
    """A plain number."""
    return Poly({(): value})


ZERO = number(0)
ONE = number(1)


class Space:
    """Makes and interns the atoms of one kernel at one launch geometry.

    Args:
        block: Threads in x, y, z; `None` where not known.
        grid: Blocks in x, y, z; `None` where not known.
    """

    def __init__(
        self,
        block: tuple[int | None, int | None, int | None] = (None, None, None),
        grid: tuple[int | None, int | None, int | None] = (None, None, None),
    ) -> None:
        self._formulas: dict[tuple[Any, ...], Poly] = {}
        self._made = 0
        self.block = block
        self.builtins: dict[str, Poly] = {}
        for axis, (threads, blocks) in enumerate(zip(block, grid, strict=True)):
            letter = "xyz"[axis]
            most = 64 if axis == 2 else 1024
            if threads == 1:
                self.builtins[f"threadIdx.{letter}"] = ZERO
            else:
                self.builtins[f"threadIdx.{letter}"] = self.fresh(
                    f"threadIdx.{letter}", "thread", 1 << axis, low=0, high=(threads or most) - 1
                )
            self.builtins[f"blockIdx.{letter}"] = (
                ZERO
                if blocks == 1
                else self.fresh(f"blockIdx.{letter}", "block", low=0, high=None if blocks is None else blocks - 1)
            )
            self.builtins[f"blockDim.{letter}"] = (
                number(threads)
                if threads is not None
                else self.fresh(f"blockDim.{letter}", "unknown", low=1, high=most)
            )
            self.builtins[f"gridDim.{letter}"] = (
                number(blocks) if blocks is not None else self.fresh(f"gridDim.{letter}", "unknown", low=1)
            )

    def fresh(
        self, name: str, sort: str = "unknown", mask: int = 0, low: int | None = None, high: int | None = None
    ) -> Poly:
        """A new atom as a polynomial."""
        self._made += 1
        return Poly({(Atom(name, sort, mask, self._made, low=low, high=high),): 1})

    def _formula(self, operator: str, *arguments: Poly, low: int | None = None, high: int | None = None) -> Poly:
        key = (
            operator,
            *(tuple(sorted(((tuple(a.serial for a in m), c) for m, c in p.terms.items()))) for p in arguments),
        )
        known = self._formulas.get(key)
        if known is None:
            mask = 0
            for argument in arguments:
                mask |= argument.mask
            inner = f" {operator} ".join(f"({a})" if len(a.terms) > 1 else str(a) for a in arguments)
            if len(inner) > _LONGEST_NAME:
                inner = inner[:_LONGEST_NAME] + "..."
            self._made += 1
            atom = Atom(f"({inner})", "formula", mask, self._made, operator, arguments, low, high)
            known = Poly({(atom,): 1})
            self._formulas[key] = known
        return known

    def binary(self, operator: str, left: Poly, right: Poly) -> Poly:
        """The value of a C operator on two integers."""
        a, b = left.constant, right.constant
        if a is not None and b is not None:
            folded = _fold(operator, a, b)
            if folded is not None:
                return number(folded)
        if operator == "+":
            return left + right
        if operator == "-":
            return left - right
        if operator == "*":
            product = left.times(right)
            return product if product is not None else self._formula("*", left, right)
        if operator == "<<" and b is not None and 0 <= b < 63:
            return left.scaled(1 << b)
        if operator == ">>" and b is not None and 0 <= b < 63:
            return self._divide(left, 1 << b)
        if operator == "/" and b is not None and b > 0:
            return self._divide(left, b)
        if operator == "%" and b is not None and b > 0:
            return self._remainder(left, b)
        if operator == "&" and b is not None and b >= 0 and (b & (b + 1)) == 0:
            return self._remainder(left, b + 1)
        if operator == "&" and a is not None and a >= 0 and (a & (a + 1)) == 0:
            return self._remainder(right, a + 1)
        if operator in _COMPARISONS:
            known = _decide(operator, left - right)
            return number(known) if known is not None else self._formula(operator, left, right, low=0, high=1)
        if operator in ("&&", "||"):
            return self._logic(operator, left, right)
        if operator in ("min", "max") and left.same(right):
            return left
        return self._formula(operator, left, right)

    def _logic(self, operator: str, left: Poly, right: Poly) -> Poly:
        for side, other in ((left, right), (right, left)):
            if side.constant is not None:
                if operator == "&&":
                    return other if side.constant else ZERO
                return ONE if side.constant else other
        return self._formula(operator, left, right, low=0, high=1)

    def _split(self, value: Poly, by: int) -> tuple[Poly, Poly]:
        whole = {m: c // by for m, c in value.terms.items() if c % by == 0}
        rest = {m: c for m, c in value.terms.items() if c % by}
        return Poly(whole), Poly(rest)

    def _divide(self, value: Poly, by: int) -> Poly:
        whole, rest = self._split(value, by)
        low, high = rest.bounds()
        if low is not None and high is not None and low // by == high // by:
            return whole + number(low // by)
        return whole + self._formula("/", rest, number(by), low=0 if low is not None and low >= 0 else None)

    def _remainder(self, value: Poly, by: int) -> Poly:
        _, rest = self._split(value, by)
        low, high = rest.bounds()
        if low is not None and high is not None and low >= 0 and high < by:
            return rest
        return self._formula("%", rest, number(by), low=0, high=by - 1)

    def negate_condition(self, value: Poly) -> Poly:
        """Logical not."""
        if value.constant is not None:
            return number(int(not value.constant))
        return self._formula("!", value, low=0, high=1)

    def complement(self, value: Poly) -> Poly:
        """Bitwise not."""
        return -value - ONE

    def select(self, condition: Poly, yes: Poly, no: Poly) -> Poly:
        """The value of ``condition ? yes : no``."""
        if condition.constant is not None:
            return yes if condition.constant else no
        return yes if yes.same(no) else self._formula("?:", condition, yes, no)


def _fold(operator: str, a: int, b: int) -> int | None:
    if operator in ("/", "%") and b == 0:
        return None
    if operator in ("<<", ">>") and not 0 <= b < 63:
        return None
    table: dict[str, Callable[[], int]] = {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b,
        "/": lambda: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
        "%": lambda: abs(a) % abs(b) * (1 if a >= 0 else -1),
        "<<": lambda: a << b, ">>": lambda: a >> b, "&": lambda: a & b, "|": lambda: a | b, "^": lambda: a ^ b,
        "<": lambda: int(a < b), ">": lambda: int(a > b), "<=": lambda: int(a <= b), ">=": lambda: int(a >= b),
        "==": lambda: int(a == b), "!=": lambda: int(a != b), "&&": lambda: int(bool(a and b)),
        "||": lambda: int(bool(a or b)), "min": lambda: min(a, b), "max": lambda: max(a, b),
    }  # fmt: skip
    found = table.get(operator)
    if found is None:
        return None
    value = found()
    return value if abs(value) < 1 << 64 else None


def _decide(operator: str, difference: Poly) -> int | None:
    """The truth of ``difference OPERATOR 0`` if ranges settle it."""
    low, high = difference.bounds()
    if operator in ("<", ">="):
        below = high is not None and high < 0
        above = low is not None and low >= 0
        if below or above:
            return int(below == (operator == "<"))
    elif operator in (">", "<="):
        above = low is not None and low > 0
        below = high is not None and high <= 0
        if below or above:
            return int(above == (operator == ">"))
    elif (high is not None and high < 0) or (low is not None and low > 0):
        return int(operator == "!=")
    return None
