"""Progress: the same events in each form, and nothing that a model writes is obeyed by the terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest
from cli_process import ROOT

from cudaperf_agent.cli.display import PlainDisplay, make_display
from cudaperf_agent.cuda.verdict import Speedup, Status, Verdict
from cudaperf_agent.errors import UsageError
from graph.events import Event, EventKind

EVIL = "\x1b]0;owned\x07[bold]\x1b[2Jx\u202e"


def event(kind: EventKind, node: str = "", turn: int | None = 0, trajectory: int | None = 0, **data: Any) -> Event:
    return Event(kind, "r1", 100.0, trajectory, turn, node, data)


def story(evil: str = "") -> list[Event]:
    wrong = Verdict(Status.WRONG, message=f"y[3] differs{evil}", passed=1, total=4).to_dict()
    right = Verdict(Status.CORRECT, passed=4, total=4).to_dict()
    started = {"task": "saxpy", "policy": "scripted", "backend": "emulator", "turns": 5, "trajectories": 1}
    return [
        event(EventKind.RUN_STARTED, turn=None, trajectory=None, **started),
        event(EventKind.NODE_STARTED, "generate"),
        event(EventKind.TOKEN, "generate", text=f"__global__{evil}"),
        event(EventKind.PROPOSAL, "generate", source="a\nb\n", strategy=f"elementwise{evil}"),
        event(EventKind.NODE_FINISHED, "generate", seconds=0.25),
        event(EventKind.VERDICT, "compile", verdict=Verdict(Status.CORRECT).to_dict()),
        event(EventKind.NODE_FINISHED, "compile", seconds=1.5),
        event(EventKind.VERDICT, "test", verdict=wrong),
        event(EventKind.NODE_FINISHED, "test", seconds=0.5),
        event(EventKind.FEEDBACK, "feedback", text=f"mend{evil}"),
        event(EventKind.NODE_FINISHED, "feedback", seconds=0.0),
        event(EventKind.PROPOSAL, "generate", turn=1, declined=f"no more{evil}"),
        event(EventKind.NODE_FINISHED, "generate", turn=1, seconds=0.0),
        event(EventKind.VERDICT, "measure", verdict=right),
        event(EventKind.NODE_FINISHED, "measure", seconds=0.0),
        event(EventKind.VERDICT, "hidden", verdict=right),
        event(EventKind.NODE_FINISHED, "hidden", seconds=0.1),
        event(EventKind.NOTICE, turn=None, message=f"take care{evil}", level="warning"),
        event(EventKind.TRAJECTORY_FINISHED, turn=None, reason="correct", best_turn=0),
        event(EventKind.RUN_FINISHED, turn=None, trajectory=None, status="correct"),
    ]


def shown(form: str, events: list[Event], capsys: pytest.CaptureFixture[str]) -> str:
    display = make_display(form)
    for one in events:
        display.show(one)
    display.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_plain_is_one_line_per_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown("plain", story(), capsys).splitlines() == [
        "run r1: translating saxpy with scripted, tests on the CPU emulator, up to 5 turns",
        "turn 1: generate elementwise, 2 lines (0.2 s)",
        "turn 1: compile  ok (1.5 s)",
        "turn 1: test     wrong, 1 of 4 cases: y[3] differs (0.5 s)",
        "turn 2: generate declined: no more (0.0 s)",
        "turn 1: hidden   correct, 4 of 4 cases (0.1 s)",
        "take care",
    ]


def test_what_was_timed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    timed = Verdict(Status.CORRECT, passed=4, total=4, measured=True, speedups=(Speedup("gcc -O3", 2.5, 2.4, 2.6),))
    events = [
        event(EventKind.VERDICT, "measure", verdict=timed.to_dict()),
        event(EventKind.NODE_FINISHED, "measure", seconds=1.0),
    ]
    told = "turn 1: measure  correct, 4 of 4 cases, 2.50 times as fast as gcc -O3 (1.0 s)\n"
    assert shown("plain", events, capsys) == told


def test_several_trajectories_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    events = story()
    events[0].data["trajectories"] = 2
    err = shown("plain", events, capsys)
    assert "trajectory 1 turn 1: generate" in err
    assert "trajectory 1: ended: correct" in err


def test_log_is_one_object_per_line_without_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in shown("log", story(EVIL), capsys).splitlines()]
    assert [line["kind"] for line in lines] == [e.kind.value for e in story() if e.kind is not EventKind.TOKEN]


def test_none_shows_nothing_and_auto_is_plain_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown("none", story(), capsys) == ""
    assert isinstance(make_display("auto"), PlainDisplay)


@pytest.mark.parametrize("form", ["plain", "log"])
def test_hostile_text_is_not_obeyed(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    err = shown(form, story(EVIL), capsys)
    assert "\x1b" not in err
    assert "\u202e" not in err
    assert "\x07" not in err


def test_an_unknown_form_is_named() -> None:
    with pytest.raises(UsageError, match="fancy"):
        make_display("fancy")


def test_a_terminal_gets_a_live_display_that_is_not_obeyed_either() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests/cli')\n"
        "from test_display import story, EVIL\n"
        "from cudaperf_agent.cli.display import LiveDisplay, make_display\n"
        "display = make_display('auto')\n"
        "assert isinstance(display, LiveDisplay)\n"
        "for one in story(EVIL):\n"
        "    display.show(one)\n"
        "    display._live.refresh()\n"
        "display.close()\n"
    )
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "30"}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=child, env=environment)
    os.close(child)
    seen = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:  # Linux's way of saying that the other side has closed
            break
        if not piece:
            break
        seen += piece
    os.close(parent)
    assert process.wait(60) == 0, seen.decode(errors="replace")
    text = seen.decode()
    assert "translating saxpy" in text
    assert "[bold]x" in text
    assert "take care" in text
    assert "owned" not in text
    assert "\x1b[2Jx" not in text
    assert "\u202e" not in text
