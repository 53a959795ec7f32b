"""Accesses to memory with the iterations in which they happen, and updates of memory recognised as such."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cudaperf_agent.codegen.affine import Poly
from cudaperf_agent.tasks import ir

_UPDATES = {"+=": "+", "-=": "+", "*=": "*", "&=": "&", "|=": "|", "^=": "^"}


@dataclass(frozen=True, slots=True)
class Constraint:
    """``poly >= 0``, or ``poly == 0``."""

    poly: Poly
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Domain:
    """When something happens: loop variables from outside in, free variables, and what holds."""

    dims: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    def within(self, *more: Constraint) -> Domain:
        """With further constraints."""
        return replace(self, constraints=(*self.constraints, *more))


@dataclass(frozen=True, slots=True)
class Access:
    """One place in the text that touches memory.

    Attributes:
        root: The buffer: a parameter, a table, or a local array outside the piece.
        indices: One polynomial per dimension as written, `None` where the access went through an alias or the
            buffer is flat.
        flat: Index in elements from the buffer's start, `None` where the sizes of the dimensions are not known.
        write: Whether it stores.
        update: ``+``, ``*``, ``&``, ``|`` or ``^`` for ``place op= value`` that does not look at the old value
            otherwise, else `None`.
        domain: When it happens.
        order: Position in the text.
        line: Source line.
    """

    root: str
    indices: tuple[Poly, ...] | None
    flat: Poly | None
    write: bool
    update: str | None
    domain: Domain
    order: int
    line: int


@dataclass(frozen=True, slots=True)
class Alias:
    """Where a local pointer points: an offset in elements into a buffer; offset `None` is unknown."""

    root: str
    offset: Poly | None


@dataclass
class Names:
    """Fresh free variables, and one name for each loop-invariant term that is no polynomial."""

    count: int = 0
    terms: dict[str, str] = field(default_factory=dict)

    def free(self) -> str:
        """A fresh free variable."""
        self.count += 1
        return f"u{self.count}_"


def update_of(statement: ir.Assign) -> tuple[str | None, ir.Expr]:
    """The operator of ``place = place op value`` in any spelling, and the value.

    Returns:
        ``+`` (also for ``-=``), ``*``, ``&``, ``|``, ``^``, or `None` where the assignment is no such update.
    """
    if statement.op in _UPDATES:
        return _UPDATES[statement.op], statement.value
    if statement.op != "=":
        return None, statement.value
    value = statement.value
    while isinstance(value, ir.Cast) and value.type == statement.target.type:
        value = value.operand
    if isinstance(value, ir.Binary) and value.op in ("+", "*", "&", "|", "^", "-"):
        if same(value.left, statement.target):
            return ("+" if value.op == "-" else value.op), value.right
        if value.op != "-" and same(value.right, statement.target):
            return value.op, value.left
    return None, statement.value


def same(left: ir.Expr, right: ir.Expr) -> bool:
    """Whether two expressions are written alike, apart from implicit conversions and lines."""
    return bare(left) == bare(right)


def bare(expr: ir.Expr) -> ir.Expr:
    """The expression without implicit conversions and line numbers."""

    def cleaned(node: ir.Node) -> ir.Node:
        if isinstance(node, ir.Cast) and node.implicit:
            return node.operand
        return replace(node, line=0)

    result: ir.Expr = ir.rewrite(expr, cleaned)
    return result
