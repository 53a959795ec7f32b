"""What an expression can be worth to the analysis: an integer formula, a pointer, a record, a function, a mask."""

from __future__ import annotations

from dataclasses import dataclass, field

from cudaperf_agent.features.clang_cuda import Node
from cudaperf_agent.features.symbolic import ANY_THREAD, Poly


@dataclass(frozen=True, slots=True)
class Other:
    """A value that only matters by what it depends on.

    Attributes:
        mask: Thread dimensions it may vary along.
        data: Whether it derives from loaded data.
    """

    mask: int = 0
    data: bool = False


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address.

    Attributes:
        space: ``global``, ``shared``, ``local``, ``constant`` or ``host``.
        root: Name of the parameter or array it leads into.
        offset: Bytes from there.
    """

    space: str
    root: str
    offset: Poly


@dataclass(slots=True)
class Record:
    """A struct by value; members that are not listed are as `rest` says."""

    members: dict[str, Value] = field(default_factory=dict)
    rest: Other = Other()


@dataclass(frozen=True, slots=True)
class Function:
    """A function, a kernel or a lambda as a value."""

    node: Node


@dataclass(frozen=True, slots=True)
class Alias:
    """A reference to a variable of a caller."""

    key: int


Value = Poly | Pointer | Record | Function | Other


@dataclass(frozen=True, slots=True)
class Stored:
    """A variable that lies in memory that others see: reading it is a load."""

    pointer: Pointer


Binding = Value | Alias | Stored
"""What a variable stands for."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An lvalue that is a variable, or a member of one."""

    key: int
    member: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """An lvalue that is behind a pointer."""

    pointer: Pointer


Place = Variable | Memory | None
"""What an assignment writes to; `None` where that could not be told."""


def mask_of(value: Value) -> int:
    """Thread dimensions that a value may vary along."""
    if isinstance(value, Poly | Other):
        return value.mask
    if isinstance(value, Pointer):
        return value.offset.mask
    if isinstance(value, Record):
        mask = value.rest.mask
        for member in value.members.values():
            mask |= mask_of(member)
        return mask
    return 0


def has_data(value: Value) -> bool:
    """Whether a value derives from loaded data."""
    if isinstance(value, Poly):
        return any(a.sort == "load" for a in value.atoms())
    return value.data if isinstance(value, Other) else False


def join(left: Value, right: Value, mask: int) -> Other:
    """What is known of a value that is one of two, chosen by something of the given mask."""
    return Other((mask_of(left) | mask_of(right) | mask) & ANY_THREAD, has_data(left) or has_data(right))
