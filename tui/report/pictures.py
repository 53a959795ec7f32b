"""Pictures of a report as inline SVG: speedup by turn with its interval, and the roofline where a profile holds one."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import expm1, log2, log10

from tui.panes.assessment import feature_values
from tui.run_view import RunView
from tui.safe import one_line

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
    against = escape(one_line(found[0][1].baseline, 30))
    title = f'<text x="4" y="12">Speedup against {against}, 95 % interval, log axis</text>'
    return _svg(_WIDTH, height, "Speedup by turn", title + one + "".join(rows))


@dataclass(frozen=True, slots=True)
class Roof:
    """A candidate under its ceilings.

    Attributes:
        intensity: FLOP per byte.
        rate: FLOP/s reached.
        bandwidth: Bytes/s that memory allows.
        peak: FLOP/s that the arithmetic allows; `None` where it is not known.
        notes: What the numbers are, a line each.
    """

    intensity: float
    rate: float
    bandwidth: float
    peak: float | None
    notes: tuple[str, ...]


def roofline(view: RunView) -> str:
    """The chosen attempt under the machine's ceilings; empty unless it was timed and its profile holds the numbers."""
    roof = _roof(view)
    return _draw(roof) if roof is not None else ""


def _roof(view: RunView) -> Roof | None:
    """Measured numbers where the profile holds all four, else bytes/s against what was measured, or the datasheet's.

    Reads ``flop_per_byte``, ``flop_per_second``, ``peak_bytes_per_second`` and ``peak_flop_per_second``; else
    ``bytes_per_second`` and ``peak_bytes_per_second`` or ``share_of_datasheet_bandwidth``, and of the features ``ai``,
    which is log1p(FLOP/byte).
    """
    best = view.best_turn
    verdict = next((v for v in (view.verdict, best and best.verdict) if v and v.measured), None)
    profile = verdict.profile if verdict else {}
    measured = [_number(profile.get(n)) for n in ("flop_per_byte", "flop_per_second", "peak_bytes_per_second")]
    peak = _number(profile.get("peak_flop_per_second"))
    if peak and all(measured):
        intensity, rate, bandwidth = measured
        notes = (
            f"{intensity:.3g} FLOP/byte, {rate / 1e12:.3g} of {peak / 1e12:.3g} TFLOP/s",
            f"ceilings as measured; copying reaches {bandwidth / 1e12:.3g} TB/s",
        )
        return Roof(intensity, rate, bandwidth, peak, notes)
    moved, share = _number(profile.get("bytes_per_second")), _number(profile.get("share_of_datasheet_bandwidth"))
    intensity = expm1(_number(feature_values(best).get("ai"))) if best else 0.0
    copying = _number(profile.get("peak_bytes_per_second"))
    bandwidth = copying or (moved / share if share else 0.0)
    if not (moved and bandwidth and intensity):
        return None
    source = "that copying reaches" if copying else "in the datasheet"
    notes = (
        f"{moved / 1e12:.3g} of the {bandwidth / 1e12:.3g} TB/s {source}",
        f"{intensity:.3g} FLOP/byte by the source; arithmetic ceiling unknown",
    )
    return Roof(intensity, intensity * moved, bandwidth, None, notes)


def _number(value: object) -> float:
    """A positive number, or 0."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")
    return float(value) if known else 0.0  # type: ignore[arg-type]


def _draw(roof: Roof) -> str:
    ridge = roof.peak / roof.bandwidth if roof.peak else roof.intensity * 10
    top_rate = roof.peak or roof.bandwidth * ridge
    left, right = log10(min(roof.intensity, ridge)) - 1, log10(max(roof.intensity, ridge)) + 1
    bottom, top = log10(min(roof.rate, roof.bandwidth * 10**left)) - 0.3, log10(top_rate) + 0.3

    def x(v: float) -> float:
        return 20 + 380 * (log10(v) - left) / (right - left)

    def y(v: float) -> float:
        return 250 - 220 * (log10(v) - bottom) / (top - bottom)

    corners = [
        (10**left, roof.bandwidth * 10**left),
        (ridge, top_rate),
        *([(10**right, roof.peak)] if roof.peak else []),
    ]
    line = " ".join(f"{x(i):.1f},{y(r):.1f}" for i, r in corners)
    share = roof.rate / min(top_rate, roof.intensity * roof.bandwidth)
    at = f'x="{min(x(roof.intensity) + 10, 290):.1f}" y="{y(roof.rate) + 15:.1f}"'
    body = (
        '<text x="4" y="12">Roofline</text>'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{x(roof.intensity):.1f}" cy="{y(roof.rate):.1f}" r="6" fill="currentColor"/>'
        f"<text {at}>{share:.0%} of the limit</text>"
    )
    body += "".join(f'<text x="4" y="{272 + 18 * i}">{escape(note)}</text>' for i, note in enumerate(roof.notes))
    return _svg(_WIDTH, 296, "Roofline", body)


def _svg(width: int, height: int, title: str, body: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{_SHOWN_WIDTH}" role="img" aria-label="{title}" '
        f'font-family="system-ui, sans-serif" font-size="13">{body}</svg>'
    )
