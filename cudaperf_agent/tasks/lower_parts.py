"""Parts of C constructs that libclang shows without saying which is which: initialisers, the heads of `for` loops."""

from __future__ import annotations

from typing import Any

from cudaperf_agent.tasks.lower_types import CannotLower, is_pointer


def levels(clang_type: Any) -> int:
    """Pointer and array levels above the element."""
    current, levels = clang_type.get_canonical(), 0
    while is_pointer(current):
        current = current.get_pointee() if current.kind.name == "POINTER" else current.element_type
        current, levels = current.get_canonical(), levels + 1
    return levels


def initialiser_of(cursor: Any) -> Any | None:
    """The initialiser of a variable: the last expression child, unless it is an array's size."""
    expressions = [c for c in cursor.get_children() if c.kind.is_expression()]
    sizes, current = 0, cursor.type
    while current.kind.name in ("CONSTANTARRAY", "VARIABLEARRAY"):
        sizes, current = sizes + 1, current.element_type
    tokens = [t.spelling for t in cursor.get_tokens()]
    if "=" not in tokens:
        return None if len(expressions) <= sizes or is_pointer(cursor.type) else expressions[-1]
    return expressions[-1] if expressions else None


def for_parts(cursor: Any, line: int) -> tuple[Any | None, Any | None, Any | None, Any]:
    """Initialiser, condition, update and body; libclang leaves absent ones out without a trace."""
    parts = list(cursor.get_children())
    *head, body = parts
    if len(parts) == 4:
        return head[0], head[1], head[2], body
    depth, ends = 0, []
    for token in cursor.get_tokens():
        depth += (token.spelling in "([{") - (token.spelling in ")]}")
        if token.spelling == ";" and depth == 1:
            ends.append(token.extent.start.offset)
        if len(ends) == 2:
            break
    if len(ends) != 2:
        raise CannotLower("a 'for' that a macro builds with empty parts is not supported", line)
    found: list[Any | None] = [None, None, None]
    for part in head:
        start = part.extent.start.offset
        found[0 if start < ends[0] else 1 if start < ends[1] else 2] = part
    return found[0], found[1], found[2], body


def is_constant(cursor: Any) -> bool:
    """Whether a variable or all elements of an array are const."""
    current, const = cursor.type.get_canonical(), False
    while True:
        const = const or bool(current.is_const_qualified())
        if current.kind.name not in ("CONSTANTARRAY", "VARIABLEARRAY", "INCOMPLETEARRAY"):
            return const and current.kind.name != "POINTER"
        current = current.element_type.get_canonical()
