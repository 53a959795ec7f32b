"""Lowering of initialisers: brace-enclosed lists, nested and designated, and strings, as values in flat order."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_places import Places
from cudaperf_agent.tasks.lower_types import CannotLower, ctype_of, line_of, pointee
from cudaperf_agent.tasks.model import CType, TypeKind


class Item(NamedTuple):
    """One entry of a list: the member that it names, ``""`` for the next, and the cursor of its value."""

    name: str
    value: Any


class Initialisers(Places):
    """Lowers the initialisers of one function."""

    def items(self, cursor: Any) -> list[Item]:
        """The entries of a brace-enclosed list.

        Raises:
            CannotLower: One names an element of an array.
        """
        found = []
        for item in cursor.get_children():
            parts = list(item.get_children())
            if item.kind.name == "UNEXPOSED_EXPR" and parts and parts[0].kind.name == "MEMBER_REF":
                if len(parts) != 2:
                    raise CannotLower("an initialiser of a member of a member is not supported", line_of(item))
                found.append(Item(parts[0].spelling, parts[1]))
            elif item.type.kind.name == "VOID" or item.kind.name == "MEMBER_REF":
                raise CannotLower("an initialiser that names an element is not supported", line_of(item))
            else:
                found.append(Item("", item))
        return found

    def initialiser(self, cursor: Any) -> tuple[ir.Expr, ...]:
        """The values of a list without nested lists; members named in it in the struct's order, absent ones 0."""
        items = self.items(cursor)
        nested = next((i for i in items if i.value.kind.name == "INIT_LIST_EXPR"), None)
        if nested is not None:
            raise CannotLower("a nested initialiser of a struct is not supported", line_of(nested.value))
        if not any(item.name for item in items):
            return tuple(self.value(item.value) for item in items)
        if not all(item.name for item in items):
            raise CannotLower("an initialiser that names only some members is not supported", line_of(cursor))
        given = {item.name: self.value(item.value) for item in items}
        fields = ctype_of(cursor.type, line_of(cursor)).fields
        return tuple(given[f.name] if f.name in given else self._zero(f.type, line_of(cursor)) for f in fields)

    def flattened(self, cursor: Any) -> tuple[ir.Expr, ...]:
        """The values of an array of several dimensions, rows filled up with zeros."""
        array = cursor.type.get_canonical()
        inner = array.element_type.get_canonical()
        kind = ctype_of(pointee(array), line_of(cursor))
        if inner.kind.name != "CONSTANTARRAY":
            values = list(self.initialiser(cursor))
            return tuple(values + [self._zero(kind, line_of(cursor))] * (array.element_count - len(values)))
        flat: list[ir.Expr] = []
        for item in self.items(cursor):
            if item.value.kind.name != "INIT_LIST_EXPR":
                raise CannotLower("an initialiser without braces around each row is not supported", line_of(cursor))
            flat += self.flattened(item.value)
        size = 1
        while array.kind.name == "CONSTANTARRAY":
            size *= array.element_count
            array = array.element_type.get_canonical()
        return tuple(flat + [self._zero(kind, line_of(cursor))] * (size - len(flat)))

    def characters(self, cursor: Any, kind: CType) -> tuple[ir.Expr, ...]:
        """The characters of a string, its closing zero left to the array's own filling up."""
        line, text = line_of(cursor), b""
        for token in cursor.get_tokens():
            try:
                text += ast.literal_eval(f"b{token.spelling}")
            except (SyntaxError, ValueError) as error:
                raise CannotLower("this form of string is not supported", line) from error
        signed = kind.kind is TypeKind.INT
        return tuple(ir.Const(c - 256 if signed and c > 127 else c, kind, line) for c in text)

    def _zero(self, kind: CType, line: int) -> ir.Expr:
        if kind.kind is TypeKind.STRUCT:
            raise CannotLower("an initialiser that leaves out a struct is not supported", line)
        return ir.Const(0, kind, line)
