"""Writes what a screen shows into files of the user's, without ever overwriting one."""

from __future__ import annotations

import re
from pathlib import Path

from tui.report.html import html_report
from tui.run_view import RunView, TurnView

_REMOTE_FONT = re.compile(r',\s*url\("https?://[^"]*"\)(?: format\("[^"]*"\))?')


def export_source(view: RunView, turn: TurnView, folder: Path) -> str:
    """Write the candidate; the sentence says where it is or why it could not be written."""
    stem = f"{_safe_name(view.task)}.t{turn.trajectory + 1}.turn{turn.number + 1}"
    return _write(folder, stem, ".cu", turn.source)


def export_report(view: RunView, folder: Path) -> str:
    """Write the HTML report; the sentence says where it is or why it could not be written."""
    return _write(folder, f"{_safe_name(view.task)}.{view.id}", ".html", html_report(view))


def export_picture(svg: str, folder: Path) -> str:
    """Write a picture of the screen; the fonts that it names come from the machine, not from the network."""
    return _write(folder, "cudaperf", ".svg", _REMOTE_FONT.sub("", svg))


def _write(folder: Path, stem: str, ending: str, text: str) -> str:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = next(p for i in range(1000) if not (p := folder / f"{stem}{f'-{i}' if i else ''}{ending}").exists())
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        return f"not written: {error.strerror} ({folder})"
    return f"wrote {path}"


def _safe_name(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)[:60] or "run"
