"""Tokens of C++ with CUDA's launch brackets: enough to rewrite a file without parsing it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class TokenKind(StrEnum):
    """What a token is; comments and white space are dropped."""

    STRING = "string"
    CHARACTER = "character"
    NUMBER = "number"
    NAME = "name"
    PUNCTUATION = "punctuation"


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its text and the offsets of its first character and behind its last one."""

    kind: TokenKind
    text: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""
      (?P<space>      \s+ | \\\r?\n )
    | (?P<comment>    //(?:[^\n\\]|\\.|\\\n)* | /\*.*?\*/ )
    | (?P<string>     (?:u8|[uUL])?R"(?P<fence>[^\s()\\]{0,16})\(.*?\)(?P=fence)" | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
    | (?P<character>  (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
    | (?P<number>     \.?\d(?:[eEpP][+-]|[\w.]|'(?=\w))* )
    | (?P<name>       [A-Za-z_]\w* )
    | (?P<punctuation> <<<|>>>|::|->|\+\+|--|&&|\|\||<<=|>>=|<<|>>|[-+*/%&|^!=<>]=|. )
    """,
    re.DOTALL | re.VERBOSE,
)


def tokenize(source: str) -> list[Token]:
    """All tokens of `source` in order."""
    found = []
    for match in _TOKEN.finditer(source):
        groups = match.groupdict()
        kind = next((k for k in TokenKind if groups[k] is not None), None)
        if kind is not None:
            found.append(Token(kind, match.group(), match.start(), match.end()))
    return found


def closing(tokens: list[Token], opening: int) -> int | None:
    """Index of the token that closes the bracket at `opening`, `None` if nothing does."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += _step(tokens[index].text)
        if depth == 0:
            return index
    return None


def opening(tokens: list[Token], closing_index: int) -> int | None:
    """Index of the token that opens the bracket closed at `closing_index`, `None` if nothing does."""
    depth = 0
    for index in range(closing_index, -1, -1):
        depth += _step(tokens[index].text)
        if depth == 0:
            return index
    return None


def _step(text: str) -> int:
    if text in ("(", "[", "{"):
        return 1
    return -1 if text in (")", "]", "}") else 0
