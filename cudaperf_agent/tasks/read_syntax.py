"""libclang's cursors to the syntax tree of `syntax`."""

from __future__ import annotations

import threading
from typing import Any

from cudaperf_agent.tasks.clang_c import (
    Unit,
    binary_operator,
    evaluate_constant,
    in_system_header,
    unary_operator,
)
from cudaperf_agent.tasks.syntax import CFile, Expr, Function, Stmt, Variable, is_integer


def read_file(unit: Unit) -> CFile:
    """Build the tree of everything that is not in a system header."""
    functions: dict[str, Function] = {}
    variables: dict[int, Variable] = {}
    for cursor in unit.declarations:
        if cursor.location.file is None or in_system_header(cursor):
            continue
        if cursor.kind.name == "FUNCTION_DECL" and cursor.is_definition():
            functions[cursor.spelling] = _function(cursor, unit.path)
        elif cursor.kind.name == "VAR_DECL":
            variable = _variable(cursor, file_scope=True)
            known = variables.get(variable.key)
            if known is None or cursor.is_definition():
                variables[variable.key] = variable
    return CFile(unit, functions, variables)


def _function(cursor: Any, path: str) -> Function:
    from clang.cindex import LinkageKind, TypeKind

    children = list(cursor.get_children())
    body = next(c for c in children if c.kind.name == "COMPOUND_STMT")
    parameters = tuple(_variable(c) for c in children if c.kind.name == "PARM_DECL")
    return Function(
        name=cursor.spelling,
        parameters=parameters,
        body=_statement(body),
        static=cursor.linkage == LinkageKind.INTERNAL,
        variadic=cursor.type.kind == TypeKind.FUNCTIONPROTO and cursor.type.is_function_variadic(),
        returns=cursor.result_type,
        in_main_file=cursor.location.file.name == path,
        first_line=cursor.extent.start.line,
        last_line=cursor.extent.end.line,
        cursor=cursor,
    )


def _array_levels(ctype: Any) -> list[bool]:
    """For every array level of a type, outermost first, whether its size is stated (as an expression)."""
    levels = []
    while ctype.kind.name in ("ELABORATED", "TYPEDEF", "POINTER", *_ARRAYS):
        if ctype.kind.name in _ARRAYS:
            levels.append(ctype.kind.name != "INCOMPLETEARRAY")
            ctype = ctype.get_array_element_type()
        elif ctype.kind.name == "POINTER":
            ctype = ctype.get_pointee()
        else:
            break
    return levels


_ARRAYS = ("CONSTANTARRAY", "INCOMPLETEARRAY", "VARIABLEARRAY", "DEPENDENTSIZEDARRAY")


def _variable(cursor: Any, file_scope: bool = False) -> Variable:
    from clang.cindex import StorageClass

    expressions = [c for c in cursor.get_children() if c.kind.is_expression()]
    levels = _array_levels(cursor.type)
    stated = sum(levels)
    # libclang visits the sizes innermost first, then the initialiser; a type behind a typedef shows none of its sizes.
    sizes = expressions[:stated][::-1] if len(expressions) >= stated else []
    remaining = expressions[stated:] if len(expressions) >= stated else expressions
    dims: list[Expr | None] = []
    for has_size in levels:
        dims.append(_expression(sizes.pop(0)) if has_size and sizes else None)
    static = file_scope or cursor.storage_class in (StorageClass.STATIC, StorageClass.EXTERN)
    return Variable(
        name=cursor.spelling,
        key=cursor.canonical.hash,
        ctype=cursor.type,
        line=cursor.location.line,
        dims=tuple(dims),
        init=_expression(remaining[-1]) if remaining else None,
        static=static,
        cursor=cursor,
    )


_SIMPLE = {
    "BREAK_STMT": "break", "CONTINUE_STMT": "continue", "NULL_STMT": "null", "GOTO_STMT": "goto",
    "INDIRECT_GOTO_STMT": "goto", "ASM_STMT": "asm", "MS_ASM_STMT": "asm",
}  # fmt: skip


