"""The table of runs, which says when more of them should be read."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.message import Message
from textual.widgets import DataTable

_NEAR_END = 40
"""Rows before the last one shown at which more are read."""


class RunTable(DataTable[Text]):
    """Rows are keyed by run id; home and end go to the first and the last row, since a row is the cursor."""

    BINDINGS: ClassVar = [
        Binding("home", "scroll_top", "First", show=False),
        Binding("end", "scroll_bottom", "Last", show=False),
    ]

    class NearEnd(Message):
        """The cursor or the view (by mouse) has come near the last row."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The mouse wheel moves the view, not the cursor."""
        super().watch_scroll_y(old_value, new_value)
        if new_value > old_value and new_value + self.size.height >= self.row_count - _NEAR_END:
            self.post_message(self.NearEnd())

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """The keyboard moves the cursor."""
        if event.cursor_row and event.cursor_row >= self.row_count - _NEAR_END:
            self.post_message(self.NearEnd())
