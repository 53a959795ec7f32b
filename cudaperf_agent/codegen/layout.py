"""Compares CUDA texts by what a compiler reads of them, so that line breaks, blanks and comments make no difference.

A directive is one piece and ends with its line; literals that stand side by side are one, since formatters split long
ones. Nothing else is taken for the same: not a name that a macro stands for, not a line joined by a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_BLANK = r"\s | //(?:[^\n\\]|\\.|\\\n)* | /\*.*?\*/"
# The longest operators first: `> >` and `>>` are not the same.
_PIECE = re.compile(
    rf"""
    (?P<blank>(?:{_BLANK})+)
    | (?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^\s()\\"]*)\(.*?\)(?P=mark)")
    | (?P<text>"(?:\\.|[^"\\\n])*") | (?P<char>'(?:\\.|[^'\\\n])+')
    | (?P<word>\.?\d(?:[eEpP][+-]|'?\w|\.)* | [^\W\d]\w*)
    | (?P<sign><<=|>>=|\.\.\.|->\*|<=>|<<|>>|->|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|::|\.\*|\#\#|.)
    """,
    re.S | re.X,
)
_DIRECTIVE = re.compile(r"""\#(?:\\\n|//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|[^\n])*""", re.S)
_COMMENT = re.compile(r"""("(?:\\.|[^"\\\n])*") | //(?:[^\n\\]|\\.|\\\n)* | /\*.*?\*/""", re.S | re.X)


@dataclass(frozen=True, slots=True)
class Piece:
    """What a compiler reads as one, and where it begins."""

    text: str
    at: int


def pieces(source: str) -> list[Piece]:
    """The pieces of a text."""
    found: list[Piece] = []
    at, line_begins, literal_before = 0, True, False
    while at < len(source):
        if source[at] == "#" and line_begins:
            match = _DIRECTIVE.match(source, at)
            end = match.end() if match else at + 1
            text = _COMMENT.sub(lambda m: m.group(1) or " ", source[at:end])
            found.append(Piece("\n" + " ".join(text.split()), at))
            at, line_begins, literal_before = end, False, False
            continue
        match = _PIECE.match(source, at)
        assert match is not None  # any character is a sign
        begin, at = at, match.end()
        if match.lastgroup == "blank":
            line_begins = line_begins or "\n" in _COMMENT.sub("", match.group())
        elif match.lastgroup == "text" and literal_before:
            found[-1] = Piece(found[-1].text[:-1] + match.group()[1:], found[-1].at)
        else:
            found.append(Piece(match.group(), begin))
            line_begins, literal_before = False, match.lastgroup == "text"
    return found


def tail_begins(source: str, wanted: str) -> int | None:
    """Offset from which a text is `wanted` in another layout, to its end; `None` if it does not end so."""
    theirs, ours = pieces(source), pieces(wanted)
    same = _same_at_the_end(theirs, ours)
    return theirs[len(theirs) - same].at if ours and same == len(ours) else None


def tail_differs(source: str, wanted: str) -> int:
    """Line of the last piece in which the end of a text is not `wanted`; 1 where there is none."""
    theirs = pieces(source)
    same = _same_at_the_end(theirs, pieces(wanted))
    return source.count("\n", 0, theirs[len(theirs) - same - 1].at) + 1 if same < len(theirs) else 1


def _same_at_the_end(theirs: Sequence[Piece], ours: Sequence[Piece]) -> int:
    count = 0
    for one, other in zip(reversed(theirs), reversed(ours), strict=False):
        if one.text != other.text:
            break
        count += 1
    return count
