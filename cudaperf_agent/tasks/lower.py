"""Lowering of a task's C functions to the loop IR: declarations, loops and control flow."""

from __future__ import annotations

from itertools import count
from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.clang_c import binary_operator, parse_c, unary_operator
from cudaperf_agent.tasks.cuda_names import is_taken
from cudaperf_agent.tasks.lower_bits import as_type, union_variable
from cudaperf_agent.tasks.lower_conditions import Conditions, always, continues
from cudaperf_agent.tasks.lower_loops import counted
from cudaperf_agent.tasks.lower_parts import for_parts, levels
from cudaperf_agent.tasks.lower_scope import Scope
from cudaperf_agent.tasks.lower_signs import require_signs
from cudaperf_agent.tasks.lower_switch import chain, sections_of
from cudaperf_agent.tasks.lower_types import CannotLower, ctype_of, is_pointer, line_of, pointee, strip
from cudaperf_agent.tasks.lowered import Function, Module, Param, Unlowered
from cudaperf_agent.tasks.model import CType, Task


def lower_task(task: Task) -> Module | Unlowered:
    """The entry of a task and the helpers it calls.

    Returns:
        The module, or the reason and the line why the C cannot be expressed.
    """
    return lower_source(task.source, task.name, task.path, task.include_dirs, task.defines)


def lower_source(
    source: str, entry: str, path: str = "source.c", include_dirs: tuple[str, ...] = (), defines: tuple[str, ...] = ()
) -> Module | Unlowered:
    """As `lower_task`, from a C text and the name of a function in it.

    Raises:
        InputRefused: The text is not C.
    """
    unit = parse_c(source, path, include_dirs, defines)
    definitions = {
        c.spelling: c for c in unit.cursor.get_children() if c.kind.name == "FUNCTION_DECL" and c.is_definition()
    }
    if entry not in definitions:
        return Unlowered(f"there is no definition of '{entry}'", 1)
    file_names = {c.spelling for c in unit.top_level() if c.kind.name in ("FUNCTION_DECL", "VAR_DECL")}
    renamed: dict[str, str] = {}
    for name in sorted(definitions):
        if name != entry and is_taken(name):
            renamed[name] = free = next(f for n in count(1) if (f := name + "_" * n) not in file_names)
            file_names.add(free)
    done: dict[str, Function] = {}
    try:
        main = _lower_with_callees(definitions[entry], Scope(taken=file_names, helper_names=renamed), done, ())
    except CannotLower as stop:
        return Unlowered(stop.reason, stop.line)
    return Module(main, tuple(f for name, f in done.items() if name != entry))


def _lower_with_callees(definition: Any, file: Scope, done: dict[str, Function], stack: tuple[str, ...]) -> Function:
    name = definition.spelling
    if name in stack:
        raise CannotLower(f"'{name}' is recursive", line_of(definition))
    scope = Scope(taken=set(file.taken), helper_names=file.helper_names)
    function = _Function(scope).lower(definition)
    require_signs(function)
    tables = dict(scope.tables)
    for callee, cursor in scope.called.items():
        if callee not in done:
            _lower_with_callees(cursor, file, done, (*stack, name))
        tables.update({t.name: t for t in done[callee].tables})
    done[name] = Function(
        scope.helper_names.get(name, name),
        function.params,
        function.returns,
        function.body,
        tuple(tables.values()),
        function.line,
    )
    return done[name]


