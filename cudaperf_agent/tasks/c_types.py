"""libclang types to `CType`, and the text that declares them in both C and C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.clang_c import Unit
from cudaperf_agent.tasks.model import CType, Field, TypeKind

_SIGNED = {"SCHAR": "signed char", "CHAR_S": "char", "SHORT": "short", "INT": "int", "LONG": "long",
           "LONGLONG": "long long"}  # fmt: skip
_UNSIGNED = {"UCHAR": "unsigned char", "CHAR_U": "char", "USHORT": "unsigned short", "UINT": "unsigned int",
             "ULONG": "unsigned long", "ULONGLONG": "unsigned long long"}  # fmt: skip
_FLOATING = {"FLOAT": "float", "DOUBLE": "double", "LONGDOUBLE": "long double", "HALF": "_Float16"}


@dataclass(frozen=True, slots=True)
class PointerShape:
    """What a pointer or array parameter points to.

    Attributes:
        element: Scalar or struct type of one element, arrays flattened.
        inner: Constant inner dimensions, where the type itself states them; `None` where it is variable.
        const: The elements are const.
        volatile: The elements are volatile.
    """

    element: Any
    inner: tuple[int | None, ...]
    const: bool
    volatile: bool


def is_pointer(ctype: Any) -> bool:
    """Whether a (canonical or not) libclang type is a pointer or an array."""
    return ctype.get_canonical().kind.name in ("POINTER", *_ARRAYS)


_ARRAYS = ("CONSTANTARRAY", "INCOMPLETEARRAY", "VARIABLEARRAY", "DEPENDENTSIZEDARRAY")


def pointer_shape(ctype: Any) -> PointerShape:
    """Unwrap the outermost pointer or array of a parameter, then every array inside it."""
    canonical = ctype.get_canonical()
    pointee = canonical.get_pointee() if canonical.kind.name == "POINTER" else canonical.get_array_element_type()
    inner: list[int | None] = []
    # Of a const array clang marks the array, the element, or both, depending on the level.
    const = canonical.kind.name != "POINTER" and canonical.is_const_qualified()
    while pointee.get_canonical().kind.name in _ARRAYS:
        array = pointee.get_canonical()
        const = const or array.is_const_qualified()
        inner.append(array.element_count if array.kind.name == "CONSTANTARRAY" else None)
        pointee = array.get_array_element_type()
    return PointerShape(pointee, tuple(inner), const or pointee.is_const_qualified(), pointee.is_volatile_qualified())


def object_type(ctype: Any, unit: Unit, line: int, what: str) -> CType:
    """The `CType` of a scalar or struct.

    Args:
        ctype: libclang type, qualified or not.
        unit: For messages, and to see whether ``bool`` is spelt so in the file.
        line: Line for messages.
        what: What has this type, for messages: ``parameter `x```.

    Raises:
        InputRefused: A pointer, union, bit-field, complex or vector type, or one of 128 bits.
    """
    canonical = ctype.get_canonical()
    kind = canonical.kind.name
    size, align = canonical.get_size(), canonical.get_align()
    if kind in _SIGNED:
        return CType(_SIGNED[kind], TypeKind.INT, size, align)
    if kind in _UNSIGNED:
        return CType(_UNSIGNED[kind], TypeKind.UINT, size, align)
    if kind in _FLOATING:
        return CType(_FLOATING[kind], TypeKind.FLOAT, size, align)
    if kind == "BOOL":
        # A word of every C, with or without <stdbool.h>; what is C++ spells it bool.
        return CType("_Bool", TypeKind.BOOL, size, align)
    if kind == "ENUM":
        return object_type(canonical.get_declaration().enum_type, unit, line, what)
    if kind == "RECORD":
        return _struct(ctype, unit, line, what)
    reasons = {
        "POINTER": ("is a pointer to a pointer", "Pass one flat array and index it as a[i*width + j]."),
        "VOID": ("is a pointer to void", "Declare the type that it really points to."),
        "COMPLEX": ("has a complex type", "Pass real and imaginary parts as a struct of two floats."),
        "FUNCTIONPROTO": ("is a pointer to a function", "Call the function by name instead of through a pointer."),
        "FUNCTIONNOPROTO": ("is a pointer to a function", "Call the function by name instead of through a pointer."),
    }
    reason, hint = reasons.get(kind, (f"has the type {ctype.spelling}", "Use a scalar, a struct or an array of these."))
    raise InputRefused(f"{what} {reason}, which cannot be passed to a kernel", where=unit.at(line), hint=hint)


def _struct(ctype: Any, unit: Unit, line: int, what: str) -> CType:
    canonical = ctype.get_canonical()
    declaration = canonical.get_declaration()
    where = unit.at(line)
    if declaration.kind.name == "UNION_DECL":
        raise InputRefused(f"{what} is a union", where=where, hint="Pass the member that is used, as a plain type.")
    if canonical.get_size() <= 0:
        raise InputRefused(
            f"{what} has the incomplete or empty type {canonical.spelling}",
            where=where,
            hint="Define the struct's members in this file or in a header that it includes.",
        )
    fields = []
    for member in declaration.get_children():
        if member.kind.name == "UNION_DECL":
            raise InputRefused(f"{what} holds a union", where=where, hint="Use separate members instead.")
        if member.kind.name != "FIELD_DECL":
            continue
        name = member.spelling
        if member.is_bitfield():
            raise InputRefused(
                f"{what}: member `{name}` is a bit-field", where=where, hint="Give the member a whole integer type."
            )
        shape, inner = [], member.type.get_canonical()
        while inner.kind.name in _ARRAYS:
            shape.append(max(inner.element_count, 0) if inner.kind.name == "CONSTANTARRAY" else 0)
            inner = inner.get_array_element_type().get_canonical()
        if inner.kind.name == "POINTER" or 0 in shape:
            raise InputRefused(
                f"{what}: member `{name}` of {canonical.spelling} is a pointer or has no fixed size",
                where=unit.at(member.location.line),
                hint="Structs that hold pointers (linked lists, trees) cannot be copied to a GPU as they are; "
                "pass flat arrays and use indices instead of pointers.",
            )
        type_of_member = object_type(inner, unit, line, f"{what}: member `{name}`")
        offset = canonical.get_offset(name) // 8
        fields.append(Field(name, type_of_member, offset, tuple(shape)))
    return CType(struct_spelling(ctype), TypeKind.STRUCT, canonical.get_size(), canonical.get_align(), tuple(fields))


def struct_spelling(ctype: Any) -> str:
    """``Body`` for a typedef, ``struct Body`` for a tag; qualifiers dropped."""
    spelling = str(ctype.spelling)
    words = [w for w in spelling.split() if w not in ("const", "volatile", "restrict")]
    return " ".join(words)


_CPP_KEYWORDS = (
    "alignas and and_eq asm bitand bitor catch class compl concept const_cast constexpr decltype delete dynamic_cast "
    "explicit export false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
    "protected public reinterpret_cast requires static_assert static_cast template this thread_local throw true try "
    "typeid typename using virtual wchar_t xor xor_eq bool char16_t char32_t"
)
CPP_KEYWORDS = frozenset(_CPP_KEYWORDS.split())
"""Words that are names in C and keywords in C++, CUDA's language."""
