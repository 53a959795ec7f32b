"""Help: the keys of the screen below, read from its bindings so that they cannot disagree."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from tui.run_view import GLYPHS


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
            for binding in source._bindings.key_to_bindings.values():
                for one in binding:
                    if one.description and not one.system:
                        keys.add_row(Text(self.app.get_key_display(one), style="bold"), Text(one.description))
        marks = Text("\nMarks\n", style="bold")
        for status, glyph in GLYPHS.items():
            marks.append(f"{glyph} {status}   ", style="not bold")
        marks.append("\n\nEvery action is in the command palette (ctrl+p).", style="not bold")
        with VerticalScroll(id="help"):
            yield Static(keys)
            yield Static(marks)
