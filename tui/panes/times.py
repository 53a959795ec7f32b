"""Times of a turn and the speedup of every turn with its interval; says so where nothing was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tui.numbers import interval_bar, seconds, speedup
from tui.run_view import RunView, TurnView
from tui.safe import one_line

_LONGEST_BAR = 100


def times(run: RunView, turn: TurnView, *, width: int) -> RenderableType:
    """Samples of the chosen turn, then the plot over turns of its trajectory."""
    parts: list[RenderableType] = []
    verdict = turn.verdict
    if verdict is not None and verdict.timings:
        parts.append(_samples(turn))
        parts += [Text(speedup(s)) for s in verdict.speedups]
        parts += [Text(f"{name}: {told}", style="dim") for name, told in profile_lines(verdict.profile)]
    else:
        parts.append(Text(f"Not measured: {_why_unmeasured(run, turn)}", style="dim"))
    parts.append(Text("\nSeconds per node", style="bold"))
    parts += [Text(f"{one_line(node, 8):<9}{seconds(spent):>9}") for node, spent in turn.node_seconds.items()]
    trajectory = run.trajectories.get(turn.trajectory)
    plot = speedup_plot(list(trajectory.turns.values()) if trajectory else [], width=width)
    if plot is not None:
        parts += [Text("\nSpeedup by turn, with 95 % interval (log axis)", style="bold"), plot]
    return Group(*parts)


def profile_lines(profile: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of what a profile says in a single number or word; the rest is for machines."""
    found = []
    for name, value in profile.items():
        if isinstance(value, float):
            share = "share" in name
            found.append((one_line(name, 60).replace("_", " "), f"{value:.1%}" if share else f"{value:.4g}"))
        elif isinstance(value, (int, str)):
            found.append((one_line(name, 60).replace("_", " "), one_line(str(value), 120)))
    return found


def speedup_plot(turns: list[TurnView], *, width: int) -> Text | None:
    """One line a turn; `None` where nothing was measured."""
    measured = [t for t in turns if t.speedup is not None]
    if not measured:
        return None
    bounds = [(t.speedup.low, t.speedup.high) for t in measured if t.speedup is not None]
    low, high = min(1.0, *(b[0] for b in bounds)), max(1.0, *(b[1] for b in bounds))
    text = Text()
    bar = min(max(width - 22, 12), _LONGEST_BAR)
    for turn in turns:
        found = turn.speedup
        line = (
            f"{interval_bar(found, low, high, bar)} {found.value:.3g}×"
            if found
            else f"{turn.glyph} {turn.status.replace('_', ' ')}"
        )
        text.append(f"turn {turn.number + 1}  {line}\n")
    return text.append(f"        {low:.3g}×{'':{max(bar - 14, 1)}}{high:.3g}×", style="dim")


def _samples(turn: TurnView) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for name in ("time", "case"):
        table.add_column(name, overflow="ellipsis")
    for name in ("median", "cv", "first", "runs"):
        table.add_column(name, justify="right", no_wrap=True)
    for t in turn.verdict.timings if turn.verdict else ():
        table.add_row(
            Text(one_line(t.kind, 24)),
            Text(one_line(t.case, 30)),
            seconds(t.median),
            f"{t.cv:.1%}",
            seconds(t.cold),
            str(len(t.samples)),
        )
    return table


def _why_unmeasured(run: RunView, turn: TurnView) -> str:
    if turn.status == "running":
        return "the turn is at work."
    if run.backend == "emulator":
        return "there was no GPU; candidates ran on the CPU emulator."
    return "only a correct candidate is timed."
