"""The app driven by Pilot: every action, live runs, replay, hostile text, and how quickly it answers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from graph_world import Clock, DirectiveVerifier, ScriptedPolicy, make_deps, saxpy_task
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, OptionList, Static, TabbedContent
from tui_world import HOSTILE, STORY, app_on, make_run, until

from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.policies.base import Proposal, ProposalRequest
from cudaperf_agent.store.repository import Store
from graph.config import GraphConfig
from graph.events import Event, EventKind
from graph.runner import resume_run, run_task
from tui.app import DARK, LIGHT
from tui.screens.help import HelpScreen
from tui.screens.run import TABS, RunScreen
from tui.screens.runs import RunsScreen
from tui.session import LiveSession, StoredSession

SIZE = (100, 30)


async def open_story(pilot: Pilot[Any]) -> RunScreen:
    """The screen of the stored run, fully painted."""
    await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
    screen = pilot.app.screen
    assert isinstance(screen, RunScreen)
    await until(pilot, lambda: screen.view.status == "correct" and screen.chosen is not None and not screen._dirty)
    return screen


def body(screen: RunScreen, tab: str) -> str:
    """What a tab shows, as plain text."""
    from rich.console import Console

    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(screen.query_one(f"#{tab}-body", Static).content)
    return console.export_text()


async def test_the_list_opens_a_run_and_comes_back(store: Store, tmp_path: Path) -> None:
    await make_run(store)
    app = app_on(store, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 1)
        await pilot.press("enter")
        screen = await open_story(pilot)
        assert screen.view.best == (0, 3)
        await pilot.press("escape")
        assert isinstance(app.screen, RunsScreen)


async def test_the_filter_narrows_the_list(store: Store, tmp_path: Path) -> None:
    await make_run(store)
    app = app_on(store, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        table = app.screen.query_one(DataTable)
        await until(pilot, lambda: table.row_count == 1)
        await pilot.press("slash", *"nothing-like-it")
        await until(pilot, lambda: table.row_count == 0)
        assert "No run fits" in str(app.screen.query_one("#empty", Static).content)
        await pilot.press("escape")
        await until(pilot, lambda: table.row_count == 1)
        assert app.screen.query_one(Input).value == ""


async def test_an_empty_store_says_what_to_do(store: Store, tmp_path: Path) -> None:
    app = app_on(store, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "cudaperf translate" in str(app.screen.query_one("#empty", Static).content))


async def test_every_tab_tells_its_part_of_the_story(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        screen = await open_story(pilot)
        expected = {
            "code": "__global__",
            "diff": "+    const int i",
            "verdict": "4 of 4 visible cases",
            "features": "reads are strided",
            "times": "10×",
            "prompt": "You write CUDA.",
            "answer": "correct 1e-4",
            "feedback": "correct",
        }
        assert set(expected) == set(TABS)
        for i, (tab, text) in enumerate(expected.items(), 1):
            await pilot.press(str(i))
            await pilot.pause()
            assert screen.query_one(TabbedContent).active == tab
            assert text in body(screen, tab), tab


async def test_a_failing_case_shows_expected_and_got(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        screen = await open_story(pilot)
        await pilot.press("k", "k", "3")
        await pilot.pause()
        text = body(screen, "verdict")
        assert screen.chosen is not None
        assert screen.chosen.number == 1
        assert "y[3]" in text
        assert "1.0" in text
        assert "2.0" in text


async def test_a_compiler_message_leads_to_its_line(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        screen = await open_story(pilot)
        await pilot.press("k", "k", "k", "3")
        await pilot.pause()
        places = screen.query_one("#places", OptionList)
        assert places.option_count == 1
        assert "expected ';'" in str(places.get_option_at_index(0).prompt)
        places.focus()
        places.highlighted = 0
        await pilot.press("enter")
        await pilot.pause()
        assert screen.query_one(TabbedContent).active == "code"
        await pilot.press("3", "g")
        await pilot.pause()
        assert screen.query_one(TabbedContent).active == "code"


async def test_the_difference_can_be_against_any_other_turn(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        screen = await open_story(pilot)
        seen = []
        for _ in range(4):
            await pilot.press("right_square_bracket")
            await pilot.pause()
            seen.append(body(screen, "diff").split("\n")[0].strip())
        assert seen == ["--- turn 5", "--- turn 1", "--- turn 2", "--- turn 3"]


async def test_code_is_copied_and_exported_without_overwriting(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path / "out", session=StoredSession(store, run))
    async with app.run_test(size=SIZE) as pilot:
        await open_story(pilot)
        await pilot.press("c", "e", "e", "h")
        await pilot.pause()
        assert app.clipboard == STORY[3]
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == ["saxpy.run-story.html", "saxpy.t1.turn4-1.cu", "saxpy.t1.turn4.cu"]
    assert (tmp_path / "out" / "saxpy.t1.turn4.cu").read_text() == STORY[3]


async def test_help_and_themes(store: Store, tmp_path: Path) -> None:
    app = app_on(store, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen))
        assert app.theme == DARK.name
        await pilot.press("t")
        assert app.theme == LIGHT.name


async def test_every_action_is_in_the_palette_by_noun_and_verb(store: Store, tmp_path: Path) -> None:
    run = await make_run(store)
    app = app_on(store, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        listed = [c.title for c in app.get_system_commands(app.screen)]
        app.open_run(run)
        screen = await open_story(pilot)
        titles = [c.title for c in app.get_system_commands(screen)]
        for command in app.get_system_commands(screen):
            if command.title.startswith(
                ("code: Show", "turn:", "diff:", "code: Copy", "report:", "run: Stop", "theme:")
            ):
                command.callback()
                await pilot.pause()
    assert all(": " in t and t.split(": ")[1][0].isupper() for t in [*listed, *titles])
    assert {"run: Stop", "run: Resume", "code: Copy", "code: Export", "report: Write HTML"} <= set(titles)


@dataclass
class Gate(ScriptedPolicy):
    """Lets each turn begin only when the test says so."""

    open: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def propose(self, request: ProposalRequest) -> list[Proposal]:
        await self.open.acquire()
        return await super().propose(request)


async def test_a_live_run_is_shown_stopped_and_resumed(store: Store, tmp_path: Path) -> None:
    policy, verifier = Gate(STORY), DirectiveVerifier()
    deps = make_deps(policy, verifier, store, clock=Clock())
    config = GraphConfig(turns=5, checkpointing=False)

    def start(on_event: Any, control: Any) -> Any:
        return run_task(saxpy_task(), deps, config, on_event=on_event, control=control, run_id="run-live")

    def resumed(run_id: str) -> LiveSession:
        return LiveSession(lambda on_event, control: resume_run(run_id, deps, on_event=on_event, control=control))

    app = app_on(store, tmp_path, session=LiveSession(start), resume=resumed)
    async with app.run_test(size=SIZE) as pilot:
        screen = app.screen
        assert isinstance(screen, RunScreen)
        policy.open.release()
        await until(pilot, lambda: screen.view.find(0, 1) is not None)
        assert "generate" in screen.view.phase
        await pilot.press("escape")
        assert app.screen is screen  # a run at work is not left by accident
        await pilot.press("s")
        policy.open.release()
        await until(pilot, lambda: screen.view.status == "interrupted" and screen._over)
        done = sum(n for (call, _), n in verifier.calls.items() if call == "test")
        for _ in range(5):
            policy.open.release()
        await pilot.press("r")
        await until(pilot, lambda: screen.view.status == "correct" and screen._over)
        assert screen.view.best == (0, 3)
        assert len(policy.asked) == 5
        assert done <= 2


async def test_an_error_of_the_run_is_told(store: Store, tmp_path: Path) -> None:
    async def start(on_event: Any, control: Any) -> None:
        raise BackendUnavailable("the endpoint [does] not answer", hint="start it")

    app = app_on(store, tmp_path, session=LiveSession(start))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: len(app._notifications) > 0)
        assert "the endpoint [does] not answer" in next(iter(app._notifications)).message


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_hostile_text_harms_no_screen(store: Store, tmp_path: Path, size: tuple[int, int]) -> None:
    run = await make_run(store, [HOSTILE])
    app = app_on(store, tmp_path, session=StoredSession(store, run))
    async with app.run_test(size=size) as pilot:
        screen = await open_story(pilot)
        for key in "12345678":
            begun = time.monotonic()
            await pilot.press(key)
            await pilot.pause()
            assert time.monotonic() - begun < 2.0
        for tab in ("code", "answer"):
            text = body(screen, tab)
            assert "[bold red]not markup" in text
            assert not {"\x1b", "\x07", "\u202e", "\u2066", "\0"} & set(text)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 1)


async def test_a_run_of_another_process_is_followed(store: Store, tmp_path: Path) -> None:
    policy = Gate(STORY)
    deps = make_deps(policy, DirectiveVerifier(), store, clock=Clock())
    running = asyncio.create_task(
        run_task(saxpy_task(), deps, GraphConfig(turns=5, checkpointing=False), run_id="run-else")
    )
    policy.open.release()
    with Store(store.path) as theirs:
        app = app_on(theirs, tmp_path)
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: policy.open.locked() and len(store.list_runs()) == 1)
            screen = RunScreen(StoredSession(theirs, "run-else", poll_seconds=0.02))
            await app.push_screen(screen)
            await until(pilot, lambda: screen.view.find(0, 0) is not None)
            assert not screen._over
            for _ in range(4):
                policy.open.release()
            await until(pilot, lambda: screen.view.status == "correct" and screen._over)
            assert screen.view.best == (0, 3)
    await running


async def test_the_answer_is_shown_as_it_is_generated(store: Store, tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def start(on_event: Any, control: Any) -> None:
        def tell(kind: EventKind, at: float, **data: object) -> None:
            on_event(Event(kind, "run-now", at, 0, 0, "generate", data))

        started = {"task": "t", "path": "t.c", "policy": "p", "backend": "gpu", "turns": 1, "trajectories": 1}
        on_event(Event(EventKind.RUN_STARTED, "run-now", 1.8e9, data=started))
        tell(EventKind.NODE_STARTED, 1.8e9)
        for i in range(101):
            tell(EventKind.TOKEN, 1.8e9 + i * 0.02, text=f"word{i}\n")
        await go_on.wait()

    app = app_on(store, tmp_path, session=LiveSession(start))
    async with app.run_test(size=SIZE) as pilot:
        screen = app.screen
        assert isinstance(screen, RunScreen)
        await until(pilot, lambda: screen.chosen is not None and screen.chosen.tokens == 101 and not screen._dirty)
        assert screen.view.phase == "generate (turn 1)"
        await pilot.press("7")
        await until(pilot, lambda: "word100" in body(screen, "answer"))
        assert "101 pieces, 50 a second" in body(screen, "answer")
        await until(pilot, lambda: screen.query_one("#answer .pane").scroll_y > 50)  # the end is what is seen
        go_on.set()
        await until(pilot, lambda: screen._over)
