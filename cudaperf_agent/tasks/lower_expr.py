"""Lowering of C expressions: libclang cursors to IR values, places and addresses, with side effects taken out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.clang_c import binary_operator, evaluate_constant, unary_operator
from cudaperf_agent.tasks.model import CType, Field, TypeKind

# Functions that C's <math.h>/<stdlib.h> and CUDA's device library share by name and meaning.
_REAL = """
sqrt cbrt exp exp2 exp10 expm1 log log2 log10 log1p pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh
atanh erf erfc tgamma lgamma fabs fmin fmax fmod floor ceil round trunc rint nearbyint hypot fma copysign fdim remainder
ldexp scalbn logb
"""
_OTHER = "abs labs llabs lround lroundf lrint lrintf isnan isinf isfinite signbit"
KNOWN_FUNCTIONS = frozenset([*_REAL.split(), *(f"{name}f" for name in _REAL.split()), *_OTHER.split()])
# C++ keywords that are names in C, and names that generated code has for itself.
_RESERVED = """
alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t class compl concept const_cast constexpr
decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public reinterpret_cast requires static_assert static_cast template this
thread_local throw true try typeid typename using virtual wchar_t xor xor_eq threadIdx blockIdx blockDim gridDim
warpSize stream result scratch
"""
_CPP_WORDS = frozenset(_RESERVED.split())
_POINTER_KINDS = ("POINTER", "CONSTANTARRAY", "VARIABLEARRAY", "INCOMPLETEARRAY", "DEPENDENTSIZEDARRAY")


class CannotLower(Exception):
    """Control flow inside the lowering; it leaves as an `ir.Unlowered`."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def line_of(cursor: Any) -> int:
    """1-based source line."""
    return int(cursor.location.line)


def is_pointer(clang_type: Any) -> bool:
    """Whether values of the type are pointers or decay to one."""
    return clang_type.get_canonical().kind.name in _POINTER_KINDS


def pointee(clang_type: Any) -> Any:
    """The type of one element behind a pointer or of an array, all array dimensions stripped."""
    current = clang_type.get_canonical()
    while current.kind.name in _POINTER_KINDS:
        inner = current.get_pointee() if current.kind.name == "POINTER" else current.element_type
        current = inner.get_canonical()
    return current


def ctype_of(clang_type: Any, line: int) -> CType:
    """The model's type of a complete object type.

    Raises:
        CannotLower: For pointers, unions, bit-fields, ``long double``, complex numbers and vectors.
    """
    canonical = clang_type.get_canonical()
    kind, size, align = canonical.kind.name, canonical.get_size(), canonical.get_align()
    spelling = canonical.spelling.replace("const ", "").replace("volatile ", "").strip()
    if kind == "BOOL":
        return CType("bool", TypeKind.BOOL, size, align)
    if kind == "ENUM":
        return ctype_of(canonical.get_declaration().enum_type, line)
    if kind in ("CHAR_S", "SCHAR", "SHORT", "INT", "LONG", "LONGLONG"):
        return CType(spelling, TypeKind.INT, size, align)
    if kind in ("CHAR_U", "UCHAR", "USHORT", "UINT", "ULONG", "ULONGLONG"):
        return CType(spelling, TypeKind.UINT, size, align)
    if kind in ("FLOAT", "DOUBLE"):
        return CType(spelling, TypeKind.FLOAT, size, align)
    if kind == "RECORD":
        return _record(clang_type, canonical, line)
    raise CannotLower(f"values of type '{clang_type.spelling}' are not supported", line)


