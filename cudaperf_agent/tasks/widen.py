"""Retypes a C task one width up, token by token: float becomes double, double becomes long double.

The retyped program computes the same function with far less rounding, which tells how much rounding the original does.
Literals keep the value they have in the original (``0.1f`` becomes ``((double)0.1f)``), since a candidate has those
constants too. What depends on bits (unions, casts between pointer types) cannot be retyped: `widen` returns `None`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from cudaperf_agent.tasks.model import CType, Field, Parameter, Task, TypeKind
from cudaperf_agent.tasks.usage import Token, tokens

_LINE_OR_TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#[ \t]*(?:include|pragma|line|error|if|ifdef|ifndef|elif|undef)\b(?:[^\n\\]|\\.|\\\n)*)
      | (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<long_double>\blong\s+double\b|\bdouble\s+long\b)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_FLOAT_LITERAL = re.compile(
    r"(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?[fFlL]?|0[xX][\da-fA-F.]+[pP][+-]?\d+[fFlL]?"
)
_BASES = """
    acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 log log2 log10 log1p logb ilogb
    pow sqrt cbrt hypot fabs ceil floor fmod remainder trunc round lround llround rint lrint llrint nearbyint fmin fmax
    fdim fma copysign nextafter erf erfc tgamma lgamma ldexp scalbn scalbln frexp remquo
"""
_SUFFIXED = {f"{base}f": base for base in _BASES.split()}
# not type-generic in <tgmath.h>: one by one
_RENAMED = {"modff": "modf", "modf": "modfl", "strtof": "strtod", "strtod": "strtold"}
_RETYPED = {"float": "double", "double": "long double", "float_t": "double", "double_t": "long double"}
_INTEGER_WORDS = """
    char short int long signed unsigned size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
    intptr_t uintptr_t const
"""
_FLOAT_WORDS = frozenset({"float", "double"})
_CASTABLE = _FLOAT_WORDS.union(_INTEGER_WORDS.split())


def has_floats(task: Task) -> bool:
    """Whether the source computes in floating point at all."""
    if any(p.type.has_floats for p in task.inputs()) or (task.returns and task.returns.has_floats):
        return True
    return any(
        t.text in _FLOAT_WORDS or (t.kind == "number" and _FLOAT_LITERAL.fullmatch(t.text)) for t in tokens(task.source)
    )


def widen(task: Task) -> Task | None:
    """`task` retyped, or `None` where the text shows that its bits have meaning."""
    if puns_bits(tokens(task.source)):
        return None
    retyped: list[Parameter] = []
    for parameter in task.inputs():
        wider = widen_type(parameter.type)
        if wider is None:
            return None
        retyped.append(replace(parameter, type=wider))
    returns = widen_type(task.returns) if task.returns else None
    if task.returns and returns is None:
        return None
    count = len(task.parameters)
    return replace(
        task,
        source=widen_text(task.source),
        parameters=tuple(retyped[:count]),
        setup_inputs=tuple(retyped[count:]),
        returns=returns,
        digest="",
    )


def widen_text(source: str) -> str:
    """C text with types, literals and names of mathematical functions one width up."""

    def swap(match: re.Match[str]) -> str:
        text = match.group()
        if match.lastgroup == "name":
            return _RETYPED.get(text) or _SUFFIXED.get(text) or _RENAMED.get(text) or text
        if match.lastgroup == "number" and _FLOAT_LITERAL.fullmatch(text) and text[-1] not in "lL":
            hexadecimal = text[:2].lower() == "0x"
            single = text[-1] in "fF" and (not hexadecimal or "p" in text.lower())
            return f"(({'double' if single else 'long double'}){text})"
        return text

    return _LINE_OR_TOKEN.sub(swap, source)


def puns_bits(stream: list[Token]) -> bool:
    """Whether the text may read the bits of a float as an integer or the other way round."""
    texts = [t.text for t in stream]
    if not _FLOAT_WORDS & set(texts):
        return False
    if "union" in texts:
        return True
    for at, text in enumerate(texts):
        if text == "(" and _is_pointer_cast(texts, at) and _casts_address(texts, at):
            return True
        if text in ("memcpy", "memmove") and at + 1 < len(texts) and "&" in texts[at + 2 : at + 8]:
            return True
    return False


def _is_pointer_cast(texts: list[str], at: int) -> bool:
    words: list[str] = []
    for text in texts[at + 1 : at + 7]:
        if text == "*":
            end = texts[at + len(words) + 2 : at + len(words) + 3] == [")"]
            return bool(words) and end and all(w in _CASTABLE for w in words)
        words.append(text)
    return False


def _casts_address(texts: list[str], at: int) -> bool:
    """Whether the cast is of something other than fresh memory."""
    after = texts[texts.index(")", at) + 1 :][:1]
    return after not in (["malloc"], ["calloc"], ["realloc"], ["alloca"], ["aligned_alloc"])


def widen_type(type_: CType) -> CType | None:
    """The type that `widen_text` turns `type_` into; `None` for structs with another layout than the natural one."""
    if type_.kind is TypeKind.FLOAT:
        if type_.size == 4:
            return replace(type_, spelling="double", size=8, align=8)
        if type_.size == 8:
            return replace(type_, spelling="long double", size=16, align=16)
        return type_ if type_.size == 16 else None
    if type_.kind is not TypeKind.STRUCT:
        return type_
    if _laid_out(type_, type_.fields) != type_:
        return None
    members = []
    for field in type_.fields:
        wider = widen_type(field.type)
        if wider is None:
            return None
        members.append(replace(field, type=wider))
    return _laid_out(type_, members)


def _laid_out(type_: CType, members: Iterable[Field]) -> CType:
    """The struct with its members at their natural offsets."""
    offset, align, placed = 0, 1, []
    for field in members:
        align = max(align, field.type.align)
        offset = -(-offset // field.type.align) * field.type.align
        placed.append(replace(field, offset=offset))
        count = 1
        for dimension in field.shape:
            count *= dimension
        offset += field.type.size * count
    return replace(type_, fields=tuple(placed), size=-(-offset // align) * align, align=align)
