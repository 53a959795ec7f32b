"""Fits an extent: the simplest expression over integer scalars that gives every measured number of elements."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np


class Sample(NamedTuple):
    """How many elements were needed at one setting of the scalars."""

    point: Mapping[str, int]
    need: int


@dataclass(frozen=True, slots=True)
class Shape:
    """What a fitted expression may look like.

    Attributes:
        least: Fewest samples to fit to.
        coefficient: Largest coefficient.
        terms: Most products of scalars in it, beside a constant.
    """

    least: int = 3
    coefficient: int = 64
    terms: int = 3


SHAPE = Shape()


@dataclass(frozen=True, slots=True)
class Monomial:
    """A product of scalars, e.g. ``("n", "n")`` for n²; ``()`` is 1."""

    factors: tuple[str, ...]

    def at(self, point: Mapping[str, int]) -> int:
        """Its value."""
        value = 1
        for name in self.factors:
            value *= point[name]
        return value


def fit(scalars: Sequence[str], samples: Sequence[Sample], shape: Shape = SHAPE) -> str | None:
    """The expression with the fewest terms that gives every sample exactly, `None` if there is none."""
    if len(samples) < shape.least:
        return None
    products = [Monomial(f) for degree in (1, 2, 3) for f in itertools.combinations_with_replacement(scalars, degree)]
    for terms in range(shape.terms + 1):
        for chosen in itertools.combinations(products, terms):
            for constant in ((), (Monomial(()),)):
                basis = (*chosen, *constant)
                if len(samples) > len(basis):
                    coefficients = _solve(basis, samples, shape)
                    if coefficients is not None:
                        return _text(basis, coefficients)
    return None


def _solve(basis: Sequence[Monomial], samples: Sequence[Sample], shape: Shape) -> list[Fraction] | None:
    """Coefficients (small integers or halves) with which `basis` gives every sample, `None` if there are none."""
    if not basis:
        return [] if all(need == 0 for _, need in samples) else None
    matrix = np.array([[m.at(point) for m in basis] for point, _ in samples], dtype=np.float64)
    needs = np.array([need for _, need in samples], dtype=np.float64)
    solution, _, rank, _ = np.linalg.lstsq(matrix, needs, rcond=None)
    if rank < len(basis):
        return None
    coefficients = [Fraction(round(2 * float(c)), 2) for c in solution]
    if any(c == 0 or abs(c) > shape.coefficient for c in coefficients):
        return None
    for point, need in samples:
        if sum(c * m.at(point) for c, m in zip(coefficients, basis, strict=True)) != need:
            return None
    return coefficients


def _text(basis: Sequence[Monomial], coefficients: Sequence[Fraction]) -> str:
    if not basis:
        return "0"
    halves = any(c.denominator == 2 for c in coefficients)
    pieces: list[str] = []
    order = sorted(range(len(basis)), key=lambda k: coefficients[k] < 0)
    for index in order:
        factor = int(coefficients[index] * (2 if halves else 1))
        product = "*".join(basis[index].factors)
        size = abs(factor)
        body = str(size) if not product else product if size == 1 else f"{size}*{product}"
        pieces.append(("-" if factor < 0 else "+" if pieces else "") + body)
    joined = "".join(pieces)
    return f"({joined})/2" if halves else joined
