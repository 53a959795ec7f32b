"""Lowering of what C expressions denote in memory: variables, elements, members, and pointer values as addresses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.clang_c import binary_operator, unary_operator
from cudaperf_agent.tasks.lower_bits import union_variable
from cudaperf_agent.tasks.lower_scope import Scope
from cudaperf_agent.tasks.lower_types import (
    POINTER_KINDS,
    CannotLower,
    bare_spelling,
    ctype_of,
    is_pointer,
    line_of,
    pointee,
    same_size_integers,
    strip,
    text_of,
)
from cudaperf_agent.tasks.lowered import FileTable


class Places:
    """Lowers places and addresses of one function; values are the business of the class that is built on it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def value(self, cursor: Any) -> ir.Expr:
        """The value of a scalar or struct expression."""
        raise NotImplementedError

    # Places ---------------------------------------------------------------------------------------------------

    def place(self, cursor: Any) -> ir.Place:
        """What can be read or assigned: a variable, an element, or a part of one."""
        line, kind = line_of(cursor), cursor.kind.name
        if kind in ("PAREN_EXPR", "UNEXPOSED_EXPR"):
            return self.place(list(cursor.get_children())[-1])
        if kind == "DECL_REF_EXPR":
            return self._variable(cursor, line)
        if kind == "MEMBER_REF_EXPR":
            union = union_variable(cursor, self.scope.names)
            if union is not None:
                if union[0].type != union[1]:
                    raise CannotLower(f"'{text_of(cursor)}' of a union is changed in place", line)
                return union[0]
            base = next(cursor.get_children())
            owner = self._load(self.address(base), line) if is_pointer(base.type) else self.place_or_value(base)
            return ir.Member(owner, cursor.spelling, ctype_of(pointee(cursor.type), line), line)
        if kind == "ARRAY_SUBSCRIPT_EXPR":
            base, index = cursor.get_children()
            if (
                strip(base).kind.name == "MEMBER_REF_EXPR"
                and strip(base).type.get_canonical().kind.name == "CONSTANTARRAY"
            ):
                element = ctype_of(cursor.type, line)
                return ir.Element(self.place(strip(base)), self.value(index), element, line)
            return self._load(self.address(cursor), line)
        if kind == "UNARY_OPERATOR" and unary_operator(cursor) == "*":
            return self._load(self.address(cursor), line)
        raise CannotLower(f"'{text_of(cursor)}' cannot be assigned or read here", line)

    def place_or_value(self, cursor: Any) -> ir.Expr:
        """The base of a member access, which may be a call's result."""
        return self.value(cursor)

    def _variable(self, cursor: Any, line: int) -> ir.Place:
        declaration = cursor.referenced
        kind = ctype_of(cursor.type, line)
        if declaration.hash in self.scope.names:
            return ir.Ref(self.scope.names[declaration.hash], kind, line)
        return ir.Load(self._table(declaration, line), (ir.Const(0, ir.INT, line),), kind, line)

    def _load(self, address: ir.Address, line: int) -> ir.Load:
        wanted = self.scope.rank[address.pointer]
        if len(address.indices) != wanted:
            raise CannotLower(f"'{address.pointer}' is used with {len(address.indices)} of its {wanted} indices", line)
        return ir.Load(address.pointer, address.indices, self.scope.kinds.get(address.pointer, address.type), line)

    # Addresses ------------------------------------------------------------------------------------------------

    def address(self, cursor: Any) -> ir.Address:
        """The value of a pointer expression, or the place of an element: the pointer and its indices."""
        line, kind = line_of(cursor), cursor.kind.name
        if kind in ("PAREN_EXPR", "UNEXPOSED_EXPR"):
            inner = list(cursor.get_children())[-1]
            return self._same_element(cursor, inner, line)
        if kind == "CSTYLE_CAST_EXPR":
            return self._same_element(cursor, list(cursor.get_children())[-1], line)
        if kind == "DECL_REF_EXPR":
            return self._pointer_variable(cursor, line)
        if kind == "ARRAY_SUBSCRIPT_EXPR":
            base, index = cursor.get_children()
            return self._decayed(self._moved(self.address(base), self.value(index), "+", line), cursor)
        if kind == "UNARY_OPERATOR":
            op, operand = unary_operator(cursor), next(cursor.get_children())
            if op == "&":
                return self._address_of(operand, line)
            if op == "*":
                return self._decayed(self.address(operand), cursor)
            if op in ("++", "--", "p++", "p--"):
                return self._stepped(operand, op, line)
        if kind == "BINARY_OPERATOR" and binary_operator(cursor) in ("+", "-"):
            left, right = cursor.get_children()
            if not is_pointer(left.type):
                left, right = right, left
            return self._moved(self.address(left), self.value(right), binary_operator(cursor), line)
        raise CannotLower(f"the pointer expression '{text_of(cursor)}' is not supported", line)

    def _stepped(self, operand: Any, op: str, line: int) -> ir.Address:
        """``p++`` as an address: the pointer moves in a statement of its own, before or after."""
        sides = self.scope.after if op.startswith("p") else self.scope.before
        address = self.address(operand)
        start = isinstance(address.indices[-1], ir.Const) and address.indices[-1].value == 0
        if sides is None or len(address.indices) != self.scope.rank[address.pointer] or not start:
            raise CannotLower(f"the moving pointer '{text_of(operand)}' is not supported here", line)
        moved = self._moved(address, ir.Const(1, ir.INT, line), op[-1], line)
        const = pointee(operand.type).is_const_qualified()
        sides.append(ir.Point(address.pointer, address.type, moved, const, declares=False, line=line))
        return address

    def _same_element(self, outer: Any, inner: Any, line: int) -> ir.Address:
        if is_pointer(outer.type):
            to, was = pointee(outer.type), pointee(inner.type)
            if "VOID" not in (to.kind.name, was.kind.name) and bare_spelling(to) != bare_spelling(was):
                kind = ctype_of(to, line)
                if not same_size_integers(kind, ctype_of(was, line)):
                    raise CannotLower(f"memory of '{bare_spelling(was)}' is read as '{bare_spelling(to)}'", line)
                address = self.address(inner)
                return replace(address, type=kind, viewed=self.scope.kinds.get(address.pointer, kind) != kind)
        return self.address(inner)

    def _address_of(self, operand: Any, line: int) -> ir.Address:
        inner = strip(operand)
        if inner.kind.name == "ARRAY_SUBSCRIPT_EXPR" or inner.kind.name == "UNARY_OPERATOR":
            return self.address(inner)
        raise CannotLower(f"the address of '{text_of(operand)}' is taken", line)

    def _pointer_variable(self, cursor: Any, line: int) -> ir.Address:
        declaration = cursor.referenced
        name = self.scope.names.get(declaration.hash)
        if name is None:
            name = self._table(declaration, line)
        element = ctype_of(pointee(cursor.type), line)
        return ir.Address(name, (ir.Const(0, ir.INT, line),), element, line)

    def _decayed(self, address: ir.Address, cursor: Any) -> ir.Address:
        """An element that is itself an array stands for the address of its first element."""
        if cursor.type.get_canonical().kind.name in POINTER_KINDS[1:]:
            return replace(address, indices=(*address.indices, ir.Const(0, ir.INT, address.line)))
        if cursor.type.get_canonical().kind.name == "POINTER":
            raise CannotLower("pointers to pointers are not supported", line_of(cursor))
        return address

    def _moved(self, address: ir.Address, by: ir.Expr, op: str, line: int) -> ir.Address:
        *outer, last = address.indices
        if isinstance(last, ir.Const) and last.value == 0:
            new = by if op == "+" else ir.Unary("-", by, by.type or ir.INT, line)
        else:
            wide = ir.LONG if 8 in (getattr(last.type, "size", 4), getattr(by.type, "size", 4)) else ir.INT
            new = ir.Binary(op, last, by, wide, line)
        return replace(address, indices=(*outer, new))

    def _table(self, declaration: Any, line: int) -> str:
        if declaration.kind.name != "VAR_DECL" or not declaration.semantic_parent.kind.is_translation_unit():
            raise CannotLower(f"the static or unknown variable '{declaration.spelling}' is not supported", line)
        name: str = declaration.spelling
        inner, dims = declaration.type.get_canonical(), []
        if name not in self.scope.tables:
            while inner.kind.name == "CONSTANTARRAY":
                dims.append(inner.element_count)
                inner = inner.element_type.get_canonical()
            if is_pointer(inner):
                raise CannotLower(f"the file-scope pointer '{name}' is not supported", line)
            const = inner.is_const_qualified()
            self.scope.tables[name] = FileTable(name, ctype_of(inner, line), tuple(dims), const)
            self.scope.rank[name] = max(1, len(dims))
            self.scope.kinds[name] = self.scope.tables[name].type
        return name
