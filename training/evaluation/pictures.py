"""Pictures of a report as inline SVG; every number in them is also in a table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from training.evaluation.budget import BudgetRow

_WIDTH, _HEIGHT = 420, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 26, 34


def curve_picture(curve: Sequence[float]) -> str:
    """pass@k by k."""
    points = [(float(k), share) for k, share in enumerate(curve, 1)]
    return _plot("pass@k by k", "k trajectories", [("", points)])


def budget_picture(rows: Sequence[BudgetRow]) -> str:
    """Share of tasks solved, by attempts spent on each, of the two ways to spend them."""
    turns = [(float(r.budget), r.pass_turns) for r in rows]
    samples = [(float(r.budget), r.pass_samples) for r in rows]
    name = f"{rows[0].turns} turns each"
    return _plot("Tasks solved by attempts spent", "attempts a task", [(name, turns), ("single samples", samples)])


def _plot(title: str, below: str, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    most = max(x for _, points in lines for x, _ in points)
    least = min(x for _, points in lines for x, _ in points)
    span = max(most - least, 1e-9)

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - least) / span

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value)

    parts = [f'<text x="4" y="14">{escape(title)}</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(share):.1f}" y2="{y(share):.1f}" stroke="gray" '
            f'stroke-opacity="0.3"/><text x="{_LEFT - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.0%}</text>'
        )
    for value in dict.fromkeys((least, most)):
        parts.append(f'<text x="{x(value):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 4}" text-anchor="middle">{escape(below)}</text>')
    for number, (name, points) in enumerate(lines):
        dash = ' stroke-dasharray="6 4"' if number else ""
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="currentColor"/>' for a, b in points[:60]]
        if name:
            at = _HEIGHT - _BOTTOM - 22 + 16 * number
            parts.append(
                f'<line x1="{_WIDTH - 150}" x2="{_WIDTH - 126}" y1="{at - 4}" y2="{at - 4}" stroke="currentColor" '
                f'stroke-width="2"{dash}/><text x="{_WIDTH - 120}" y="{at}">{escape(name)}</text>'
            )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="520" role="img" aria-label="{escape(title)}" '
        f'font-family="system-ui, sans-serif" font-size="12">{"".join(parts)}</svg>'
    )
