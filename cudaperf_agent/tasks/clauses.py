"""The ``cudaperf:`` comment: find it in either form of C comment and read its clauses.

cudaperf: CLAUSE; CLAUSE; …
CLAUSE = entry | setup CALL | stdin ITEMS | [in|out|inout|index] NAME[EXPR] [ascending] [in A..B] | NAME in A..B [odd]
ITEMS  = ITEM, ITEM, …     ITEM = NAME in A..B | NAME[EXPR] in A..B
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks import expr

GRAMMAR = (
    "entry | setup CALL | stdin ITEMS | [in|out|inout|index] NAME[EXPR] [ascending] [in A..B] | NAME in A..B [odd]"
)

_LEXEME = re.compile(
    r"(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL
)
_MARK = re.compile(r"(?:^|(?<=[\s*/!]))cudaperf:\s*", re.MULTILINE)
_NAMED = re.compile(r"(?:(in|out|inout|index)\s+)?([A-Za-z_]\w*)\s*(?=\[)")
_SCALAR = re.compile(r"([A-Za-z_]\w*)\s+in\b\s*(.*?)(\s+odd)?\s*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RangeText:
    """``A..B`` as written; an absent end is `None`."""

    low: str | None
    high: str | None


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause.

    Attributes:
        kind: ``entry``, ``setup``, ``stdin``, ``buffer`` (``NAME[EXPR]``) or ``range`` (``NAME in A..B``).
        line: 1-based line it is written on; `None` from a spec.
        name: Parameter (or item) it is about.
        role: ``in``, ``out``, ``inout`` or ``index``, where given.
        dims: Expressions in brackets, outermost first.
        range: Legal values, where given.
        ascending: The word was there.
        odd: The word was there.
        call: Text of the setup call.
        items: Items of ``stdin``, each a ``buffer`` or ``range`` clause.
    """

    kind: Literal["entry", "setup", "stdin", "buffer", "range"]
    line: int | None = None
    name: str = ""
    role: Literal["in", "out", "inout", "index"] | None = None
    dims: tuple[str, ...] = ()
    range: RangeText | None = None
    ascending: bool = False
    odd: bool = False
    call: str = ""
    items: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class Comment:
    """A ``cudaperf:`` comment: its clauses and the lines it spans."""

    clauses: tuple[Clause, ...]
    first_line: int
    last_line: int


def find_comments(source: str, path: str) -> tuple[Comment, ...]:
    """Every ``cudaperf:`` comment of a C text, in order.

    Raises:
        InputRefused: A clause does not follow the grammar; its line and the remedy.
    """
    found = []
    for match in _LEXEME.finditer(source):
        text = match.group("comment")
        if text is None or "cudaperf:" not in text:
            continue
        first = source.count("\n", 0, match.start()) + 1
        body = text[2:-2] if text.startswith("/*") else text[2:]
        # Decoration of continued lines would end up inside expressions.
        body = re.sub(r"(?m)^([ \t]*)\*(?!/)", r"\1 ", body)
        clauses: list[Clause] = []
        marks = list(_MARK.finditer(body))
        for mark, following in zip(marks, [*marks[1:], None], strict=True):
            end = following.start() if following else len(body)
            line = first + body.count("\n", 0, mark.end())
            clauses += parse_clauses(body[mark.end() : end], path, line)
        if marks:
            found.append(Comment(tuple(clauses), first, first + text.count("\n")))
    return tuple(found)


def parse_clauses(text: str, path: str, line: int | None) -> list[Clause]:
    """Read ``CLAUSE; CLAUSE; …``.

    Args:
        text: What follows ``cudaperf:``.
        path: File name for messages.
        line: Line on which `text` starts; `None` from a spec.
    """
    clauses = []
    for part, offset in split(text, ";"):
        if part.strip():
            lead = len(part) - len(part.lstrip())
            at = None if line is None else line + text.count("\n", 0, offset + lead)
            clauses.append(parse_clause(part.strip(), path, at))
    return clauses


