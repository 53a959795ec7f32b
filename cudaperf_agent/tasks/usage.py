"""What the C text shows about how scalars are used: compared with elements, counting iterations, nesting of loops.

This is an analysis of tokens, not of meaning: it only steers which inputs are drawn, and a wrong guess costs coverage,
never soundness.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from cudaperf_agent.tasks.model import Task

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#(?:[^\n\\]|\\.|\\\n)*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<sign>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})


class Token(NamedTuple):
    """One token of C text, white space, comments and preprocessor lines excluded."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Usage:
    """How the integer and float scalars of an entry are used.

    Attributes:
        compared: By scalar, the buffers whose elements it is compared with.
        counts: Scalars in the head of a loop.
        depth: Deepest nesting of loops anywhere in the file, at least 1.
    """

    compared: dict[str, tuple[str, ...]]
    counts: frozenset[str]
    depth: int


def tokens(source: str) -> list[Token]:
    """The tokens of C text in order."""
    found = []
    line = 1
    for match in _TOKEN.finditer(source):
        text = match.group()
        if match.lastgroup != "skip":
            found.append(Token(match.lastgroup or "sign", text, line))
        line += text.count("\n")
    return found


def usage(task: Task) -> Usage:
    """Analyse `task`'s source."""
    stream = tokens(task.source)
    scalars = {p.name for p in task.inputs() if not p.pointer}
    buffers = {p.name for p in task.inputs() if p.pointer}
    return Usage(_compared(stream, scalars, buffers), _in_loop_heads(stream, scalars), _loop_depth(stream))


def _compared(stream: list[Token], scalars: set[str], buffers: set[str]) -> dict[str, tuple[str, ...]]:
    holds = {name: {name} for name in buffers}
    found: dict[str, set[str]] = {}
    for at, token in enumerate(stream):
        if token.text == "=" and at and stream[at - 1].kind == "name":
            # `v = buffer[i]` makes v stand for buffer's elements
            base = _element_after(stream, at + 1, holds)
            if base:
                holds.setdefault(stream[at - 1].text, set()).update(holds[base])
        if token.text in _COMPARISONS:
            left, right = _element_before(stream, at - 1, holds), _element_after(stream, at + 1, holds)
            before, after = stream[at - 1].text, stream[at + 1].text if at + 1 < len(stream) else ""
            for scalar, base in ((before, right), (after, left)):
                if scalar in scalars and base:
                    found.setdefault(scalar, set()).update(holds[base])
    return {scalar: tuple(sorted(names & buffers)) for scalar, names in found.items() if names & buffers}


def _element_after(stream: list[Token], at: int, holds: dict[str, set[str]]) -> str | None:
    while at < len(stream) and stream[at].text in "(*":
        at += 1
    return stream[at].text if at < len(stream) and stream[at].text in holds else None


def _element_before(stream: list[Token], at: int, holds: dict[str, set[str]]) -> str | None:
    while at >= 0 and stream[at].text in ("]", ")"):
        closing, depth = stream[at].text, 0
        opening = {"]": "[", ")": "("}[closing]
        while at >= 0:
            depth += (stream[at].text == closing) - (stream[at].text == opening)
            at -= 1
            if not depth:
                break
    if at >= 1 and stream[at - 1].text in (".", "->"):
        return _element_before(stream, at - 2, holds)
    return stream[at].text if at >= 0 and stream[at].text in holds else None


def _in_loop_heads(stream: list[Token], scalars: set[str]) -> frozenset[str]:
    found: set[str] = set()
    for at, token in enumerate(stream):
        if token.text in ("for", "while") and at + 1 < len(stream) and stream[at + 1].text == "(":
            end = _closing(stream, at + 1)
            found.update(t.text for t in stream[at + 2 : end] if t.text in scalars)
    return frozenset(found)


def _closing(stream: list[Token], at: int) -> int:
    """Index of the bracket that closes the one at `at`."""
    depth = 0
    for index in range(at, len(stream)):
        depth += (stream[index].text in "([{") - (stream[index].text in ")]}")
        if not depth:
            return index
    return len(stream) - 1


def _loop_depth(stream: list[Token]) -> int:
    """Deepest nesting of loops, those of called functions of the file included; at least 1."""
    bodies = _functions(stream)
    known: dict[str, int] = {}

    def depth(name: str, pending: frozenset[str]) -> int:
        if name not in known:
            start, end = bodies[name]
            deepest = 0
            ends: list[int] = []
            for at in range(start, end):
                ends = [last for last in ends if last > at]
                text, following = stream[at].text, stream[at + 1].text
                if text == "do" and following == "{":
                    ends.append(_closing(stream, at + 1))
                elif text in ("for", "while") and following == "(":
                    ends.append(_statement_end(stream, _closing(stream, at + 1) + 1))
                elif text in bodies and following == "(" and text not in pending:
                    deepest = max(deepest, len(ends) + depth(text, pending | {text}))
                deepest = max(deepest, len(ends))
            known[name] = deepest
        return known[name]

    return max([1, *(depth(name, frozenset({name})) for name in bodies)])


def _functions(stream: list[Token]) -> dict[str, tuple[int, int]]:
    """By name, the token indices of the braces of every function body."""
    found: dict[str, tuple[int, int]] = {}
    at = 0
    while at < len(stream):
        if stream[at].text == "{":
            end = _closing(stream, at)
            opening = at - 1
            if at and stream[at - 1].text == ")":
                balance = 0
                while opening >= 0:
                    balance += (stream[opening].text == ")") - (stream[opening].text == "(")
                    if not balance:
                        break
                    opening -= 1
                if opening >= 1 and stream[opening - 1].kind == "name":
                    found[stream[opening - 1].text] = (at, end)
            at = end
        at += 1
    return found


def _statement_end(stream: list[Token], at: int) -> int:
    """Index of the last token of the statement that starts at `at`."""
    while at < len(stream):
        text = stream[at].text
        if text == "{":
            return _closing(stream, at)
        if text == ";":
            return at
        if text in ("for", "while", "if", "switch") and at + 1 < len(stream):
            end = _statement_end(stream, _closing(stream, at + 1) + 1)
            if text == "if" and end + 1 < len(stream) and stream[end + 1].text == "else":
                return _statement_end(stream, end + 2)
            return end
        at = _closing(stream, at) + 1 if text in "([" else at + 1
    return len(stream) - 1
