"""Every key, palette command and click does what it says, and says so where there is nothing to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from graph_world import candidate
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static, TabbedContent
from tui_world import KERNEL, STORY, app_on, make_run, until

from cudaperf_agent.policies.base import Proposal
from cudaperf_agent.store.records import RunEnd, RunStatus
from cudaperf_agent.store.repository import Store
from tui.app import DARK, LIGHT, CudaPerfApp
from tui.screens.help import HelpScreen
from tui.screens.run import TABS, RunScreen
from tui.screens.runs import RunsScreen
from tui.session import StoredSession
from tui.widgets.timeline import Timeline

SIZE = (100, 30)


async def opened(pilot: Pilot[Any]) -> RunScreen:
    """The run's screen, painted."""
    await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
    screen = pilot.app.screen
    assert isinstance(screen, RunScreen)
    await until(pilot, lambda: screen._over and screen.chosen is not None and not screen._dirty)
    return screen


def said(app: CudaPerfApp) -> str:
    """All notices so far."""
    return "\n".join(n.message for n in app._notifications)


def covered(screen: type[Any]) -> set[str]:
    """Names of the actions that a screen's keys call."""
    from textual.binding import Binding

    return {b.action.split("(")[0] for b in Binding.make_bindings(screen.BINDINGS)}


def test_no_action_is_left_out_here() -> None:
    """A new action makes this fail until it is tested below."""
    assert covered(RunsScreen) == {"open", "filter", "clear_filter", "reload", "move"}
    assert covered(RunScreen) == {
        *("tab", "move", "compare", "place", "follow", "stop", "resume", "copy", "export", "report", "back"),
    }
    assert covered(CudaPerfApp) == {"quit", "help", "toggle_theme"}


