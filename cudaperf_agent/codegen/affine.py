"""Integer polynomials over loop variables and sizes, and their split into rows and columns (delinearisation).

An index such as ``y*w + x`` is no affine form, since isl takes no product of a variable and a parameter. Where
``0 <= x < w`` can be proven it is the pair ``(y, x)``; two such pairs are equal exactly when the indices are.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

Monomial = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Poly:
    """A polynomial with integer coefficients; ``terms`` maps sorted tuples of names to non-zero factors."""

    terms: Mapping[Monomial, int] = field(default_factory=dict)

    @staticmethod
    def of(value: int) -> Poly:
        """A constant."""
        return Poly({(): value} if value else {})

    @staticmethod
    def name(name: str) -> Poly:
        """A single variable or size."""
        return Poly({(name,): 1})

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, other: Poly) -> Poly:
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return Poly({m: f for m, f in terms.items() if f})

    def __mul__(self, other: Poly) -> Poly:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + a * b
        return Poly({m: f for m, f in terms.items() if f})

    def __neg__(self) -> Poly:
        return Poly({m: -f for m, f in self.terms.items()})

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    @property
    def constant(self) -> int | None:
        """Its value if it has no names."""
        return self.terms.get((), 0) if all(not m for m in self.terms) else None

    def names(self) -> set[str]:
        """All variables and sizes in it."""
        return {name for monomial in self.terms for name in monomial}

    def renamed(self, names: Mapping[str, str]) -> Poly:
        """With other names for some variables."""
        return Poly({tuple(sorted(names.get(n, n) for n in m)): f for m, f in self.terms.items()})

    def affine_in(self, variables: set[str]) -> bool:
        """Whether no term multiplies a variable by anything but a number."""
        return all(len(m) <= 1 or not variables & set(m) for m in self.terms)


def opaque(monomial: Monomial) -> str:
    """Name of a product of sizes when it is taken as one unknown, as isl must."""
    return "_x_".join(monomial)


def isl_text(poly: Poly) -> str:
    """The polynomial as isl writes it; products of sizes become single names.

    The caller has checked `Poly.affine_in` for the variables.
    """
    pieces = [f"{f}" if not m else f"{f}*{opaque(m)}" for m, f in sorted(poly.terms.items())]
    return "(" + (" + ".join(pieces) or "0") + ")"


@dataclass(frozen=True, slots=True)
class Stride:
    """``factor`` times a product of sizes."""

    factor: int
    monomial: Monomial

    def poly(self) -> Poly:
        """As a polynomial."""
        return Poly({self.monomial: self.factor})


def strides_of(indices: Iterable[Poly], variables: set[str]) -> tuple[Stride, ...] | None:
    """The strides that the indices into one buffer step by, largest first, ending with 1.

    Returns:
        `None` where two loop variables are multiplied or no chain of strides divides one another.
    """
    factors: dict[Monomial, int] = {}
    polys = list(indices)
    for poly in polys:
        for monomial in poly.terms:
            inside = [n for n in monomial if n in variables]
            if len(inside) > 1:
                return None
            if inside:
                sizes = list(monomial)
                sizes.remove(inside[0])
                factors.setdefault(tuple(sizes), 0)
    factors.pop((), None)
    ordered = sorted(factors, key=len, reverse=True)
    for outer, inner in pairwise(ordered):
        if _quotient(outer, inner) is None:
            return None
    for poly in polys:
        for monomial, factor in poly.terms.items():
            home = _home(monomial, ordered, variables)
            if home is not None:
                factors[home] = math.gcd(factors[home], factor)
    strides = [Stride(factors[m], m) for m in ordered]
    for outer_stride, inner_stride in pairwise(strides):
        if outer_stride.factor % inner_stride.factor:
            return None
    return (*strides, Stride(1, ()))


def _quotient(outer: Monomial, inner: Monomial) -> Monomial | None:
    rest = list(outer)
    for name in inner:
        if name not in rest:
            return None
        rest.remove(name)
    return tuple(rest)


def _home(monomial: Monomial, ordered: list[Monomial], variables: set[str]) -> Monomial | None:
    """The largest stride that divides a term; `None` for the innermost."""
    return next((m for m in ordered if _quotient(monomial, m) is not None), None)


def split(
    index: Poly, strides: tuple[Stride, ...], variables: set[str], *, sizes_inside: bool = False
) -> tuple[Poly, ...] | None:
    """The index as one affine subscript per stride; `None` where a subscript is not affine.

    Args:
        index: The flat index.
        strides: From `strides_of`.
        variables: Loop variables.
        sizes_inside: Leave terms without a loop variable in the innermost subscript: ``y*w + (w - 1 - x)`` is the
            pair ``(y, w - 1 - x)`` then, instead of ``(y + 1, -1 - x)``. Both are the same index.
    """
    parts: list[dict[Monomial, int]] = [{} for _ in strides]
    ordered = [s.monomial for s in strides[:-1]]
    for monomial, factor in index.terms.items():
        home = _home(monomial, ordered, variables)
        if sizes_inside and not variables & set(monomial):
            home = None
        place = len(strides) - 1 if home is None else ordered.index(home)
        rest = _quotient(monomial, strides[place].monomial)
        if rest is None:
            return None
        parts[place][rest] = parts[place].get(rest, 0) + factor // strides[place].factor
    polys = tuple(Poly({m: f for m, f in p.items() if f}) for p in parts)
    return polys if all(p.affine_in(variables) for p in polys) else None


def ratio(outer: Stride, inner: Stride) -> Poly:
    """How many steps of the inner stride make one of the outer: the bound of the inner subscript."""
    return Poly({_quotient(outer.monomial, inner.monomial) or (): outer.factor // inner.factor})


def parsed(text: str) -> Poly | None:
    """A polynomial from a C expression of names, integers, ``+``, ``-`` and ``*``; `None` for anything else."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    return _from_tree(tree)


def _from_tree(node: ast.expr) -> Poly | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Poly.of(node.value)
    if isinstance(node, ast.Name):
        return Poly.name(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _from_tree(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        left, right = _from_tree(node.left), _from_tree(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
    return None
