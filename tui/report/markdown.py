"""The story of a run as Markdown, for an issue or a pull request."""

from __future__ import annotations

from tui.numbers import seconds, speedup
from tui.run_view import BACKENDS, RunView, TurnView
from tui.safe import ShownLimits, one_line, shown

_LIMITS = ShownLimits(line=1000, lines=2000)


MARK = "<!-- cudaperf report -->"
"""By which a report is known again."""


def markdown_report(view: RunView) -> str:
    """Headline, one line a turn, the chosen source. Text of a model is fenced or on one line, never markup."""
    where = BACKENDS.get(view.backend) or _plain(view.backend)
    lines = [
        MARK,
        f"# {_plain(view.task)}",
        "",
        f"{_plain(view.policy)} on {where}, run {_plain(view.id)}: **{view.status}** {_plain(view.reason)}",
        "",
        "| turn | status | cases | time | speedup | reward |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(view, turn) for turn in view.all_turns()]
    lines += ["", *(f"- {_plain(str(n.get('message', '')))}" for n in view.notices)]
    best = view.best_turn
    if best is not None and view.verdict is not None:
        told = f"It passed {view.verdict.passed} of {view.verdict.total} hidden cases on {where}."
        lines += ["", told if view.verdict.measured else f"{told} Nothing was timed: there was no GPU."]
        text = shown(best.source, _LIMITS)
        fence = "`" * max(3, _longest_ticks(text) + 1)
        lines += ["", f"{fence}cuda", text.rstrip("\n"), fence]
    return "\n".join(lines) + "\n"


def _row(view: RunView, turn: TurnView) -> str:
    star = " ★" if view.best == (turn.trajectory, turn.number) else ""
    verdict, timing = turn.verdict, turn.timing
    cases = f"{verdict.passed}/{verdict.total}" if verdict and verdict.total else ""
    cells = (
        view.place(turn) + star,
        f"{turn.glyph} {turn.status}",
        cases,
        seconds(timing.median) if timing else "",
        speedup(turn.speedup),
        f"{turn.reward:+.3f}" if turn.reward is not None else "",
    )
    return f"| {' | '.join(_plain(c) for c in cells)} |"


def _plain(text: str) -> str:
    return "".join("\\" + c if c in "\\`*_[]<>|#" else c for c in one_line(text, 500))


def _longest_ticks(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
