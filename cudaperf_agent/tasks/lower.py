"""Lowering of a task's C functions to the loop IR: declarations, loops and control flow."""

from __future__ import annotations

from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.clang_c import binary_operator, parse_c, unary_operator
from cudaperf_agent.tasks.lower_expr import (
    CannotLower,
    Expressions,
    Scope,
    ctype_of,
    is_pointer,
    line_of,
    pointee,
    strip,
)
from cudaperf_agent.tasks.lower_loops import counted, divided
from cudaperf_agent.tasks.model import Task


def lower_task(task: Task) -> ir.Module | ir.Unlowered:
    """The entry of a task and the helpers it calls.

    Returns:
        The module, or the reason and the line why the C cannot be expressed.
    """
    return lower_source(task.source, task.name, task.path, task.include_dirs, task.defines)


def lower_source(
    source: str, entry: str, path: str = "source.c", include_dirs: tuple[str, ...] = (), defines: tuple[str, ...] = ()
) -> ir.Module | ir.Unlowered:
    """As `lower_task`, from a C text and the name of a function in it.

    Raises:
        InputRefused: The text is not C.
    """
    unit = parse_c(source, path, include_dirs, defines)
    definitions = {
        c.spelling: c for c in unit.cursor.get_children() if c.kind.name == "FUNCTION_DECL" and c.is_definition()
    }
    if entry not in definitions:
        return ir.Unlowered(f"there is no definition of '{entry}'", 1)
    file_names = {c.spelling for c in unit.top_level() if c.kind.name in ("FUNCTION_DECL", "VAR_DECL")}
    done: dict[str, ir.Function] = {}
    try:
        main = _lower_with_callees(definitions[entry], file_names, done, ())
    except CannotLower as stop:
        return ir.Unlowered(stop.reason, stop.line)
    return ir.Module(main, tuple(f for name, f in done.items() if name != entry))


def _lower_with_callees(
    definition: Any, file_names: set[str], done: dict[str, ir.Function], stack: tuple[str, ...]
) -> ir.Function:
    name = definition.spelling
    if name in stack:
        raise CannotLower(f"'{name}' is recursive", line_of(definition))
    scope = Scope(taken=set(file_names))
    function = _Function(scope).lower(definition)
    tables = dict(scope.tables)
    for callee, cursor in scope.called.items():
        if callee not in done:
            _lower_with_callees(cursor, file_names, done, (*stack, name))
        tables.update({t.name: t for t in done[callee].tables})
    done[name] = ir.Function(
        function.name, function.params, function.returns, function.body, tuple(tables.values()), function.line
    )
    return done[name]


