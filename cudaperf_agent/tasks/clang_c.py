"""Parsing C with libclang: one translation unit, its diagnostics as `InputRefused`, and what the binding lacks.

The Python binding of libclang 18 has no operator kinds and no constant evaluation, though the library does; they are
reached here through its own `ctypes` handle.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import BackendUnavailable, InputRefused

STANDARD = "gnu17"
_EVAL_INT, _EVAL_FLOAT = 1, 2


class Unit:
    """A parsed file.

    Attributes:
        source: The text that was parsed.
        path: Its name in messages.
        cursor: libclang's cursor of the whole unit.
        declarations: libclang cursors of all declarations, headers' included, in order.
        macros: Cursors of the macro definitions by name, the last of each.
    """

    def __init__(self, source: str, path: str, cursor: Any) -> None:
        from clang.cindex import CursorKind

        self.source = source
        self.path = path
        self.cursor = cursor
        self.declarations: list[Any] = []
        self.macros: dict[str, Any] = {}
        for child in cursor.get_children():
            kind = child.kind
            if kind == CursorKind.MACRO_DEFINITION:
                self.macros[child.spelling] = child
            elif not kind.is_preprocessing():
                self.declarations.append(child)

    def at(self, line: int | None) -> str:
        """``file:line`` for an error."""
        return f"{self.path}:{line}" if line else self.path

    def top_level(self) -> list[Any]:
        """The declarations that are written in the file itself rather than in a header."""
        return [c for c in self.declarations if (file := c.location.file) is not None and file.name == self.path]

    @functools.cached_property
    def declared_functions(self) -> dict[str, Any]:
        """The first declaration of each function, by name."""
        found: dict[str, Any] = {}
        for cursor in self.declarations:
            if cursor.kind.name == "FUNCTION_DECL":
                found.setdefault(cursor.spelling, cursor)
        return found


def parse_c(source: str, path: str, include_dirs: Sequence[str] = (), defines: Sequence[str] = ()) -> Unit:
    """Parse C text.

    Args:
        source: The text.
        path: Name for messages and for resolving ``#include "…"``; need not exist.
        include_dirs: Extra ``-I`` folders.
        defines: Extra ``-D`` definitions.

    Raises:
        InputRefused: The text is not valid C; the first error's line and clang's words.
    """
    from clang.cindex import Diagnostic, Index, TranslationUnit, TranslationUnitLoadError

    arguments = ["-x", "c", f"-std={STANDARD}", "-fno-spell-checking", "-Wno-everything"]
    arguments += ["-Werror=implicit-function-declaration", "-Werror=implicit-int"]
    for folder in system_includes():
        arguments += ["-isystem", folder]
    arguments += [f"-I{folder}" for folder in include_dirs]
    arguments += [f"-D{define}" for define in defines]
    options = TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    try:
        unit = Index.create().parse(path, args=arguments, unsaved_files=[(path, source)], options=options)
    except TranslationUnitLoadError as error:
        raise InputRefused("clang cannot read the file as C", where=path, hint="Pass a C source file.") from error
    errors = [d for d in unit.diagnostics if d.severity >= Diagnostic.Error]
    if errors:
        # A broken line often has a missing declaration too; what does not parse is said first.
        raise _refusal(next((d for d in errors if "undeclared function" not in d.spelling), errors[0]), path, source)
    return Unit(source, path, unit.cursor)


def _refusal(diagnostic: Any, path: str, source: str) -> InputRefused:
    location = diagnostic.location
    file = location.file.name if location.file else path
    if Path(file).name == "tgmath.h":
        # The C library's own is written for gcc's builtin; libclang ships none.
        line = source.count("\n", 0, max(source.find("tgmath.h"), 0)) + 1
        return InputRefused(
            "<tgmath.h> cannot be read here",
            where=f"{path}:{line}",
            hint="Include <math.h> and call the function of the type, e.g. sqrtf for float.",
        )
    where = f"{file}:{location.line}:{location.column}"
    message = diagnostic.spelling
    hint = "Mend the line so that a C compiler accepts the file (gcc -std=gnu17 -fsyntax-only FILE), then try again."
    if "file not found" in message:
        hint = "Add the folder of that header with --include-dir DIR, or paste its declarations into the file."
    elif "undeclared function" in message:
        hint = "Include the header that declares the function, or define it in this file."
    elif "undeclared identifier" in message or "unknown type name" in message:
        hint = "Include the header or define the name; a macro can be given with --define NAME=VALUE."
    return InputRefused(f"this is not valid C: {message}", where=where, hint=hint)


@functools.cache
def system_includes() -> tuple[str, ...]:
    """Folders of the compiler's own and the system's headers (the libclang wheel ships none).

    Raises:
        BackendUnavailable: No C compiler is installed to supply them.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise BackendUnavailable(
            "no C compiler was found", where="PATH", hint="Install gcc (Debian/Ubuntu: apt install gcc libc6-dev)."
        )
    # "gcc -E -v" prints the search list on any distribution, cross layouts and musl included.
    shown = subprocess.run(
        [compiler, "-E", "-v", "-x", "c", "/dev/null"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "LC_ALL": "C"},  # the list is found by its English heading
    ).stderr
    _, _, rest = shown.partition("#include <...> search starts here:")
    folders = [line.strip() for line in rest.partition("End of search list.")[0].splitlines() if line.strip()]
    return tuple(folder for folder in folders if Path(folder).is_dir())


