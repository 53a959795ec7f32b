"""Live progress on stderr, in four forms that take the same events: full, plain, log and none."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

from cudaperf_agent.cli.output import clean, say
from cudaperf_agent.errors import UsageError

if TYPE_CHECKING:
    from graph.events import Event

DISPLAYS = ("auto", "plain", "log", "none")
_TAIL = 100
_ROWS = 12
_TIMING = ("measure", "retime")  # nodes that pass a verdict on as it is where nothing can be timed


class Display(Protocol):
    """Shows a run while it goes on. `show` is called on the event-loop thread and returns at once."""

    def show(self, event: Event) -> None:
        """Take one event."""
        ...

    def note(self, text: str) -> None:
        """Take a sentence that belongs to no event."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


def make_display(form: str) -> Display:
    """The display of a name: `auto` is live on a terminal and plain elsewhere.

    Raises:
        UsageError: There is no such display.
    """
    if form not in DISPLAYS:
        raise UsageError(f"there is no display `{form}`", where="--display", hint=f"one of {', '.join(DISPLAYS)}")
    if form == "none":
        return NoDisplay()
    if form == "log":
        return LogDisplay()
    if form == "auto" and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return LiveDisplay()
    return PlainDisplay()


class NoDisplay:
    """Shows nothing."""

    def show(self, event: Event) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class LogDisplay:
    """One JSON object per event and line, for a machine that follows the run; tokens are left out."""

    def show(self, event: Event) -> None:
        """Write the event."""
        if event.kind != "token":
            say(json.dumps(event.to_dict(), ensure_ascii=True, default=str))

    def note(self, text: str) -> None:
        """Write it as a notice without a run."""
        say(json.dumps({"kind": "notice", "run": None, "at": time.time(), "data": {"message": text}}))

    def close(self) -> None:
        """Nothing."""


class PlainDisplay:
    """One line per step."""

    def __init__(self) -> None:
        self._many = False
        self._told: dict[tuple[int | None, int | None, str], str] = {}

    def show(self, event: Event) -> None:
        """Write the event's line, if it has one."""
        line = self._line(event)
        if line:
            say(line)

    def note(self, text: str) -> None:
        """Write it."""
        say(text)

    def close(self) -> None:
        """Nothing."""

    def _line(self, event: Event) -> str:
        data = event.data
        key = (event.trajectory, event.turn, event.node)
        if event.kind == "run_started":
            self._many = int(data.get("trajectories", 1)) > 1
            return started_line(event)
        if event.kind == "proposal":
            self._told[key] = proposal_text(data)
        elif event.kind == "verdict":
            verdict = data.get("verdict") or {}
            if event.node not in _TIMING or verdict.get("measured"):
                self._told[key] = verdict_text(verdict)
        elif event.kind == "notice":
            return f"{self._place(event)}{data.get('message', '')}"
        elif event.kind == "node_finished" and key in self._told:
            return f"{self._place(event)}{event.node:<8} {self._told.pop(key)} ({data.get('seconds', 0):.1f} s)"
        elif event.kind == "trajectory_finished" and self._many:
            return f"{self._place(event)}ended: {data.get('reason', '')}"
        return ""

    def _place(self, event: Event) -> str:
        words = [f"trajectory {event.trajectory + 1}"] if self._many and event.trajectory is not None else []
        words += [f"turn {event.turn + 1}"] if event.turn is not None else []
        return f"{' '.join(words)}: " if words else ""


class LiveDisplay:
    """A table of trajectories that changes in place, and the end of what the model is writing."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._title = ""
        self._rows: dict[int, _Row] = {}
        self._tail = ""
        self._live = Live(
            console=Console(stderr=True), refresh_per_second=8, transient=True, get_renderable=self._render
        )
        self._live.start()

    def show(self, event: Event) -> None:
        """Change what is shown; what stays true is printed above it."""
        data = event.data
        if event.kind == "run_started":
            self._title = started_line(event)
            self._print(self._title)
        elif event.kind == "notice":
            self._print(str(data.get("message", "")))
        if event.trajectory is None:
            return
        row = self._rows.setdefault(event.trajectory, _Row())
        row.at = event.at
        if event.turn is not None:
            row.turn = event.turn
        if event.kind == "node_started":
            row.stage = event.node
        elif event.kind == "token":
            self._tail = (self._tail + clean(str(data.get("text", ""))))[-4 * _TAIL :]
        elif event.kind == "proposal":
            row.note, self._tail = proposal_text(data), ""
        elif event.kind == "verdict":
            row.note = verdict_text(data.get("verdict") or {})
        elif event.kind == "trajectory_finished":
            row.stage, row.note = "ended", str(data.get("reason", ""))

    def note(self, text: str) -> None:
        """Print it above the table."""
        self._print(text)

    def close(self) -> None:
        """Take the table away; the summary follows."""
        self._live.stop()

    def _print(self, text: str) -> None:
        from rich.text import Text

        # Text, so that nothing in it is taken for markup.
        self._live.console.print(Text(clean(text)))

    def _render(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        busy = [(n, r) for n, r in sorted(self._rows.items()) if r.stage != "ended"]
        for number, row in (busy or sorted(self._rows.items()))[:_ROWS]:
            passed = f"{max(time.time() - row.at, 0):.0f} s" if row.stage != "ended" else ""
            cells = (f"trajectory {number + 1}", f"turn {row.turn + 1}", row.stage, clean(row.note)[:_TAIL], passed)
            table.add_row(*(Text(cell.replace("\n", " "), no_wrap=True, overflow="ellipsis") for cell in cells))
        hidden = len(busy) - _ROWS
        parts: list[Any] = [table]
        if hidden > 0:
            parts.append(Text(f"and {hidden} more trajectories"))
        lines = self._tail.splitlines()
        if lines:
            parts.append(Text(lines[-1][-_TAIL:], style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*parts)


class _Row:
    def __init__(self) -> None:
        self.turn = 0
        self.stage = ""
        self.note = ""
        self.at = time.time()


def started_line(event: Event) -> str:
    """What a run is about."""
    data = event.data
    many = f", {data.get('trajectories')} trajectories" if data.get("trajectories", 1) != 1 else ""
    where = "GPU" if data.get("backend") == "gpu" else "CPU emulator"
    verb = "resuming" if data.get("resumed") else "translating"
    return (
        f"run {event.run}: {verb} {data.get('task')} with {data.get('policy')}, tests on the {where}, "
        f"up to {data.get('turns')} turns{many}"
    )


def proposal_text(data: dict[str, Any]) -> str:
    """A proposal in a phrase."""
    if data.get("declined"):
        return f"declined: {_short(data['declined'])}"
    source = data.get("source")
    size = f"{len(source.splitlines())} lines" if source else "no code"
    return f"{data['strategy']}, {size}" if data.get("strategy") else size


def verdict_text(verdict: dict[str, Any]) -> str:
    """A verdict in a phrase."""
    text = str(verdict.get("status", "?")).replace("_", " ")
    if verdict.get("total"):
        text += f", {verdict.get('passed')} of {verdict['total']} cases"
    elif text == "correct":
        text = "ok"
    if verdict.get("measured") and verdict.get("speedups"):
        best = verdict["speedups"][0]
        text += f", {best['value']:.2f} times as fast as {best['baseline']}"
    message = verdict.get("message") if verdict.get("status") != "correct" else ""
    return f"{text}: {_short(message)}" if message else text


def _short(text: object, length: int = 160) -> str:
    flat = " ".join(str(text).split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"
