"""What a policy reads before its next turn: the verdict on its last candidate, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cudaperf_agent.cuda.verdict import Diagnostic, FailedCase, Report, Status, Verdict
from cudaperf_agent.cuda.work import Work

# Order of the eleven structural features, as the paper gives them.
FEATURE_ORDER = ("coal", "ai", "occ", "div", "xfer", "atomics", "sync", "kernels", "tpb", "gmem", "ops")


@dataclass(frozen=True, slots=True)
class FeedbackLimits:
    """How much of each kind of evidence goes into a feedback.

    Attributes:
        diagnostics: Compiler messages; errors come before warnings.
        reports: Findings of the memory and race checker.
        hints: Hints on the structure.
        message: Characters of one message.
        value: Characters of one input of the failed case.
    """

    diagnostics: int = 8
    reports: int = 6
    hints: int = 5
    message: int = 300
    value: int = 200


_OPENING = {
    Status.NO_CODE: "Your answer held no candidate",
    Status.COMPILE_ERROR: "Your candidate does not compile",
    Status.LAUNCH_ERROR: "A kernel could not be launched",
    Status.CRASH: "Your candidate crashed",
    Status.TIMEOUT: "Your candidate ran into the time limit",
    Status.WRONG: "Your candidate compiles, but its output is wrong",
    Status.MEMORY_ERROR: "Your candidate has a memory or synchronisation error",
    Status.UNSTABLE: "Your candidate's runs disagree with each other",
    Status.UNSUPPORTED: "Your candidate uses something that cannot be checked here",
    Status.CHEAT: "Your candidate was rejected: it does not do the work on the GPU as asked",
    Status.CORRECT: "Your candidate is correct",
}


def build_feedback(
    verdict: Verdict,
    *,
    features: Mapping[str, Any] | None = None,
    hints: Sequence[Mapping[str, Any]] = (),
    limits: FeedbackLimits | None = None,
) -> str:
    """The feedback on one candidate.

    Args:
        verdict: What verification found; of its failed case only visible ones may be shown to a policy.
        features: Structural feature values by name, in their own units; `None` where there are none.
        hints: What low feature values mean: ``message`` and, where one line causes it, ``line``.
        limits: How much of each goes in.

    Returns:
        Plain text; the most important comes first, so that cutting at the end loses least.
    """
    limits = limits or FeedbackLimits()
    sections = [
        _status(verdict, limits),
        _diagnostics(verdict.diagnostics, limits) if not verdict.correct else [],
        _failure(verdict.failure, limits) if verdict.failure else [],
        _reports(verdict.reports, limits),
        _speed(verdict),
        _work(verdict),
        _structure(features, hints, limits),
        [_request(verdict)],
    ]
    return "\n".join(line for section in sections for line in section) + "\n"


def _cut(text: str, length: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def _at(line: int | None) -> str:
    return f"line {line}: " if line else ""


def _status(verdict: Verdict, limits: FeedbackLimits) -> list[str]:
    opening = _OPENING[verdict.status]
    if verdict.total:
        opening += f" ({verdict.passed} of {verdict.total} test cases pass)"
    return [f"{opening}: {_cut(verdict.message, limits.message)}" if verdict.message else f"{opening}."]


def _diagnostics(diagnostics: tuple[Diagnostic, ...], limits: FeedbackLimits) -> list[str]:
    ordered = sorted(diagnostics, key=lambda d: "error" not in d.severity)
    lines = [f"- {_at(d.line)}{d.severity}: {_cut(d.message, limits.message)}" for d in ordered[: limits.diagnostics]]
    if len(ordered) > limits.diagnostics:
        lines.append(f"- and {len(ordered) - limits.diagnostics} more")
    return ["Compiler messages:", *lines] if lines else []


def _failure(failure: FailedCase, limits: FeedbackLimits) -> list[str]:
    lines = [f"Failed test case {failure.name}: {_cut(failure.message, limits.message)}"]
    lines += [f"- input {name} = {_cut(value, limits.value)}" for name, value in failure.inputs.items()]
    if failure.output:
        place = failure.output if failure.index is None else f"{failure.output}[{failure.index}]"
        lines.append(
            f"- {place}: expected {_cut(failure.expected, limits.value)}, got {_cut(failure.got, limits.value)}"
        )
    if failure.error is not None and failure.allowed is not None:
        lines.append(f"- absolute error {failure.error:.3g}, allowed {failure.allowed:.3g}")
    return lines


def _reports(reports: tuple[Report, ...], limits: FeedbackLimits) -> list[str]:
    lines = [
        f"- {_at(r.line)}{r.kind}: {_cut(r.message, limits.message)}"
        + (f" (seen {r.count} times)" if r.count > 1 else "")
        for r in reports[: limits.reports]
    ]
    if len(reports) > limits.reports:
        lines.append(f"- and {len(reports) - limits.reports} more")
    return ["Memory and race checker:", *lines] if lines else []


def _speed(verdict: Verdict) -> list[str]:
    if not verdict.correct:
        return []
    if not verdict.measured:
        return ["Speed: not measured, there is no GPU here."]
    lines = [
        f"- {s.value:.2f} times as fast as {s.baseline} (95 % interval {s.low:.2f} to {s.high:.2f})"
        for s in verdict.speedups
    ]
    lines += [
        f"- {t.kind} time of {t.case}: {_seconds(t.median)}, spread {100 * t.cv:.0f} %"
        + (f"; {t.note}" if t.note else "")
        for t in verdict.timings
    ]
    return ["Measured speed:", *lines] if lines else []


def _work(verdict: Verdict) -> list[str]:
    work = Work.of(verdict)
    lines = [f"- {sentence}" for sentence in work.sentences()] if work is not None else []
    return ["Work, counted on small inputs:", *lines] if lines else []


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _structure(
    features: Mapping[str, Any] | None, hints: Sequence[Mapping[str, Any]], limits: FeedbackLimits
) -> list[str]:
    values = {name: (features or {}).get(name) for name in FEATURE_ORDER}
    known = [f"{name}={value:.3g}" for name, value in values.items() if isinstance(value, int | float)]
    lines = ["Structure: " + ", ".join(known)] if known else []
    for hint in hints[: limits.hints]:
        lines.append(f"- {_at(hint.get('line'))}{_cut(str(hint.get('message', '')), limits.message)}")
    return lines


def _request(verdict: Verdict) -> str:
    if verdict.correct and verdict.measured:
        return "Make it faster and keep it correct. Answer with the whole file again."
    if verdict.correct:
        return "Improve its memory access and launch structure and keep it correct. Answer with the whole file again."
    return "Mend this. Answer with the whole file again."
