"""Lowered C: functions with their parameters and file-scope variables, whose bodies are statements of the loop IR."""

from __future__ import annotations

from dataclasses import dataclass

from cudaperf_agent.tasks.ir import Expr, Stmt
from cudaperf_agent.tasks.model import CType


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a function.

    Attributes:
        name: Unique name (C++ keywords renamed).
        type: Of the scalar or of the elements.
        pointer: Whether it is a pointer or an array.
        const: Pointer to const.
        dims: Sizes of an array parameter, outermost first; the outermost is `None` where C does not state it;
            ``()`` for plain pointers.
    """

    name: str
    type: CType
    pointer: bool
    const: bool = False
    dims: tuple[Expr | None, ...] = ()


@dataclass(frozen=True, slots=True)
class FileTable:
    """A file-scope variable; ``dims`` are constants, ``()`` for one value."""

    name: str
    type: CType
    dims: tuple[int, ...]
    const: bool


@dataclass(frozen=True, slots=True)
class Function:
    """A lowered function. ``tables`` are the file-scope variables that it or what it calls touches."""

    name: str
    params: tuple[Param, ...]
    returns: CType | None
    body: tuple[Stmt, ...]
    tables: tuple[FileTable, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Module:
    """An entry and the helpers it needs, callees first."""

    entry: Function
    helpers: tuple[Function, ...] = ()

    def helper(self, name: str) -> Function | None:
        """The helper of that name, `None` for functions of the mathematical library."""
        return next((h for h in self.helpers if h.name == name), None)


@dataclass(frozen=True, slots=True)
class Unlowered:
    """The C uses something that the IR cannot express."""

    reason: str
    line: int
