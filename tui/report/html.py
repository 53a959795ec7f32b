"""One self-contained HTML page with the story of a run: no script, no font, no request to anywhere."""

from __future__ import annotations

import difflib
from datetime import UTC, datetime
from html import escape

from cudaperf_agent import __version__
from cudaperf_agent.cuda.verdict import Verdict
from tui.numbers import seconds, speedup
from tui.panes.assessment import feature_values, hint_lines
from tui.panes.code import no_code
from tui.panes.times import profile_lines
from tui.report.pictures import roofline, speedups
from tui.run_view import BACKENDS, RunView, TurnView
from tui.safe import ShownLimits, printable, shown

_LIMITS = ShownLimits(line=2000, lines=6000)

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f1c; --soft: #5a635c; --paper: #fbfcf9; --card: #f1f4ec; --line: #d5dccb;
  --good: #3f6600; --bad: #b3261e; --mark: #1f5fa8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6e3; --soft: #a0a8a1; --paper: #121413; --card: #1a1d1b;
  --line: #333a35; --good: #8fd400; --bad: #ff8a80; --mark: #7db8f5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: .2rem 0; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; } .soft { color: var(--soft); } .good { color: var(--good); }
.bad { color: var(--bad); } section { border-top: 1px solid var(--line); padding-top: .2rem; }
pre { background: var(--card); padding: .6rem; overflow-x: auto; font: 13px/1.45 ui-monospace, monospace;
  margin: .3rem 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; margin: .3rem 0; }
td, th { text-align: left; padding: .15rem .8rem .15rem 0; vertical-align: top; overflow-wrap: break-word; }
th { font-weight: 600; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; color: var(--mark); }
svg { max-width: 100%; height: auto; display: block; } svg text { fill: var(--ink); }
.add { color: var(--good); } .del { color: var(--bad); } .verdict { font-weight: 600; }
"""

MARK = '<meta name="generator" content="cudaperf report">'
"""By which a report is known again."""

_PAGE = (
    """<!doctype html>