class _Function:
    """Lowers one function."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.expressions = Expressions(scope)

    def lower(self, definition: Any) -> ir.Function:
        params = tuple(self._param(p) for p in definition.get_arguments())
        body = next(c for c in definition.get_children() if c.kind.name == "COMPOUND_STMT")
        result = definition.result_type
        if is_pointer(result):
            raise CannotLower(f"'{definition.spelling}' returns a pointer", line_of(definition))
        returns = None if result.get_canonical().kind.name == "VOID" else ctype_of(result, line_of(definition))
        return ir.Function(definition.spelling, params, returns, self.block(body), (), line_of(definition))

    def _param(self, cursor: Any) -> ir.Param:
        line, name = line_of(cursor), self.scope.declare(cursor)
        if not is_pointer(cursor.type):
            return ir.Param(name, ctype_of(cursor.type, line), pointer=False)
        element = pointee(cursor.type)
        dims = self._dims(cursor, line)
        if element.kind.name == "VOID" or _levels(cursor.type) > max(1, len(dims)):
            raise CannotLower(
                f"the parameter '{cursor.spelling}' of type '{cursor.type.spelling}' is not supported", line
            )
        self.scope.rank[name] = max(1, len(dims))
        return ir.Param(name, ctype_of(element, line), True, element.is_const_qualified(), dims)

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

    # Statements -----------------------------------------------------------------------------------------------

    def block(self, cursor: Any) -> tuple[ir.Stmt, ...]:
        """The statements of a compound statement, or of a single one."""
        if cursor.kind.name != "COMPOUND_STMT":
            return self.statement(cursor)
        return tuple(s for c in cursor.get_children() for s in self.statement(c))

    def statement(self, cursor: Any) -> tuple[ir.Stmt, ...]:
        """One C statement; declarations and side effects may make several of it."""
        line, kind = line_of(cursor), cursor.kind.name
        if kind == "COMPOUND_STMT":
            return self.block(cursor)
        if kind == "NULL_STMT":
            return ()
        if kind == "DECL_STMT":
            return tuple(s for c in cursor.get_children() for s in self._declaration(c))
        method = getattr(self, f"_{kind.lower()}", None)
        if method is not None:
            statements: tuple[ir.Stmt, ...] = method(cursor, line)
            return statements
        if cursor.kind.is_expression():
            return self._expression(cursor, line)
        raise CannotLower(f"a {kind.lower().replace('_', ' ')} is not supported", line)

    def _effects(self, action: Any) -> tuple[ir.Stmt, ...]:
        """``action`` makes a statement; what its expressions do besides is put around it."""
        outer = self.scope.before, self.scope.after
        before: list[ir.Stmt] = []
        after: list[ir.Stmt] = []
        self.scope.before, self.scope.after = before, after
        try:
            made = action()
        finally:
            self.scope.before, self.scope.after = outer
        stepped = [s.target.name for s in after if isinstance(s, ir.Assign) and isinstance(s.target, ir.Ref)]
        for name in stepped:
            uses = sum(isinstance(n, ir.Ref) and n.name == name for s in (*before, *made) for n in ir.walk(s))
            if uses > 1 or stepped.count(name) > 1:
                raise CannotLower(f"'{name}' is stepped and used in one statement", made[0].line if made else 0)
        return (*before, *made, *after)

    def _expression(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        inner = cursor
        while inner.kind.name == "PAREN_EXPR" or (
            inner.kind.name == "CSTYLE_CAST_EXPR" and inner.type.get_canonical().kind.name == "VOID"
        ):
            inner = list(inner.get_children())[-1]
        kind = inner.kind.name
        if kind == "BINARY_OPERATOR" and binary_operator(inner) == ",":
            left, right = inner.get_children()
            return (*self._expression(left, line), *self._expression(right, line))
        if kind == "BINARY_OPERATOR" and binary_operator(inner) == "=":
            return self._assign(inner, line)
        if kind == "COMPOUND_ASSIGNMENT_OPERATOR":
            return self._assign(inner, line)
        if kind == "UNARY_OPERATOR" and unary_operator(inner) in ("++", "--", "p++", "p--"):
            operand = next(inner.get_children())
            op = f"{unary_operator(inner)[-1]}="
            if is_pointer(operand.type):
                return self._move(operand, op[0], ir.Const(1, ir.INT, line), line)
            return self._effects(lambda: [ir.Assign(self.expressions.place(operand), op, _one(line), line)])
        if kind == "CALL_EXPR":
            return self._effects(lambda: [self._call_statement(inner, line)])
        if kind in ("DECL_REF_EXPR", "UNEXPOSED_EXPR", "INTEGER_LITERAL"):
            return ()  # a value that is thrown away: (void)x
        return self._effects(lambda: self._evaluated(inner))

    def _evaluated(self, cursor: Any) -> list[ir.Stmt]:
        """Only the side effects of an expression; its value is thrown away."""
        self.expressions.value(cursor)
        return []

    def _assign(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        left, right = cursor.get_children()
        op = binary_operator(cursor)
        if is_pointer(left.type):
            if op in ("+=", "-="):
                return self._move(left, op[0], self.expressions.value(right), line)
            return self._repoint(left, right, line)
        return self._effects(
            lambda: [self._assignment(self.expressions.value(right), self.expressions.place(left), op, line)]
        )

    def _assignment(self, value: ir.Expr, target: ir.Place, op: str, line: int) -> ir.Stmt:
        if op != "=" and isinstance(value, ir.Cast) and value.implicit and value.type.size > target.type.size:
            pass  # the operation is done in the wider type; C++ does the same for a compound assignment
        return ir.Assign(target, op, value, line)

    def _move(self, left: Any, op: str, by: ir.Expr, line: int) -> tuple[ir.Stmt, ...]:
        address = self.expressions._moved(self.expressions.address(left), by, op, line)
        return (ir.Point(address.pointer, address.type, address, declares=False, line=line),)

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
        if missing or _levels(clang_type) > 1:
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

    def _declaration(self, cursor: Any) -> tuple[ir.Stmt, ...]:
        line = line_of(cursor)
        if cursor.kind.name in ("STRUCT_DECL", "TYPEDEF_DECL", "ENUM_DECL"):
            return ()
        if cursor.kind.name != "VAR_DECL" or cursor.storage_class.name in ("STATIC", "EXTERN"):
            raise CannotLower(f"the local declaration of '{cursor.spelling}' is not supported", line)
        if cursor.type.get_canonical().kind.name == "POINTER":
            return self._pointer_declaration(cursor, line)
        if is_pointer(cursor.type):
            return self._array_declaration(cursor, line)
        kind = ctype_of(cursor.type, line)
        init = _initialiser(cursor)
        if init is not None and init.kind.name == "INIT_LIST_EXPR":
            values = self.expressions.initialiser(init)
            return (ir.Declare(self.scope.declare(cursor), kind, values=values, line=line),)
        if init is None:
            return (ir.Declare(self.scope.declare(cursor), kind, line=line),)
        return self._effects(lambda: [self._declared(kind, self.expressions.value(init), cursor, line)])

    def _declared(self, kind: Any, value: ir.Expr, cursor: Any, line: int) -> ir.Stmt:
        return ir.Declare(self.scope.declare(cursor), kind, value, line=line)

    def _pointer_declaration(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        init = _initialiser(cursor)
        if init is None:
            element = pointee(cursor.type)
            name = self.scope.declare(cursor)
            self.scope.rank[name] = 1
            return (ir.Point(name, ctype_of(element, line), None, element.is_const_qualified(), line=line),)
        outer = self.scope.fresh(cursor.spelling)
        made = self._pointed(outer, cursor.type, init, line, declares=True)
        self.scope.names[cursor.hash] = outer
        self.scope.rank[outer] = 1
        return (made,)

    def _array_declaration(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        dims = self._dims(cursor, line)
        kind = ctype_of(pointee(cursor.type), line)
        init = _initialiser(cursor)
        values = None
        if init is not None:
            if init.kind.name != "INIT_LIST_EXPR" or len(dims) > 1:
                raise CannotLower(f"the initialiser of '{cursor.spelling}' is not supported", line)
            values = self.expressions.initialiser(init)
        if any(d is None for d in dims):
            dims = (ir.Const(cursor.type.get_canonical().element_count, ir.INT, line),)
        name = self.scope.declare(cursor)
        self.scope.rank[name] = len(dims)
        return (ir.Declare(name, kind, None, tuple(d for d in dims if d is not None), values, line),)

    # Control flow ---------------------------------------------------------------------------------------------

    def _pure(self, cursor: Any) -> ir.Expr:
        return self.expressions._conditional(cursor)

    def _if_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        condition, then, *otherwise = cursor.get_children()
        if not condition.kind.is_expression():
            raise CannotLower("this form of 'if' is not supported", line)
        test = self._pure(condition)
        return (ir.If(test, self.block(then), self.block(otherwise[0]) if otherwise else (), line),)

    def _while_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        condition, body = cursor.get_children()
        return (ir.While(self._pure(condition), self.block(body), line=line),)

    def _do_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        body, condition = cursor.get_children()
        return (ir.While(self._pure(condition), self.block(body), test_last=True, line=line),)

    def _break_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        return (ir.Break(line),)

    def _continue_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        return (ir.Continue(line),)

    def _return_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        values = list(cursor.get_children())
        if not values:
            return (ir.Return(None, line),)
        return self._effects(lambda: [ir.Return(self.expressions.value(values[0]), line)])

    def _for_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        init, condition, update, body = _for_parts(cursor, line)
        before = self.statement(init) if init is not None else ()
        test: ir.Expr = self._pure(condition) if condition is not None else _one(line)
        steps = self._expression(update, line) if update is not None else ()
        inside = self.block(body)
        loop = counted(before, test, steps, inside, init is not None and init.kind.name == "DECL_STMT", line)
        return loop or (*before, ir.While(test, inside, steps, line=line))


def _one(line: int) -> ir.Expr:
    return ir.Const(1, ir.INT, line)


def _levels(clang_type: Any) -> int:
    """Pointer and array levels above the element."""
    current, levels = clang_type.get_canonical(), 0
    while is_pointer(current):
        current = current.get_pointee() if current.kind.name == "POINTER" else current.element_type
        current, levels = current.get_canonical(), levels + 1
    return levels


def _initialiser(cursor: Any) -> Any | None:
    """The initialiser of a variable: the last expression child, unless it is an array's size."""
    expressions = [c for c in cursor.get_children() if c.kind.is_expression()]
    sizes, current = 0, cursor.type
    while current.kind.name in ("CONSTANTARRAY", "VARIABLEARRAY"):
        sizes, current = sizes + 1, current.element_type
    tokens = [t.spelling for t in cursor.get_tokens()]
    if "=" not in tokens:
        return None if len(expressions) <= sizes or is_pointer(cursor.type) else expressions[-1]
    return expressions[-1] if expressions else None


def _for_parts(cursor: Any, line: int) -> tuple[Any | None, Any | None, Any | None, Any]:
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
