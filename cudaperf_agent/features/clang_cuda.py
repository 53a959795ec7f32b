"""Parsing CUDA with libclang into a light tree: no toolkit, our own stub headers, opcodes through ctypes."""

from __future__ import annotations

import atexit
import ctypes
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from clang import cindex

from cudaperf_agent.features.clang_types import TypeInfo, Types
from cudaperf_agent.features.cursor_kinds import BINARY_OPCODES, UNARY_OPCODES, K
from cudaperf_agent.features.libclang import VISITOR, index, is_null, library, text
from cudaperf_agent.features.model import LIMITS, Limits

STUBS = Path(__file__).parent / "stubs"
MAIN = "candidate.cu"
_ARGUMENTS = [
    "-x",
    "cuda",
    "-nocudainc",
    "-nocudalib",
    "--cuda-path=/nonexistent",
    "--cuda-host-only",
    "-std=c++17",
    "-nostdinc",
    "-nostdinc++",
    "-w",
    "-ferror-limit=50",
    "-ftemplate-depth=64",
    "-fconstexpr-depth=64",
    "-fconstexpr-steps=20000",
    "-fbracket-depth=128",
    "-D__CUDA_ARCH__=900",
    "-D__CUDACC__=1",
    "-D__NVCC__=1",
]
_INCOMPLETE, _SERIALISE, _KEEP_GOING = 0x2, 0x4, 0x200
_ERROR = 3
_IN_MACRO = 1 << 31


@lru_cache(maxsize=1)
def _prelude() -> tuple[str, ...]:
    """Options that bring in the CUDA declarations, precompiled once per process (1.4 ms a parse in place of 6.4)."""
    name = "prelude.h"
    unit = index().parse(
        name,
        args=[*_ARGUMENTS, f"-I{STUBS}"],
        unsaved_files=[(name, '#include "cuda_runtime.h"\n')],
        options=_KEEP_GOING | _INCOMPLETE | _SERIALISE,
    )
    folder = tempfile.mkdtemp(prefix="cudaperf-features-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "prelude.pch"
    try:
        unit.save(str(path))
    except cindex.TranslationUnitSaveError:
        return ("-include", str(STUBS / "cuda_runtime.h"))
    return ("-include-pch", str(path))


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
        return self.unit.types.type_of(library().clang_getCursorType(self.cursor))

    def pointee(self) -> TypeInfo:
        """The type that a pointer, array or reference expression leads to."""
        return self.unit.types.pointee_of(library().clang_getCursorType(self.cursor))

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
        self.types = Types()
        self._count = 0
        try:
            self.tu = index().parse(
                MAIN,
                args=[*_ARGUMENTS, f"-I{STUBS}", *_prelude()],
                unsaved_files=[(MAIN, source)],
                options=_KEEP_GOING,
            )
        except cindex.TranslationUnitLoadError as failure:
            raise SourceTooComplex("the parser gave up") from failure
        self._main = library().clang_getFile(self.tu.obj, MAIN.encode())
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
        for child in found:
            if main_only and not self.in_source(child):
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
            depth = len(stack) - 1
            while depth >= 0 and (stack[depth][1] != first or stack[depth][2] != second):
                depth -= 1
            if depth >= 0:  # the parent of a lambda's parts is not always the lambda: then it stays where we are
                del stack[depth + 1 :]
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
        if end <= start:  # inside a macro's argument both ends are the macro's
            end = self._bytes.find(b"\n", start)
        text = " ".join(self._bytes[start:end].decode("utf-8", "replace").split())
        return Place(line, column, text if len(text) <= 100 else text[:97] + "...")

    def line_column(self, cursor: Any) -> tuple[int, int]:
        """Line and column of a cursor in the source."""
        line, column, _ = self._offset(library().clang_getCursorLocation(cursor))
        return line, column

    def in_source(self, cursor: Any) -> bool:
        """Whether a cursor stands in the source itself, not in a header; what a header's macro makes stands in it."""
        clang = library()
        location = clang.clang_getCursorLocation(cursor)
        if clang.clang_Location_isFromMainFile(location):
            return True
        if not location.int_data & _IN_MACRO:
            return False
        file = ctypes.c_void_p()
        clang.clang_getExpansionLocation(location, ctypes.byref(file), None, None, None)
        return file.value is not None and file.value == self._main

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
