"""A run as its events tell it: one fold of the stream, which the app, the displays and the reports all read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cudaperf_agent.cuda.verdict import Speedup, Timing, Verdict
from graph.events import Event, EventKind

GLYPHS = {
    "correct": "✓",
    "wrong": "✗",
    "compile_error": "C",
    "launch_error": "L",
    "crash": "!",
    "timeout": "T",
    "memory_error": "M",
    "unstable": "~",
    "unsupported": "?",
    "cheat": "⊘",
    "no_code": "∅",
    "declined": "–",
    "running": "…",
    "unfinished": "‖",
}
"""A mark for every status, so that no meaning rests on colour alone."""

BACKENDS = {"gpu": "the GPU", "emulator": "the CPU emulator"}
"""Where candidates ran, in words."""

_TIMES = ("device", "end_to_end", "resident")


def short_policy(name: str) -> str:
    """A policy's name without the folders of its file or the owner of its model: ``scripted:answers``."""
    kind, colon, rest = name.partition(":")
    return kind + colon + rest.rstrip("/").rsplit("/", 1)[-1]


@dataclass(slots=True)
class TurnView:
    """One turn of one trajectory, as far as it got; see `EventKind` for where each part comes from."""

    trajectory: int
    number: int
    messages: list[dict[str, str]] = field(default_factory=list)
    streamed: str = ""
    tokens: int = 0
    first_token: float | None = None
    last_token: float | None = None
    proposal: dict[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
    hidden_verdict: Verdict | None = None
    assessment: dict[str, Any] = field(default_factory=dict)
    feedback: str = ""
    node: str = ""
    over: bool = False
    node_seconds: dict[str, float] = field(default_factory=dict)
    version: int = 0

    @property
    def source(self) -> str:
        """The candidate, empty while there is none."""
        return self.proposal.get("source") or ""

    @property
    def answer(self) -> str:
        """What the policy wrote, or has written so far."""
        return self.proposal.get("text") or self.streamed

    @property
    def status(self) -> str:
        """The verdict's; without one ``declined``, ``running``, or ``unfinished`` once the run is over."""
        verdict = self.hidden_verdict if self.hidden_verdict and not self.hidden_verdict.correct else self.verdict
        if self.proposal.get("declined"):
            return "declined"
        if verdict is None or verdict.untested or (self.node in ("compile", "test") and verdict.correct):
            return "unfinished" if self.over else "running"
        return verdict.status.value

    @property
    def glyph(self) -> str:
        """The status in one character."""
        return GLYPHS.get(self.status, "·")

    @property
    def timing(self) -> Timing | None:
        """What the candidate is judged by: ``device`` where there is one, else ``end_to_end``."""
        verdict = self.verdict
        found = (verdict.timing(kind) for kind in _TIMES) if verdict else iter(())
        return next((t for t in found if t is not None), None)

    @property
    def speedup(self) -> Speedup | None:
        """Against the first baseline that the verdict names."""
        return self.verdict.speedups[0] if self.verdict and self.verdict.speedups else None

    @property
    def reward(self) -> float | None:
        """Total reward."""
        total = self.assessment.get("total")
        return float(total) if total is not None else None

    @property
    def tokens_per_second(self) -> float | None:
        """While it streams, and after."""
        if self.first_token is None or self.last_token is None or self.last_token <= self.first_token:
            return None
        return (self.tokens - 1) / (self.last_token - self.first_token)


@dataclass(slots=True)
class TrajectoryView:
    """One trajectory."""

    number: int
    turns: dict[int, TurnView] = field(default_factory=dict)
    status: str = "running"
    reason: str = ""
    best_turn: int | None = None

    def turn(self, number: int) -> TurnView:
        """That turn, made if need be."""
        if number not in self.turns:
            self.turns[number] = TurnView(self.number, number)
        return self.turns[number]


@dataclass(slots=True)
class RunView:
    """One run. `apply` every event in order; times are Unix seconds."""

    id: str = ""
    task: str = ""
    path: str = ""
    policy: str = ""
    backend: str = ""
    turns: int = 0
    expected_trajectories: int = 0
    started: float | None = None
    finished: float | None = None
    latest: float | None = None
    status: str = "running"
    reason: str = ""
    best: tuple[int, int] | None = None
    verdict: Verdict | None = None
    notices: list[dict[str, Any]] = field(default_factory=list)
    trajectories: dict[int, TrajectoryView] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> RunView:
        """The run that these events tell."""
        view = cls()
        for event in events:
            view.apply(event)
        return view

    def all_turns(self) -> Iterator[TurnView]:
        """By trajectory and turn."""
        for number in sorted(self.trajectories):
            turns = self.trajectories[number].turns
            yield from (turns[turn] for turn in sorted(turns))

    def find(self, trajectory: int, turn: int) -> TurnView | None:
        """That turn, if it has begun."""
        found = self.trajectories.get(trajectory)
        return found.turns.get(turn) if found else None

    def place(self, turn: TurnView) -> str:
        """``3``, or ``2.3`` where there are several trajectories; counted from 1."""
        several = self.expected_trajectories > 1
        return f"{turn.trajectory + 1}.{turn.number + 1}" if several else f"{turn.number + 1}"

    @property
    def best_turn(self) -> TurnView | None:
        """The chosen attempt, once the run has ended with one."""
        return self.find(*self.best) if self.best else None

    @property
    def measured(self) -> bool:
        """Whether anything was timed."""
        return any(t.verdict is not None and t.verdict.measured for t in self.all_turns())

    @property
    def phase(self) -> str:
        """What is being done now, in a few words."""
        if self.status != "running":
            return self.status
        working = [t for t in self.all_turns() if t.node]
        if not working:
            return "starting"
        nodes = sorted({t.node for t in working})
        at = f"turn {working[-1].number + 1}" if len(working) == 1 else f"{len(working)} at work"
        return f"{', '.join(nodes)} ({at})"

    def fail(self, message: str) -> None:
        """The run ended by an error that no event tells."""
        self.status, self.reason = "error", message
        for turn in self.all_turns():
            turn.node, turn.over = "", True

    def apply(self, event: Event) -> None:
        """Take in one event."""
        self.latest = event.at
        data = event.data
        if event.kind is EventKind.RUN_STARTED:
            self.id, self.task, self.path = event.run, data["task"], data["path"]
            self.policy, self.backend = data["policy"], data["backend"]
            self.turns, self.expected_trajectories = data["turns"], data["trajectories"]
            self.started = self.started or event.at
            self.status, self.reason, self.finished = "running", "", None
            for turn in self.all_turns():
                turn.over = False
            for unfinished in self.trajectories.values():  # a resumed run takes these up again
                if unfinished.status in ("interrupted", "error"):
                    unfinished.status, unfinished.reason = "running", ""
        elif event.kind is EventKind.RUN_FINISHED:
            best = data.get("best")
            self.best = (best["trajectory"], best["turn"]) if best else None
            self.status, self.reason, self.finished = data["status"], data.get("reason", ""), event.at
            for turn in self.all_turns():
                turn.over = True
            self.verdict = Verdict.from_dict(data["verdict"]) if data.get("verdict") else None
        elif event.kind is EventKind.NOTICE:
            self.notices.append(data)
        elif event.trajectory is not None:
            trajectory = self.trajectories.setdefault(event.trajectory, TrajectoryView(event.trajectory))
            if event.kind is EventKind.TRAJECTORY_FINISHED:
                trajectory.status, trajectory.reason = data.get("status", ""), data.get("reason", "")
                trajectory.best_turn = data.get("best_turn")
            elif event.turn is not None and (event.node != "finish" or event.turn in trajectory.turns):
                # A trajectory's finish is told under the turn that would have come next: that is no turn.
                _apply_to_turn(trajectory.turn(event.turn), event)


def _apply_to_turn(turn: TurnView, event: Event) -> None:
    data = event.data
    turn.version += 1
    match event.kind:
        case EventKind.TURN_STARTED:
            turn.messages = list(data.get("messages", []))
        case EventKind.NODE_STARTED:
            turn.node = event.node
        case EventKind.NODE_FINISHED:
            turn.node = "" if turn.node == event.node else turn.node
            turn.node_seconds[event.node] = float(data.get("seconds", 0.0))
        case EventKind.TOKEN:
            turn.streamed += data["text"]
            turn.tokens += 1
            turn.first_token = turn.first_token or event.at
            turn.last_token = event.at
        case EventKind.PROPOSAL:
            turn.proposal = data
        case EventKind.VERDICT:
            verdict = Verdict.from_dict(data["verdict"])
            if data.get("hidden"):
                turn.hidden_verdict = verdict
            else:
                turn.verdict = verdict
        case EventKind.REWARD:
            turn.assessment = data
        case EventKind.FEEDBACK:
            turn.feedback = data["text"]
        case _:
            pass
