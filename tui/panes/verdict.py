"""How a turn was judged: compiler messages, the failing case, what the checker found; and the places to jump to."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cudaperf_agent.cuda.verdict import FailedCase, Verdict
from tui.run_view import BACKENDS, TurnView
from tui.safe import one_line, shown

_STYLES = {"correct": "bold green", "running": "bold", "declined": "bold yellow"}


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the candidate that a message is about."""

    line: int
    text: str


def places(turn: TurnView) -> list[Place]:
    """Lines worth jumping to: errors first, then the checker's findings, then warnings."""
    verdict = turn.verdict
    if verdict is None:
        return []
    errors = [d for d in verdict.diagnostics if d.severity in ("error", "fatal")]
    others = [d for d in verdict.diagnostics if d.severity not in ("error", "fatal")]
    found = [Place(d.line, f"{one_line(d.severity, 20)}: {d.message}") for d in errors if d.line]
    found += [Place(r.line, f"{one_line(r.kind, 40)}: {r.message}") for r in verdict.reports if r.line]
    found += [Place(d.line, f"{one_line(d.severity, 20)}: {d.message}") for d in others if d.line]
    return [Place(p.line, one_line(p.text, 300)) for p in found]


def verdict(turn: TurnView) -> RenderableType:
    """The whole judgement of a turn."""
    parts: list[RenderableType] = [_headline(turn)]
    for title, judged in (("", turn.verdict), ("Hidden cases", turn.hidden_verdict)):
        if judged is None:
            continue
        if title:
            parts.append(Text(f"\n{title}: {judged.status.value}, {judged.passed} of {judged.total}", style="bold"))
        told_below = judged.failure is not None and judged.failure.message in judged.message
        if judged.message and not told_below and (title or not turn.proposal.get("declined")):
            parts.append(Text(shown(judged.message)))
        if judged.failure is not None:
            parts += [Text(), _failure(judged.failure)]
        parts += _messages(judged)
    return Group(*parts)


def _headline(turn: TurnView) -> Text:
    text = Text()
    text.append(f"{turn.glyph} {turn.status.replace('_', ' ')}", style=_STYLES.get(turn.status, "bold red"))
    judged = turn.verdict
    if turn.proposal.get("declined"):
        text.append("\n" + shown(str(turn.proposal["declined"])))
    elif judged is not None and judged.total:
        text.append(f"   {judged.passed} of {judged.total} visible cases", style="dim")
        if judged.correct:
            error = f"worst error {judged.worst_error:.2g} of what is allowed" if judged.worst_error else "exact"
            text.append(f", {error}", style="dim")
    if judged is not None and judged.backend:
        text.append(f"\nrun on: {one_line(judged.device or BACKENDS.get(judged.backend, judged.backend))}", style="dim")
    return text


def _failure(failure: FailedCase) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    rows = [("failing case", failure.name), ("what happened", failure.message)]
    if failure.output:
        where = f"{failure.output}[{failure.index}]" if failure.index is not None else failure.output
        rows += [("where", where), ("expected", failure.expected), ("got", failure.got)]
    if failure.error is not None:
        allowed = f" (allowed {failure.allowed:.3g})" if failure.allowed is not None else ""
        rows.append(("error", f"{failure.error:.3g}{allowed}"))
    rows += [(f"input {name}", value) for name, value in failure.inputs.items()]
    for name, value in rows:
        table.add_row(Text(one_line(name, 40)), Text(shown(value)))
    return table


def _messages(judged: Verdict) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if judged.diagnostics:
        parts.append(Text("\nCompiler", style="bold"))
        for d in judged.diagnostics:
            at = f"line {d.line}: " if d.line else ""
            parts.append(Text(f"{at}{one_line(d.severity, 20)}: {shown(d.message)}"))
    if judged.reports:
        parts.append(Text("\nMemory and race checker", style="bold"))
        for r in judged.reports:
            at = f"line {r.line}: " if r.line else ""
            times = f" (seen {r.count} times)" if r.count > 1 else ""
            parts.append(Text(f"{at}{one_line(r.kind, 40)}: {shown(r.message)}{times}"))
    return parts