def in_system_header(cursor: Any) -> bool:
    """Whether a cursor is written in a header of the compiler or the system."""
    from clang.cindex import conf

    return bool(conf.lib.clang_Location_isInSystemHeader(cursor.location))


@functools.cache
def _library() -> Any:
    import ctypes

    from clang.cindex import Cursor, conf

    library = conf.lib
    for name in ("clang_getCursorBinaryOperatorKind", "clang_getCursorUnaryOperatorKind"):
        function = getattr(library, name)
        function.argtypes, function.restype = [Cursor], ctypes.c_int
    for name, result in (
        ("clang_EvalResult_getKind", ctypes.c_int),
        ("clang_EvalResult_getAsLongLong", ctypes.c_longlong),
        ("clang_EvalResult_getAsUnsigned", ctypes.c_ulonglong),
        ("clang_EvalResult_isUnsignedInt", ctypes.c_uint),
        ("clang_EvalResult_getAsDouble", ctypes.c_double),
        ("clang_EvalResult_dispose", None),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_void_p], result
    library.clang_Cursor_Evaluate.argtypes = [Cursor]
    library.clang_Cursor_Evaluate.restype = ctypes.c_void_p
    library.clang_Cursor_isMacroFunctionLike.argtypes = [Cursor]
    library.clang_Cursor_isMacroFunctionLike.restype = ctypes.c_uint
    return library


# In the order of CXBinaryOperatorKind and CXUnaryOperatorKind (clang-c/Index.h).
_BINARY = (
    "", ".*", "->*", "*", "/", "%", "+", "-", "<<", ">>", "<=>", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|",
    "&&", "||", "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|=", ",",
)  # fmt: skip
_UNARY = (
    "", "p++", "p--", "++", "--", "&", "*", "+", "-", "~", "!", "__real", "__imag", "__extension__", "co_await",
)  # fmt: skip


def binary_operator(cursor: Any) -> str:
    """The operator of a binary or compound assignment expression, as written in C; ``""`` if it is not one."""
    return _BINARY[_library().clang_getCursorBinaryOperatorKind(cursor)]


def unary_operator(cursor: Any) -> str:
    """The operator of a unary expression; the postfix forms are ``p++`` and ``p--``."""
    return _UNARY[_library().clang_getCursorUnaryOperatorKind(cursor)]


def evaluate_constant(cursor: Any) -> int | float | None:
    """The value of a constant expression or literal (macros expanded), `None` where clang sees no constant."""
    library = _library()
    result = library.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    try:
        kind = library.clang_EvalResult_getKind(result)
        if kind == _EVAL_INT:
            if library.clang_EvalResult_isUnsignedInt(result):
                return int(library.clang_EvalResult_getAsUnsigned(result))
            return int(library.clang_EvalResult_getAsLongLong(result))
        return float(library.clang_EvalResult_getAsDouble(result)) if kind == _EVAL_FLOAT else None
    finally:
        library.clang_EvalResult_dispose(result)


def is_function_macro(cursor: Any) -> bool:
    """Whether a macro definition takes arguments."""
    return bool(_library().clang_Cursor_isMacroFunctionLike(cursor))
