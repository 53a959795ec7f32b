"""The timeline of a run: one keyed row per turn, written only where something changed; and the headline above it."""

from __future__ import annotations

from typing import Any

from rich.text import Text
from textual.message import Message
from textual.widgets import DataTable

from tui.numbers import age, seconds
from tui.run_view import BACKENDS, RunView, TurnView, short_policy
from tui.safe import one_line

_NARROW = (("turn", 4), ("what", 15))
_MORE = (("time", 8), ("reward", 6))


class Timeline(DataTable[Text]):
    """Rows are keyed ``trajectory.turn``."""

    class Touched(Message):
        """The user, not the run, has moved the cursor."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cursor_type="row", show_header=True, **options)
        self.wide = False
        self._shown: dict[str, tuple[str, ...]] = {}
        self._columns_for: bool | None = None

    def show(self, view: RunView) -> None:
        """Bring the rows up to date."""
        if self._columns_for is not self.wide:
            self._rebuild()
        chosen, unsorted = self.chosen_key, False
        for turn in view.all_turns():
            key = f"{turn.trajectory}.{turn.number}"
            cells = self._cells(view, turn)
            if key not in self._shown:
                unsorted = unsorted or view.expected_trajectories > 1
                self.add_row(*(Text(cell) for cell in cells), key=key)
            elif self._shown[key] != cells:
                for column, cell in zip(self.columns, cells, strict=True):
                    self.update_cell(key, column, Text(cell))
            self._shown[key] = cells
        if unsorted:
            # Turns of other trajectories come in between; the cursor stays on its row.
            self.sort("turn", key=_order)
            if chosen is not None and chosen in self.rows:
                self.move_cursor(row=self.get_row_index(chosen), animate=False)

    def action_cursor_up(self) -> None:
        """By the user."""
        self.post_message(self.Touched())
        super().action_cursor_up()

    def action_cursor_down(self) -> None:
        """By the user."""
        self.post_message(self.Touched())
        super().action_cursor_down()

    def on_mouse_down(self) -> None:
        """A click on a row, most likely."""
        self.post_message(self.Touched())

    def _rebuild(self) -> None:
        self.clear(columns=True)
        self._shown.clear()
        for name, width in _NARROW + (_MORE if self.wide else ()):
            self.add_column(name, width=width, key=name)
        self._columns_for = self.wide

    def _cells(self, view: RunView, turn: TurnView) -> tuple[str, ...]:
        what = f"{turn.node}…" if turn.node else _outcome(turn)
        if view.best == (turn.trajectory, turn.number):
            what += " ★"
        cells = (view.place(turn), f"{turn.glyph} {one_line(what, 13)}")
        if not self.wide:
            return cells
        timing = turn.timing
        reward = f"{turn.reward:+.2f}" if turn.reward is not None else ""
        return (*cells, seconds(timing.median) if timing else "", reward)

    @property
    def chosen_key(self) -> str | None:
        """Key of the row under the cursor."""
        if not self.row_count:
            return None
        return str(self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value)

    def choose(self, trajectory: int, turn: int) -> None:
        """Put the cursor on that turn."""
        self.move_cursor(row=self.get_row_index(f"{trajectory}.{turn}"), animate=False)

    @staticmethod
    def newest(view: RunView) -> tuple[int, int] | None:
        """The turn worth looking at: the best once the run is over, else the latest that has begun."""
        if view.best is not None:
            return view.best
        turns = list(view.all_turns())
        working = [t for t in turns if t.node]
        if not turns:
            return None
        last = working[-1] if working else turns[-1]
        return last.trajectory, last.number

    @staticmethod
    def key_of(value: str | None) -> tuple[int, int] | None:
        """Trajectory and turn of a row's key."""
        if value is None:
            return None
        trajectory, _, turn = value.partition(".")
        return int(trajectory), int(turn)


def _order(place: Text) -> tuple[int, ...]:
    """Sort key of what `RunView.place` wrote."""
    return tuple(int(part) for part in place.plain.split("."))


def _outcome(turn: TurnView) -> str:
    found = turn.speedup
    if found is not None and turn.status == "correct":
        return f"{found.value:.3g}×"
    verdict = turn.verdict
    if turn.status == "wrong" and verdict is not None and verdict.total:
        return f"{verdict.passed}/{verdict.total} right"
    return turn.status.replace("_", " ")


def headline(view: RunView, *, now: float, live: bool, width: int) -> Text:
    """Task, policy, backend; then what is going on or how it ended."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(one_line(view.task or "…", 40), style="bold")
    text.append(f"  {one_line(short_policy(view.policy), 40)} on {BACKENDS.get(view.backend, '…')}")
    if view.started is not None:
        spent = (view.finished or (now if live else view.latest or now)) - view.started
        text.append(f"  {age(spent)}", style="dim")
    text.append(f"\n{view.phase}", style="bold green" if view.status == "correct" else "bold")
    if view.reason and view.status != "running":
        text.append(f": {one_line(view.reason, max(width - 20, 20))}", style="not bold")
    if view.status == "running" and view.expected_trajectories > 1:
        ended = sum(1 for t in view.trajectories.values() if t.status != "running")
        text.append(f"  {ended} of {view.expected_trajectories} trajectories ended", style="dim")
    return text
