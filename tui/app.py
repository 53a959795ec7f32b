"""The app: screens over the event stream of a run and over the store, with two themes and named palette commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.screen import Screen
from textual.theme import Theme

from cudaperf_agent.store.repository import Store
from tui.export import export_picture
from tui.panes.code import CodeLook
from tui.screens.help import HelpScreen
from tui.screens.run import RunScreen
from tui.screens.runs import RunsScreen
from tui.session import Session, StoredSession

DARK = Theme(
    name="cudaperf-dark",
    primary="#76b900",
    secondary="#4c9be8",
    accent="#f2c14e",
    success="#76b900",
    warning="#f2c14e",
    error="#ff6b6b",
    foreground="#e4e6e3",
    background="#121413",
    surface="#1a1d1b",
    panel="#252a27",
    dark=True,
)
LIGHT = Theme(
    name="cudaperf-light",
    primary="#3f6600",
    secondary="#1f5fa8",
    accent="#8a5a00",
    success="#3f6600",
    warning="#8a5a00",
    error="#b3261e",
    foreground="#1b1f1c",
    background="#fbfcf9",
    surface="#f1f4ec",
    panel="#e3e9da",
    dark=False,
)


class CudaPerfApp(App[None]):
    """Shows the runs of a store, or one run.

    Args:
        store: Where runs are.
        session: A run to begin with; the list of runs otherwise.
        resume: Makes the session that goes on with a stored run; `None` where nothing can be resumed.
        export_to: Folder for exported sources and reports.
        now: The clock for ages, Unix seconds.
    """

    TITLE = "cudaperf"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar = [
        Binding("q", "quit", "Quit"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("t", "toggle_theme", "Theme", show=False),
    ]

    def __init__(
        self,
        store: Store,
        *,
        session: Session | None = None,
        resume: Callable[[str], Session] | None = None,
        export_to: Path | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.store, self.now = store, now
        self.export_to = export_to or Path.cwd()
        self.make_resumed = resume
        self._first = session

    def on_mount(self) -> None:
        """Register the themes and show the first screen."""
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = DARK.name
        self.push_screen(RunScreen(self._first) if self._first else RunsScreen())

    @property
    def code_look(self) -> CodeLook:
        """Colours of code that fit the theme."""
        theme = self.current_theme
        return CodeLook("monokai" if theme.dark else "friendly", theme.background or "default")

    def open_run(self, run_id: str) -> None:
        """Show a stored run."""
        self.push_screen(RunScreen(StoredSession(self.store, run_id)))

    def action_toggle_theme(self) -> None:
        """From dark to light and back."""
        self.theme = LIGHT.name if self.theme == DARK.name else DARK.name

    def action_help(self) -> None:
        """Show the keys of the screen below."""
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action, named "noun: Verb"."""
        yield SystemCommand("app: Quit", "Leave; a run at work here is stopped after its node", self.action_quit)
        yield SystemCommand("app: Show help", "Keys of this screen", self.action_help)
        yield SystemCommand("theme: Toggle", "Dark or light", self.action_toggle_theme)
        yield SystemCommand("screen: Save picture", "As SVG", lambda: self.save_picture())
        commands = getattr(screen, "commands", None)
        if commands is not None:
            yield from commands()

    def save_picture(self) -> None:
        """Save the screen as SVG into the export folder."""
        self.notify(export_picture(self.export_screenshot(), self.export_to), markup=False)
