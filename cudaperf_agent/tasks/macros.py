"""Object-like macros and enum constants of a file: expanding them in the text of extents and ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks import expr
from cudaperf_agent.tasks.clang_c import Unit, evaluate_constant, is_function_macro, parse_c

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


@dataclass(slots=True)
class Macros:
    """The names that stand for constants.

    Attributes:
        unit: The file.
        bodies: Text of each object-like macro by name; headers' macros too.
        own: Names defined in the file itself, in order.
        constants: Enum constants by name.
        include_dirs: As the file was parsed with.
        defines: As the file was parsed with.
    """

    unit: Unit
    bodies: dict[str, str]
    own: tuple[str, ...]
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
            if name not in self.bodies or depth > 20:
                return name
            inner = self.expand(self.bodies[name], depth + 1)
            try:
                node = expr.parse(inner)
            except expr.ExprError:
                value = self.value(name)
                return name if value is None else str(value)
            return inner if node.op in ("num", "name") else f"({inner})"

        return _NAME.sub(replaced, text)

    def value(self, name: str) -> int | float | None:
        """The value that the compiler gives a macro (``FLT_MAX``), `None` if it is not a constant."""
        if name not in self._known:
            probe = f"{self.unit.source}\n__typeof__({name}) cudaperf_constant = ({name});\n"
            try:
                unit = parse_c(probe, self.unit.path, self.include_dirs, self.defines)
            except InputRefused:
                self._known[name] = None
            else:
                last = [c for c in unit.cursor.get_children() if c.spelling == "cudaperf_constant"][-1]
                self._known[name] = evaluate_constant(last)
        return self._known[name]


def read_macros(unit: Unit, include_dirs: tuple[str, ...], defines: tuple[str, ...]) -> Macros:
    """Collect a unit's object-like macros and enum constants."""
    bodies: dict[str, str] = {}
    own: list[str] = []
    constants: dict[str, int] = {}
    for cursor in unit.cursor.get_children():
        kind = cursor.kind.name
        if kind == "MACRO_DEFINITION" and not is_function_macro(cursor):
            tokens = [t.spelling for t in cursor.get_tokens()]
            if len(tokens) > 1:
                bodies[cursor.spelling] = " ".join(tokens[1:])
            if cursor.location.file is not None and cursor.location.file.name == unit.path:
                own.append(cursor.spelling)
        elif kind == "ENUM_DECL":
            constants.update(_enumerators(cursor))
    for define in defines:
        name, _, value = define.partition("=")
        bodies.setdefault(name, value or "1")
    return Macros(unit, bodies, tuple(own), constants, include_dirs, defines)


def _enumerators(cursor: Any) -> dict[str, int]:
    return {c.spelling: int(c.enum_value) for c in cursor.get_children() if c.kind.name == "ENUM_CONSTANT_DECL"}
