"""One run: the timeline of its turns, and tabs with everything about the chosen one. Live or replayed alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from rich.console import RenderableType
from textual import on
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding
from textual.containers import Horizontal, ScrollableContainer
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.theme import Theme
from textual.widgets import DataTable, Footer, OptionList, Static, TabbedContent, TabPane
from textual.widgets.option_list import Option

from cudaperf_agent.errors import CudaPerfError
from graph.events import Event
from tui.export import export_report, export_source
from tui.panes.assessment import assessment
from tui.panes.code import code, difference
from tui.panes.times import times
from tui.panes.verdict import places, verdict
from tui.panes.words import answer, feedback, prompt
from tui.run_view import RunView, TurnView
from tui.safe import one_line, shown
from tui.session import Session
from tui.widgets.timeline import Timeline, headline

if TYPE_CHECKING:
    from tui.app import CudaPerfApp

TABS = {
    "code": "Code",
    "diff": "Diff",
    "verdict": "Verdict",
    "features": "Features",
    "times": "Time",
    "prompt": "Prompt",
    "answer": "Answer",
    "feedback": "Feedback",
}
_WRAPPED = {"verdict", "features", "times", "prompt", "answer", "feedback"}
_REPAINTS_PER_SECOND = 8
_WIDE = 110
_NOTICES = 3
_TABS_FIT = 92


class RunScreen(Screen[None]):
    """Events arrive as messages and only mark the screen; a timer repaints what is marked, however many arrived."""

    BINDINGS: ClassVar = [
        *(Binding(str(i), f"tab('{name}')", title, show=False) for i, (name, title) in enumerate(TABS.items(), 1)),
        Binding("j,down", "move(1)", "Next turn", show=False),
        Binding("k,up", "move(-1)", "Earlier turn", show=False),
        Binding("left_square_bracket", "compare(-1)", "Compare with earlier", show=False, key_display="["),
        Binding("right_square_bracket", "compare(1)", "Compare with later", show=False, key_display="]"),
        Binding("g", "place", "Next message's line", show=False),
        Binding("f", "follow", "Follow", show=False),
        Binding("s", "stop", "Stop"),
        Binding("r", "resume", "Resume"),
        Binding("c", "copy", "Copy"),
        Binding("e", "export", "Export"),
        Binding("h", "report", "HTML report", show=False),
        Binding("escape", "back", "Back"),
    ]

    class Arrived(Message):
        """Events of the run; whatever comes before the message is handled joins its list."""

        def __init__(self, events: list[Event]) -> None:
            super().__init__()
            self.events = events

    class Ended(Message):
        """No more events will come, because of `error` if it is set."""

        def __init__(self, error: CudaPerfError | None) -> None:
            super().__init__()
            self.error = error

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.view = RunView()
        self._chosen: tuple[int, int] | None = None
        self._following = True
        self._against: int | None = None
        self._place = -1
        self._dirty = True
        self._over = False
        self._painted: dict[str, tuple[object, ...]] = {}

    @property
    def owner(self) -> CudaPerfApp:
        """The app."""
        return cast("CudaPerfApp", self.app)

    @property
    def chosen(self) -> TurnView | None:
        """The turn that the tabs show."""
        return self.view.find(*self._chosen) if self._chosen else None

    def compose(self) -> ComposeResult:
        """Headline, timeline, tabs, footer."""
        yield Static("", id="head")
        yield Static("", id="notices", markup=False)
        with Horizontal(id="body"):
            yield Timeline(id="timeline")
            with TabbedContent(id="details"):
                for name, title in TABS.items():
                    with TabPane(title, id=name):
                        if name == "verdict":
                            yield OptionList(id="places")
                        wrapped = " wrap" if name in _WRAPPED else ""
                        with ScrollableContainer(classes=f"pane{wrapped}", can_focus=True):
                            yield Static("", id=f"{name}-body", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to listen."""
        self.query_one(Timeline).focus()
        self._listen()
        self.app.theme_changed_signal.subscribe(self, self._theme_changed)
        self.set_interval(1 / _REPAINTS_PER_SECOND, self._repaint)

    def _theme_changed(self, _theme: Theme) -> None:
        self._dirty = True  # code brings its own colours

    def _listen(self) -> None:
        self._over = False
        self.run_worker(self._consume(self._session), exclusive=True, group="events")

    async def _consume(self, session: Session) -> None:
        try:
            waiting: list[Event] = []
            async for event in session.events():
                if not waiting:
                    self.post_message(self.Arrived(waiting))
                waiting.append(event)
        except CudaPerfError as error:
            self.post_message(self.Ended(error))
        else:
            self.post_message(self.Ended(None))

    @on(Arrived)
    def _take(self, message: Arrived) -> None:
        for event in message.events:
            self.view.apply(event)
        message.events.clear()
        self._dirty = True

    @on(Ended)
    def _end(self, message: Ended) -> None:
        self._over = self._dirty = True
        if message.error is not None:
            self.view.fail(str(message.error))
            self.notify(shown(str(message.error)), severity="error", markup=False, timeout=15)

    def _repaint(self) -> None:
        if not self._dirty or not self.is_mounted:
            return
        self._dirty = False
        head = headline(self.view, now=self.owner.now(), live=not self._over, width=self.size.width - 2)
        self.query_one("#head", Static).update(head)
        self._show_notices()
        timeline = self.query_one(Timeline)
        timeline.show(self.view)
        newest = timeline.newest(self.view)
        if self._following and newest is not None and newest != self._chosen:
            timeline.choose(*newest)
            self._choose(newest)
        self._paint_tab()

    def _show_notices(self) -> None:
        """The latest; what only told of progress goes when the run has ended."""
        over = self.view.status != "running"
        told = [n for n in self.view.notices if not (over and n.get("level") == "info")][-_NOTICES:]
        notices = self.query_one("#notices", Static)
        notices.set_class(bool(told), "on")
        notices.update("\n".join(one_line(str(n.get("message", "")), 300) for n in told))

    def _paint_tab(self) -> None:
        tab = self.query_one(TabbedContent).active
        turn = self.chosen
        if turn is None:
            return
        painted: tuple[object, ...] = (
            turn.trajectory,
            turn.number,
            turn.version,
            self._against,
            self.app.theme,
            self.size.width,
        )
        if tab == "times":
            painted = (*painted, sum(t.version for t in self.view.all_turns()))
        elif tab in ("diff", "features") and (earlier := self._earlier(turn)):
            painted = (*painted, earlier.number, earlier.version)
        if self._painted.get(tab) == painted:
            return  # nothing that this tab shows has changed
        self._painted[tab] = painted
        if tab == "verdict":
            self._fill_places(turn)
        self.query_one(f"#{tab}-body", Static).update(self._pane(tab, turn))
        if tab == "answer" and self._following and turn.node == "generate":
            self.query_one("#answer .pane", ScrollableContainer).scroll_end(animate=False)

    def _pane(self, tab: str, turn: TurnView) -> RenderableType:
        look = self.owner.code_look
        match tab:
            case "code":
                return code(turn, look=look, marked=[p.line for p in places(turn)])
            case "diff":
                return difference(turn, self._earlier(turn), look=look)
            case "verdict":
                return verdict(turn)
            case "features":
                return assessment(turn, self._earlier(turn))
            case "times":
                return times(self.view, turn, width=max(self.query_one("#details").size.width - 4, 30))
            case "prompt":
                return prompt(turn)
            case "answer":
                return answer(turn)
            case _:
                return feedback(turn)

    def _earlier(self, turn: TurnView) -> TurnView | None:
        number = self._against if self._against is not None else turn.number - 1
        return self.view.find(turn.trajectory, number)

    def _fill_places(self, turn: TurnView) -> None:
        found = places(turn)
        listed = self.query_one("#places", OptionList)
        lines = [f"line {p.line}: {p.text}" for p in found]
        if [str(listed.get_option_at_index(i).prompt) for i in range(listed.option_count)] != lines:
            listed.clear_options()
            # Content from plain text: a message may hold brackets, which are not markup.
            from textual.content import Content

            listed.add_options([Option(Content(line)) for line in lines])
        listed.set_class(bool(found), "on")

    @on(DataTable.RowHighlighted, "#timeline")
    def _turn_chosen(self) -> None:
        # Where the cursor is now: rows that come in between make messages that are out of date when they arrive.
        self._choose(Timeline.key_of(self.query_one(Timeline).chosen_key))

    @on(Timeline.Touched)
    def _turn_touched(self) -> None:
        self._following = False

    def _choose(self, chosen: tuple[int, int] | None) -> None:
        if chosen is not None and chosen != self._chosen:
            self._chosen, self._against, self._place = chosen, None, -1
            self._paint_tab()

    @on(TabbedContent.TabActivated)
    def _tab_chosen(self) -> None:
        self._paint_tab()

    @on(OptionList.OptionSelected, "#places")
    def _place_chosen(self, event: OptionList.OptionSelected) -> None:
        if self.chosen is not None:
            self._go_to(places(self.chosen)[event.option_index].line)

    def on_resize(self, event: Resize) -> None:
        """A wide screen has room for more columns."""
        self.set_class(event.size.width >= _WIDE, "wide")
        self.set_class(event.size.width < _TABS_FIT, "narrow")
        self.query_one(Timeline).wide = event.size.width >= _WIDE
        self._dirty = True

    def action_tab(self, name: str) -> None:
        """Show a tab. Focus inside the one that goes is moved along, or it would call its own tab back."""
        details = self.query_one(TabbedContent)
        if self.focused is not None and details in self.focused.ancestors:
            self.query_one(f"#{name} .pane").focus()
        details.active = name

    def action_move(self, rows: int) -> None:
        """Another turn."""
        self._following = False
        table = self.query_one(Timeline)
        table.move_cursor(row=table.cursor_row + rows)

    def action_follow(self) -> None:
        """Go to the newest turn and stay with it."""
        self._following = self._dirty = True

    def action_compare(self, step: int) -> None:
        """Compare with another turn of the same trajectory."""
        turn = self.chosen
        if turn is None:
            return
        others = [n for n in sorted(self.view.trajectories[turn.trajectory].turns) if n != turn.number]
        if not others:
            self.notify("There is only one turn.", markup=False)
            return
        now = self._against if self._against in others else turn.number - 1
        at = others.index(now) if now in others else 0
        self._against = others[(at + step) % len(others)]
        self.action_tab("diff")
        self._paint_tab()

    def action_place(self) -> None:
        """Go to the line of the next message of the compiler or the checker."""
        found = places(self.chosen) if self.chosen else []
        if not found:
            self.notify("No message names a line.", markup=False)
            return
        self._place = (self._place + 1) % len(found)
        self.notify(found[self._place].text, title=f"line {found[self._place].line}", markup=False)
        self._go_to(found[self._place].line)

    def _go_to(self, line: int) -> None:
        self.action_tab("code")
        self._paint_tab()
        pane = self.query_one("#code .pane", ScrollableContainer)
        pane.scroll_to(y=max(line - 1 - pane.size.height // 2, 0), animate=False)

    def action_stop(self) -> None:
        """End the run after the node at work; it stays resumable."""
        if not self._session.live:
            self.notify("This run is not at work in this program.", markup=False)
        elif self._over:
            self.notify("The run has ended.", markup=False)
        else:
            self._session.stop()
            self.notify("Stopping after this node; the run stays resumable.", markup=False)

    def action_resume(self) -> None:
        """Go on with a run that was stopped."""
        if not self._over or self.view.status in ("correct", "failed"):
            self.notify("There is nothing to resume.", markup=False)
        elif self.owner.make_resumed is None:
            self.notify(f"Resume it with: cudaperf resume {self.view.id}", markup=False)
        else:
            self._session = self.owner.make_resumed(self.view.id)
            self._listen()
            self.notify("Resumed.", markup=False)

    def action_copy(self) -> None:
        """Copy the candidate."""
        turn = self.chosen
        if turn is None or not turn.source:
            self.notify("There is no code to copy.", markup=False)
            return
        # A terminal takes UTF-8, which half a surrogate pair is not.
        self.app.copy_to_clipboard(turn.source.encode("utf-8", "replace").decode("utf-8"))
        self.notify(f"Copied {len(turn.source.splitlines())} lines.", markup=False)

    def action_export(self) -> None:
        """Write the candidate into a file."""
        turn = self.chosen
        if turn is None or not turn.source:
            self.notify("There is no code to export.", markup=False)
            return
        self._tell(export_source(self.view, turn, self.owner.export_to))

    def action_report(self) -> None:
        """Write the HTML report of this run."""
        self._tell(export_report(self.view, self.owner.export_to))

    def _tell(self, written: str) -> None:
        self.notify(written, markup=False)

    def action_back(self) -> None:
        """To the list of runs; a run at work here goes on only while its screen is open, so it is stopped first."""
        if self._session.live and not self._over:
            self.notify("The run is at work: stop it first (s), or quit (q).", severity="warning", markup=False)
            return
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()
        else:
            from tui.screens.runs import RunsScreen

            self.app.switch_screen(RunsScreen())

    def commands(self) -> Iterable[SystemCommand]:
        """For the palette."""
        for name, title in TABS.items():
            yield SystemCommand(f"{title.lower()}: Show", "Tab", lambda name=name: self.action_tab(name))
        yield SystemCommand("turn: Next", "Down the timeline", lambda: self.action_move(1))
        yield SystemCommand("turn: Earlier", "Up the timeline", lambda: self.action_move(-1))
        yield SystemCommand("turn: Follow", "Stay with the newest turn", self.action_follow)
        yield SystemCommand("diff: Compare with another turn", "The next one", lambda: self.action_compare(1))
        yield SystemCommand("code: Go to next message", "Compiler or checker", self.action_place)
        yield SystemCommand("code: Copy", "To the clipboard", self.action_copy)
        yield SystemCommand("code: Export", "Into a file", self.action_export)
        yield SystemCommand("report: Write HTML", "Into a file", self.action_report)
        yield SystemCommand("run: Stop", "After the node at work", self.action_stop)
        yield SystemCommand("run: Resume", "Where it stopped", self.action_resume)
        yield SystemCommand("run: Back to list", "All runs", self.action_back)
