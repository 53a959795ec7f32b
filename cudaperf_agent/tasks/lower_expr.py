"""Lowering of C expressions: libclang cursors to IR values, with side effects taken out."""

from __future__ import annotations

import math
from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.clang_c import binary_operator, evaluate_constant, unary_operator
from cudaperf_agent.tasks.lower_bits import as_type, union_variable
from cudaperf_agent.tasks.lower_initialisers import Initialisers
from cudaperf_agent.tasks.lower_types import (
    CannotLower,
    ctype_of,
    is_null,
    is_pointer,
    line_of,
    pointee,
    same_size_integers,
    strip,
    text_of,
)
from cudaperf_agent.tasks.model import TypeKind

# Functions that C's <math.h>/<stdlib.h> and CUDA's device library share by name and meaning.
_REAL = """
sqrt cbrt exp exp2 exp10 expm1 log log2 log10 log1p pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh
atanh erf erfc tgamma lgamma fabs fmin fmax fmod floor ceil round trunc rint nearbyint hypot fma copysign fdim remainder
ldexp scalbn logb
"""
_OTHER = "abs labs llabs lround lroundf lrint lrintf isnan isinf isfinite signbit"
KNOWN_FUNCTIONS = frozenset([*_REAL.split(), *(f"{name}f" for name in _REAL.split()), *_OTHER.split()])


# What <math.h> makes of INFINITY, HUGE_VAL and NAN.
_BUILTIN_VALUES = {
    **{f"__builtin_{name}{suffix}": math.inf for name in ("inf", "huge_val") for suffix in ("", "f")},
    **{f"__builtin_nan{suffix}": math.nan for suffix in ("", "f")},
}