async def test_keys_of_the_list(store: Store, tmp_path: Path) -> None:
    for i in range(3):
        await make_run(store, [candidate("wrong") + KERNEL], run_id=f"0run{i}", started=1.8e9 + i)
    app = app_on(store, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        table = app.screen.query_one(DataTable)
        await until(pilot, lambda: table.row_count == 3)
        await pilot.press("j", "j")
        assert table.cursor_row == 2
        await pilot.press("k")
        assert table.cursor_row == 1
        await pilot.press("end")
        assert table.cursor_row == 2
        await pilot.press("home")
        assert table.cursor_row == 0
        await make_run(store, [candidate("wrong") + KERNEL], run_id="0run9", started=1.8e9 + 9)
        await pilot.press("r")
        await until(pilot, lambda: table.row_count == 4)
        await pilot.press("slash", *"saxpy", "enter")
        await until(pilot, lambda: app.focused is table)
        assert app.screen.query_one(Input).display
        await pilot.press("escape")
        assert not app.screen.query_one(Input).display
        await pilot.press("enter")
        screen = await opened(pilot)
        assert screen.view.status == "failed"


async def test_the_mouse_opens_a_run_chooses_a_turn_and_a_tab(store: Store, tmp_path: Path) -> None:
    await make_run(store)
    app = app_on(store, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 1)
        await pilot.click("#runs", offset=(5, 1))
        screen = await opened(pilot)
        await pilot.click("#timeline", offset=(3, 2))
        await until(pilot, lambda: screen.chosen is not None and screen.chosen.number == 1)
        assert not screen._following
        await pilot.click("#--content-tab-verdict")
        await until(pilot, lambda: screen.query_one(TabbedContent).active == "verdict")


async def test_keys_of_a_run(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path / "out", session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        tabs = screen.query_one(TabbedContent)
        for i, name in enumerate(TABS, 1):
            await pilot.press(str(i))
            assert tabs.active == name
        turns = []
        for key in ("k", "up", "j", "down"):
            await pilot.press(key)
            await pilot.pause()
            assert screen.chosen is not None
            turns.append(screen.chosen.number)
        assert turns == [2, 1, 2, 3]
        await pilot.press("k", "k", "k")
        assert not screen._following
        await pilot.press("g")
        await pilot.pause()
        assert tabs.active == "code"
        assert "expected ';'" in said(app)
        await pilot.press("f")
        await until(pilot, lambda: screen.chosen is not None and screen.chosen.number == 3)
        await pilot.press("left_square_bracket")
        await pilot.pause()
        assert (tabs.active, screen._against) == ("diff", 1)
        await pilot.press("right_square_bracket")
        assert screen._against == 2
        await pilot.press("c", "e", "h", "s", "r", "g")
        await pilot.pause()
        assert app.clipboard == STORY[3]
        for text in ("Copied", ".cu", ".html", "not at work in this program", "nothing to resume", "No message names"):
            assert text in said(app), text
        await pilot.press("escape")
        assert isinstance(app.screen, RunsScreen)
        await pilot.press("q")
    assert app.return_code == 0
    assert len(list((tmp_path / "out").iterdir())) == 2


async def test_what_cannot_be_resumed_here_tells_the_command(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    store.end_run(run, RunEnd(RunStatus.INTERRUPTED, "stopped", 1.8e9))
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot)
        await pilot.press("r")
        await pilot.pause()
        assert f"cudaperf resume {run}" in said(app)


async def test_an_unwritable_folder_is_told(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    (tmp_path / "file").write_text("")
    app = app_on(store, tmp_path / "file", session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot)
        await pilot.press("e")
        await pilot.pause()
        assert "not written" in said(app)


async def test_a_turn_without_code_has_nothing_to_copy(store: Store, tmp_path: Path) -> None:
    run = await make_run(store, [Proposal("there is no code"), candidate("wrong") + KERNEL])
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("k")
        await until(pilot, lambda: screen.chosen is not None and screen.chosen.source == "")
        await pilot.press("c", "e")
        assert "no code to copy" in said(app)
        assert "no code to export" in said(app)


async def test_a_command_is_found_and_run_in_the_palette(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.press(*"features: show")
        await until(pilot, lambda: app.screen.query_one(CommandList).option_count > 0)
        await pilot.press("down", "enter")
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: screen.query_one(TabbedContent).active == "features")


@pytest.mark.slow
@pytest.mark.parametrize("place", ["runs", "run"])
async def test_every_palette_command_runs(store: Store, tmp_path: Path, place: str) -> None:
    run = await make_run(store)
    where = RunsScreen() if place == "runs" else RunScreen(StoredSession(store, run))
    count = len(list(app_on(store, tmp_path).get_system_commands(where)))
    assert count > 7
    for i in range(count):
        session = StoredSession(store, run) if place == "run" else None
        app = app_on(store, tmp_path / f"{i}", session=session)
        async with app.run_test(size=SIZE) as pilot:
            if place == "run":
                await opened(pilot)
            else:
                await until(pilot, lambda app=app: app.screen.query_one(DataTable).row_count == 1)
            command = list(app.get_system_commands(app.screen))[i]
            before = state(app)
            result = command.callback()
            if hasattr(result, "__await__"):
                await result
            await pilot.pause()
            await until(
                pilot,
                lambda app=app, before=before, title=command.title: state(app) != before or title in QUIET,
                seconds=5,
            )


QUIET = {"code: Show", "turn: Next", "turn: Follow", "runs: Clear filter", "runs: Reload", "app: Quit"}
"""Commands that change nothing that is seen in the state they are called in."""


def state(app: CudaPerfApp) -> tuple[object, ...]:
    """What a command may change."""
    if not app.is_running or not app.screen_stack:
        return ("closed",)
    screen = app.screen
    tab = screen.query_one(TabbedContent).active if isinstance(screen, RunScreen) else ""
    chosen = screen._chosen if isinstance(screen, RunScreen) else None
    return (type(screen), tab, chosen, app.theme, said(app), app.focused)


async def test_help_lists_every_key(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=(100, 50)) as pilot:
        await opened(pilot)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        svg = app.export_screenshot().replace("&#160;", " ")
        for text in ("Next turn", "Compare with later", "HTML report", "Resume", "Theme", "compile error", "ctrl+p"):
            assert text in svg, text
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))  # it closes the help, not the app


async def test_the_theme_colours_the_code_again(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        before = screen.query_one("#code-body", Static).content
        await pilot.press("t")
        await until(pilot, lambda: screen.query_one("#code-body", Static).content is not before)
        assert app.theme == LIGHT.name
        await pilot.press("t")
        assert app.theme == DARK.name


async def test_the_screen_s_picture_asks_no_network_for_fonts(store: Store, tmp_path: Path) -> None:
    app = app_on(store, tmp_path / "out")
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        app.save_picture()
        app.save_picture()
    saved = sorted((tmp_path / "out").iterdir())
    assert [p.name for p in saved] == ["cudaperf-1.svg", "cudaperf.svg"]
    assert "url(" not in saved[0].read_text().split("</style>")[0]


async def test_a_timeline_has_more_columns_on_a_wide_screen(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        assert len(screen.query_one(Timeline).columns) == 2
        await pilot.resize_terminal(140, 40)
        await until(pilot, lambda: len(screen.query_one(Timeline).columns) == 4 and not screen._dirty)
        assert screen.query_one(Timeline).row_count == 5
        assert screen.chosen is not None
        assert screen.query_one(Timeline).chosen_key == f"0.{screen.chosen.number}"
