"""The list of runs: status, task, age, best speedup; filter; open one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Header, Input, Static

from cudaperf_agent.errors import StoreError
from cudaperf_agent.store.records import RunSummary
from tui.numbers import age
from tui.run_view import GLYPHS, short_policy
from tui.safe import one_line
from tui.widgets.run_table import RunTable

if TYPE_CHECKING:
    from tui.app import CudaPerfApp

PAGE = 200
"""Runs read at a time: a store of many thousands opens as fast as a small one."""
_REFRESH_SECONDS = 2.0
_COLUMNS = (("run", 10), ("status", 13), ("task", 0.42), ("policy", 0.26), ("age", 6), ("best", 0.32))
"""Widths in characters, or as shares of what is left."""
_MARKS = {"running": GLYPHS["running"], "correct": GLYPHS["correct"], "interrupted": "‖"}


class RunsScreen(Screen[None]):
    """All runs of the store, newest first, read page by page as one scrolls."""

    AUTO_FOCUS = "#runs"
    BINDINGS: ClassVar = [
        Binding("enter", "open", "Open", show=True),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "clear_filter", "Clear filter", show=False),
        Binding("r", "reload", "Reload"),
        Binding("j", "move(1)", "Down", show=False),
        Binding("k", "move(-1)", "Up", show=False),
    ]

    class Loaded(Message):
        """A page of runs has been read. `fresh` replaces what is shown."""

        def __init__(self, runs: tuple[RunSummary, ...], *, fresh: bool, wanted: str) -> None:
            super().__init__()
            self.runs, self.fresh, self.wanted = runs, fresh, wanted

    class Failed(Message):
        """The store could not be read."""

        def __init__(self, error: StoreError) -> None:
            super().__init__()
            self.error = error

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[str, RunSummary] = {}
        self._wanted = ""
        self._complete = False

    @property
    def owner(self) -> CudaPerfApp:
        """The app."""
        return cast("CudaPerfApp", self.app)

    def compose(self) -> ComposeResult:
        """Header, filter, table, footer."""
        yield Header(icon=" ")
        yield Input(placeholder="part of a task's name or path", id="filter", disabled=True)
        yield RunTable(cursor_type="row", zebra_stripes=True, id="runs")
        yield Static("", id="empty", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Make the columns and read the first page."""
        self.query_one(DataTable).focus()
        self.read(fresh=True)
        self.set_interval(_REFRESH_SECONDS, self._refresh_if_at_top)

    def on_resize(self, event: Resize) -> None:
        """The columns share the width."""
        table = self.query_one(DataTable)
        at = table.cursor_row
        table.clear(columns=True)
        padding = 2 * table.cell_padding * len(_COLUMNS)
        fixed = sum(width for _, width in _COLUMNS if width >= 1)
        free = max(event.size.width - int(fixed) - padding - table.scrollbar_size_vertical, 30)
        for name, width in _COLUMNS:
            table.add_column(name, width=int(width if width >= 1 else width * free), key=name)
        for run in self._runs.values():
            table.add_row(*self._cells(run), key=run.id)
        table.move_cursor(row=at, animate=False)

    @work(thread=True, group="runs")
    def read(self, *, fresh: bool) -> None:
        """Read a page; the message it posts fills the table."""
        offset = 0 if fresh else len(self._runs)
        try:
            runs = self.owner.store.list_runs(PAGE, offset=offset, task=self._wanted or None)
        except StoreError as error:
            self.post_message(self.Failed(error))
        else:
            self.post_message(self.Loaded(runs, fresh=fresh, wanted=self._wanted))

    @on(Loaded)
    def _show(self, message: Loaded) -> None:
        if message.wanted != self._wanted:
            return  # typed on meanwhile
        table = self.query_one(DataTable)
        if message.fresh:
            known = set(self._runs)
            if known and not self._wanted and {r.id for r in message.runs} <= known:
                for run in message.runs:  # nothing new: only what changed is written
                    self._runs[run.id] = run
                    for column, cell in zip(table.columns, self._cells(run), strict=True):
                        table.update_cell(run.id, column, cell)
                return
            table.clear()
            self._runs = {}
        for run in message.runs:
            if run.id not in table.rows:
                table.add_row(*self._cells(run), key=run.id)
                self._runs[run.id] = run
        self._complete = len(message.runs) < PAGE
        empty = self.query_one("#empty", Static)
        empty.set_class(not self._runs, "on")
        table.display = bool(self._runs)
        empty.update("No run fits." if self._wanted else "There are no runs yet. Make one: cudaperf translate FILE.c")

    @on(Failed)
    def _tell(self, message: Failed) -> None:
        self.notify(str(message.error), severity="error", markup=False, timeout=10)

    def _cells(self, run: RunSummary) -> list[Text]:
        status = run.status.value
        best = f"{run.best_speedup:.3g}× {run.best_baseline or ''}" if run.best_speedup else ""
        mark = _MARKS.get(status, GLYPHS["wrong"])
        texts = (
            run.id,
            f"{mark} {status}",
            run.task_name,
            short_policy(run.policy),
            age(self.owner.now() - run.created),
            best,
        )
        return [Text(one_line(text, 80)) for text in texts]

    def _refresh_if_at_top(self) -> None:
        if self.is_current and len(self._runs) <= PAGE:
            self.read(fresh=True)

    @on(RunTable.NearEnd)
    def _read_on(self) -> None:
        if not self._complete:
            self.read(fresh=False)

    @on(DataTable.RowSelected)
    def _open_row(self, event: DataTable.RowSelected) -> None:
        if event.row_key.value is not None:
            self.owner.open_run(event.row_key.value)

    @on(Input.Changed, "#filter")
    def _filter(self, event: Input.Changed) -> None:
        self._wanted = event.value.strip()
        self.read(fresh=True)

    @on(Input.Submitted, "#filter")
    def _filtered(self) -> None:
        self.query_one(DataTable).focus()

    def action_open(self) -> None:
        """Open the run under the cursor."""
        table = self.query_one(DataTable)
        if table.row_count:
            self.owner.open_run(str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value))

    def action_filter(self) -> None:
        """Type a part of a task's name."""
        field = self.query_one("#filter", Input)
        field.disabled = False  # closed it takes no focus, or keys meant for the screen would end in it
        field.add_class("open")
        field.focus()

    def action_clear_filter(self) -> None:
        """Show all runs again."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.disabled = True
        field.remove_class("open")
        self.query_one(DataTable).focus()

    def action_reload(self) -> None:
        """Read the store again."""
        self.read(fresh=True)

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        table = self.query_one(DataTable)
        table.move_cursor(row=table.cursor_row + rows)

    def commands(self) -> Iterable[SystemCommand]:
        """For the palette."""
        yield SystemCommand("run: Open", "The run under the cursor", self.action_open)
        yield SystemCommand("runs: Filter", "By task", self.action_filter)
        yield SystemCommand("runs: Clear filter", "Show all", self.action_clear_filter)
        yield SystemCommand("runs: Reload", "Read the store again", self.action_reload)
