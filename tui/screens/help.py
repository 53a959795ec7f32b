"""Help: the keys of the screen below, read from its bindings so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from tui.run_view import GLYPHS

_MARKS_IN_A_ROW = 4


class HelpScreen(ModalScreen[None]):
    """Keys, marks, and where the palette is."""

    BINDINGS: ClassVar = [Binding("escape,q,question_mark", "dismiss", "Close")]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        """One scrollable text."""
        keys = Table.grid(padding=(0, 2))
        for source in (self._below, self.app):
            for names, description in _rows(self.app, type(source).BINDINGS):
                keys.add_row(Text(names, style="bold"), Text(description))
        marks = Table.grid(padding=(0, 2))
        told = [Text(f"{glyph} {status.replace('_', ' ')}") for status, glyph in GLYPHS.items()]
        for i in range(0, len(told), _MARKS_IN_A_ROW):
            marks.add_row(*told[i : i + _MARKS_IN_A_ROW])
        with VerticalScroll(id="help"):
            yield Static(keys)
            yield Static(Text("\nMarks", style="bold"))
            yield Static(marks)
            yield Static("\nEvery action is in the command palette (ctrl+p). Esc closes this.", markup=False)


def _rows(app: App[object], bindings: Iterable[Any]) -> list[tuple[str, str]]:
    """Keys by what they do; the tabs take one row together."""
    rows: dict[str, list[str]] = {}
    tabs: list[Binding] = []
    for given in bindings:
        for binding in Binding.make_bindings([given]):
            if binding.action.startswith("tab("):
                tabs.append(binding)
            else:
                rows.setdefault(binding.description, []).append(app.get_key_display(binding))
    found = [(" ".join(keys), description) for description, keys in rows.items()]
    if tabs:
        found.insert(0, (f"{tabs[0].key} to {tabs[-1].key}", ", ".join(t.description for t in tabs)))
    return found
