"""Which of the two accepted forms a candidate has: device form, or a whole file that defines the drop-in itself."""

from __future__ import annotations

import re
from typing import Literal

from cudaperf_agent.tasks.model import Task

Form = Literal["device", "whole", "program"]

_SPLICE = r"(?:\\[ \t\f\v]*\r?\n)"
_NAME = rf"(?: [^\W\d] | \$ ) (?: {_SPLICE}* [\w$] )*"
# As gcc reads C++: names, numbers and what ends a literal of the user's own are whole tokens, so that neither the R of
# another name nor the ' of a number begins a literal. Lines are spliced everywhere but in raw strings; a quote that a
# line leaves open ends with the line.
_TOKEN = re.compile(
    rf"""
      (?P<comment> / {_SPLICE}* (?: / (?: {_SPLICE} | [^\n] )* | \* .*? (?: \* {_SPLICE}* / | \Z ) ) )
    | (?P<literal>
          (?: (?: u {_SPLICE}* 8 | [uUL] ) {_SPLICE}* )? R {_SPLICE}*
          "(?P<fence>[^\s()\\]{{0,16}})\( .*? (?: \)(?P=fence)" | \Z )
        | (?P<quote>["']) (?: {_SPLICE} | \\ {_SPLICE}* [^\n]? | (?!(?P=quote)) [^\\\n] )* (?P=quote)?
      ) (?P<suffix> {_SPLICE}* {_NAME} )?
    | (?: \. {_SPLICE}* )? \d (?: {_SPLICE}* (?: [eEpP] {_SPLICE}* [+-] | [\w.$] | ' {_SPLICE}* (?=\w) ) )*
    | {_NAME}
    | {_SPLICE}+
    """,
    re.S | re.X,
)


def detect_form(task: Task, source: str) -> Form | None:
    """The form of a candidate, `None` if it defines neither entry.

    A file that defines both ``NAME`` and ``NAME_device`` is a whole file: what the user will link is what is judged.
    """
    code = without_noise(source)
    if task.mode == "program":
        return "program" if defines(code, "main") else None
    if defines(code, task.name):
        return "whole"
    return "device" if defines(code, f"{task.name}_device") else None


def without_noise(source: str) -> str:
    """The source with comments and literals (raw ones too) blanked, line numbers and offsets kept.

    A name or number that is spliced over lines stands whole on its first one, as the compiler reads it.
    """
    return _TOKEN.sub(_blanked, source)


def without_comments(source: str) -> str:
    """The source with comments blanked, all else as it is."""
    return _TOKEN.sub(lambda t: re.sub(r"[^\n]", " ", t.group()) if t["comment"] is not None else t.group(), source)


def _blanked(token: re.Match[str]) -> str:
    noise = token["comment"] or token["literal"]
    if noise is not None:
        return re.sub(r"[^\n]", " ", noise) + _joined(token["suffix"] or "")
    return _joined(token.group())


def _joined(text: str) -> str:
    if "\\" not in text:
        return text
    return re.sub(_SPLICE, "", text) + "".join(re.sub(r"[^\n]", " ", splice) for splice in re.findall(_SPLICE, text))


def defines(code: str, name: str) -> bool:
    """Whether text without comments and strings holds a definition of function `name`."""
    return body_start(code, name) is not None


def body_start(code: str, name: str) -> int | None:
    """Offset of the brace that opens the body of function `name` in text without comments and strings."""
    for match in re.finditer(rf"\b{re.escape(name)}\s*\(", code):
        depth, at = 1, match.end()
        while at < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[at], 0)
            at += 1
        rest = code[at:].lstrip()
        if rest.startswith("{"):
            return len(code) - len(rest)
    return None
