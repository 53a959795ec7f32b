"""Pictures of a report as inline SVG: speedup by turn with its interval, and the roofline where a profile holds one."""

from __future__ import annotations

from html import escape
from math import log2, log10

from tui.run_view import RunView

_WIDTH, _ROW, _LEFT, _RIGHT = 420, 26, 66, 54
"""In units of the picture, of which a letter takes 13: narrow, so that it can be read on a phone."""
_SHOWN_WIDTH = 560


def speedups(view: RunView) -> str:
    """One row a measured turn on a log axis; empty where nothing was measured."""
    turns = [(t, t.speedup) for t in view.all_turns() if t.speedup is not None]
    found = [(t, s) for t, s in turns if s is not None]
    if not found:
        return ""
    low, high = min(1.0, *(s.low for _, s in found)), max(1.0, *(s.high for _, s in found))
    span = max(log2(high / low), 1e-9)

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * log2(max(value, 1e-9) / low) / span

    rows = []
    for i, (turn, s) in enumerate(found):
        y = 30 + i * _ROW

        rows.append(
            f'<text x="4" y="{y + 5}">turn {view.place(turn)}</text>'
            f'<line x1="{x(s.low):.1f}" x2="{x(s.high):.1f}" y1="{y}" y2="{y}" stroke="currentColor" stroke-width="2"/>'
            f'<circle cx="{x(s.value):.1f}" cy="{y}" r="5" fill="currentColor"/>'
            f'<text x="{_WIDTH - _RIGHT + 8}" y="{y + 5}">{s.value:.3g}×</text>'
        )
    height = 40 + len(found) * _ROW
    one = f'<line x1="{x(1):.1f}" x2="{x(1):.1f}" y1="16" y2="{height - 10}" stroke="gray" stroke-dasharray="3 3"/>'
    title = f'<text x="4" y="12">Speedup against {escape(found[0][1].baseline)}, 95 % interval, log axis</text>'
    return _svg(_WIDTH, height, "Speedup by turn", title + one + "".join(rows))


def roofline(view: RunView) -> str:
    """The chosen attempt under the machine's measured ceilings; empty unless its profile holds all four numbers.

    Reads ``flop_per_byte``, ``flop_per_second``, ``peak_bytes_per_second`` and ``peak_flop_per_second``.
    """
    best = view.best_turn
    verdict = view.verdict or (best.verdict if best else None)
    profile = verdict.profile if verdict else {}
    names = ("flop_per_byte", "flop_per_second", "peak_bytes_per_second", "peak_flop_per_second")
    try:
        intensity, rate, bandwidth, peak = (float(profile[n]) for n in names)
    except (KeyError, TypeError, ValueError):
        return ""
    if min(intensity, rate, bandwidth, peak) <= 0:
        return ""
    left, right = log10(min(intensity, peak / bandwidth)) - 1, log10(max(intensity, peak / bandwidth)) + 1
    bottom, top = log10(min(rate, bandwidth * 10**left)) - 0.3, log10(peak) + 0.3

    def x(v: float) -> float:
        return 20 + 380 * (log10(v) - left) / (right - left)

    def y(v: float) -> float:
        return 250 - 220 * (log10(v) - bottom) / (top - bottom)

    ridge = peak / bandwidth
    share = rate / min(peak, intensity * bandwidth)
    body = (
        '<text x="4" y="12">Roofline (measured ceilings)</text>'
        f'<polyline points="{x(10**left):.1f},{y(bandwidth * 10**left):.1f} {x(ridge):.1f},{y(peak):.1f} '
        f'{x(10**right):.1f},{y(peak):.1f}" fill="none" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{x(intensity):.1f}" cy="{y(rate):.1f}" r="6" fill="currentColor"/>'
        f'<text x="{min(x(intensity) + 10, 300):.1f}" y="{y(rate) + 5:.1f}">{share:.0%} of the limit</text>'
        f'<text x="4" y="272">{intensity:.3g} FLOP/byte, {rate / 1e12:.3g} of {peak / 1e12:.3g} TFLOP/s</text>'
        f'<text x="4" y="290">copying reaches {bandwidth / 1e12:.3g} TB/s</text>'
    )
    return _svg(_WIDTH, 296, "Roofline", body)


def _svg(width: int, height: int, title: str, body: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{_SHOWN_WIDTH}" role="img" aria-label="{title}" '
        f'font-family="system-ui, sans-serif" font-size="13">{body}</svg>'
    )
