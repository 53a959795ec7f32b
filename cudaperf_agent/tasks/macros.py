"""Object-like macros and enum constants of a file: expanding them in the text of extents and ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks import expr
from cudaperf_agent.tasks.clang_c import Unit, evaluate_constant, is_function_macro, parse_c

MAX_DEPTH = 20
"""Macros that expand to macros are followed so far."""

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


@dataclass(slots=True)
class Macros:
    """The names that stand for constants.

    Attributes:
        unit: The file.
        constants: Enum constants by name.
        include_dirs: As the file was parsed with.
        defines: As the file was parsed with.
    """

    unit: Unit
    constants: dict[str, int]
    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    _known: dict[str, int | float | None] = field(default_factory=dict)

    def expand(self, text: str, depth: int = 0) -> str:
        """`text` with macros and enum constants replaced; names that are neither stay."""

        def replaced(match: re.Match[str]) -> str:
            name = match.group()
            if name in self.constants:
                return str(self.constants[name])
            body = self.body(name)
            if body is None or depth > MAX_DEPTH:
                return name
            inner = self.expand(body, depth + 1)
            try:
                node = expr.parse(inner)
            except expr.ExprError:
                value = self.value(name)
                return name if value is None else str(value)
            return str(node.value) if node.op == "num" else inner if node.op == "name" else f"({inner})"

        return _NAME.sub(replaced, text)

    def body(self, name: str) -> str | None:
        """The text that an object-like macro stands for, `None` if there is no such macro."""
        cursor = self.unit.macros.get(name)
        if cursor is not None and not is_function_macro(cursor):
            return " ".join(t.spelling for t in cursor.get_tokens()).partition(" ")[2] or None
        for define in self.defines:
            defined, _, text = define.partition("=")
            if defined == name:
                return text or "1"
        return None

    def value(self, name: str) -> int | float | None:
        """The value that the compiler gives a macro (``FLT_MAX``), `None` if it is not a constant."""
        if name not in self._known:
            probe = f"{self.unit.source}\n__typeof__({name}) cudaperf_constant = ({name});\n"
            try:
                unit = parse_c(probe, self.unit.path, self.include_dirs, self.defines)
            except InputRefused:
                self._known[name] = None
            else:
                last = [c for c in unit.declarations if c.spelling == "cudaperf_constant"][-1]
                self._known[name] = evaluate_constant(last)
        return self._known[name]


def read_macros(unit: Unit, include_dirs: tuple[str, ...], defines: tuple[str, ...]) -> Macros:
    """The macros and enum constants of a unit."""
    constants: dict[str, int] = {}
    for cursor in unit.declarations:
        if cursor.kind.name == "ENUM_DECL":
            constants.update(_enumerators(cursor))
    return Macros(unit, constants, include_dirs, defines)


def _enumerators(cursor: Any) -> dict[str, int]:
    return {c.spelling: int(c.enum_value) for c in cursor.get_children() if c.kind.name == "ENUM_CONSTANT_DECL"}
