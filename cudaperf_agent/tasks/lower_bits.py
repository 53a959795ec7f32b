"""Bits read as another type: local unions of scalars, and ``memcpy`` of one scalar into another.

A union whose members are all scalars of one size is kept as one number of that size, its first unsigned member's type;
the other members are the same bits, read or written through `ir.Reinterpret`.
"""

from __future__ import annotations

from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_types import CannotLower, ctype_of, line_of
from cudaperf_agent.tasks.model import CType, TypeKind


def union_storage(clang_type: Any, line: int) -> CType | None:
    """The type that stands for a union; `None` where the type is none.

    Raises:
        CannotLower: Its members are not all scalars of one size.
    """
    declaration = clang_type.get_canonical().get_declaration()
    if declaration.kind.name != "UNION_DECL":
        return None
    kinds = [ctype_of(member.type, line) for member in clang_type.get_canonical().get_fields()]
    plain = all(k.kind in (TypeKind.INT, TypeKind.UINT, TypeKind.FLOAT) for k in kinds)
    if not kinds or not plain or len({k.size for k in kinds}) != 1:
        raise CannotLower("a union of anything but scalars of one size is not supported", line)
    return next((k for k in kinds if k.kind is TypeKind.UINT), kinds[0])


def union_variable(cursor: Any, names: dict[int, str]) -> tuple[ir.Ref, CType] | None:
    """For ``u.member`` of a local union: the variable that stands for it, and the member's type."""
    if cursor.kind.name != "MEMBER_REF_EXPR":
        return None
    base = next(iter(cursor.get_children()), None)
    if base is None or base.kind.name != "DECL_REF_EXPR" or base.referenced.hash not in names:
        return None
    line = line_of(cursor)
    storage = union_storage(base.type, line)
    if storage is None:
        return None
    return ir.Ref(names[base.referenced.hash], storage, line), ctype_of(cursor.type, line)


def as_type(value: ir.Expr, kind: CType, line: int) -> ir.Expr:
    """The bits of a value as a value of another type of the same size."""
    if value.type == kind:
        return value
    if value.type is not None and TypeKind.FLOAT not in (value.type.kind, kind.kind):
        return ir.Cast(value, kind, line=line)
    return ir.Reinterpret(value, kind, line)
