"""What of the file a CUDA translation needs beside the entry: type declarations, tables, functions that stay C."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cudaperf_agent.tasks.c_types import object_type
from cudaperf_agent.tasks.clang_c import Unit, is_function_macro
from cudaperf_agent.tasks.model import CType, Parameter, Table, TypeKind
from cudaperf_agent.tasks.refuse import changed_variables
from cudaperf_agent.tasks.syntax import CFile, Function

_WORD = re.compile(r"[A-Za-z_]\w*")
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
    return "\n".join(blocks[i].text for i in sorted(chosen)) + "\n"


class _Block:
    def __init__(self, text: str, names: set[str]) -> None:
        self.text, self.names = text, names


def _blocks(unit: Unit) -> list[_Block]:
    from clang.cindex import conf

    found: list[tuple[tuple[str, int], int, _Block]] = []
    order: dict[str, int] = {}
    for position, cursor in enumerate(unit.cursor.get_children()):
        file = cursor.location.file
        if file is None or conf.lib.clang_Location_isInSystemHeader(cursor.location):
            continue
        kind = cursor.kind.name
        if kind == "MACRO_DEFINITION" and not is_function_macro(cursor):
            text = " ".join(t.spelling for t in cursor.get_tokens())
            block = _Block(f"#define {text}", {cursor.spelling})
        elif kind in _TYPES:
            block = _Block(f"{_text(unit, cursor)};", _declared_names(cursor))
        else:
            continue
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        # `typedef struct {…} T;` shows the struct first, then a typedef that contains it: keep the larger.
        found = [f for f in found if not (f[0][0] == file.name and start <= f[0][1] and f[1] <= end)]
        order.setdefault(file.name, position)
        found.append(((file.name, start), end, block))
    own = unit.path
    found.sort(key=lambda f: (f[0][0] == own, order[f[0][0]], f[0][1]))
    return [block for _, _, block in found]


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