<html lang="en"><head><meta charset="utf-8">"""
    + MARK
    + """<title>{title} – cudaperf</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,"><style>{style}</style></head><body>
{body}
</body></html>
"""
)


def html_report(view: RunView) -> str:
    """The page. Everything a model wrote is escaped and stripped of control characters."""
    parts = [_head(view), _pictures(view)]
    for number in sorted(view.trajectories):
        trajectory = view.trajectories[number]
        if view.expected_trajectories > 1:
            reason = f": {_text(trajectory.reason)}" if trajectory.reason else ""
            parts.append(f"<h2>Trajectory {number + 1} <span class=soft>{_text(trajectory.status)}{reason}</span></h2>")
        for turn_number in sorted(trajectory.turns):
            earlier = trajectory.turns.get(turn_number - 1)
            parts.append(_turn(view, trajectory.turns[turn_number], earlier))
    parts.append(_environment(view))
    return _PAGE.format(title=_text(view.task), style=_STYLE, body="\n".join(parts))


def _head(view: RunView) -> str:
    when = datetime.fromtimestamp(view.started, UTC).strftime("%Y-%m-%d %H:%M UTC") if view.started else ""
    colour = "good" if view.status == "correct" else "bad" if view.status == "failed" else "soft"
    lines = [
        f"<h1>{_text(view.task)}</h1>",
        f"<p class=soft>{_text(view.path)} · {_text(view.policy)} on {_where(view)} · {when} · "
        f"run {_text(view.id)}</p>",
        f"<p class=verdict><span class={colour}>{_text(view.status)}</span> {_text(view.reason)}</p>",
    ]
    best = view.best_turn
    if best is not None:
        lines.append(f"<p>The result is that of turn {best.number + 1}. {_told(view)}</p>")
    lines += [f"<p class=soft>{_text(str(n.get('message', '')))}</p>" for n in view.notices]
    return "\n".join(lines)


def _told(view: RunView) -> str:
    verdict = view.verdict
    if verdict is None:
        return ""
    text = f"It passed {verdict.passed} of {verdict.total} hidden cases on {_where(view)}. "
    if not verdict.measured:
        return text + "Nothing was timed: there was no GPU."
    return text + "; ".join(_text(speedup(s)) for s in verdict.speedups)


def _pictures(view: RunView) -> str:
    found = [p for p in (speedups(view), roofline(view)) if p]
    return "".join(f"<div class=scroll>{picture}</div>" for picture in found)


def _turn(view: RunView, turn: TurnView, earlier: TurnView | None) -> str:
    best = " ★" if view.best == (turn.trajectory, turn.number) else ""
    colour = "good" if turn.status == "correct" else "bad"
    parts = [
        f"<section><h2>Turn {turn.number + 1}{best} "
        f"<span class={colour}>{_text(turn.glyph)} {_text(turn.status.replace('_', ' '))}</span></h2>",
        f"<p class=soft>{_text(turn.proposal.get('strategy') or turn.proposal.get('model') or '')}</p>",
    ]
    if turn.verdict is not None:
        parts.append(_verdict(turn.verdict))
    if turn.hidden_verdict is not None:
        hidden = turn.hidden_verdict
        parts.append(f"<p>Hidden cases: {_text(hidden.status.value)}, {hidden.passed} of {hidden.total}.</p>")
    parts.append(_assessment(turn, earlier))
    parts.append(_folded("Source", _pre(turn.source)) if turn.source else f"<p class=soft>{_text(no_code(turn))}</p>")
    if turn.source and earlier is not None and earlier.source:
        parts.append(_folded(f"Difference to turn {earlier.number + 1}", _difference(earlier.source, turn.source)))
    if turn.messages:
        said = "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in turn.messages)
        parts.append(_folded("Prompt", _pre(said)))
    if turn.feedback:
        parts.append(_folded("Feedback to the next turn", _pre(turn.feedback)))
    return "\n".join([*parts, "</section>"])


def _verdict(verdict: Verdict) -> str:
    parts = [f"<p>{_text(verdict.message)}</p>"] if verdict.message else []
    if verdict.failure is not None:
        f = verdict.failure
        where = f"{f.output}[{f.index}]" if f.output else ""
        rows = [("failing case", f.name), ("where", where), ("expected", f.expected), ("got", f.got)]
        rows += [(f"input {name}", value) for name, value in f.inputs.items()]
        parts.append(_table([], [[k, v] for k, v in rows if v]))
    if verdict.diagnostics or verdict.reports:
        told = [(d.line, d.severity, d.message) for d in verdict.diagnostics]
        told += [(r.line, r.kind, r.message) for r in verdict.reports]
        parts.append(_table(["line", "kind", "message"], [[str(line or ""), k, m] for line, k, m in told]))
    if verdict.timings:
        rows_ = [[t.kind, t.case, seconds(t.median), f"{t.cv:.1%}", seconds(t.cold)] for t in verdict.timings]
        parts.append(_table(["time", "case", "median", "cv", "first call"], rows_))
        parts += [f"<p>{_text(speedup(s))}</p>" for s in verdict.speedups]
        parts.append(_table([], [list(pair) for pair in profile_lines(verdict.profile)]))
    return "\n".join(parts)


def _assessment(turn: TurnView, earlier: TurnView | None) -> str:
    if not turn.assessment:
        return ""
    values, before = feature_values(turn), feature_values(earlier) if earlier else {}
    rows = [
        [name, f"{value:.3g}", f"{value - before[name]:+.3g}" if before.get(name, value) != value else ""]
        for name, value in values.items()
    ]
    table = _table(["feature", "value", "change"], rows) if rows else ""
    hints = "".join(f"<li>{_text(hint)}</li>" for hint in hint_lines(turn))
    reward = f"<p class=soft>Reward {turn.reward:+.3f}</p>" if turn.reward is not None else ""
    return (f"<ul>{hints}</ul>" if hints else "") + reward + (_folded("Structural features", table) if table else "")


def _environment(view: RunView) -> str:
    verdict = view.verdict or next((t.verdict for t in view.all_turns() if t.verdict), None)
    rows = [["cudaperf", __version__]]
    if verdict is not None:
        rows += [["backend", verdict.backend], ["device", verdict.device]]
        rows += [[name, value] for name, value in verdict.versions.items()]
        rows += [[f"clock: {name}", str(value)] for name, value in verdict.clocks.items()]
        rows += [[f"SHA-256 of {name}", value] for name, value in verdict.digests.items()]
    return f"<section><h2>Environment</h2>{_table([], [r for r in rows if r[1]])}</section>"


def _difference(before: str, after: str) -> str:
    lines = difflib.unified_diff(
        shown(before, _LIMITS).split("\n"), shown(after, _LIMITS).split("\n"), lineterm="", n=3
    )
    marked = []
    for line in list(lines)[2:]:
        kind = {"+": "add", "-": "del"}.get(line[:1])
        marked.append(f"<span class={kind}>{escape(line)}</span>" if kind else escape(line))
    return f"<pre>{chr(10).join(marked) or 'the same'}</pre>"


def _pre(text: str) -> str:
    return f"<pre>{escape(shown(text, _LIMITS))}</pre>"


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def _table(head: list[str], rows: list[list[str]]) -> str:
    top = f"<tr>{''.join(f'<th>{escape(h)}</th>' for h in head)}</tr>" if head else ""
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class=scroll><table>{top}{body}</table></div>"


def _where(view: RunView) -> str:
    return BACKENDS.get(view.backend) or _text(view.backend)


def _text(text: str) -> str:
    return escape(printable(text[:20_000]))
