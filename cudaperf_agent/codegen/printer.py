"""The loop IR as CUDA C++ text: expressions with no more parentheses than needed, and statements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cudaperf_agent.codegen.accesses import update_of
from cudaperf_agent.codegen.atomics import atomic_call
from cudaperf_agent.codegen.steps import Symbol
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import CType, TypeKind

INDENT = "    "
_PRECEDENCE = {
    "*": 12, "/": 12, "%": 12, "+": 11, "-": 11, "<<": 10, ">>": 10, "<": 9, ">": 9, "<=": 9, ">=": 9, "==": 8,
    "!=": 8, "&": 7, "^": 6, "|": 5, "&&": 4, "||": 3,
}  # fmt: skip
_SELECT, _UNARY, _ATOM = 2, 13, 15
_SUFFIX = {
    "int": "", "unsigned int": "u", "long": "L", "unsigned long": "UL", "long long": "LL", "unsigned long long": "ULL",
}  # fmt: skip


def constant(value: int | float, kind: CType) -> str:
    """A literal of a type."""
    if kind.kind is TypeKind.FLOAT:
        return _real(float(value), kind)
    number = int(value)
    if kind.kind is TypeKind.BOOL:
        return "true" if number else "false"
    suffix = _SUFFIX.get(kind.spelling, "")
    if number < 0 and number == -(1 << (8 * kind.size - 1)) and kind.size >= 4:
        return f"({number + 1}{suffix} - 1)"
    return f"{number}{suffix}"


def _real(value: float, kind: CType) -> str:
    if math.isnan(value):
        return "NAN" if kind.size == 4 else "(double)NAN"
    if math.isinf(value):
        sign = "-" if value < 0 else ""
        return f"{sign}INFINITY" if kind.size == 4 else f"{sign}(double)INFINITY"
    text = str(np.float32(value)) if kind.size == 4 else repr(value)
    if not any(c in text for c in ".e"):
        text += ".0"
    return f"{text}f" if kind.size == 4 else text


@dataclass
class Printer:
    """Prints IR in the terms of one kernel or of the host function.

    Attributes:
        symbols: For the dimensions of arrays.
        atomic: Pointers whose updates are made with atomics.
        tables: Extra arguments of each helper: the file-scope tables it reads.
        load: Replaces the text of a load, or returns `None` to keep it (tiles in shared memory).
        unroll: Factor of ``#pragma unroll`` for innermost counted loops; 0 for none.
    """

    symbols: Mapping[str, Symbol]
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    atomic: frozenset[str] = frozenset()
    load: Callable[[ir.Load], str | None] | None = None
    unroll: int = 0

    # Expressions ----------------------------------------------------------------------------------------------

    def expr(self, node: ir.Expr, level: int = 0) -> str:
        """Text of an expression, parenthesised if its operator binds weaker than `level`."""
        text, binds = self._expr(node)
        return f"({text})" if binds < level else text

    def _expr(self, node: ir.Expr) -> tuple[str, int]:
        if isinstance(node, ir.Const):
            text = constant(node.value, node.type)
            return text, _UNARY if text.startswith("-") else _ATOM
        if isinstance(node, ir.Ref):
            return node.name, _ATOM
        if isinstance(node, ir.Load):
            return self._load(node), _ATOM
        if isinstance(node, ir.Member):
            return f"{self.expr(node.base, _ATOM)}.{node.field}", _ATOM
        if isinstance(node, ir.Element):
            return f"{self.expr(node.base, _ATOM)}[{self.expr(node.index)}]", _ATOM
        if isinstance(node, ir.Unary):
            inner = self.expr(node.operand, _UNARY)
            space = " " if inner.startswith(node.op) else ""
            return f"{node.op}{space}{inner}", _UNARY
        if isinstance(node, ir.Binary):
            mine = _PRECEDENCE[node.op]
            # Mixed bit and shift operators read better (and warn less) with parentheses.
            inner_level = 12 if node.op in ("&", "|", "^", "<<", ">>") else mine
            mixed = node.op == "||"
            left = self.expr(node.left, max(inner_level, mine) if not mixed else 5)
            right = self.expr(node.right, max(inner_level, mine + 1) if not mixed else 5)
            return f"{left} {node.op} {right}", mine
        if isinstance(node, ir.Select):
            parts = self.expr(node.condition, 3), self.expr(node.yes, _SELECT), self.expr(node.no, _SELECT)
            return f"{parts[0]} ? {parts[1]} : {parts[2]}", _SELECT
        if isinstance(node, ir.Cast):
            if node.implicit:
                return self._expr(node.operand)
            return f"({spelled(node.type)}){self.expr(node.operand, _UNARY)}", _UNARY
        if isinstance(node, ir.Address):
            return self._address(node)
        if isinstance(node, ir.Reinterpret):
            return f"bits_as<{spelled(node.type)}>({self.expr(node.operand)})", _ATOM
        extra = self.tables.get(node.name, ())
        return f"{node.name}({', '.join([*(self.expr(a) for a in node.arguments), *extra])})", _ATOM

    def flat(self, pointer: str, indices: Sequence[ir.Expr]) -> str:
        """The index in elements of an access to a pointer or an array that is passed flattened."""
        if len(indices) == 1:
            return self.expr(indices[0])
        dims = self.symbols[pointer].dims
        text = f"(long long){self.expr(indices[0], _UNARY)}"
        for position, index in enumerate(indices[1:], start=1):
            size = dims[position]
            width = self.expr(size, 12) if size is not None else "0"
            text = (
                f"({text} * {width} + {self.expr(index, 12)})"
                if position + 1 < len(indices)
                else (f"{text} * {width} + {self.expr(index, 11)}")
            )
        return text

    def _load(self, node: ir.Load) -> str:
        replaced = self.load(node) if self.load is not None else None
        if replaced is not None:
            return replaced
        symbol = self.symbols.get(node.pointer)
        if symbol is not None and symbol.pointer and symbol.name in self.local_arrays:
            return node.pointer + "".join(f"[{self.expr(i)}]" for i in node.indices)
        return f"{node.pointer}[{self.flat(node.pointer, node.indices)}]"

    @property
    def local_arrays(self) -> frozenset[str]:
        """Arrays that are declared in the text itself, with their dimensions."""
        return self._local_arrays

    _local_arrays: frozenset[str] = frozenset()

    def _address(self, node: ir.Address) -> tuple[str, int]:
        if node.viewed:
            return f"({spelled(node.type)} *)({self._address(replace(node, viewed=False))[0]})", _UNARY
        *_, last = node.indices
        if node.pointer in self.local_arrays and len(node.indices) > 1:
            inside = "".join(f"[{self.expr(i)}]" for i in node.indices)
            return f"&{node.pointer}{inside}", _UNARY
        if len(node.indices) == 1 and isinstance(last, ir.Const) and last.value == 0:
            return node.pointer, _ATOM
        if len(node.indices) == 1:
            return f"{node.pointer} + {self.expr(last, 12)}", 11
        return f"{node.pointer} + ({self.flat(node.pointer, node.indices)})", 11

    # Statements -----------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[ir.Stmt], depth: int) -> list[str]:
        """Lines of statements at an indentation depth."""
        lines: list[str] = []
        for statement in statements:
            lines += self.statement(statement, depth)
        return lines

    def statement(self, node: ir.Stmt, depth: int) -> list[str]:
        """Lines of one statement."""
        pad = INDENT * depth
        if isinstance(node, ir.Declare):
            return [pad + self.declaration(node)]
        if isinstance(node, ir.Point):
            return [pad + self._point(node)]
        if isinstance(node, ir.Assign):
            return [pad + self.assignment(node) + ";"]
        if isinstance(node, ir.For):
            return self._for(node, depth)
        if isinstance(node, ir.While):
            return self._while(node, depth)
        if isinstance(node, ir.If):
            return self._if(node, depth)
        if isinstance(node, ir.Break):
            return [pad + "break;"]
        if isinstance(node, ir.Continue):
            return [pad + "continue;"]
        if isinstance(node, ir.Return):
            return [pad + (f"return {self.expr(node.value)};" if node.value is not None else "return;")]
        if isinstance(node, ir.Evaluate):
            return [f"{pad}{self.expr(node.call)};"]
        if isinstance(node, ir.Copy):
            return self._copy(node, depth)
        if isinstance(node, ir.Fill):
            return self._fill(node, depth)
        raise AssertionError(f"{type(node).__name__} cannot be inside a kernel")

    def declaration(self, node: ir.Declare) -> str:
        """A declaration, ``const`` left out."""
        dims = "".join(f"[{self.expr(d)}]" for d in node.dims)
        if node.dims:
            self._local_arrays |= {node.name}
        if node.values is not None:
            kinds = [f.type for f in node.type.fields] or [node.type] * len(node.values)
            values = ", ".join(_fitting(self.expr(v), v, k) for v, k in zip(node.values, kinds, strict=False))
            return f"{spelled(node.type)} {node.name}{dims} = {{{values}}};"
        init = f" = {self.expr(node.init)}" if node.init is not None else ""
        return f"{spelled(node.type)} {node.name}{dims}{init};"

    def _point(self, node: ir.Point) -> str:
        target = f"{'const ' if node.const else ''}{spelled(node.type)} *{node.name}" if node.declares else node.name
        return f"{target} = {self._address(node.source)[0]};" if node.source is not None else f"{target};"

    def assignment(self, node: ir.Assign) -> str:
        """An assignment without its semicolon; ``++`` where it is one."""
        place = ir.root(node.target)
        target = self.expr(node.target)
        if isinstance(place, ir.Load) and place.pointer in self.atomic:
            _, value = update_of(node)
            return atomic_call(node, target, self.expr(value))
        if node.op in ("+=", "-=") and isinstance(node.value, ir.Const) and node.value.value == 1:
            return f"{target}{node.op[0] * 2}"
        return f"{target} {node.op} {self.expr(node.value)}"

    def header(self, node: ir.For, start: str | None = None, step: str | None = None) -> str:
        """The head of a counted loop, with another start or step if given."""
        declared = f"{spelled(node.type)} " if node.declared else ""
        first = start if start is not None else self.expr(node.start)
        return (
            f"for ({declared}{node.variable} = {first}; {node.variable} {node.relation} {self.expr(node.bound, 10)}; "
            f"{step if step is not None else stepped(node)})"
        )

    def _for(self, node: ir.For, depth: int) -> list[str]:
        pad = INDENT * depth
        lines = []
        if self.unroll and not any(isinstance(n, ir.For | ir.While) for n in ir.walk(*node.body)):
            lines.append(f"{pad}#pragma unroll {self.unroll}")
        return [*lines, f"{pad}{self.header(node)} {{", *self.block(node.body, depth + 1), f"{pad}}}"]

    def _while(self, node: ir.While, depth: int) -> list[str]:
        pad = INDENT * depth
        body = self.block(node.body, depth + 1)
        if node.test_last:
            return [f"{pad}do {{", *body, f"{pad}}} while ({self.expr(node.condition)});"]
        if not node.update:
            return [f"{pad}while ({self.expr(node.condition)}) {{", *body, f"{pad}}}"]
        update = ", ".join(self.statement(s, 0)[0].rstrip(";") for s in node.update)
        return [f"{pad}for (; {self.expr(node.condition)}; {update}) {{", *body, f"{pad}}}"]

    def _if(self, node: ir.If, depth: int) -> list[str]:
        pad = INDENT * depth
        lines = [f"{pad}if ({self.expr(node.condition)}) {{", *self.block(node.then, depth + 1)]
        if node.otherwise:
            lines += [f"{pad}}} else {{", *self.block(node.otherwise, depth + 1)]
        return [*lines, f"{pad}}}"]

    def _copy(self, node: ir.Copy, depth: int) -> list[str]:
        pad = INDENT * depth
        target, source = self._address(node.target)[0], self._address(node.source)[0]
        return [
            f"{pad}for (long long at_ = 0; at_ < (long long)({self.expr(node.count)}); at_++)",
            f"{pad}{INDENT}({target})[at_] = ({source})[at_];",
        ]

    def _fill(self, node: ir.Fill, depth: int) -> list[str]:
        pad = INDENT * depth
        size = f" * sizeof({spelled(node.target.type)})"
        bytes_ = f"(unsigned char *)({self._address(node.target)[0]})"
        return [
            f"{pad}for (long long at_ = 0; at_ < (long long)(({self.expr(node.count)}){size}); at_++)",
            f"{pad}{INDENT}({bytes_})[at_] = (unsigned char)({self.expr(node.byte)});",
        ]


def stepped(node: ir.For) -> str:
    """The update of a counted loop."""
    if abs(node.step) == 1:
        return f"{node.variable}{'++' if node.step > 0 else '--'}"
    return f"{node.variable} {'+' if node.step > 0 else '-'}= {abs(node.step)}"


def spelled(kind: CType | None) -> str:
    """A type in C++."""
    if kind is None:
        return "void"
    return "bool" if kind.kind is TypeKind.BOOL else kind.spelling


def is_zero(expr: ir.Expr) -> bool:
    """Whether an expression is the literal 0, converted or not."""
    while isinstance(expr, ir.Cast):
        expr = expr.operand
    return isinstance(expr, ir.Const) and expr.value == 0


def _fitting(text: str, value: ir.Expr, kind: CType) -> str:
    """An initialiser inside braces, where C++ allows no narrowing."""
    inner = value.operand if isinstance(value, ir.Cast) and value.implicit else value
    if kind.kind is TypeKind.STRUCT or inner.type == kind or isinstance(inner, ir.Const):
        return text
    return f"({spelled(kind)})({text})"
