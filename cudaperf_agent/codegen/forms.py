"""Which of the two accepted forms a candidate has: device form, or a whole file that defines the drop-in itself."""

from __future__ import annotations

import re
from typing import Literal

from cudaperf_agent.tasks.model import Task

Form = Literal["device", "whole", "program"]

_NOISE = re.compile(
    r"""//(?:[^\n\\]|\\.|\\\n)* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+'""",
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
    """The source with comments and literals blanked, line numbers kept."""
    return _NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), source)


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