class _Function(Conditions):
    """Lowers one function."""

    def lower(self, definition: Any) -> Function:
        params = tuple(self._param(p) for p in definition.get_arguments())
        body = next(c for c in definition.get_children() if c.kind.name == "COMPOUND_STMT")
        result = definition.result_type
        if is_pointer(result):
            raise CannotLower(f"'{definition.spelling}' returns a pointer", line_of(definition))
        returns = None if result.get_canonical().kind.name == "VOID" else ctype_of(result, line_of(definition))
        return Function(definition.spelling, params, returns, self.block(body), (), line_of(definition))

    def _param(self, cursor: Any) -> Param:
        line, name = line_of(cursor), self.scope.declare(cursor)
        if not is_pointer(cursor.type):
            return Param(name, ctype_of(cursor.type, line), pointer=False)
        element = pointee(cursor.type)
        dims = self._dims(cursor, line)
        if element.kind.name == "VOID" or levels(cursor.type) > max(1, len(dims)):
            raise CannotLower(
                f"the parameter '{cursor.spelling}' of type '{cursor.type.spelling}' is not supported", line
            )
        self.scope.rank[name] = max(1, len(dims))
        self.scope.kinds[name] = ctype_of(element, line)
        return Param(name, ctype_of(element, line), True, element.is_const_qualified(), dims)

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
        what = _NO_STATEMENT.get(kind, f"a {kind.lower().replace('_', ' ')}")
        raise CannotLower(f"{what} is not supported", line)

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
        union = union_variable(left, self.scope.names)
        if union is not None and (op == "=" or union[0].type != union[1]):
            return self._effects(lambda: [self._member_set(union[0], union[1], op, right, line)])
        if op in ("/=", "%=", ">>=") and self._is_view(left):
            raise CannotLower(f"'{op}' changes memory of one type as another", line)
        return self._effects(
            lambda: [self._assignment(self.expressions.value(right), self.expressions.place(left), op, line)]
        )

    def _is_view(self, cursor: Any) -> bool:
        """Whether an element is changed as one of another integer type."""
        if strip(cursor).kind.name not in ("ARRAY_SUBSCRIPT_EXPR", "UNARY_OPERATOR"):
            return False
        address = self.expressions.address(strip(cursor))
        return self.scope.kinds.get(address.pointer, address.type) != address.type

    def _member_set(self, whole: ir.Ref, kind: CType, op: str, right: Any, line: int) -> ir.Stmt:
        """``u.member op value`` of a union that is kept as one number."""
        value = self.expressions.value(right)
        if op != "=":
            if value.type != kind:
                raise CannotLower("a member of a union is changed by a value of another type", line)
            value = ir.Binary(op[:-1], as_type(whole, kind, line), value, kind, line)
        return ir.Assign(whole, "=", as_type(value, whole.type, line), line)

    def _assignment(self, value: ir.Expr, target: ir.Place, op: str, line: int) -> ir.Stmt:
        if op != "=" and isinstance(value, ir.Cast) and value.implicit and value.type.size > target.type.size:
            pass  # the operation is done in the wider type; C++ does the same for a compound assignment
        return ir.Assign(target, op, value, line)

    def _move(self, left: Any, op: str, by: ir.Expr, line: int) -> tuple[ir.Stmt, ...]:
        address = self.expressions._moved(self.expressions.address(left), by, op, line)
        const = pointee(left.type).is_const_qualified()
        return (ir.Point(address.pointer, address.type, address, const, declares=False, line=line),)

    # Control flow ---------------------------------------------------------------------------------------------

    def _if_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        condition, then, *otherwise = cursor.get_children()
        if not condition.kind.is_expression():
            raise CannotLower("this form of 'if' is not supported", line)
        test = self.test(condition)
        yes, no = self.block(then), self.block(otherwise[0]) if otherwise else ()
        branch = ir.If(test.value, (*test.after, *yes), (*test.after, *no), line)
        return (*test.before, branch)

    def _while_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        condition, body = cursor.get_children()
        test = self._loop_test(condition)
        if test is not None:
            return (ir.While(test, self.block(body), line=line),)
        return (ir.While(always(line), (*self.leaving(condition, line), *self.block(body)), line=line),)

    def _do_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        body, condition = cursor.get_children()
        test, inside = self._loop_test(condition), self.block(body)
        if test is not None:
            return (ir.While(test, inside, test_last=True, line=line),)
        if continues(inside):
            raise CannotLower("a `continue` towards a condition that changes something is not supported", line)
        return (ir.While(always(line), (*inside, *self.leaving(condition, line)), line=line),)

    def _loop_test(self, condition: Any) -> ir.Expr | None:
        """The condition of a loop; `None` where evaluating it changes something."""
        if any(test.before or test.after for test in self.conjuncts(condition)):
            return None
        return self.pure(condition)

    def _switch_stmt(self, cursor: Any, line: int) -> tuple[ir.Stmt, ...]:
        condition, body = cursor.get_children()
        test = self.test(condition)
        selector = ir.Ref(self.scope.fresh("choice"), test.value.type or ir.INT, line)
        made = chain(selector, sections_of(body, line), self.statement, line)
        declared = ir.Declare(selector.name, selector.type, test.value, line=line)
        return (*test.before, declared, *test.after, *made)

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
        init, condition, update, body = for_parts(cursor, line)
        before = self.statement(init) if init is not None else ()
        test = self._loop_test(condition) if condition is not None else _one(line)
        steps = self._expression(update, line) if update is not None else ()
        inside = self.block(body)
        if test is None:
            return (*before, ir.While(always(line), (*self.leaving(condition, line), *inside), steps, line=line))
        loop = counted(before, test, steps, inside, init is not None and init.kind.name == "DECL_STMT", line)
        return loop or (*before, ir.While(test, inside, steps, line=line))


_NO_STATEMENT = {
    "LABEL_STMT": "a label, which `goto` jumps to,",
    "GOTO_STMT": "`goto`",
    "CASE_STMT": "a `case` inside another statement",
    "DEFAULT_STMT": "a `default` inside another statement",
}


def _one(line: int) -> ir.Expr:
    return ir.Const(1, ir.INT, line)
