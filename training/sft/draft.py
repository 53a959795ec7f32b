"""A C function in the making: parameters with their clauses, helpers, loops, and how its author writes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from training.sft import vocabulary as words
from training.sft.expressions import Expressions, Kind, Text

Node = str | tuple[str, "list[Node]"]
"""A statement, or a header with its body."""

_RANGES = {
    "float": ("-1..1", "-10..10", "-2..2", "0..1", "-100..100", "0.1..5"),
    "double": ("-1..1", "-10..10", "0..4"),
    "int": ("-20..20", "0..9", "-9..9", "0..15"),
    "unsigned": ("", "", "0..255", "0..65535"),
    "unsigned char": ("0..255",),
    "short": ("-20..20", "0..15"),
}


_NARROW = 0.25
"""Share of the inputs of integer programs that have a narrower type."""


@dataclass(slots=True)
class _Parameter:
    text: str
    clause: str
    group: str


@dataclass(slots=True)
class Draft:
    """One program in the making.

    Attributes:
        rng: Source of all choices.
        kind: Type of its values.
    """

    rng: random.Random
    kind: Kind
    names: words.Names = field(init=False)
    entry: str = field(init=False)
    parameters: list[_Parameter] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    expressions: Expressions = field(init=False)
    returns: str = "void"
    flat: bool = True
    _step: str = "++"
    _constants: int = 0

    def __post_init__(self) -> None:
        self.names = words.Names(self.rng)
        self.entry = self.names.function()
        self.flat = self.rng.random() < 0.75
        self._step = self.rng.choice(("{v}++", "{v}++", "{v}++", "++{v}", "++{v}", "{v} += 1"))
        math = self.rng.random() < 0.4
        self.expressions = Expressions(self.rng, self.kind, math=math)

    # What the function takes.

    def size(self, pool: tuple[str, ...] = words.SIZES, clause: str = "") -> str:
        """A size parameter."""
        name = self.names.pick(pool)
        const = "const " if self.rng.random() < 0.06 else ""
        self.parameters.append(_Parameter(f"{const}int {name}", f"{name} in {clause}" if clause else "", "size"))
        return name

    def scalar(self, kind: str | None = None) -> str:
        """A scalar parameter of the program's type."""
        name = self.names.pick(words.SCALARS)
        kind = kind or self.kind
        limits = {"int": "1..9", "unsigned": ""}.get(kind, self.rng.choice(("0..1", "-2..2", "0.1..3")))
        self.parameters.append(_Parameter(f"{kind} {name}", f"{name} in {limits}" if limits else "", "scalar"))
        return name

    def array(self, role: str, extent: str, kind: str | None = None, *, shape: str = "", limits: str | None = None,
              more: str = "") -> str:  # fmt: skip
        """A pointer or array parameter.

        Args:
            role: ``in``, ``out``, ``inout`` or ``index``.
            extent: C expression of its elements.
            kind: Its element type.
            shape: ``[rows][cols]`` to declare it with its shape.
            limits: Range of its values; drawn where `None`.
            more: Words between the extent and the range.
        """
        name = self.names.pick(words.INPUTS if role in ("in", "index") else words.OUTPUTS)
        if kind is None:
            narrow = self.kind == "int" and role == "in" and self.rng.random() < _NARROW
            kind = self.rng.choice(("unsigned char", "short")) if narrow else self.kind
        const = "const " if role in ("in", "index") else ""
        pointer = f" {name}{shape}" if shape else f" *{name}" if self.rng.random() < 0.93 else f" *restrict {name}"
        if limits is None:
            limits = self.rng.choice(_RANGES[kind])
        ranged = f" in {limits}" if limits and role != "out" else ""
        clause = f"{role} {name}[{extent.replace(' ', '')}]{' ' + more if more else ''}{ranged}"
        self.parameters.append(_Parameter(f"{const}{kind}{pointer}", clause, "array"))
        return name

    def grid(self, role: str, rows: str, cols: str, kind: str | None = None) -> str:
        """A matrix, flat or with its shape, as this author writes."""
        shape = "" if self.flat else f"[{rows}][{cols}]"
        return self.array(role, f"{rows} * {cols}", kind, shape=shape)

    def cell(self, name: str, row: str, col: str, cols: str) -> str:
        """The C of an element of a `grid`."""
        if not self.flat:
            return f"{name}[{row}][{col}]"
        row = row if row.isidentifier() or row.isdigit() else f"({row})"
        return f"{name}[{row} * {cols} + {col}]"

    def constant(self, value: int) -> str:
        """A number, or a macro that stands for it."""
        if self.rng.random() < 0.45:
            return str(value)
        name = self.names.pick(words.CONSTANTS)
        self.before.append(f"#define {name} {value}")
        return name

    def helper(self) -> None:
        """A function of one argument of the program's type, for its expressions to call."""
        name, argument = self.names.pick(words.HELPERS), self.rng.choice("vtxapq")
        body = Expressions(self.rng, self.kind).draw([argument], 2).text
        inline = self.rng.choice(("static ", "static inline ", "static "))
        self.before.append(f"{inline}{self.kind} {name}({self.kind} {argument})\n{{\n    return {body};\n}}\n")
        self.expressions.functions = (*self.expressions.functions, name)

    # What it does.

    def counter(self, level: int = 0) -> str:
        """A loop counter."""
        return self.names.pick((words.COUNTERS, words.SECOND, words.THIRD, words.THIRD)[level])

    def local(self, pool: tuple[str, ...] = words.LOCALS) -> str:
        """A local variable's name."""
        return self.names.pick(pool)

    def loop(self, variable: str, start: str, end: str, body: list[Node]) -> Node:
        """``for`` from `start` to before `end`."""
        test = f"{variable} < {end}"
        roll = self.rng.random()
        if roll < 0.06 and "&&" not in end:
            test = f"{end} > {variable}"
        elif roll < 0.1 and end.isidentifier():
            test = f"{variable} <= {end} - 1"
        return (f"for (int {variable} = {start}; {test}; {self._step.format(v=variable)})", body)

    def draw(self, atoms: list[str], depth: int | None = None) -> Text:
        """An expression over atoms; `depth` is drawn where `None`."""
        return self.expressions.draw(atoms, depth if depth is not None else self.rng.choice((1, 2, 2, 3)))

    # The text.

    def source(self, body: list[Node]) -> str:
        """The whole file."""
        rng = self.rng
        order = rng.choice((("size", "array", "scalar"), ("array", "size", "scalar"), ("size", "scalar", "array"),
                            ("scalar", "size", "array"), ("array", "scalar", "size")))  # fmt: skip
        if not self.flat:
            order = rng.choice((("size", "array", "scalar"), ("size", "scalar", "array")))
        chosen = [p for group in order for p in self.parameters if p.group == group]
        if "restrict" not in "".join(p.text for p in chosen) and rng.random() < 0.05:
            chosen = [_Parameter(p.text.replace(" *", " *restrict "), p.clause, p.group) for p in chosen]
        clauses = "; ".join(p.clause for p in chosen if p.clause)
        head = f"{self.returns} {self.entry}({', '.join(p.text for p in chosen)})"
        includes = ["#include <math.h>"] if self.expressions.used_math or rng.random() < 0.05 else []
        before = [line for line in self.before if line.startswith("#")]
        before += [line for line in self.before if not line.startswith("#")]
        lines = [*includes, *before, f"/* cudaperf: {clauses} */", head, "{", *self._printed(body, 1), "}", ""]
        text = "\n".join(lines)
        unit = rng.choice(("    ", "    ", "    ", "  ", "\t"))
        return text.replace("    ", unit) if unit != "    " else text

    def _printed(self, nodes: list[Node], depth: int) -> list[str]:
        allman = self.rng.random() < 0.15
        lines: list[str] = []
        pad = "    " * depth
        for node in nodes:
            if isinstance(node, str):
                lines += [pad + part for part in node.split("\n")]
                continue
            header, body = node
            bare = len(body) == 1 and self.rng.random() < (0.65 if isinstance(body[0], str) else 0.5)
            inner = self._printed(body, depth + 1)
            if bare:
                lines += [pad + header, *inner]
            elif allman:
                lines += [pad + header, pad + "{", *inner, pad + "}"]
            else:
                lines += [pad + header + " {", *inner, pad + "}"]
        return lines
