"""libclang's types as the model's, and what the lowering asks of a cursor: line, text, whether it is a pointer."""

from __future__ import annotations

from typing import Any

from cudaperf_agent.tasks.model import CType, Field, TypeKind

POINTER_KINDS = ("POINTER", "CONSTANTARRAY", "VARIABLEARRAY", "INCOMPLETEARRAY", "DEPENDENTSIZEDARRAY")
"""Kinds of types whose values are pointers or decay to one; the first is the pointer itself."""


class CannotLower(Exception):
    """Control flow inside the lowering; it leaves as an `lowered.Unlowered`."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def line_of(cursor: Any) -> int:
    """1-based source line."""
    return int(cursor.location.line)


def is_pointer(clang_type: Any) -> bool:
    """Whether values of the type are pointers or decay to one."""
    return clang_type.get_canonical().kind.name in POINTER_KINDS


def pointee(clang_type: Any) -> Any:
    """The type of one element behind a pointer or of an array, all array dimensions stripped."""
    current = clang_type.get_canonical()
    while current.kind.name in POINTER_KINDS:
        inner = current.get_pointee() if current.kind.name == "POINTER" else current.element_type
        current = inner.get_canonical()
    return current


def ctype_of(clang_type: Any, line: int) -> CType:
    """The model's type of a complete object type.

    Raises:
        CannotLower: For pointers, unions, bit-fields, ``long double``, complex numbers and vectors.
    """
    canonical = clang_type.get_canonical()
    kind, size, align = canonical.kind.name, canonical.get_size(), canonical.get_align()
    spelling = canonical.spelling.replace("const ", "").replace("volatile ", "").strip()
    if kind == "BOOL":
        return CType("bool", TypeKind.BOOL, size, align)
    if kind == "ENUM":
        return ctype_of(canonical.get_declaration().enum_type, line)
    if kind in ("CHAR_S", "SCHAR", "SHORT", "INT", "LONG", "LONGLONG"):
        return CType(spelling, TypeKind.INT, size, align)
    if kind in ("CHAR_U", "UCHAR", "USHORT", "UINT", "ULONG", "ULONGLONG"):
        return CType(spelling, TypeKind.UINT, size, align)
    if kind in ("FLOAT", "DOUBLE"):
        return CType(spelling, TypeKind.FLOAT, size, align)
    if kind == "RECORD":
        return _record(clang_type, canonical, line)
    raise CannotLower(f"values of type '{clang_type.spelling}' are not supported", line)


def _record(clang_type: Any, canonical: Any, line: int) -> CType:
    from clang.cindex import CursorKind

    declaration = canonical.get_declaration()
    if declaration.kind == CursorKind.UNION_DECL:
        raise CannotLower(f"the union '{canonical.spelling}' is not supported", line)
    members = []
    for member in canonical.get_fields():
        if member.is_bitfield():
            raise CannotLower(f"the bit-field '{member.spelling}' is not supported", line)
        inner, shape = member.type.get_canonical(), []
        while inner.kind.name == "CONSTANTARRAY":
            shape.append(inner.element_count)
            inner = inner.element_type.get_canonical()
        members.append(Field(member.spelling, ctype_of(inner, line), member.get_field_offsetof() // 8, tuple(shape)))
    name = canonical.spelling.replace("const ", "").removeprefix("struct ").strip()
    if "(unnamed" in name:
        name = clang_type.spelling.replace("const ", "").removeprefix("struct ").strip()
    return CType(name, TypeKind.STRUCT, canonical.get_size(), canonical.get_align(), tuple(members))


def strip(cursor: Any) -> Any:
    """The expression below parentheses, implicit conversions and casts of pointers."""
    while cursor.kind.name in ("PAREN_EXPR", "UNEXPOSED_EXPR") or (
        cursor.kind.name == "CSTYLE_CAST_EXPR" and is_pointer(cursor.type)
    ):
        inner = list(cursor.get_children())
        if not inner:
            break
        cursor = inner[-1]
    return cursor


def bare_spelling(clang_type: Any) -> str:
    spelling: str = clang_type.spelling
    return spelling.replace("const ", "").replace("volatile ", "").strip()


def text_of(cursor: Any) -> str:
    words = [str(token.spelling) for token in cursor.get_tokens()]
    return " ".join(words[:12] or [str(cursor.spelling)])


def is_null(cursor: Any) -> bool:
    """Whether an expression, stripped of casts of pointers, is the null pointer."""
    return cursor.kind.name == "INTEGER_LITERAL" or (
        not is_pointer(cursor.type) and [token.spelling for token in cursor.get_tokens()] == ["0"]
    )


def same_size_integers(one: CType, other: CType) -> bool:
    """Whether the elements of one type can be read as the other by a conversion: integers of one size."""
    whole = (TypeKind.INT, TypeKind.UINT)
    return one.kind in whole and other.kind in whole and one.size == other.size
