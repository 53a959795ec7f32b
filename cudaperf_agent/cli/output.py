"""What commands say: data on stdout, narration and errors on stderr, everything untrusted made harmless first."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from cudaperf_agent.errors import CudaPerfError, UsageError

JsonFlag = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on stdout, on failure too.")]

# Escape sequences of terminals: CSI (colours, cursor), OSC/DCS/APC/PM strings (titles, clipboard, links), short ones.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]).*?(?:\x07|\x1b\\|\x9c|\Z)"
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)
# What is left of the C0 and C1 controls, and the characters that reorder or hide text.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")


def clean(text: str) -> str:
    """Text that a terminal shows and does not obey: escape sequences and control characters removed.

    Line ends and tabs stay. Every text of a model, a compiler or a source file goes through here before it is shown.
    """
    unix = text.replace("\r\n", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", unix)).replace("\ud800", "")


def say(text: str = "") -> None:
    """A line of narration on stderr."""
    _write(sys.stderr, clean(text) + "\n")


def put(text: str) -> None:
    """A line of data on stdout."""
    _write(sys.stdout, clean(text) + "\n")


def put_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout; not-finite numbers become null, since they are no JSON."""
    _write(sys.stdout, json.dumps(_finite(value), indent=2, ensure_ascii=True, default=str) + "\n")


def fail(error: CudaPerfError, *, as_json: bool) -> int:
    """Report an error in the form asked for and return the exit code."""
    report = getattr(error, "report", None)
    if as_json:
        put_json({"error": error.as_dict(), **({"report": report} if report else {})})
    else:
        place = f"{error.where}: " if error.where else ""
        say(f"error: {place}{error.message}")
        if error.hint:
            say(f"  {error.hint}")
    return error.exit_code


def table(rows: Sequence[tuple[str, ...]], *, heading: tuple[str, ...] | None = None) -> str:
    """Left-aligned columns, as plain text."""
    shown = [tuple(clean(cell).replace("\n", " ") for cell in row) for row in [*([heading] if heading else []), *rows]]
    if not shown:
        return ""
    widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in shown)


def _write(stream: Any, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, errors="replace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        # The reader went away: the work goes on, and the interpreter must not try to flush once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is sys.stdout:
            why = (error.strerror or str(error)).lower()
            raise UsageError(
                f"the results cannot be written to stdout: {why}", hint="send them to another place"
            ) from None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