def _statement(cursor: Any) -> Stmt:
    kind, line = cursor.kind.name, cursor.location.line
    if kind in _SIMPLE:
        return Stmt(_SIMPLE[kind], line)
    if cursor.kind.is_expression():
        return Stmt("expr", line, cond=_expression(cursor))
    children = list(cursor.get_children())
    if kind == "COMPOUND_STMT":
        return Stmt("block", line, tuple(_statement(c) for c in children))
    if kind == "DECL_STMT":
        return Stmt("decl", line, variables=tuple(_variable(c) for c in children if c.kind.name == "VAR_DECL"))
    if kind == "FOR_STMT":
        return _for(cursor, children)
    if kind in ("IF_STMT", "WHILE_STMT", "SWITCH_STMT"):
        name = kind.removesuffix("_STMT").lower()
        return Stmt(name, line, tuple(_statement(c) for c in children[1:]), cond=_expression(children[0]))
    if kind == "DO_STMT":
        return Stmt("do", line, (_statement(children[0]),), cond=_expression(children[1]))
    if kind == "RETURN_STMT":
        return Stmt("return", line, cond=_expression(children[0]) if children else None)
    if kind == "CASE_STMT":
        return Stmt("case", line, (_statement(children[-1]),), cond=_expression(children[0]))
    if kind in ("DEFAULT_STMT", "LABEL_STMT"):
        name = "case" if kind == "DEFAULT_STMT" else "label"
        return Stmt(name, line, tuple(_statement(c) for c in children[-1:]))
    return Stmt("other", line, tuple(_statement(c) for c in children))


def _for(cursor: Any, children: list[Any]) -> Stmt:
    *parts, body = children
    slots: dict[str, Any] = {}
    if len(parts) == 3:
        slots = dict(zip(("init", "cond", "step"), parts, strict=True))
    else:
        marks = _semicolons(cursor)
        for part in parts:
            slots[_slot(part, marks, slots, cursor.extent.start.offset)] = part
    init = slots.get("init")
    return Stmt(
        "for",
        cursor.location.line,
        (_statement(body),),
        init=_statement(init) if init is not None else None,
        cond=_expression(slots["cond"]) if "cond" in slots else None,
        step=_expression(slots["step"]) if "step" in slots else None,
    )


def _semicolons(cursor: Any) -> list[int]:
    depth, marks = 0, []
    for token in cursor.get_tokens():
        text = token.spelling
        depth += (text == "(") - (text == ")")
        if text == ";" and depth == 1:
            marks.append(token.extent.start.offset)
        if (text == ")" and depth == 0) or len(marks) == 2:
            break
    return marks


def _slot(part: Any, marks: list[int], taken: dict[str, Any], loop_start: int) -> str:
    if part.kind.name == "DECL_STMT":
        return "init"
    if len(marks) == 2 and part.extent.start.offset != loop_start:
        offset = part.extent.start.offset
        return "init" if offset < marks[0] else "cond" if offset < marks[1] else "step"
    # Inside a macro all parts have one location: go by what they do.
    changes = binary_operator(part).endswith("=") and binary_operator(part) not in ("==", "!=", "<=", ">=")
    if not changes and unary_operator(part) not in ("p++", "p--", "++", "--"):
        return "cond"
    return "step" if "cond" in taken or "init" in taken else "init"


class _Depth(threading.local):
    value = 0


_DEEPEST = 150
_depth = _Depth()


def _expression(cursor: Any) -> Expr:
    # Counted, not left to the interpreter's limit: struck inside a callback of libclang, that one is only printed, and
    # the expression comes out without its operands.
    _depth.value += 1
    try:
        if _depth.value > _DEEPEST:
            raise RecursionError(f"an expression of more than {_DEEPEST} levels")
        return _expression_of(cursor)
    finally:
        _depth.value -= 1


