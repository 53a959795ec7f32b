"""A small syntax tree of C: what the analyses walk instead of libclang's cursors.

Parentheses and implicit conversions are gone, operators are text, constants are folded with macros expanded, and the
parts of a ``for`` are in their places even where some are absent. What is not modelled is `kind` ``other``, with its
children kept, so that an analysis can still be cautious about what is inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cudaperf_agent.tasks.clang_c import (
    Unit,
)


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """An expression.

    Attributes:
        kind: ``const string name unary binary assign call index member ternary cast sizeof list other``.
        line: 1-based source line.
        ctype: Canonical libclang type.
        op: Operator text (``assign``: ``=``, ``+=``, …; ``unary``: ``p++`` is postfix, ``*`` is dereference;
            ``member``: ``.`` or ``->``).
        args: Operands; of a call: the callee, then the arguments.
        name: Of a name, member or directly called function.
        key: Identity of the declaration that a name refers to.
        value: Of a constant.
    """

    kind: str
    line: int
    ctype: Any
    op: str = ""
    args: tuple[Expr, ...] = ()
    name: str = ""
    key: int = 0
    value: int | float = 0

    def walk(self) -> Iterator[Expr]:
        """This expression and all below it, in order."""
        yield self
        for argument in self.args:
            yield from argument.walk()


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A declared variable or parameter.

    Attributes:
        name: As written.
        key: Identity, as in `Expr.key`.
        ctype: libclang type as declared (for array parameters not yet decayed).
        line: 1-based source line.
        dims: Array dimensions, outermost first; `None` where absent (``a[]``).
        init: Initialiser.
        static: Declared ``static`` or ``extern``, or at file scope: it outlives a call.
        cursor: libclang's cursor.
    """

    name: str
    key: int
    ctype: Any
    line: int
    dims: tuple[Expr | None, ...] = ()
    init: Expr | None = None
    static: bool = False
    cursor: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Stmt:
    """A statement.

    Attributes:
        kind: ``block decl expr if for while do return break continue switch case goto label asm null other``.
        line: 1-based source line.
        body: Sub-statements: of an ``if`` the branches, of a loop its body, of a block its statements.
        init: First part of a ``for``.
        cond: Condition; value of ``return``, ``case`` or an expression statement.
        step: Third part of a ``for``.
        variables: Of a declaration.
    """

    kind: str
    line: int
    body: tuple[Stmt, ...] = ()
    init: Stmt | None = None
    cond: Expr | None = None
    step: Expr | None = None
    variables: tuple[Variable, ...] = ()

    def walk(self) -> Iterator[Stmt]:
        """This statement and all below it, in order."""
        yield self
        if self.init:
            yield from self.init.walk()
        for statement in self.body:
            yield from statement.walk()

    def expressions(self) -> Iterator[Expr]:
        """Every top expression in it, in source order."""
        for statement in self.walk():
            for variable in statement.variables:
                yield from (d for d in variable.dims if d is not None)
                if variable.init:
                    yield variable.init
            yield from (e for e in (statement.cond, statement.step) if e is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function definition.

    Attributes:
        name: As written.
        parameters: In order.
        body: Its block.
        static: Internal linkage.
        variadic: Ends in ``...``.
        returns: libclang result type.
        in_main_file: Written in the file itself rather than in a header.
        first_line: Line of its first token.
        last_line: Line of its closing brace.
        cursor: libclang's cursor.
    """

    name: str
    parameters: tuple[Variable, ...]
    body: Stmt
    static: bool
    variadic: bool
    returns: Any
    in_main_file: bool
    first_line: int
    last_line: int
    cursor: Any

    def expressions(self) -> Iterator[Expr]:
        """Every expression and sub-expression of the body."""
        for top in self.body.expressions():
            yield from top.walk()

    def calls(self) -> tuple[str, ...]:
        """Names of the functions it calls directly, each once, in order."""
        return tuple(dict.fromkeys(e.name for e in self.expressions() if e.kind == "call" and e.name))


@dataclass(frozen=True, slots=True, eq=False)
class CFile:
    """A parsed file: definitions of functions, file-scope variables, by name, in order."""

    unit: Unit
    functions: dict[str, Function]
    variables: dict[int, Variable]

    def closure(self, entry: str) -> tuple[Function, ...]:
        """The entry and every function of the file that it can call, entry first."""
        order: dict[str, Function] = {}
        pending = [entry]
        while pending:
            name = pending.pop(0)
            if name in self.functions and name not in order:
                order[name] = self.functions[name]
                pending += self.functions[name].calls()
        return tuple(order.values())


_INTEGER_KINDS = {
    "BOOL", "CHAR_U", "UCHAR", "CHAR_S", "SCHAR", "USHORT", "SHORT", "UINT", "INT", "ULONG", "LONG", "ULONGLONG",
    "LONGLONG", "ENUM",
}  # fmt: skip


def is_integer(ctype: Any) -> bool:
    """Whether a canonical libclang type is an integer, ``_Bool`` or an enum."""
    return ctype.kind.name in _INTEGER_KINDS
