"""`cudaperf watch` and `translate --tui`: runs on the whole terminal, stored ones and the one at work."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cudaperf_agent.cli.output import say
from cudaperf_agent.errors import BackendUnavailable, CudaPerfError, UsageError

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from cudaperf_agent.cli.compose import Translation
    from cudaperf_agent.cli.display import Display
    from cudaperf_agent.settings_model import Settings
    from cudaperf_agent.store.repository import Store
    from graph.events import Event
    from tui.session import LiveSession, Session

    OnEvent = Callable[[Event], None]
    Work = Callable[[Display, OnEvent, RunControl], Coroutine[Any, Any, Translation]]


def watch(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]", help="Id of a run, its beginning, or latest, the newest of translate; all runs otherwise."
        ),
    ] = None,
) -> int:
    """Look through the stored runs, or one of them, turn by turn.

    A run that another process is at work on is followed. A run that was stopped can be resumed there.
    """
    import asyncio

    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.settings import load_settings

    check_display()
    from tui.session import StoredSession

    settings = load_settings().settings
    with open_store(settings) as store:
        screen = Terminal(store, settings)
        failed = asyncio.run(screen.show(StoredSession(store, store.find_run(run)) if run else None))
        for translation in screen.results:
            say(f"run {translation.result.run} went on: its files come with cudaperf resume {translation.result.run}")
    return failed


def watch_translation(work: Work, settings: Settings) -> Translation | None:
    """Run a translation on the terminal.

    Args:
        work: Makes its coroutine, as for `translate.drive`.
        settings: All settings.

    Returns:
        What it came to, or its resumption if it was stopped and resumed there; `None` if the display failed before
        it began.

    Raises:
        CudaPerfError: As the translation does.
        KeyboardInterrupt: The user did not want to wait for the step at work.
    """
    import asyncio

    from cudaperf_agent.cli.parts import open_store

    with open_store(settings) as store:
        screen = Terminal(store, settings)
        first = screen.live(work)
        asyncio.run(screen.show(first))
    if first.error is not None:
        raise first.error
    results = [r for r in screen.results if r.result.run == screen.results[0].result.run]
    return results[-1] if results else None


def check_display() -> None:
    """Refuse before anything begins where the app cannot be shown.

    Raises:
        BackendUnavailable: Textual is not installed.
        UsageError: There is no terminal.
    """
    try:
        import textual  # noqa: F401
    except ImportError:
        raise BackendUnavailable(
            "the terminal app needs Textual, which is not installed", hint='pip install "cudaperf-agent[tui]"'
        ) from None
    if not (sys.__stdin__ and sys.__stdin__.isatty() and sys.__stderr__ and sys.__stderr__.isatty()):
        raise UsageError("this needs a terminal", hint="elsewhere: cudaperf runs, show and report; --display plain")
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("this terminal cannot place text", where="TERM", hint="set TERM to what the terminal is")


class Terminal:
    """The app with what it needs of us: sessions for what is resumed, and waiting for what is still at work.

    Attributes:
        results: Of the translations that ran here, in the order they began.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._sessions: list[LiveSession] = []
        self.results: list[Translation] = []

    def live(self, work: Work) -> LiveSession:
        """A run of this process."""
        from tui.session import LiveSession

        session = LiveSession(lambda on_event, control: work(_Notices(on_event), on_event, control))
        self._sessions.append(session)
        return session

    def resumed(self, run_id: str) -> LiveSession:
        """The session that goes on with a stored run."""
        from cudaperf_agent.cli import compose

        return self.live(
            lambda shown, on_event, control: compose.resume_async(
                run_id, self._settings, on_event=on_event, say=shown.note, control=control
            )
        )

    async def show(self, session: Session | None) -> int:
        """Show the app until the user leaves it; what is at work then ends after its node.

        Returns:
            0, or 1 if the app failed.
        """
        import asyncio

        from tui.app import CudaPerfApp

        app = CudaPerfApp(self._store, session=session, resume=self.resumed)
        loop = asyncio.get_running_loop()
        # Whoever stops the process in an orderly way gets the terminal back as it was.
        loop.add_signal_handler(signal.SIGTERM, app.exit)
        try:
            await app.run_async()
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
        if any(s.at_work for s in self._sessions):
            say("waiting for the step at work (Ctrl-C to stop at once)")
        for live in self._sessions:
            with contextlib.suppress(CudaPerfError):  # told on the screen, and kept by the session
                result = await live.settle()
                if result is not None:
                    self.results.append(result)
        return app.return_code or 0


class _Notices:
    """Narration of a run as events, since the screen is the app's."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event

    def note(self, text: str) -> None:
        """Tell it on the run's screen."""
        from graph.events import Event, EventKind

        self._on_event(Event(EventKind.NOTICE, "", time.time(), data={"message": text, "level": "info"}))

    def show(self, event: Event) -> None:
        """Nothing: the screen has its own listener."""

    def close(self) -> None:
        """Nothing."""