def _expression_of(cursor: Any) -> Expr:
    kind, line, ctype = cursor.kind.name, cursor.location.line, cursor.type.get_canonical()
    children = list(cursor.get_children())
    if kind in ("UNEXPOSED_EXPR", "PAREN_EXPR") and len(children) == 1:
        inner = _expression(children[0])
        if kind == "UNEXPOSED_EXPR" and _narrows(inner.ctype, ctype):
            return Expr("cast", line, ctype, "implicit", (inner,))
        return inner
    if kind in ("INTEGER_LITERAL", "CHARACTER_LITERAL", "FLOATING_LITERAL"):
        value = evaluate_constant(cursor)
        return Expr("const", line, ctype, value=value if value is not None else 0)
    if kind == "STRING_LITERAL":
        return Expr("string", line, ctype)
    if kind == "DECL_REF_EXPR":
        return _name(cursor, line, ctype)
    if kind == "CXX_UNARY_EXPR":
        value = evaluate_constant(cursor)
        if value is not None:
            return Expr("const", line, ctype, value=value)
        return Expr("sizeof", line, ctype, args=_all(children))
    return _operation(cursor, kind, line, ctype, children)


def _operation(cursor: Any, kind: str, line: int, ctype: Any, children: list[Any]) -> Expr:
    if kind == "UNARY_OPERATOR":
        return Expr("unary", line, ctype, unary_operator(cursor), _all(children))
    if kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR"):
        op = binary_operator(cursor)
        assigns = op.endswith("=") and op not in ("==", "!=", "<=", ">=")
        return Expr("assign" if assigns else "binary", line, ctype, op, _all(children))
    if kind == "CONDITIONAL_OPERATOR":
        return Expr("ternary", line, ctype, "?", _all(children))
    if kind == "ARRAY_SUBSCRIPT_EXPR":
        return Expr("index", line, ctype, "[]", _all(children))
    if kind == "CALL_EXPR":
        # A call's own spelling is empty where it goes through a pointer; its callee is the first child.
        args = _all(children)
        direct = args[0].name if args and args[0].kind == "name" and args[0].ctype.kind.name != "POINTER" else ""
        return Expr("call", line, ctype, args=args, name=direct)
    if kind == "MEMBER_REF_EXPR":
        arrow = bool(children) and children[0].type.get_canonical().kind.name == "POINTER"
        return Expr("member", line, ctype, "->" if arrow else ".", _all(children), cursor.spelling)
    if kind == "CSTYLE_CAST_EXPR":
        values = [c for c in children if c.kind.is_expression()]
        return Expr("cast", line, ctype, "explicit", _all(values[-1:]))
    if kind == "INIT_LIST_EXPR":
        return Expr("list", line, ctype, args=_all([c for c in children if c.kind.is_expression()]))
    return Expr("other", line, ctype, kind, _all([c for c in _below(children) if c.kind.is_expression()]))


def _below(children: list[Any]) -> list[Any]:
    flat: list[Any] = []
    for child in children:
        flat += [child] if child.kind.is_expression() else _below(list(child.get_children()))
    return flat


def _all(cursors: list[Any]) -> tuple[Expr, ...]:
    return tuple(_expression(c) for c in cursors)


def _name(cursor: Any, line: int, ctype: Any) -> Expr:
    target = cursor.referenced
    if target is not None and target.kind.name == "ENUM_CONSTANT_DECL":
        return Expr("const", line, ctype, value=target.enum_value)
    key = target.canonical.hash if target is not None else 0
    return Expr("name", line, ctype, name=cursor.spelling, key=key)


def _narrows(source: Any, target: Any) -> bool:
    """Whether an implicit conversion can change a value: from floating point to integer, or to a narrower integer."""
    if not is_integer(target):
        return False
    return not is_integer(source) or target.get_size() < source.get_size() or target.kind.name == "BOOL"
