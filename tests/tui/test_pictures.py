"""How every screen looks at three sizes; the pictures lie in ``__snapshots__`` (``--snapshot-update`` makes them)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_world import candidate
from textual.pilot import Pilot
from textual.widgets import DataTable
from tui_world import KERNEL, STORY, app_on, make_run, until

from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.store.records import RunEnd, RunStatus
from cudaperf_agent.store.repository import Store
from tui.screens.help import HelpScreen
from tui.screens.run import RunScreen
from tui.screens.runs import RunsScreen
from tui.session import StoredSession

SIZES = [(80, 24), (120, 40), (200, 60)]
Snap = Callable[..., bool]


def sized(test: Any) -> Any:
    """The test at every size."""
    return pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")(test)


@pytest.fixture
def filled(store: Store) -> Store:
    """Four runs: one right, one all wrong, one of an hour ago on the emulator, one interrupted."""

    async def fill() -> None:
        await make_run(store, [candidate(s, i) + KERNEL for i, s in enumerate(["wrong", "timeout"])], run_id="0kfailed")
        await make_run(store, STORY[:4], run_id="0hemulator", backend="emulator", started=1_800_000_000.0 - 3600)
        await make_run(store, STORY, run_id="0mstory", started=1_800_000_100.0)
        await make_run(store, STORY[2:3], run_id="0jstopped", started=1_800_000_000.0 - 60)
        store.end_run("0jstopped", RunEnd(RunStatus.INTERRUPTED, "stopped", 1_800_000_000.0))

    asyncio.run(fill())
    return store


def at(*keys: str) -> Callable[[Pilot[Any]], Any]:
    """Waits for the screen to be painted, then presses."""

    async def go(pilot: Pilot[Any]) -> None:
        app = pilot.app
        await until(pilot, lambda: isinstance(app.screen, RunsScreen | RunScreen))
        screen = app.screen
        if isinstance(screen, RunsScreen):
            await until(pilot, lambda: screen.query_one(DataTable).row_count == 4)
        elif isinstance(screen, RunScreen):
            await until(pilot, lambda: screen._over and screen.chosen is not None and not screen._dirty)
        await pilot.press(*keys)
        await pilot.pause()
        if "question_mark" in keys:
            await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.pause()

    return go


@sized
def test_list_of_runs(snap_compare: Snap, filled: Store, tmp_path: Path, size: tuple[int, int]) -> None:
    assert snap_compare(app_on(filled, tmp_path), terminal_size=size, run_before=at())


@sized
@pytest.mark.parametrize(
    ("keys", "run"),
    [("1", "0mstory"), ("kk3", "0mstory"), ("4", "0mstory"), ("5", "0mstory"), ("5", "0hemulator")],
    ids=["code", "failing-case", "features", "time", "not-timed"],
)
def test_run(snap_compare: Snap, filled: Store, tmp_path: Path, size: tuple[int, int], keys: str, run: str) -> None:
    app = app_on(filled, tmp_path, session=StoredSession(filled, run))
    assert snap_compare(app, terminal_size=size, run_before=at(*keys))


@sized
def test_help(snap_compare: Snap, filled: Store, tmp_path: Path, size: tuple[int, int]) -> None:
    app = app_on(filled, tmp_path, session=StoredSession(filled, "0mstory"))
    assert snap_compare(app, terminal_size=size, run_before=at("question_mark"))


@pytest.mark.parametrize(("keys", "name"), [("kkk3", "errors"), ("2", "diff"), ("t1", "light"), ("8", "feedback")])
def test_run_on_a_small_screen(snap_compare: Snap, filled: Store, tmp_path: Path, keys: str, name: str) -> None:
    app = app_on(filled, tmp_path, session=StoredSession(filled, "0mstory"))
    assert snap_compare(app, terminal_size=(80, 24), run_before=at(*keys))


@pytest.mark.parametrize("screen", ["runs", "run"])
def test_without_colour(
    snap_compare: Snap, filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screen: str
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    session = StoredSession(filled, "0mstory") if screen == "run" else None
    assert snap_compare(app_on(filled, tmp_path, session=session), terminal_size=(80, 24), run_before=at())


def test_every_status_has_a_mark_of_its_own() -> None:
    from tui.run_view import GLYPHS

    assert {s.value for s in Status} <= set(GLYPHS)
    assert len(set(GLYPHS.values())) == len(GLYPHS)
