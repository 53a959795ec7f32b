"""Lowering of declarations, of pointers being set, of allocations, and of copies and fills of memory."""

from __future__ import annotations

from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.clang_c import unary_operator
from cudaperf_agent.tasks.lower_bits import as_type, union_storage
from cudaperf_agent.tasks.lower_expr import Expressions
from cudaperf_agent.tasks.lower_loops import divided
from cudaperf_agent.tasks.lower_parts import initialiser_of, is_constant, levels
from cudaperf_agent.tasks.lower_scope import Scope
from cudaperf_agent.tasks.lower_types import CannotLower, ctype_of, is_pointer, line_of, pointee, strip
from cudaperf_agent.tasks.model import CType, TypeKind


class Declarations:
    """What the statements of one function declare and set up in memory."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.expressions = Expressions(scope)

    def _dims(self, cursor: Any, line: int) -> tuple[ir.Expr | None, ...]:
        """Sizes of an array declarator, outermost first; ``()`` for a plain pointer or a flat array."""
        kinds, current = [], cursor.type
        if current.kind.name == "POINTER" and current.get_pointee().kind.name in ("CONSTANTARRAY", "VARIABLEARRAY"):
            kinds.append(("INCOMPLETEARRAY", 0))
            current = current.get_pointee()
        while current.kind.name in ("CONSTANTARRAY", "VARIABLEARRAY", "INCOMPLETEARRAY"):
            kinds.append((current.kind.name, current.element_count if current.kind.name == "CONSTANTARRAY" else 0))
            current = current.element_type
        if cursor.kind.name == "PARM_DECL" and len(kinds) < 2:
            return ()
        sizes = [c for c in cursor.get_children() if c.kind.is_expression()]
        dims: list[ir.Expr | None] = []
        # clang visits the sizes of an array declarator from the innermost out.
        for kind, count in reversed(kinds):
            if kind == "INCOMPLETEARRAY":
                dims.append(None)
            elif kind == "CONSTANTARRAY":
                if sizes:
                    sizes.pop(0)
                dims.append(ir.Const(count, ir.INT, line))
            else:
                dims.append(self.expressions.value(sizes.pop(0)))
        return tuple(reversed(dims))

    def _effects(self, action: Any) -> tuple[ir.Stmt, ...]:
        """``action`` makes a statement; what its expressions do besides is put around it."""
        before, made, after = self._sides(action)
        return (*before, *made, *after)

    def _sides(self, action: Any) -> tuple[tuple[ir.Stmt, ...], tuple[Any, ...], tuple[ir.Stmt, ...]]:
        """What ``action`` makes, and the statements that come before and after it for its side effects."""
        outer = self.scope.before, self.scope.after
        before: list[ir.Stmt] = []
        after: list[ir.Stmt] = []
        self.scope.before, self.scope.after = before, after
        try:
            made = action()
        finally:
            self.scope.before, self.scope.after = outer
        stepped = [s.target.name for s in after if isinstance(s, ir.Assign) and isinstance(s.target, ir.Ref)]
        stepped += [s.name for s in after if isinstance(s, ir.Point)]
        for name in stepped:
            uses = sum(_names(n) == name for s in (*before, *made) for n in ir.walk(s))
            if uses > 1 or stepped.count(name) > 1:
                raise CannotLower(f"'{name}' is stepped and used in one statement", made[0].line if made else 0)
        return tuple(before), tuple(made), tuple(after)

    def _repoint(self, left: Any, right: Any, line: int) -> tuple[ir.Stmt, ...]:
        variable = strip(left)
        if variable.kind.name != "DECL_REF_EXPR" or variable.referenced.hash not in self.scope.names:
            raise CannotLower("a pointer that is not a local variable is assigned", line)
        name = self.scope.names[variable.referenced.hash]
        return (self._pointed(name, left.type, right, line, declares=False),)

    def _pointed(self, name: str, clang_type: Any, source: Any, line: int, *, declares: bool) -> ir.Stmt:
        element = pointee(clang_type)
        kind = ctype_of(element, line)
        made = strip(source)
        if made.kind.name == "CALL_EXPR" and made.spelling in ("malloc", "calloc"):
            return self._allocated(name, kind, made, line, declares)
        address = self.expressions.address(source)
        missing = self.scope.rank[address.pointer] - len(address.indices)
        if missing or levels(clang_type) > 1:
            raise CannotLower(f"the pointer '{name}' points to whole rows", line)
        return ir.Point(name, kind, address, element.is_const_qualified(), declares, line)

    def _allocated(self, name: str, kind: Any, call: Any, line: int, declares: bool) -> ir.Stmt:
        arguments = [self.expressions.value(a) for a in call.get_arguments()]
        if call.spelling == "calloc":
            count, size = arguments
            if not (isinstance(size, ir.Const) and size.value == kind.size):
                count, size = size, count
            if isinstance(size, ir.Const) and size.value == kind.size:
                return ir.Allocate(name, kind, count, True, declares, line)
            raise CannotLower(f"the size of '{name}' is not a count times sizeof its elements", line)
        return ir.Allocate(name, kind, self._count(arguments[0], kind.size, line), False, declares, line)

    def _count(self, size: ir.Expr, element: int, line: int) -> ir.Expr:
        count = divided(size, element)
        if count is None:
            raise CannotLower("a size in bytes is not a count times the size of the elements", line)
        return count

    def _call_statement(self, cursor: Any, line: int) -> ir.Stmt:
        name = cursor.referenced.spelling if cursor.referenced is not None else ""
        if name.removeprefix("__builtin_") in ("memcpy", "memmove", "memset"):
            return self._memory(cursor, name, line)
        if name == "free":
            return ir.Release(self.expressions.address(next(cursor.get_arguments())).pointer, line)
        return ir.Evaluate(self.expressions.call(cursor), line)

    def _memory(self, cursor: Any, name: str, line: int) -> ir.Stmt:
        first, second, third = cursor.get_arguments()
        made = None if "memset" in name else self._scalar_copy(first, second, third, line)
        if made is not None:
            return made
        target = self.expressions.address(first)
        count = self._count(self.expressions.value(third), target.type.size, line)
        if "memset" in name:
            return ir.Fill(target, self.expressions.value(second), count, line)
        source = self.expressions.address(second)
        if "memmove" in name and source.pointer == target.pointer:
            raise CannotLower("memmove within one buffer is not supported", line)
        if source.type != target.type:
            raise CannotLower(f"'{name}' copies between different types", line)
        return ir.Copy(target, source, count, line)

    def _scalar_copy(self, first: Any, second: Any, third: Any, line: int) -> ir.Stmt | None:
        """``memcpy(&x, &y, sizeof x)`` between two scalars of one size; `None` where it is another copy."""
        target, source = self._behind(first), self._behind(second)
        size = self.expressions.value(third)
        if target is None or source is None or not isinstance(target, ir.Ref | ir.Load):
            return None
        if not isinstance(target, ir.Ref) and not isinstance(source, ir.Ref):
            return None
        while isinstance(size, ir.Cast):
            size = size.operand
        structs = TypeKind.STRUCT in (target.type.kind, source.type.kind)
        if structs or not isinstance(size, ir.Const) or {target.type.size, source.type.size} != {size.value}:
            raise CannotLower("a `memcpy` between scalars of different sizes is not supported", line)
        return ir.Assign(target, "=", as_type(source, target.type, line), line)

    def _behind(self, argument: Any) -> ir.Place | None:
        """The scalar that an argument ``&x`` or a pointer to one element stands for."""
        inner = argument
        while inner.kind.name in ("PAREN_EXPR", "UNEXPOSED_EXPR", "CSTYLE_CAST_EXPR"):
            inner = list(inner.get_children())[-1]
        if inner.kind.name == "UNARY_OPERATOR" and unary_operator(inner) == "&":
            operand = strip(next(inner.get_children()))
            return None if is_pointer(operand.type) else self.expressions.place(operand)
        if not is_pointer(inner.type) or pointee(inner.type).kind.name == "VOID":
            return None
        address = self.expressions.address(inner)
        if len(address.indices) != self.scope.rank[address.pointer]:
            return None
        return ir.Load(address.pointer, address.indices, address.type, address.line)

    def _declaration(self, cursor: Any) -> tuple[ir.Stmt, ...]:
        line = line_of(cursor)
        if cursor.kind.name in ("STRUCT_DECL", "TYPEDEF_DECL", "ENUM_DECL", "UNION_DECL"):
            return ()
        # A constant outlives the call, but nobody can tell.
        lasting = cursor.storage_class.name in ("STATIC", "EXTERN") and not is_constant(cursor)
        if cursor.kind.name != "VAR_DECL" or lasting:
            raise CannotLower(f"the local declaration of '{cursor.spelling}' is not supported", line)
        if cursor.type.get_canonical().kind.name == "POINTER":
            return self._pointer_declaration(cursor, line)
        if is_pointer(cursor.type):
            return self._array_declaration(cursor, line)
        init = initialiser_of(cursor)
        storage = union_storage(cursor.type, line)
        if storage is not None:
            return self._effects(lambda: [self._union(cursor, storage, init, line)])
        kind = ctype_of(cursor.type, line)
        if init is not None and init.kind.name == "INIT_LIST_EXPR":
            values = self.expressions.initialiser(init)
            return (ir.Declare(self.scope.declare(cursor), kind, values=values, line=line),)
        if init is None:
            return (ir.Declare(self.scope.declare(cursor), kind, line=line),)
        return self._effects(lambda: [self._declared(kind, self.expressions.value(init), cursor, line)])

    def _union(self, cursor: Any, storage: CType, init: Any | None, line: int) -> ir.Stmt:
        value = None
        if init is not None:
            items = self.expressions.items(init) if init.kind.name == "INIT_LIST_EXPR" else []
            if len(items) != 1:
                raise CannotLower(f"the initialiser of the union '{cursor.spelling}' is not supported", line)
            member = next(f for f in cursor.type.get_canonical().get_fields() if items[0].name in ("", f.spelling))
            value = self.expressions.value(items[0].value)
            kind = ctype_of(member.type, line)
            value = as_type(value if value.type == kind else ir.Cast(value, kind, line=line), storage, line)
        return ir.Declare(self.scope.declare(cursor), storage, value, line=line)

    def _declared(self, kind: Any, value: ir.Expr, cursor: Any, line: int) -> ir.Stmt:
        return ir.Declare(self.scope.declare(cursor), kind, value, line=line)

    def _pointer_declaration(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        init = initialiser_of(cursor)
        if init is None:
            element = pointee(cursor.type)
            name = self.scope.declare(cursor)
            self.scope.rank[name] = 1
            self.scope.kinds[name] = ctype_of(element, line)
            return (ir.Point(name, ctype_of(element, line), None, element.is_const_qualified(), line=line),)
        outer = self.scope.fresh(cursor.spelling)
        made = self._pointed(outer, cursor.type, init, line, declares=True)
        self.scope.names[cursor.hash] = outer
        self.scope.rank[outer] = 1
        self.scope.kinds[outer] = ctype_of(pointee(cursor.type), line)
        return (made,)

    def _array_declaration(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        dims = self._dims(cursor, line)
        kind = ctype_of(pointee(cursor.type), line)
        init = initialiser_of(cursor)
        values = None
        if init is not None and init.kind.name == "STRING_LITERAL":
            values = self.expressions.characters(init, kind)
        elif init is not None and init.kind.name != "INIT_LIST_EXPR":
            raise CannotLower(f"the initialiser of '{cursor.spelling}' is not supported", line)
        elif init is not None:
            values = self.expressions.flattened(init) if len(dims) > 1 else self.expressions.initialiser(init)
        if any(d is None for d in dims):
            dims = (ir.Const(cursor.type.get_canonical().element_count, ir.INT, line), *dims[1:])
        name = self.scope.declare(cursor)
        self.scope.rank[name] = len(dims)
        self.scope.kinds[name] = kind
        return (ir.Declare(name, kind, None, tuple(d for d in dims if d is not None), values, line),)


def _names(node: ir.Node) -> str:
    """The variable that a node reads, ``""`` for none."""
    if isinstance(node, ir.Ref):
        return node.name
    return node.pointer if isinstance(node, ir.Load | ir.Address) else ""
