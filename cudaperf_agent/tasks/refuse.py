"""What is refused without ever being run: code whose effects a kernel cannot have, or that no test could observe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.c_types import is_pointer
from cudaperf_agent.tasks.clang_c import in_system_header
from cudaperf_agent.tasks.library import (
    CONSOLE,
    COPIES,
    FILES,
    FILLS,
    OUTSIDE,
    PROGRAM_ONLY,
    PURE,
    PURE_HEADERS,
    READERS,
)
from cudaperf_agent.tasks.syntax import CFile, Expr, Function, Variable


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """Bounds of what is looked at.

    Attributes:
        max_bytes: A larger file is refused.
    """

    max_bytes: int = 2_000_000


def check_text(data: bytes, path: str, limits: SourceLimits | None = None) -> str:
    """The text of a C file.

    Raises:
        InputRefused: Empty, huge, or not text.
    """
    limits = limits or SourceLimits()
    if not data.strip():
        raise InputRefused("the file is empty", where=f"{path}:1", hint="Pass a C file that defines a function.")
    if len(data) > limits.max_bytes:
        raise InputRefused(
            f"the file has {len(data):,} bytes, more than the {limits.max_bytes:,} that are looked at",
            where=f"{path}:1",
            hint="Put the function to translate, and what it needs, into a file of its own.",
        )
    line = data.count(b"\n", 0, max(data.find(b"\0"), 0)) + 1
    if b"\0" in data:
        raise InputRefused("this is not a text file", where=f"{path}:{line}", hint="Pass C source, not an object file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputRefused(
            "this is not UTF-8 text", where=f"{path}:{line}", hint="Convert it, e.g. iconv -f latin1 -t utf-8 FILE."
        ) from error


def check_code(file: CFile, entry: Function, mode: Literal["function", "program"]) -> None:
    """Refuse what the entry, or a helper it calls, must not do.

    Raises:
        InputRefused: With the line of the first such thing and the remedy.
    """
    functions = file.closure(entry.name)
    for function in functions:
        _check_declarations(file, function)
        _check_calls(file, function, mode)
    _check_recursion(file, functions)
    if mode == "function":
        _check_state(file, functions)
    elif entry.parameters:
        used = {e.key for e in entry.expressions() if e.kind == "name"}
        if any(p.key in used for p in entry.parameters):
            raise InputRefused(
                "the program reads its command line",
                where=file.unit.at(entry.first_line),
                hint="Read all input from standard input.",
            )


def _check_declarations(file: CFile, function: Function) -> None:
    if function.variadic:
        raise InputRefused(
            f"{function.name} takes a variable number of arguments",
            where=file.unit.at(function.first_line),
            hint="Give it a fixed parameter list, e.g. an array and a count.",
        )
    for statement in function.body.walk():
        if statement.kind == "asm":
            raise InputRefused(
                "inline assembly cannot run on a GPU",
                where=file.unit.at(statement.line),
                hint="Write the operation in C.",
            )
        for variable in statement.variables:
            if variable.ctype.get_canonical().is_volatile_qualified():
                raise InputRefused(
                    f"`{variable.name}` is volatile", where=file.unit.at(variable.line), hint="Drop `volatile`."
                )


def _check_calls(file: CFile, function: Function, mode: str) -> None:
    for node in function.expressions():
        if node.kind != "call":
            continue
        where = file.unit.at(node.line)
        if not node.name:
            raise InputRefused(
                f"{function.name} calls a function through a pointer",
                where=where,
                hint="Call the function by its name; write one version per function if there are several.",
            )
        if node.name in file.functions:
            continue
        _check_library_call(file, function, node, mode, where)


def _check_library_call(file: CFile, function: Function, node: Expr, mode: str, where: str) -> None:
    name = node.name
    if name in FILES or (name in CONSOLE and mode == "function"):
        kind = "opens or uses files" if name in FILES else "does input or output"
        hint = (
            "Pass the data in as arrays and results out as arrays, and leave input and output to the caller."
            if mode == "function"
            else "Read standard input and write standard output only."
        )
        raise InputRefused(f"{function.name} {kind}: it calls `{name}`", where=where, hint=hint)
    if name in OUTSIDE or (name in PROGRAM_ONLY and mode == "function"):
        raise InputRefused(
            f"{function.name} depends on more than its arguments: it calls `{name}`",
            where=where,
            hint="Pass what it needs as a parameter, so that the same arguments always give the same result.",
        )
    if name in PURE or name in CONSOLE or name in PROGRAM_ONLY or name in COPIES | FILLS | READERS:
        return
    declaration = file.unit.declared_functions.get(name)
    if declaration is None or declaration.location.file is None:
        return  # a builtin of the compiler
    header = PurePath(declaration.location.file.name).name
    if in_system_header(declaration):
        if header.startswith(PURE_HEADERS):
            return
        raise InputRefused(
            f"{function.name} calls `{name}` of <{header}>, whose effects are not known",
            where=where,
            hint="Compute it in the file itself, or pass its result as a parameter.",
        )
    raise InputRefused(
        f"`{name}` is declared but not defined",
        where=where,
        hint=f"Put the definition of {name} into this file, or #include the file that has it.",
    )


def _check_recursion(file: CFile, functions: Sequence[Function]) -> None:
    for function in functions:
        below = {f.name for name in function.calls() for f in file.closure(name)}
        if function.name in below and any(is_pointer(p.ctype) for p in function.parameters):
            line = next((e.line for e in function.expressions() if e.kind == "call" and e.name in below), None)
            raise InputRefused(
                f"{function.name} calls itself over data that it gets by pointer",
                where=file.unit.at(line),
                hint="Write the recursion as loops over the array.",
            )


def _check_state(file: CFile, functions: Sequence[Function]) -> None:
    lasting = dict(file.variables)
    for function in functions:
        for statement in function.body.walk():
            lasting.update({v.key: v for v in statement.variables if v.static})
    for key, line in changed_variables(functions).items():
        variable = lasting.get(key)
        if variable is not None and variable.static:
            raise InputRefused(
                f"the function changes `{variable.name}`, which outlives the call",
                where=file.unit.at(line),
                hint=f"Make `{variable.name}` a parameter (a pointer, if it is changed), or a local variable.",
            )
    for variable in lasting.values():
        _check_lasting(file, variable, functions)


def _check_lasting(file: CFile, variable: Variable, functions: Sequence[Function]) -> None:
    ctype = variable.ctype.get_canonical()
    while ctype.kind.name.endswith("ARRAY"):
        ctype = ctype.get_array_element_type().get_canonical()
    if not (ctype.is_volatile_qualified() or ctype.kind.name == "POINTER"):
        return
    for function in functions:
        for node in function.expressions():
            if node.kind == "name" and node.key == variable.key:
                what = "is volatile" if ctype.is_volatile_qualified() else "holds pointers and lies at file scope"
                raise InputRefused(
                    f"`{variable.name}` {what}",
                    where=file.unit.at(node.line),
                    hint=f"Pass `{variable.name}` as a parameter.",
                )


def changed_variables(functions: Sequence[Function]) -> dict[int, int]:
    """Keys of the variables that functions may change, each with the first line where: by assignment or by address."""
    changed: dict[int, int] = {}
    for function in functions:
        for node in function.expressions():
            for target in _targets(node):
                while target.kind in ("index", "member") and target.args and target.op != "->":
                    target = target.args[0]
                if target.kind == "name":
                    changed.setdefault(target.key, node.line)
    return changed


def _targets(node: Expr) -> Iterator[Expr]:
    if node.kind == "assign" or (node.kind == "unary" and node.op in ("p++", "p--", "++", "--")):
        yield node.args[0]
    elif node.kind == "call" and node.name not in READERS:
        # An array or an address handed to a parameter that is not pointer-to-const may be written there.
        callee = node.args[0].ctype if node.args else None
        declared = list(callee.argument_types()) if callee is not None and callee.kind.name == "FUNCTIONPROTO" else []
        for position, argument in enumerate(node.args[1:]):
            if position < len(declared) and _to_const(declared[position]):
                continue
            if argument.kind == "unary" and argument.op == "&":
                yield argument.args[0]
            elif argument.ctype.kind.name.endswith("ARRAY"):
                yield argument


def _to_const(ctype: Any) -> bool:
    canonical = ctype.get_canonical()
    return canonical.kind.name != "POINTER" or bool(canonical.get_pointee().is_const_qualified())
