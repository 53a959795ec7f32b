"""Values of polynomials for given values of their atoms, for all lanes of a warp or block at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cudaperf_agent.features.symbolic import Atom, Poly

_WRAP = 1 << 64


def evaluate(value: Poly, given: Mapping[Atom, Any], lanes: int) -> Any:
    """The value for every lane as an ``int64`` array.

    Args:
        value: What to evaluate.
        given: Arrays or numbers for atoms that are no formulas.
        lanes: Length of the arrays.
    """
    return _Evaluation(given, lanes).poly(value)


class _Evaluation:
    """Evaluates polynomials; a formula that occurs more than once is computed once."""

    def __init__(self, given: Mapping[Atom, Any], lanes: int) -> None:
        self._given = given
        self._lanes = lanes
        self._formulas: dict[int, Any] = {}

    def poly(self, value: Poly) -> Any:
        total = np.zeros(self._lanes, dtype=np.int64)
        for monomial, c in value.terms.items():
            product: Any = np.int64(c % _WRAP - (_WRAP if c % _WRAP >= _WRAP // 2 else 0))
            for atom in monomial:
                product = product * (self._formula(atom) if atom.operator else self._given[atom])
            total = total + product
        return total

    def _formula(self, atom: Atom) -> Any:
        known = self._formulas.get(atom.serial)
        if known is None:
            known = _apply(atom.operator, [self.poly(a) for a in atom.arguments])
            self._formulas[atom.serial] = known
        return known


def _apply(operator: str, values: list[Any]) -> Any:
    a = values[0]
    if operator == "!":
        return (a == 0).astype(np.int64)
    if operator == "?:":
        return np.where(a != 0, values[1], values[2])
    b = values[1]
    if operator in ("/", "%"):
        b = np.where(b == 0, 1, b)
        return a // b if operator == "/" else a % b
    if operator in ("<<", ">>"):
        b = np.clip(b, 0, 31)
        return a << b if operator == "<<" else a >> b
    if operator == "&&":
        return ((a != 0) & (b != 0)).astype(np.int64)
    if operator == "||":
        return ((a != 0) | (b != 0)).astype(np.int64)
    return _UFUNCS[operator](a, b).astype(np.int64)


_UFUNCS: dict[str, Any] = {
    "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "min": np.minimum,
    "max": np.maximum, "<": np.less, ">": np.greater, "<=": np.less_equal, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
