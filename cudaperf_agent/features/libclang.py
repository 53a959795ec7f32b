"""Direct bindings to the few libclang functions that the analysis calls often; the shared library is the wheel's own.

The Python binding of 18.1 lacks the opcodes of operators, and its checks on every result cost more than the calls.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from clang import cindex

Cursor = cindex.Cursor
"""``CXCursor``: kind, and the declaration and statement pointers in ``data``."""
_Type = cindex.Type
_Location = cindex.SourceLocation
_Range = cindex.SourceRange


class _String(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("flags", ctypes.c_uint))


_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "clang_getCursorSpelling": (_String, [Cursor]),
    "clang_getTypeSpelling": (_String, [_Type]),
    "clang_getCString": (ctypes.c_char_p, [_String]),
    "clang_disposeString": (None, [_String]),
    "clang_getCursorReferenced": (Cursor, [Cursor]),
    "clang_getCursorDefinition": (Cursor, [Cursor]),
    "clang_getCanonicalCursor": (Cursor, [Cursor]),
    "clang_getCursorSemanticParent": (Cursor, [Cursor]),
    "clang_getSpecializedCursorTemplate": (Cursor, [Cursor]),
    "clang_Cursor_getNumArguments": (ctypes.c_int, [Cursor]),
    "clang_Cursor_getArgument": (Cursor, [Cursor, ctypes.c_uint]),
    "clang_Cursor_getStorageClass": (ctypes.c_int, [Cursor]),
    "clang_Cursor_getOffsetOfField": (ctypes.c_longlong, [Cursor]),
    "clang_Cursor_isFunctionInlined": (ctypes.c_uint, [Cursor]),
    "clang_getCursorBinaryOperatorKind": (ctypes.c_int, [Cursor]),
    "clang_getCursorUnaryOperatorKind": (ctypes.c_int, [Cursor]),
    "clang_getCursorType": (_Type, [Cursor]),
    "clang_getCanonicalType": (_Type, [_Type]),
    "clang_getPointeeType": (_Type, [_Type]),
    "clang_getArrayElementType": (_Type, [_Type]),
    "clang_Type_getSizeOf": (ctypes.c_longlong, [_Type]),
    "clang_Type_getAlignOf": (ctypes.c_longlong, [_Type]),
    "clang_getEnumConstantDeclValue": (ctypes.c_longlong, [Cursor]),
    "clang_Cursor_Evaluate": (ctypes.c_void_p, [Cursor]),
    "clang_EvalResult_getKind": (ctypes.c_int, [ctypes.c_void_p]),
    "clang_EvalResult_getAsLongLong": (ctypes.c_longlong, [ctypes.c_void_p]),
    "clang_EvalResult_dispose": (None, [ctypes.c_void_p]),
    "clang_getCursorLocation": (_Location, [Cursor]),
    "clang_Location_isFromMainFile": (ctypes.c_int, [_Location]),
    "clang_getFile": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
    "clang_getCursorExtent": (_Range, [Cursor]),
    "clang_getRangeStart": (_Location, [_Range]),
    "clang_getRangeEnd": (_Location, [_Range]),
    "clang_getExpansionLocation": (None, [_Location] + [ctypes.c_void_p] * 4),
}
VISITOR = ctypes.CFUNCTYPE(ctypes.c_int, Cursor, Cursor, ctypes.c_void_p)
"""Callback of `clang_visitChildren`: returns 0 to stop, 1 for the next sibling, 2 to go below."""


@lru_cache(maxsize=1)
def library() -> Any:
    """The shared library with prototypes set."""
    loaded = ctypes.CDLL(cindex.conf.get_filename())
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    loaded.clang_visitChildren.restype = ctypes.c_uint
    loaded.clang_visitChildren.argtypes = [Cursor, VISITOR, ctypes.c_void_p]
    return loaded


@lru_cache(maxsize=1)
def index() -> Any:
    """The index that sources are parsed in."""
    return cindex.Index.create()


def text(string: Any) -> str:
    """A ``CXString`` as text; frees it."""
    loaded = library()
    raw = loaded.clang_getCString(string)
    result = raw.decode("utf-8", "replace") if raw else ""
    loaded.clang_disposeString(string)
    return str(result)


def is_null(cursor: Any) -> bool:
    """Whether a cursor stands for nothing."""
    return bool(70 <= cursor._kind_id <= 73) or not (cursor.data[0] or cursor.data[1])