class Expressions(Initialisers):
    """Lowers expressions of one function."""

    # Values ---------------------------------------------------------------------------------------------------

    def value(self, cursor: Any) -> ir.Expr:
        """The value of a scalar or struct expression."""
        line, kind = line_of(cursor), cursor.kind.name
        method = getattr(self, f"_value_{kind.lower()}", None)
        if method is None:
            raise CannotLower(f"the expression '{text_of(cursor)}' ({kind.lower()}) is not supported", line)
        if is_pointer(cursor.type):
            raise CannotLower(f"the pointer '{text_of(cursor)}' is used as a value", line)
        result: ir.Expr = method(cursor, line)
        return result

    def _value_paren_expr(self, cursor: Any, line: int) -> ir.Expr:
        return self.value(next(cursor.get_children()))

    def _value_unexposed_expr(self, cursor: Any, line: int) -> ir.Expr:
        inner = list(cursor.get_children())[-1]
        if is_pointer(inner.type):
            raise CannotLower(f"the pointer '{text_of(inner)}' is used as a number", line)
        return self._converted(self.value(inner), cursor.type, implicit=True, line=line)

    def _converted(self, value: ir.Expr, clang_type: Any, *, implicit: bool, line: int) -> ir.Expr:
        target = ctype_of(clang_type, line)
        if target == value.type:
            return value
        return ir.Cast(value, target, implicit, line)

    def _value_cstyle_cast_expr(self, cursor: Any, line: int) -> ir.Expr:
        inner = list(cursor.get_children())[-1]
        if is_pointer(inner.type):
            raise CannotLower(f"the pointer '{text_of(inner)}' is cast to a number", line)
        value = self.value(inner)
        if isinstance(value, ir.Cast) and value.implicit:
            value = value.operand
        return self._converted(value, cursor.type, implicit=False, line=line)

    def _literal(self, cursor: Any, line: int) -> ir.Expr:
        value = evaluate_constant(cursor)
        if value is None:
            raise CannotLower(f"'{text_of(cursor)}' is not a constant that can be evaluated here", line)
        return ir.Const(value, ctype_of(cursor.type, line), line)

    _value_integer_literal = _value_floating_literal = _value_character_literal = _literal
    _value_cxx_unary_expr = _literal

    def _value_decl_ref_expr(self, cursor: Any, line: int) -> ir.Expr:
        declaration = cursor.referenced
        if declaration.kind.name == "ENUM_CONSTANT_DECL":
            return ir.Const(int(declaration.enum_value), ir.INT, line)
        return self.place(cursor)

    def _value_array_subscript_expr(self, cursor: Any, line: int) -> ir.Expr:
        return self._element(cursor, line)

    def _element(self, cursor: Any, line: int) -> ir.Expr:
        """The value of an element, in the type that it is read as."""
        place = self.place(cursor)
        if isinstance(place, ir.Load) and place.type.kind is not TypeKind.STRUCT:
            wanted = ctype_of(cursor.type, line)
            if wanted != place.type and same_size_integers(wanted, place.type):
                return ir.Cast(place, wanted, line=line)
        return place

    def _value_member_ref_expr(self, cursor: Any, line: int) -> ir.Expr:
        union = union_variable(cursor, self.scope.names)
        return self.place(cursor) if union is None else as_type(*union, line)

    def _punned(self, operand: Any, line: int) -> ir.Expr | None:
        """``*(unsigned *)&x`` of a local scalar: its bits as another type."""
        while operand.kind.name in ("PAREN_EXPR", "UNEXPOSED_EXPR"):
            operand = next(operand.get_children())
        inner = strip(operand)
        if operand.kind.name != "CSTYLE_CAST_EXPR" or inner.kind.name != "UNARY_OPERATOR":
            return None
        behind = strip(next(inner.get_children()))
        if unary_operator(inner) != "&" or behind.kind.name != "DECL_REF_EXPR" or is_pointer(behind.type):
            return None
        value, kind = self.value(behind), ctype_of(pointee(operand.type), line)
        if value.type is None or value.type.size != kind.size or TypeKind.STRUCT in (value.type.kind, kind.kind):
            return None
        return as_type(value, kind, line)

    def _value_unary_operator(self, cursor: Any, line: int) -> ir.Expr:
        op = unary_operator(cursor)
        operand = next(cursor.get_children())
        if op == "*":
            return self._punned(operand, line) or self._element(cursor, line)
        if op in ("++", "--", "p++", "p--"):
            return self._step(operand, op, line)
        if op not in ("-", "+", "~", "!"):
            raise CannotLower(f"the operator '{op}' is not supported here", line)
        if op == "!" and is_pointer(strip(operand).type):
            return self._null_test(strip(operand), "==", line)
        value = self.value(operand)
        if op in ("-", "+") and isinstance(value, ir.Const):
            return ir.Const(-value.value if op == "-" else value.value, value.type, line)
        return ir.Unary(op, value, ctype_of(cursor.type, line), line)

    def _step(self, operand: Any, op: str, line: int) -> ir.Expr:
        if is_pointer(operand.type):
            raise CannotLower(f"the moving pointer '{text_of(operand)}' is not supported here", line)
        target = self.place(operand)
        sides = self.scope.after if op.startswith("p") else self.scope.before
        if sides is None or not isinstance(target, ir.Ref):
            raise CannotLower(f"'{op.strip('p')}' inside a condition or a loop header is not supported", line)
        sides.append(ir.Assign(target, f"{op[-1]}=", ir.Const(1, ir.INT, line), line))
        return target

    def _value_binary_operator(self, cursor: Any, line: int) -> ir.Expr:
        op = binary_operator(cursor)
        left, right = cursor.get_children()
        if op == "=":
            return self._assignment(left, op, right, line)
        if op == ",":
            raise CannotLower("the comma operator is not supported here", line)
        if is_pointer(left.type) or is_pointer(right.type):
            return self._of_pointers(cursor, op, line)
        if op in ("&&", "||"):
            return ir.Binary(op, self.value(left), self._conditional(right), ctype_of(cursor.type, line), line)
        return ir.Binary(op, self.value(left), self.value(right), ctype_of(cursor.type, line), line)

    def _of_pointers(self, cursor: Any, op: str, line: int) -> ir.Expr:
        """A comparison or difference of two pointers."""
        sides = [strip(side) for side in cursor.get_children()]
        null = [is_null(side) for side in sides]
        if op in ("==", "!=") and sum(null) == 1:
            return self._null_test(sides[null.index(False)], op, line)
        if any(null) or op not in ("<", "<=", ">", ">=", "==", "!=", "-"):
            raise CannotLower(f"the comparison of the pointers '{text_of(cursor)}' is not supported", line)
        left, right = (self.address(side) for side in sides)
        if any(len(side.indices) != 1 or self.scope.rank[side.pointer] != 1 for side in (left, right)):
            raise CannotLower(f"the comparison of pointers to rows '{text_of(cursor)}' is not supported", line)
        return ir.Binary(op, left, right, ctype_of(cursor.type, line), line)

    def _null_test(self, pointer: Any, op: str, line: int) -> ir.Expr:
        return ir.Binary(op, self.address(pointer), ir.Const(0, ir.INT, line), ir.INT, line)

    def _value_compound_assignment_operator(self, cursor: Any, line: int) -> ir.Expr:
        left, right = cursor.get_children()
        return self._assignment(left, binary_operator(cursor), right, line)

    def _assignment(self, left: Any, op: str, right: Any, line: int) -> ir.Expr:
        if self.scope.before is None or is_pointer(left.type):
            raise CannotLower("an assignment inside a condition or a loop header is not supported", line)
        value = self.value(right)
        target = self.place(left)
        self.scope.before.append(ir.Assign(target, op, value, line))
        return target

    def _value_conditional_operator(self, cursor: Any, line: int) -> ir.Expr:
        condition, yes, no = cursor.get_children()
        chosen = self._conditional(yes), self._conditional(no)
        return ir.Select(self.value(condition), *chosen, ctype_of(cursor.type, line), line)

    def _conditional(self, cursor: Any) -> ir.Expr:
        before, after = self.scope.before, self.scope.after
        self.scope.before = self.scope.after = None
        try:
            return self.value(cursor)
        finally:
            self.scope.before, self.scope.after = before, after

    def _value_compound_literal_expr(self, cursor: Any, line: int) -> ir.Expr:
        initialiser = list(cursor.get_children())[-1]
        if self.scope.before is None or initialiser.kind.name != "INIT_LIST_EXPR":
            raise CannotLower("a compound literal is not supported here", line)
        kind = ctype_of(cursor.type, line)
        name = self.scope.fresh("literal")
        self.scope.before.append(ir.Declare(name, kind, values=self.initialiser(initialiser), line=line))
        return ir.Ref(name, kind, line)

    def _value_call_expr(self, cursor: Any, line: int) -> ir.Expr:
        known = _BUILTIN_VALUES.get(cursor.spelling)
        if known is not None:
            return ir.Const(known, ctype_of(cursor.type, line), line)
        result = self.call(cursor)
        if result.type is None:
            raise CannotLower(f"'{result.name}' returns nothing but is used as a value", line)
        return result

    def call(self, cursor: Any) -> ir.Call:
        """A call, as a value or as a statement."""
        line, function = line_of(cursor), cursor.referenced
        if function is None or function.kind.name != "FUNCTION_DECL":
            raise CannotLower("a call through a function pointer is not supported", line)
        name, definition = function.spelling, function.get_definition()
        if definition is not None:
            self.scope.called[name] = definition
            name = self.scope.helper_names.get(name, name)
        elif name.removeprefix("__builtin_") in KNOWN_FUNCTIONS:
            name = name.removeprefix("__builtin_")
        else:
            raise CannotLower(f"the function '{name}' is not defined in the file and has no device counterpart", line)
        arguments = tuple(self.address(a) if is_pointer(a.type) else self.value(a) for a in cursor.get_arguments())
        returns = None if cursor.type.get_canonical().kind.name == "VOID" else ctype_of(cursor.type, line)
        return ir.Call(name, arguments, returns, line)