def _record(clang_type: Any, canonical: Any, line: int) -> CType:
    from clang.cindex import CursorKind

    declaration = canonical.get_declaration()
    if declaration.kind == CursorKind.UNION_DECL:
        raise CannotLower(f"the union '{canonical.spelling}' is not supported", line)
    members = []
    for member in canonical.get_fields():
        if member.is_bitfield():
            raise CannotLower(f"the bit-field '{member.spelling}' is not supported", line)
        inner, shape = member.type.get_canonical(), []
        while inner.kind.name == "CONSTANTARRAY":
            shape.append(inner.element_count)
            inner = inner.element_type.get_canonical()
        members.append(Field(member.spelling, ctype_of(inner, line), member.get_field_offsetof() // 8, tuple(shape)))
    name = canonical.spelling.replace("const ", "").removeprefix("struct ").strip()
    if "(unnamed" in name:
        name = clang_type.spelling.replace("const ", "").removeprefix("struct ").strip()
    return CType(name, TypeKind.STRUCT, canonical.get_size(), canonical.get_align(), tuple(members))


def strip(cursor: Any) -> Any:
    """The expression below parentheses, implicit conversions and casts of pointers."""
    while cursor.kind.name in ("PAREN_EXPR", "UNEXPOSED_EXPR") or (
        cursor.kind.name == "CSTYLE_CAST_EXPR" and is_pointer(cursor.type)
    ):
        inner = list(cursor.get_children())
        if not inner:
            break
        cursor = inner[-1]
    return cursor


@dataclass
class Scope:
    """What the lowering of one function knows.

    Attributes:
        names: Unique name of each declaration, by the hash of its cursor.
        taken: Names in use in the function.
        rank: Number of indices of each pointer and array by unique name.
        tables: File-scope variables touched so far.
        called: Definitions of helpers called so far, by name.
        before, after: Statements that the side effects of the expression being lowered become; `None` where C
            evaluates an expression conditionally or repeatedly, so that nothing may be taken out of it.
    """

    names: dict[int, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    rank: dict[str, int] = field(default_factory=dict)
    tables: dict[str, ir.FileTable] = field(default_factory=dict)
    called: dict[str, Any] = field(default_factory=dict)
    before: list[ir.Stmt] | None = None
    after: list[ir.Stmt] | None = None

    def declare(self, cursor: Any) -> str:
        """A fresh name for a declaration, near to what was written."""
        wanted = f"{cursor.spelling}_" if cursor.spelling in _CPP_WORDS else cursor.spelling
        name = self.fresh(wanted)
        self.names[cursor.hash] = name
        return name

    def fresh(self, wanted: str) -> str:
        """An unused name."""
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name)
        return name


class Expressions:
    """Lowers expressions of one function."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    # Values ---------------------------------------------------------------------------------------------------

    def value(self, cursor: Any) -> ir.Expr:
        """The value of a scalar or struct expression."""
        line, kind = line_of(cursor), cursor.kind.name
        method = getattr(self, f"_value_{kind.lower()}", None)
        if method is None:
            raise CannotLower(f"the expression '{_text(cursor)}' ({kind.lower()}) is not supported", line)
        if is_pointer(cursor.type):
            raise CannotLower(f"the pointer '{_text(cursor)}' is used as a value", line)
        result: ir.Expr = method(cursor, line)
        return result

    def _value_paren_expr(self, cursor: Any, line: int) -> ir.Expr:
        return self.value(next(cursor.get_children()))

    def _value_unexposed_expr(self, cursor: Any, line: int) -> ir.Expr:
        inner = list(cursor.get_children())[-1]
        if is_pointer(inner.type):
            raise CannotLower(f"the pointer '{_text(inner)}' is used as a number", line)
        return self._converted(self.value(inner), cursor.type, implicit=True, line=line)

    def _converted(self, value: ir.Expr, clang_type: Any, *, implicit: bool, line: int) -> ir.Expr:
        target = ctype_of(clang_type, line)
        if target == value.type:
            return value
        return ir.Cast(value, target, implicit, line)

    def _value_cstyle_cast_expr(self, cursor: Any, line: int) -> ir.Expr:
        inner = list(cursor.get_children())[-1]
        if is_pointer(inner.type):
            raise CannotLower(f"the pointer '{_text(inner)}' is cast to a number", line)
        value = self.value(inner)
        if isinstance(value, ir.Cast) and value.implicit:
            value = value.operand
        return self._converted(value, cursor.type, implicit=False, line=line)

    def _literal(self, cursor: Any, line: int) -> ir.Expr:
        value = evaluate_constant(cursor)
        if value is None:
            raise CannotLower(f"'{_text(cursor)}' is not a constant that can be evaluated here", line)
        return ir.Const(value, ctype_of(cursor.type, line), line)

    _value_integer_literal = _value_floating_literal = _value_character_literal = _literal
    _value_cxx_unary_expr = _literal

    def _value_decl_ref_expr(self, cursor: Any, line: int) -> ir.Expr:
        declaration = cursor.referenced
        if declaration.kind.name == "ENUM_CONSTANT_DECL":
            return ir.Const(int(declaration.enum_value), ir.INT, line)
        return self.place(cursor)

    def _value_array_subscript_expr(self, cursor: Any, line: int) -> ir.Expr:
        return self.place(cursor)

    _value_member_ref_expr = _value_array_subscript_expr

    def _value_unary_operator(self, cursor: Any, line: int) -> ir.Expr:
        op = unary_operator(cursor)
        operand = next(cursor.get_children())
        if op == "*":
            return self.place(cursor)
        if op in ("++", "--", "p++", "p--"):
            return self._step(operand, op, line)
        if op not in ("-", "+", "~", "!"):
            raise CannotLower(f"the operator '{op}' is not supported here", line)
        value = self.value(operand)
        if op in ("-", "+") and isinstance(value, ir.Const):
            return ir.Const(-value.value if op == "-" else value.value, value.type, line)
        return ir.Unary(op, value, ctype_of(cursor.type, line), line)

    def _step(self, operand: Any, op: str, line: int) -> ir.Expr:
        if is_pointer(operand.type):
            raise CannotLower(f"the moving pointer '{_text(operand)}' is not supported here", line)
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
            raise CannotLower(f"the comparison or difference of pointers '{_text(cursor)}' is not supported", line)
        if op in ("&&", "||"):
            return ir.Binary(op, self.value(left), self._conditional(right), ctype_of(cursor.type, line), line)
        return ir.Binary(op, self.value(left), self.value(right), ctype_of(cursor.type, line), line)

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

    def initialiser(self, cursor: Any) -> tuple[ir.Expr, ...]:
        """The values of a brace-enclosed list, nested lists flattened where they are complete."""
        values: list[ir.Expr] = []
        for item in cursor.get_children():
            if item.kind.name == "INIT_LIST_EXPR":
                raise CannotLower("nested or designated initialisers are not supported", line_of(cursor))
            if item.kind.name == "MEMBER_REF":
                raise CannotLower("designated initialisers are not supported", line_of(cursor))
            values.append(self.value(item))
        return tuple(values)

    def _value_call_expr(self, cursor: Any, line: int) -> ir.Expr:
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
        elif name.removeprefix("__builtin_") in KNOWN_FUNCTIONS:
            name = name.removeprefix("__builtin_")
        else:
            raise CannotLower(f"the function '{name}' is not defined in the file and has no device counterpart", line)
        arguments = tuple(self.address(a) if is_pointer(a.type) else self.value(a) for a in cursor.get_arguments())
        returns = None if cursor.type.get_canonical().kind.name == "VOID" else ctype_of(cursor.type, line)
        return ir.Call(name, arguments, returns, line)

    # Places ---------------------------------------------------------------------------------------------------

    def place(self, cursor: Any) -> ir.Place:
        """What can be read or assigned: a variable, an element, or a part of one."""
        line, kind = line_of(cursor), cursor.kind.name
        if kind in ("PAREN_EXPR", "UNEXPOSED_EXPR"):
            return self.place(list(cursor.get_children())[-1])
        if kind == "DECL_REF_EXPR":
            return self._variable(cursor, line)
        if kind == "MEMBER_REF_EXPR":
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
        raise CannotLower(f"'{_text(cursor)}' cannot be assigned or read here", line)

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
        return ir.Load(address.pointer, address.indices, address.type, line)

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
        if kind == "BINARY_OPERATOR" and binary_operator(cursor) in ("+", "-"):
            left, right = cursor.get_children()
            if not is_pointer(left.type):
                left, right = right, left
            return self._moved(self.address(left), self.value(right), binary_operator(cursor), line)
        raise CannotLower(f"the pointer expression '{_text(cursor)}' is not supported", line)

    def _same_element(self, outer: Any, inner: Any, line: int) -> ir.Address:
        if is_pointer(outer.type):
            to, was = pointee(outer.type), pointee(inner.type)
            if "VOID" not in (to.kind.name, was.kind.name) and _bare(to) != _bare(was):
                raise CannotLower(f"memory of '{_bare(was)}' is read as '{_bare(to)}'", line)
        return self.address(inner)

    def _address_of(self, operand: Any, line: int) -> ir.Address:
        inner = strip(operand)
        if inner.kind.name == "ARRAY_SUBSCRIPT_EXPR" or inner.kind.name == "UNARY_OPERATOR":
            return self.address(inner)
        raise CannotLower(f"the address of '{_text(operand)}' is taken", line)

    def _pointer_variable(self, cursor: Any, line: int) -> ir.Address:
        declaration = cursor.referenced
        name = self.scope.names.get(declaration.hash)
        if name is None:
            name = self._table(declaration, line)
        element = ctype_of(pointee(cursor.type), line)
        return ir.Address(name, (ir.Const(0, ir.INT, line),), element, line)

    def _decayed(self, address: ir.Address, cursor: Any) -> ir.Address:
        """An element that is itself an array stands for the address of its first element."""
        if cursor.type.get_canonical().kind.name in _POINTER_KINDS[1:]:
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
            self.scope.tables[name] = ir.FileTable(name, ctype_of(inner, line), tuple(dims), const)
            self.scope.rank[name] = max(1, len(dims))
        return name


def _bare(clang_type: Any) -> str:
    spelling: str = clang_type.spelling
    return spelling.replace("const ", "").replace("volatile ", "").strip()


def _text(cursor: Any) -> str:
    words = [str(token.spelling) for token in cursor.get_tokens()]
    return " ".join(words[:12] or [str(cursor.spelling)])
