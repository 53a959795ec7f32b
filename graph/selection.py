"""Which attempt is best: correct, then least time; where nothing is timed, least work beyond what is ordinary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.cuda.work import Work

K = TypeVar("K", bound="int | tuple[int, int]")


def ranked(verdicts: Mapping[K, Verdict]) -> list[K]:
    """The keys of the correct verdicts, best first; among equals, as untimed ones of ordinary work are, the least key.

    Only times of one kind are compared: ``device`` if every timed candidate has it, else ``end_to_end`` if every one
    has that, else each its own. Candidates without times come after those with.
    """
    correct = {key: verdict for key, verdict in verdicts.items() if verdict.correct}
    timed = [v for v in correct.values() if seconds(v) is not None]
    kind = next((k for k in ("device", "end_to_end") if timed and all(_median(v, k) for v in timed)), None)

    def order(key: K) -> tuple[float, float, K]:
        taken = _median(correct[key], kind) if kind else seconds(correct[key])
        return (math.inf, excess(correct[key]), key) if taken is None else (taken, 1.0, key)

    return sorted(correct, key=order)


def excess(verdict: Verdict) -> float:
    """By how much a candidate's work is beyond what is ordinary, 1 where that is not known."""
    work = Work.of(verdict)
    return work.excess if work is not None else 1.0


def seconds(verdict: Verdict) -> float | None:
    """The time that counts: ``device``, else ``end_to_end``; the geometric mean where several cases were timed."""
    return _median(verdict, "device") or _median(verdict, "end_to_end")


def _median(verdict: Verdict, kind: str) -> float | None:
    medians = [t.median for t in verdict.timings if t.kind == kind and t.samples]
    if not verdict.measured or not medians or min(medians) <= 0:
        return None
    return math.exp(sum(map(math.log, medians)) / len(medians))
