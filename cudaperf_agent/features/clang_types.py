"""What the analysis needs to know of C++ types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cudaperf_agent.features.libclang import library, text


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """Bytes, alignment, sort (``int``, ``float``, ``pointer``, ``record``, ``array``, ``other``) and name of a type."""

    size: int
    align: int
    sort: str
    name: str


_UNKNOWN_TYPE = TypeInfo(4, 4, "other", "")
_ARRAY_KINDS = frozenset({112, 114})
_SIZED_KINDS = _ARRAY_KINDS | {105}
_HALVES = frozenset({"__half", "__nv_bfloat16", "__half2", "__nv_bfloat162", "c10::Half"})
_INTEGER_SIZES = {
    3: 1, 4: 1, 5: 1, 6: 2, 7: 4, 8: 2, 9: 4, 10: 8, 11: 8, 12: 16, 13: 1, 14: 1, 15: 4, 16: 2, 17: 4, 18: 8, 19: 8,
    20: 16, 106: 4,
}  # fmt: skip
_FLOAT_SIZES = {21: 4, 22: 8, 23: 16, 30: 16, 31: 2, 32: 2}
_PLAIN_TYPES: dict[int, TypeInfo] = {
    **{kind: TypeInfo(size, size, "int", "int") for kind, size in _INTEGER_SIZES.items()},
    **{kind: TypeInfo(size, size, "float", "float") for kind, size in _FLOAT_SIZES.items()},
    101: TypeInfo(8, 8, "pointer", "pointer"),
}
"""Types by libclang's kind whose size is the same on every machine that CUDA runs on."""


class Types:
    """Asks libclang about types and keeps the answers."""

    def __init__(self) -> None:
        self._types: dict[int, TypeInfo] = {}

    def type_of(self, clang_type: Any) -> TypeInfo:
        """What the analysis needs of a type."""
        clang = library()
        canonical = clang.clang_getCanonicalType(clang_type)
        kind = canonical._kind_id
        if kind in (103, 104):  # references
            canonical = clang.clang_getPointeeType(canonical)
            kind = canonical._kind_id
        plain = _PLAIN_TYPES.get(kind)
        if plain is not None:
            return plain
        if kind not in _SIZED_KINDS:  # libclang traps when asked for the size of a builtin function
            return _UNKNOWN_TYPE
        key = int(canonical.data[0] or 0)
        known = self._types.get(key)
        if known is None:
            name = text(clang.clang_getTypeSpelling(canonical)).removeprefix("const ")
            size = clang.clang_Type_getSizeOf(canonical)
            align = clang.clang_Type_getAlignOf(canonical)
            sort = "array" if kind in _ARRAY_KINDS else "float" if name in _HALVES else "record"
            known = TypeInfo(size if size > 0 else 4, align if align > 0 else 4, sort, name)
            self._types[key] = known
        return known

    def pointee_of(self, clang_type: Any) -> TypeInfo:
        """The type that a pointer, array or reference leads to."""
        clang = library()
        canonical = clang.clang_getCanonicalType(clang_type)
        if canonical._kind_id in (103, 104):
            canonical = clang.clang_getPointeeType(canonical)
        if canonical._kind_id == 101:
            return self.type_of(clang.clang_getPointeeType(canonical))
        if canonical._kind_id in (112, 114):
            return self.type_of(clang.clang_getArrayElementType(canonical))
        return _UNKNOWN_TYPE
