"""Parsing CUDA with libclang into a light tree: no toolkit, our own stub headers, opcodes through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.features.libclang import VISITOR, index, is_null, library, text
from cudaperf_agent.features.model import LIMITS, Limits

STUBS = Path(__file__).parent / "stubs"
MAIN = "candidate.cu"
_ARGUMENTS = ["-x", "cuda", "-nocudainc", "-nocudalib", "--cuda-path=/nonexistent", "--cuda-host-only", "-std=c++17", "-nostdinc", "-nostdinc++", "-w", "-ferror-limit=50", "-ftemplate-depth=64", "-fconstexpr-depth=64", "-fconstexpr-steps=20000", "-fbracket-depth=128", "-D__CUDA_ARCH__=900", "-D__CUDACC__=1", "-D__NVCC__=1"]
_KEEP_GOING = 0x200
_ERROR = 3


class K:
    """Cursor kinds that are looked at, as the numbers libclang gives."""

    UNEXPOSED_DECL = 1
    STRUCT = 2
    UNION = 3
    CLASS = 4
    ENUM = 5
    FIELD = 6
    ENUMERATOR = 7
    FUNCTION = 8
    VAR = 9
    PARM = 10
    METHOD = 21
    NAMESPACE = 22
    LINKAGE_SPEC = 23
    CONSTRUCTOR = 24
    FUNCTION_TEMPLATE = 30
    CLASS_TEMPLATE = 31
    TYPE_REF = 43
    TEMPLATE_REF = 45
    NAMESPACE_REF = 46
    UNEXPOSED = 100
    DECL_REF = 101
    MEMBER_REF = 102
    CALL = 103
    INTEGER = 106
    FLOATING = 107
    STRING = 109
    CHARACTER = 110
    PAREN = 111
    UNARY = 112
    SUBSCRIPT = 113
    BINARY = 114
    COMPOUND_ASSIGN = 115
    CONDITIONAL = 116
    C_CAST = 117
    INIT_LIST = 119
    STATIC_CAST = 124
    REINTERPRET_CAST = 126
    CONST_CAST = 127
    FUNCTIONAL_CAST = 128
    BOOL = 130
    NULLPTR = 131
    THIS = 132
    SIZEOF = 136
    LAMBDA = 144
    FIRST_STMT = 200
    COMPOUND = 202
    CASE = 203
    DEFAULT = 204
    IF = 205
    SWITCH = 206
    WHILE = 207
    DO = 208
    FOR = 209
    GOTO = 210
    CONTINUE = 212
    BREAK = 213
    RETURN = 214
    ASM = 215
    FOR_RANGE = 225
    NULL_STMT = 230
    DECL_STMT = 231
    GLOBAL_ATTR = 414
    CONSTANT_ATTR = 412
    DEVICE_ATTR = 413
    HOST_ATTR = 415
    SHARED_ATTR = 416


CASTS = frozenset({K.C_CAST, K.STATIC_CAST, K.REINTERPRET_CAST, K.CONST_CAST, K.FUNCTIONAL_CAST})
BINARY_OPCODES = {
    3: "*", 4: "/", 5: "%", 6: "+", 7: "-", 8: "<<", 9: ">>", 11: "<", 12: ">", 13: "<=", 14: ">=", 15: "==",
    16: "!=", 17: "&", 18: "^", 19: "|", 20: "&&", 21: "||", 22: "=", 23: "*=", 24: "/=", 25: "%=", 26: "+=",
    27: "-=", 28: "<<=", 29: ">>=", 30: "&=", 31: "^=", 32: "|=", 33: ",",
}  # fmt: skip
UNARY_OPCODES = {1: "p++", 2: "p--", 3: "++", 4: "--", 5: "&", 6: "*", 7: "+", 8: "-", 9: "~", 10: "!"}


class SourceTooComplex(Exception):
    """The source goes past a limit; internal to this package, turned into a gap by the extractor."""


class Node:
    """One syntax node. Everything but kind and children is asked of libclang when first wanted."""

    __slots__ = ("_callee", "_key", "_spelling", "_value", "children", "cursor", "kind", "unit")

    def __init__(self, cursor: Any, kind: int, unit: Unit) -> None:
        self.cursor = cursor
        self.kind = kind
        self.unit = unit
        self.children: list[Node] = []
        self._spelling: str | None = None
        self._callee: Any = None
        self._key: Any = None
        self._value: Any = None

    @property
    def spelling(self) -> str:
        """The name that the node declares or refers to."""
        if self._spelling is None:
            self._spelling = text(library().clang_getCursorSpelling(self.cursor))
        return self._spelling

    @property
    def operator(self) -> str:
        """The operator of a unary, binary or compound assignment node."""
        if self._value is None:
            if self.kind == K.UNARY:
                self._value = UNARY_OPCODES.get(library().clang_getCursorUnaryOperatorKind(self.cursor), "?")
            else:
                self._value = BINARY_OPCODES.get(library().clang_getCursorBinaryOperatorKind(self.cursor), "?")
        return str(self._value)

    @property
    def referenced(self) -> Node | None:
        """The declaration that the node refers to, its children not yet read."""
        if self._callee is None:
            self._callee = False
            target = library().clang_getCursorReferenced(self.cursor)
            if not is_null(target):
                self._callee = Node(target, target._kind_id, self.unit)
        return self._callee or None

    @property
    def key(self) -> int:
        """Identity of a declaration."""
        if self._key is None:
            self._key = self.cursor.data[0] or 0
        return int(self._key)

    @property
    def target_key(self) -> int:
        """Identity of the declaration that the node refers to, 0 if there is none."""
        target = self.referenced
        return target.key if target is not None else 0

    def place(self) -> Place:
        """Line, column and source text, macro uses where they stand in the file."""
        return self.unit.place(self.cursor)

    def type(self) -> TypeInfo:
        """Size, alignment and sort of the expression's or declaration's type."""
        return self.unit.type_of(library().clang_getCursorType(self.cursor))

    def pointee(self) -> TypeInfo:
        """The type that a pointer, array or reference expression leads to."""
        return self.unit.pointee_of(library().clang_getCursorType(self.cursor))

    def is_reference(self) -> bool:
        """Whether the declared type is a reference."""
        clang = library()
        return clang.clang_getCanonicalType(clang.clang_getCursorType(self.cursor))._kind_id in (103, 104)

    def field_offset(self) -> int:
        """Bytes from the start of the record to this field, 0 if not known."""
        bits = library().clang_Cursor_getOffsetOfField(self.cursor)
        return int(bits) // 8 if bits > 0 else 0

    def integer(self) -> int | None:
        """The value of an integer, character or boolean literal or of any constant expression."""
        result = library().clang_Cursor_Evaluate(self.cursor)
        if not result:
            return None
        try:
            if library().clang_EvalResult_getKind(result) != 1:
                return None
            return int(library().clang_EvalResult_getAsLongLong(result))
        finally:
            library().clang_EvalResult_dispose(result)

    def walk(self) -> Iterator[Node]:
        """The node and everything below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the source: 1-based line and column, and the text that stands there on one line."""

    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """What the analysis needs of a type: bytes, alignment, sort (``int``, ``float``, ``pointer``, ``record``, …), name."""

    size: int
    align: int
    sort: str
    name: str


_UNKNOWN_TYPE = TypeInfo(4, 4, "other", "")
_INT_KINDS = frozenset(range(3, 21)) | {106}
_FLOAT_KINDS = frozenset({21, 22, 23, 30, 31, 32})


class Unit:
    """One parsed source.

    Attributes:
        source: The text that was parsed.
        errors: Messages of the parser, with their line (0 if outside the source).
        top: Declarations of the source at file scope, without bodies.
    """

    def __init__(self, source: str, limits: Limits = LIMITS) -> None:
        self.source = source
        self.limits = limits
        self._bytes = source.encode("utf-8", "surrogateescape")
        self._trees: dict[tuple[int, int, int], Node] = {}
        self._types: dict[str, TypeInfo] = {}
        self._count = 0
        self.tu = index().parse(
            MAIN,
            args=[*_ARGUMENTS, f"-I{STUBS}", "-include", str(STUBS / "cuda_runtime.h")],
            unsaved_files=[(MAIN, source)],
            options=_KEEP_GOING,
        )
        self.errors: list[tuple[str, int]] = [
            (d.spelling, d.location.line if d.location.file and d.location.file.name == MAIN else 0)
            for d in self.tu.diagnostics
            if d.severity >= _ERROR
        ]
        self.top: list[Node] = list(self._declarations(self.tu.cursor, main_only=True))

    def _declarations(self, cursor: Any, *, main_only: bool = False) -> Iterator[Node]:
        found: list[Any] = []

        def visit(child: Any, _parent: Any, _data: Any) -> int:
            found.append(child)
            return 1

        library().clang_visitChildren(cursor, VISITOR(visit), None)
        clang = library()
        for child in found:
            if main_only and not clang.clang_Location_isFromMainFile(clang.clang_getCursorLocation(child)):
                continue
            kind = child._kind_id
            if kind in (K.LINKAGE_SPEC, K.NAMESPACE, K.UNEXPOSED_DECL):
                yield from self._declarations(child)
            else:
                yield Node(child, kind, self)

    def tree(self, node: Node) -> Node:
        """The node with everything below it read; the same object for the same declaration."""
        cursor = node.cursor
        key = (node.kind, cursor.data[0] or 0, cursor.data[1] or 0)
        known = self._trees.get(key)
        if known is not None:
            return known
        root = Node(cursor, node.kind, self)
        stack: list[tuple[Node, int, int]] = [(root, key[1], key[2])]
        budget = self.limits.nodes

        def visit(child: Any, parent: Any, _data: Any) -> int:
            data = parent.data
            first, second = data[0] or 0, data[1] or 0
            while len(stack) > 1 and (stack[-1][1] != first or stack[-1][2] != second):
                stack.pop()
            self._count += 1
            if self._count > budget:
                return 0
            made = Node(child, child._kind_id, self)
            stack[-1][0].children.append(made)
            below = child.data
            stack.append((made, below[0] or 0, below[1] or 0))
            return 2

        library().clang_visitChildren(cursor, VISITOR(visit), None)
        if self._count > budget:
            raise SourceTooComplex(f"more than {budget} syntax nodes")
        self._trees[key] = root
        return root

    def place(self, cursor: Any) -> Place:
        """Where a cursor stands in the source."""
        extent = library().clang_getCursorExtent(cursor)
        line, column, start = self._offset(library().clang_getRangeStart(extent))
        _, _, end = self._offset(library().clang_getRangeEnd(extent))
        text = " ".join(self._bytes[start : max(end, start)].decode("utf-8", "replace").split())
        return Place(line, column, text if len(text) <= 100 else text[:97] + "...")

    def line_column(self, cursor: Any) -> tuple[int, int]:
        """Line and column of a cursor in the source."""
        line, column, _ = self._offset(library().clang_getCursorLocation(cursor))
        return line, column

    def in_source(self, cursor: Any) -> bool:
        """Whether a cursor stands in the source itself, not in a header."""
        clang = library()
        return bool(clang.clang_Location_isFromMainFile(clang.clang_getCursorLocation(cursor)))

    def span(self, cursor: Any) -> tuple[int, int]:
        """First byte and the byte after the last of a cursor in the source."""
        extent = library().clang_getCursorExtent(cursor)
        return (
            self._offset(library().clang_getRangeStart(extent))[2],
            self._offset(library().clang_getRangeEnd(extent))[2],
        )

    def text(self, start: int, end: int) -> str:
        """Source text between two byte offsets."""
        return self._bytes[start:end].decode("utf-8", "replace")

    @staticmethod
    def _offset(location: Any) -> tuple[int, int, int]:
        file, line, column, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
        library().clang_getExpansionLocation(
            location, ctypes.byref(file), ctypes.byref(line), ctypes.byref(column), ctypes.byref(offset)
        )
        return line.value, column.value, offset.value

    def type_of(self, clang_type: Any) -> TypeInfo:
        """What the analysis needs of a type."""
        clang = library()
        canonical = clang.clang_getCanonicalType(clang_type)
        kind = canonical._kind_id
        if kind in (103, 104):  # references
            canonical = clang.clang_getPointeeType(canonical)
            kind = canonical._kind_id
        name = text(clang.clang_getTypeSpelling(canonical)).removeprefix("const ")
        known = self._types.get(name)
        if known is None:
            size = clang.clang_Type_getSizeOf(canonical)
            align = clang.clang_Type_getAlignOf(canonical)
            if kind in _INT_KINDS:
                sort = "int"
            elif kind in _FLOAT_KINDS or name in ("__half", "__nv_bfloat16", "__half2", "__nv_bfloat162"):
                sort = "float"
            elif kind == 101:
                sort = "pointer"
            elif kind == 105:
                sort = "record"
            elif kind in (112, 114):
                sort = "array"
            else:
                sort = "other"
            known = TypeInfo(size if size > 0 else 4, align if align > 0 else 4, sort, name)
            self._types[name] = known
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
