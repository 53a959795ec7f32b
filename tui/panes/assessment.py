"""What a turn's source looks like and is worth: features with what changed, hints, reward components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tui.run_view import TurnView
from tui.safe import one_line, shown


def assessment(turn: TurnView, earlier: TurnView | None) -> RenderableType:
    """Features beside those of `earlier`, hints and reward."""
    if not turn.assessment:
        return Text("Not assessed yet." if turn.status == "running" else "Not assessed.", style="dim")
    parts: list[RenderableType] = []
    values = feature_values(turn)
    if values:
        parts.append(_features(values, feature_values(earlier) if earlier else {}))
    hints = hint_lines(turn)
    if hints:
        parts.append(Text("\nHints", style="bold"))
        parts += [Text(shown(hint)) for hint in hints]
    parts.append(_reward(turn.assessment))
    return Group(*parts)


def feature_values(turn: TurnView) -> dict[str, float]:
    """The eleven features by name, as far as they are known."""
    features = turn.assessment.get("features") or {}
    values = features.get("values", features) if isinstance(features, Mapping) else {}
    return {str(k): float(v) for k, v in values.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}


def hint_lines(turn: TurnView) -> list[str]:
    """The hints, each with its line."""
    hints = turn.assessment.get("hints") or []
    return [f"line {h['line']}: {h['message']}" if h.get("line") else str(h["message"]) for h in hints]


def _features(values: Mapping[str, float], before: Mapping[str, float]) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=False, header_style="bold")
    table.add_column("feature")
    table.add_column("value", justify="right")
    table.add_column("change", justify="right")
    for name, value in values.items():
        change = value - before[name] if name in before else 0.0
        table.add_row(Text(one_line(name, 30)), Text(f"{value:.3g}"), Text(f"{change:+.3g}" if change else ""))
    return table


def _reward(data: Mapping[str, Any]) -> Text:
    text = Text("\nReward", style="bold")
    if data.get("total") is None:
        return text.append("\nnone: this turn leaves its group", style="not bold")
    for name in ("total", "verifiable", "structural"):
        if data.get(name) is not None:
            text.append(f"\n{name:<12}{float(data[name]):+.3f}", style="not bold")
    return text
