"""What of the file a CUDA translation needs beside the entry: type declarations, tables, functions that stay C."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.c_types import object_type
from cudaperf_agent.tasks.clang_c import Unit, in_system_header
from cudaperf_agent.tasks.cuda_names import CUDA_TYPES
from cudaperf_agent.tasks.model import CType, Parameter, Table, TypeKind
from cudaperf_agent.tasks.refuse import changed_variables
from cudaperf_agent.tasks.syntax import CFile, Function

_WORD = re.compile(r"[A-Za-z_]\w*")
_HEADERS = {
    "stddef.h": {"size_t", "ptrdiff_t", "NULL"},
    "stdint.h": {
        f"{u}int{kind}{bits}_t" for u in ("", "u") for kind in ("", "_least", "_fast") for bits in (8, 16, 32, 64)
    }
    | {"intptr_t", "uintptr_t", "intmax_t", "uintmax_t"},
    "stdbool.h": {"bool", "_Bool"},
    "limits.h": {"INT_MAX", "INT_MIN", "CHAR_BIT", "UINT_MAX", "LONG_MAX"},
}
"""What of the standard headers a struct's members may be made of."""

_TYPES = ("STRUCT_DECL", "UNION_DECL", "ENUM_DECL", "TYPEDEF_DECL")


def read_tables(file: CFile, entry: Function) -> tuple[Table, ...]:
    """File-scope variables (and static locals) that the entry or its helpers name, in definition order."""
    used = {e.key for f in file.closure(entry.name) for e in f.expressions() if e.kind == "name"}
    written = changed_variables(list(file.functions.values()))
    tables = []
    for variable in file.variables.values():
        if variable.key not in used:
            continue
        ctype, dims = variable.ctype.get_canonical(), []
        while ctype.kind.name == "CONSTANTARRAY":
            dims.append(int(ctype.element_count))
            ctype = ctype.get_array_element_type().get_canonical()
        if ctype.kind.name == "POINTER":
            continue  # refused in function mode; a whole program may have them
        element = object_type(ctype, file.unit, variable.line, f"file-scope variable `{variable.name}`")
        constant = variable.key not in written
        tables.append(Table(variable.name, element, tuple(dims), constant, variable.line))
    return tuple(sorted(tables, key=lambda t: t.line))


def kept_functions(file: CFile, entry: Function) -> tuple[str, ...]:
    """Functions with external linkage that callers may need: all but the entry and what only the entry uses."""
    own = [f for f in file.functions.values() if f.in_main_file]
    reached = {f.name for f in file.closure(entry.name)}
    called_elsewhere = {n for f in own if f.name not in reached for n in f.calls()}
    return tuple(
        f.name
        for f in own
        if not f.static and f.name != entry.name and (f.name not in reached or f.name in called_elsewhere)
    )


def type_declarations(
    unit: Unit, parameters: Sequence[Parameter], tables: Sequence[Table], extra_types: Sequence[CType]
) -> str:
    """Source text of the structs, enums, typedefs and object-like macros that prototype and tables need.

    Scalars are spelt canonically elsewhere, so only structs pull text in: the declarations that define them and,
    transitively, what those name. The text is the file's own (or its headers'), in its order.

    Raises:
        InputRefused: One of them has the name of a type of CUDA's.
    """
    types = [*(p.type for p in parameters), *(t.type for t in tables), *extra_types]
    needed = {word for t in types if t.kind is TypeKind.STRUCT for word in _WORD.findall(t.spelling)}
    if not needed:
        return ""
    blocks = _blocks(unit)
    chosen: set[int] = set()
    grew = True
    while grew:
        grew = False
        for index, block in enumerate(blocks):
            if index not in chosen and block.names & needed:
                chosen.add(index)
                needed |= set(_WORD.findall(block.text))
                grew = True
    for block in (blocks[i] for i in sorted(chosen)):
        for name in sorted(block.names & CUDA_TYPES):
            raise InputRefused(
                f"CUDA has a type `{name}` of its own",
                where=f"{block.file}:{block.line}",
                hint=f"Rename it, e.g. {name}_.",
            )
    texts = [blocks[i].text for i in sorted(chosen)]
    declared = {name for i in chosen for name in blocks[i].names}
    headers = [f"#include <{h}>" for h, words in _HEADERS.items() if words & (needed - declared)]
    return "\n".join([*headers, *texts]) + "\n"


@dataclass(frozen=True, slots=True)
class _Block:
    """A declaration or macro definition: where it stands, its text, and the names it declares."""

    file: str
    line: int
    start: int
    end: int
    text: str
    names: frozenset[str]


def _blocks(unit: Unit) -> list[_Block]:
    """Every type and macro outside the system's headers: headers' own first, each file's in its order."""
    found: list[_Block] = []
    for cursor in (*unit.macros.values(), *unit.declarations):
        kind = cursor.kind.name
        file = cursor.location.file
        if file is None or in_system_header(cursor) or kind not in (*_TYPES, "MACRO_DEFINITION"):
            continue
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        text, line = _text(unit, cursor), cursor.extent.start.line
        if kind == "MACRO_DEFINITION":
            found.append(_Block(file.name, line, start, end, f"#define {text}", frozenset({cursor.spelling})))
            continue
        # `typedef struct {…} T;` shows the struct first, then a typedef that contains it: keep the larger.
        found = [b for b in found if not (b.file == file.name and start <= b.start and b.end <= end)]
        found.append(_Block(file.name, line, start, end, f"{text};", frozenset(_declared_names(cursor))))
    files = list(dict.fromkeys(b.file for b in found))
    return sorted(found, key=lambda b: (b.file == unit.path, files.index(b.file), b.start))


def _declared_names(cursor: Any) -> set[str]:
    names = {cursor.spelling} if cursor.spelling else set()
    for child in cursor.get_children():
        if child.kind.name in _TYPES:
            names |= _declared_names(child)
        elif child.kind.name == "ENUM_CONSTANT_DECL":
            names.add(child.spelling)
    return names


def _text(unit: Unit, cursor: Any) -> str:
    extent, file = cursor.extent, cursor.location.file
    if file.name == unit.path:
        data = unit.source.encode()
    else:
        with open(file.name, "rb") as handle:
            data = handle.read()
    return data[extent.start.offset : extent.end.offset].decode(errors="replace")
