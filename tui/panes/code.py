"""Source of a turn, highlighted, and its difference to an earlier turn."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from rich.console import RenderableType
from rich.syntax import Syntax
from rich.text import Text

from tui.run_view import TurnView
from tui.safe import ShownLimits, shown

CODE_LIMITS = ShownLimits(line=240, lines=3000)


@dataclass(frozen=True, slots=True)
class CodeLook:
    """Colours of code.

    Attributes:
        style: Name of a Pygments style.
        background: Colour behind it, that of the pane, as ``#rrggbb``.
    """

    style: str
    background: str


def code(turn: TurnView, *, look: CodeLook, marked: Collection[int] = ()) -> RenderableType:
    """The candidate with line numbers; `marked` lines (of diagnostics) stand out."""
    if not turn.source:
        return Text(no_code(turn), style="dim")
    return Syntax(
        shown(turn.source, CODE_LIMITS),
        "cuda",
        theme=look.style,
        line_numbers=True,
        highlight_lines=set(marked),
        background_color=look.background,
    )


def difference(turn: TurnView, earlier: TurnView | None, *, look: CodeLook) -> RenderableType:
    """Unified difference from `earlier` to `turn`."""
    if not turn.source:
        return Text(no_code(turn), style="dim")
    if earlier is None or not earlier.source:
        return Text("There is no earlier source to compare with.", style="dim")
    before, after = (shown(t.source, CODE_LIMITS).split("\n") for t in (earlier, turn))
    names = (f"turn {earlier.number + 1}", f"turn {turn.number + 1}")
    lines = list(difflib.unified_diff(before, after, *names, lineterm=""))
    if not lines:
        return Text(f"The same as turn {earlier.number + 1}.", style="dim")
    return Syntax("\n".join(lines), "diff", theme=look.style, background_color=look.background)


def no_code(turn: TurnView) -> str:
    """Why there is no source to show."""
    if turn.proposal.get("declined"):
        return shown(f"Declined: {turn.proposal['declined']}")
    return "No code in the answer." if turn.proposal else "No answer yet."