def split(text: str, separator: str) -> Iterator[tuple[str, int]]:
    """The parts of `text` between separators outside brackets, each with its offset."""
    depth, start = 0, 0
    for index, char in enumerate(text):
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == separator and depth <= 0:
            yield text[start:index], start
            start = index + 1
    yield text[start:], start


def parse_clause(text: str, path: str, line: int | None) -> Clause:
    """Read one clause.

    Raises:
        InputRefused: It does not follow the grammar.
    """
    text = " ".join(text.split())
    where = f"{path}:{line}" if line else path
    word, _, rest = text.partition(" ")
    if text == "entry":
        return Clause("entry", line)
    if word == "setup" and "[" not in word and rest and not rest.startswith(("in ", "[")):
        if not re.fullmatch(r"[A-Za-z_]\w*\s*\(.*\)", rest):
            raise InputRefused(
                f"`{text}` is not a setup call", where=where, hint="Write a C call, e.g. setup load_table(values, k)"
            )
        return Clause("setup", line, call=rest)
    if word == "stdin" and rest and not rest.startswith(("in ", "[")):
        items = tuple(_item(part.strip(), where, line) for part, _ in split(rest, ","))
        return Clause("stdin", line, items=items)
    return _about_parameter(text, where, line)


def _item(text: str, where: str, line: int | None) -> Clause:
    clause = _about_parameter(text, where, line)
    if clause.role or clause.ascending or clause.odd or clause.range is None or len(clause.dims) > 1:
        raise InputRefused(
            f"`{text}` is not an item of stdin", where=where, hint="Write NAME in A..B or NAME[EXPR] in A..B"
        )
    return clause


def _about_parameter(text: str, where: str, line: int | None) -> Clause:
    if match := _NAMED.match(text):
        role, name = match.group(1), match.group(2)
        dims, rest = _brackets(text[match.end() :], text, where)
        ascending = bool(re.match(r"ascending\b", rest))
        rest = rest[len("ascending") :].strip() if ascending else rest
        limits = None
        if rest:
            if not re.match(r"in\b", rest):
                raise _bad(text, where, f"what follows the brackets of `{name}` is neither `ascending` nor `in A..B`")
            limits = parse_range(rest[2:].strip(), text, where)
        return Clause("buffer", line, name, role, dims, limits, ascending)  # type: ignore[arg-type]
    if match := _SCALAR.fullmatch(text):
        limits = parse_range(match.group(2), text, where)
        return Clause("range", line, match.group(1), range=limits, odd=bool(match.group(3)))
    words = text.split()
    if words and words[0] in ("in", "out", "inout", "index") and len(words) == 2:
        raise InputRefused(
            f"`{text}` does not say how many elements `{words[1]}` has",
            where=where,
            hint=f"Write {words[0]} {words[1]}[COUNT], e.g. {words[0]} {words[1]}[n]",
        )
    raise _bad(text, where, f"`{text}` is not a clause")


def _brackets(text: str, whole: str, where: str) -> tuple[tuple[str, ...], str]:
    dims: list[str] = []
    while text.startswith("["):
        depth = end = 0
        for char in text:
            depth += (char == "[") - (char == "]")
            if depth == 0:
                break
            end += 1
        else:
            raise _bad(whole, where, "a bracket is not closed")
        dims.append(checked(text[1:end].strip(), whole, where))
        text = text[end + 1 :].strip()
    return tuple(dims), text


def parse_range(text: str, whole: str, where: str) -> RangeText:
    """Read ``A..B``; either end may be absent, not both."""
    low, dots, high = (part.strip() for part in text.partition(".."))
    if not dots or not (low or high):
        raise _bad(whole, where, f"`{text}` is not a range")
    return RangeText(checked(low, whole, where) if low else None, checked(high, whole, where) if high else None)


def checked(text: str, whole: str, where: str) -> str:
    """`text`, if it is an expression."""
    try:
        expr.parse(text)
    except expr.ExprError as error:
        raise _bad(whole, where, str(error)) from error
    return text


def _bad(text: str, where: str, reason: str) -> InputRefused:
    return InputRefused(
        f"in the clause `{text}`: {reason}" if reason != f"`{text}` is not a clause" else reason,
        where=where,
        hint=f"The clauses are: {GRAMMAR}",
    )
