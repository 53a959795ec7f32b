"""The loop IR: a C function as typed statements and expressions with explicit loops, accesses and source lines.

It is what remains of C once macros, implicit conversions, pointer arithmetic and side effects inside expressions are
gone. Every name in a function is unique (shadowing is resolved), every `For` counts by a constant step towards a bound
that its body does not change, and every memory access names a pointer and one index per dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias

from cudaperf_agent.tasks.model import CType, TypeKind

INT = CType("int", TypeKind.INT, 4, 4)
LONG = CType("long", TypeKind.INT, 8, 8)
LONG_LONG = CType("long long", TypeKind.INT, 8, 8)


@dataclass(frozen=True, slots=True)
class Const:
    """A literal, an enumerator, a ``sizeof`` or a macro's value."""

    value: int | float
    type: CType
    line: int = 0


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of a scalar or struct variable."""

    name: str
    type: CType
    line: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """One element behind a pointer or of an array: one index per dimension, in elements."""

    pointer: str
    indices: tuple[Expr, ...]
    type: CType
    line: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a struct value."""

    base: Expr
    field: str
    type: CType
    line: int = 0


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array that is a struct's member."""

    base: Expr
    index: Expr
    type: CType
    line: int = 0


@dataclass(frozen=True, slots=True)
class Unary:
    """``-``, ``+``, ``~`` or ``!``."""

    op: str
    operand: Expr
    type: CType
    line: int = 0


@dataclass(frozen=True, slots=True)
class Binary:
    """Any C operator of two values, ``&&`` and ``||`` included."""

    op: str
    left: Expr
    right: Expr
    type: CType
    line: int = 0


@dataclass(frozen=True, slots=True)
class Select:
    """``condition ? yes : no``."""

    condition: Expr
    yes: Expr
    no: Expr
    type: CType
    line: int = 0


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion; ``implicit`` ones need no spelling in C or C++, ``exact`` ones are known to keep the value."""

    operand: Expr
    type: CType
    implicit: bool = False
    line: int = 0
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Reinterpret:
    """The bytes of a scalar as a scalar of another type of the same size."""

    operand: Expr
    type: CType
    line: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """A pointer value: ``&pointer[indices]``, the last index being an offset in elements.

    Its elements are of `type`; `viewed` where that is another integer type of the same size than the buffer's.
    """

    pointer: str
    indices: tuple[Expr, ...]
    type: CType
    line: int = 0
    viewed: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a helper of the same file or of a known function of the mathematical library."""

    name: str
    arguments: tuple[Expr, ...]
    type: CType | None
    line: int = 0


Expr: TypeAlias = Const | Ref | Load | Member | Element | Unary | Binary | Select | Cast | Reinterpret | Address | Call
Place: TypeAlias = Ref | Load | Member | Element


@dataclass(frozen=True, slots=True)
class Declare:
    """A local scalar, struct or array (with ``dims``). ``values`` initialise an array or struct in flat order."""

    name: str
    type: CType
    init: Expr | None = None
    dims: tuple[Expr, ...] = ()
    values: tuple[Expr, ...] | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Point:
    """A local pointer is made (``declares``) or moved; ``source`` `None` is an uninitialised declaration."""

    name: str
    type: CType
    source: Address | None
    const: bool = False
    declares: bool = True
    line: int = 0


@dataclass(frozen=True, slots=True)
class Allocate:
    """``name = malloc(count * sizeof(type))``, or ``calloc`` with ``zero``."""

    name: str
    type: CType
    count: Expr
    zero: bool = False
    declares: bool = True
    line: int = 0


@dataclass(frozen=True, slots=True)
class Release:
    """``free(name)``."""

    name: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Assign:
    """``target op value`` with op ``=`` or a compound assignment; ``x++`` is ``x += 1``."""

    target: Place
    op: str
    value: Expr
    line: int = 0


@dataclass(frozen=True, slots=True)
class For:
    """``for (variable = start; variable relation bound; variable += step) body``.

    Attributes:
        variable: Not assigned in the body.
        type: Of the variable.
        declared: Declared by the loop itself, hence dead after it.
        start, bound: Values that the body does not change.
        relation: ``<``, ``<=``, ``>``, ``>=`` or ``!=``.
        step: Constant, not 0.
    """

    variable: str
    type: CType
    declared: bool
    start: Expr
    relation: str
    bound: Expr
    step: int
    body: tuple[Stmt, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class While:
    """Any other loop. ``update`` runs after the body and on ``continue``; ``test_last`` is ``do … while``."""

    condition: Expr
    body: tuple[Stmt, ...]
    update: tuple[Stmt, ...] = ()
    test_last: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class If:
    """``if (condition) then else otherwise``."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Break:
    """``break`` out of the innermost loop."""

    line: int = 0


@dataclass(frozen=True, slots=True)
class Continue:
    """``continue`` with the innermost loop."""

    line: int = 0


@dataclass(frozen=True, slots=True)
class Return:
    """``return value``."""

    value: Expr | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Evaluate:
    """A call for its effect."""

    call: Call
    line: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """``memcpy`` or ``memmove`` of ``count`` elements of one type."""

    target: Address
    source: Address
    count: Expr
    line: int = 0


@dataclass(frozen=True, slots=True)
class Fill:
    """``memset`` of ``count`` elements with a byte."""

    target: Address
    byte: Expr
    count: Expr
    line: int = 0


Stmt: TypeAlias = (
    Declare
    | Point
    | Allocate
    | Release
    | Assign
    | For
    | While
    | If
    | Break
    | Continue
    | Return
    | Evaluate
    | Copy
    | Fill
)
Node: TypeAlias = Expr | Stmt


def children(node: Node) -> Iterator[Any]:
    """Direct sub-expressions and sub-statements, in evaluation order."""
    for name in _names(type(node)):
        value = getattr(node, name)
        for item in value if isinstance(value, tuple) else (value,):
            if _names(type(item)) and not isinstance(item, CType):
                yield item


_NAMES: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; ``()`` for other types. Asked for each node of each walk, hence remembered."""
    names = _NAMES.get(kind)
    if names is None:
        names = _NAMES[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return names


def walk(*nodes: Node) -> Iterator[Node]:
    """The nodes and everything below them, parents first."""
    for node in nodes:
        yield node
        yield from walk(*children(node))


def rewrite(node: Any, change: Any) -> Any:
    """A copy with ``change(n)`` applied bottom-up to every node; ``change`` returns its argument to keep it."""
    updates: dict[str, Any] = {}
    for name in _names(type(node)):
        value = getattr(node, name)
        if isinstance(value, tuple) and any(_names(type(item)) for item in value):
            new: Any = tuple(rewrite(item, change) if _names(type(item)) else item for item in value)
        elif _names(type(value)) and not isinstance(value, CType):
            new = rewrite(value, change)
        else:
            continue
        if new != value:
            updates[name] = new
    return change(replace(node, **updates) if updates else node)


def root(place: Expr) -> Ref | Load | None:
    """The variable or element that a place is a part of."""
    while isinstance(place, Member | Element):
        place = place.base
    return place if isinstance(place, Ref | Load) else None
