"""Random C expressions over given atoms: small, typed, in the spelling that people use, with no undefined behaviour
on small inputs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["float", "double", "int", "unsigned"]

_PRECEDENCE = {"*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, ">": 7, "<=": 7, ">=": 7,
               "==": 6, "!=": 6, "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1}  # fmt: skip
_TERNARY, _UNARY, _ATOM = 0, 11, 12


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of C and how tightly it binds."""

    text: str
    binds: int = _ATOM

    def inside(self, at_least: int) -> str:
        """In parentheses where it binds less than that."""
        return self.text if self.binds >= at_least else f"({self.text})"


def binary(left: Text, operator: str, right: Text) -> Text:
    """``left operator right``, with the parentheses that C needs."""
    level = _PRECEDENCE[operator]
    # Compilers warn about mixed shifts, bits and comparisons without parentheses; so people write them.
    bitwise = operator in ("&", "|", "^", "<<", ">>")
    left_level, right_level = (_UNARY, _UNARY) if bitwise else (level, level + 1)
    return Text(f"{left.inside(left_level)} {operator} {right.inside(right_level)}", level)


def choose(condition: Text, yes: Text, no: Text) -> Text:
    """``condition ? yes : no``."""
    return Text(f"{condition.inside(1)} ? {yes.inside(1)} : {no.inside(_TERNARY)}", _TERNARY)


class Expressions:
    """Draws expressions of one type.

    Args:
        rng: Source of all choices.
        kind: The C type computed in.
        functions: Names of helpers of one argument of that type, to be called now and then.
        math: Whether functions of ``math.h`` are used.
    """

    def __init__(self, rng: random.Random, kind: Kind, functions: Sequence[str] = (), *, math: bool = False) -> None:
        self.rng = rng
        self.kind = kind
        self.functions = tuple(functions)
        self.math = math and kind in ("float", "double")
        self.used_math = False
        self.suffix = "f" if kind == "float" and rng.random() < 0.7 else ""

    @property
    def real(self) -> bool:
        """Whether it computes in floating point."""
        return self.kind in ("float", "double")

    def constant(self) -> Text:
        """A literal as people write it."""
        rng = self.rng
        if self.kind == "unsigned":
            return Text(rng.choice(("1u", "3u", "7u", "255u", "0xffu", "2654435761u", "1664525u", "12345u", "31u")))
        if self.kind == "int":
            return Text(str(rng.choice((1, 2, 3, 4, 5, 7, 8, 10, 16, 20))))
        if rng.random() < 0.3:
            return Text(str(rng.choice((1, 2, 3, 4, 5))))
        digits = rng.choice(
            ("0.5", "0.25", "2.0", "1.5", "0.1", "0.75", "3.0", "0.125", "1.25", "0.333", "0.01", "4.0")
        )
        if rng.random() < 0.25:
            digits = f"{rng.randint(0, 3)}.{rng.randint(1, 999)}"
        return Text(digits + self.suffix)

    def draw(self, atoms: Sequence[str], depth: int) -> Text:
        """An expression that uses `atoms` (each safe to read), about 2^`depth` leaves at most."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.12:
            return self._leaf(atoms)
        if self.kind == "unsigned":
            return self._bits(atoms, depth)
        roll = rng.random()
        if roll < 0.66:
            operator = rng.choice("++--**" if self.real else "++--+*")
            left = self.draw(atoms, depth - 1)
            # A product of two deep integers could overflow.
            right = self.constant() if operator == "*" and not self.real else self.draw(atoms, depth - 1)
            return binary(left, operator, right)
        if roll < 0.76:
            return self._quotient(atoms, depth)
        if roll < 0.86:
            return choose(self.test(atoms), self.draw(atoms, depth - 1), self.draw(atoms, depth - 1))
        if roll < 0.9:
            inner = self.draw(atoms, depth - 1)
            return Text("-" + inner.inside(_ATOM), _UNARY)
        if self.functions and roll < 0.95:
            return Text(f"{rng.choice(self.functions)}({self.draw(atoms, depth - 1).text})")
        return self._call(atoms, depth) if self.math else self._leaf(atoms)

    def test(self, atoms: Sequence[str]) -> Text:
        """A condition."""
        left = Text(self.rng.choice(atoms))
        right = self._leaf(atoms)
        if right.text == left.text or self.rng.random() < 0.5:
            right = Text(self.rng.choice(("0", self.constant().text)))
        operator = self.rng.choice(("<", ">", "<=", ">=") if self.real else ("<", ">", "<=", ">=", "==", "!="))
        return binary(left, operator, right)

    def _leaf(self, atoms: Sequence[str]) -> Text:
        return self.constant() if self.rng.random() < 0.18 else Text(self.rng.choice(atoms))

    def _quotient(self, atoms: Sequence[str], depth: int) -> Text:
        left = self.draw(atoms, depth - 1)
        if not self.real:
            operator = self.rng.choice("/%")
            return binary(left, operator, Text(str(self.rng.choice((2, 3, 4, 5, 8, 16)))))
        if self.rng.random() < 0.5:
            return binary(left, "/", Text(self.rng.choice(("2", "3", "4", "2.0", "8")) + ""))
        atom = Text(self.rng.choice(atoms))
        positive = binary(Text("1" if self.rng.random() < 0.5 else "1.0" + self.suffix), "+", binary(atom, "*", atom))
        return binary(left, "/", positive)

    def _bits(self, atoms: Sequence[str], depth: int) -> Text:
        rng = self.rng
        operator = rng.choice(("^", "&", "|", "+", "*", "<<", ">>", "-"))
        left = self.draw(atoms, depth - 1)
        if operator in ("<<", ">>"):
            return binary(left, operator, Text(str(rng.randint(1, 24))))
        return binary(left, operator, self.constant() if operator == "*" else self.draw(atoms, depth - 1))

    def _call(self, atoms: Sequence[str], depth: int) -> Text:
        self.used_math = True
        f = self.suffix
        inner = self.draw(atoms, depth - 1)
        name = self.rng.choice(("fabs", "sqrt", "exp", "tanh", "sin", "cos", "log", "fmax", "fmin", "floor"))
        if name in ("sqrt", "log"):
            return Text(f"{name}{f}(1{'.0' + f if self.rng.random() < 0.5 else ''} + fabs{f}({inner.text}))")
        if name == "exp":
            return Text(f"exp{f}(-fabs{f}({inner.text}))")
        if name in ("fmax", "fmin"):
            return Text(f"{name}{f}({inner.text}, {self._leaf(atoms).text})")
        return Text(f"{name}{f}({inner.text})")
