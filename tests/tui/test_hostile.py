"""Whatever a model, a compiler or a file name holds, no screen obeys it: names, notices, messages, values, streams."""

from __future__ import annotations

import html
import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from textual.widgets import DataTable
from tui_world import app_on, until

from cudaperf_agent.cuda.verdict import Diagnostic, FailedCase, Report, Speedup, Status, Timing, Verdict
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from graph.events import Event, EventKind
from tui.screens.run import TABS, RunScreen

EVIL = "[bold red]x[/] [/nothing] [@click=app.quit]q[/] \x1b[31m\x1b]0;t\x07\x9b2J \u202eabc\u2066 \0\ud800 \r\n שלום"
FORBIDDEN = {"\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\0", "\r"}


class Told:
    """A session that tells these events and ends."""

    live = False

    def __init__(self, events: list[Event]) -> None:
        self._events = events

    async def events(self) -> AsyncIterator[Event]:
        for event in self._events:
            yield event

    def stop(self) -> None:
        pass


def evil_events(text: str) -> Iterator[Event]:
    """A run in which everything that is not ours to choose is `text`."""

    def event(kind: EventKind, turn: int | None = 0, node: str = "", **data: object) -> Event:
        return Event(kind, "0evil", 1.8e9, None if turn is None else 0, turn, node, data)

    verdict = Verdict(
        Status.WRONG,
        text,
        diagnostics=(Diagnostic("error", text, 3), Diagnostic(text, text)),
        passed=1,
        total=2,
        failure=FailedCase(text, {text: text}, text, text, 0, text, text, 1.0, 0.5),
        reports=(Report(kind=text, message=text, line=2),),
        backend=text,
        device=text,
        measured=True,
        timings=(Timing(text, text, (1e-3, 2e-3)),),
        speedups=(Speedup(text, 2.0, 1.5, 2.5),),
        profile={text: text},
    )
    yield event(EventKind.RUN_STARTED, None, task=text, path=text, policy=text, backend=text, turns=1, trajectories=1)
    yield event(EventKind.NOTICE, None, message=text, level="warning")
    yield event(EventKind.TURN_STARTED, messages=[{"role": text, "content": text}])
    yield event(EventKind.NODE_STARTED, node="generate")
    for piece in text[:200]:
        yield event(EventKind.TOKEN, node="generate", text=piece)
    yield event(EventKind.PROPOSAL, source=text, text=text, strategy=text, model=text, declined=None)
    yield event(EventKind.NODE_FINISHED, node=text, seconds=0.1)
    yield event(EventKind.NODE_FINISHED, node="generate", seconds=0.1)
    yield event(EventKind.VERDICT, verdict=verdict.to_dict(), hidden=False)
    hints = [{"message": text, "line": 3}]
    yield event(EventKind.REWARD, total=1.0, verifiable=1.0, structural=0.0, features={text: 1.0}, hints=hints)
    yield event(EventKind.FEEDBACK, text=text)
    yield event(EventKind.RUN_FINISHED, None, status="failed", reason=text, best=None, verdict=None)


def on_screen(svg: str) -> str:
    """The letters of a picture."""
    return html.unescape("".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).replace("\xa0", " ")


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_nothing_of_a_run_is_obeyed(store: Store, tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_on(store, tmp_path, session=Told(list(evil_events(EVIL))))
    async with app.run_test(size=size) as pilot:
        screen = app.screen
        assert isinstance(screen, RunScreen)
        await until(pilot, lambda: screen._over and screen.chosen is not None and not screen._dirty)
        for number, name in enumerate(TABS, 1):
            await pilot.press(str(number))
            await pilot.pause()
            shown = on_screen(app.export_screenshot())
            assert not FORBIDDEN & set(shown), name
            if name != "diff":
                assert "[bold red]x[/]" in shown, name
        await pilot.press("g", "c", "e", "h")
        await pilot.pause()
        shown = on_screen(app.export_screenshot())
        assert not FORBIDDEN & set(shown)
    written = [n for n in os.listdir(tmp_path) if n.endswith((".cu", ".html"))]
    assert len(written) == 2
    assert all(re.fullmatch(r"[\w.-]+", name) for name in written)


async def test_long_lines_do_not_stall_the_screen(store: Store, tmp_path: Path) -> None:
    app = app_on(store, tmp_path, session=Told(list(evil_events("x" * 1_000_000))))
    begun = time.process_time()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, RunScreen)
        await until(pilot, lambda: screen._over and screen.chosen is not None and not screen._dirty)
        for number in range(1, len(TABS) + 1):
            await pilot.press(str(number))
            await pilot.pause()
    assert time.process_time() - begun < 8.0


async def test_hostile_names_in_the_list_are_only_text(store: Store, tmp_path: Path) -> None:
    name = EVIL.replace("\ud800", "").replace("\0", "")
    task = Task(name, "function", "int x;\n", name)
    store.create_run(task, policy=name, backend="emulator", config={}, trajectories=1, turns=1, created=1.8e9)
    app = app_on(store, tmp_path)
    async with app.run_test(size=(200, 30)) as pilot:
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 1)
        shown = on_screen(app.export_screenshot())
        assert "[bold red]x[/]" in shown
        assert not FORBIDDEN & set(shown)
        await pilot.press("slash", *"[bold")
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 1)
