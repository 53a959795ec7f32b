"""What was said: the exact prompt, the answer as it arrives, the feedback."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from tui.run_view import TurnView
from tui.safe import shown


def prompt(turn: TurnView) -> RenderableType:
    """The messages, word for word."""
    if not turn.messages:
        return Text("This policy reads no prompt.", style="dim")
    text = Text()
    for message in turn.messages:
        text.append(f"{shown(message['role'])}\n", style="bold")
        text.append(f"{shown(message['content'])}\n\n")
    return text


def answer(turn: TurnView) -> RenderableType:
    """What the policy wrote, or has written so far."""
    rate = turn.tokens_per_second
    head = f"{turn.tokens} pieces, {rate:.0f} a second\n\n" if rate else ""
    return Text(head, style="dim").append(shown(turn.answer) or "Nothing yet.", style="not dim")


def feedback(turn: TurnView) -> RenderableType:
    """What the next turn reads."""
    return Text(shown(turn.feedback)) if turn.feedback else Text("No feedback: no further turn followed.", style="dim")
