"""Which attempt is best: correct, then least time; where nothing is timed, the earliest correct one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from cudaperf_agent.cuda.verdict import Verdict

K = TypeVar("K", bound="int | tuple[int, int]")


def ranked(verdicts: Mapping[K, Verdict]) -> list[K]:
    """The keys of the correct verdicts, best first; among equals the least key.

    Only times of one kind are compared: ``device`` if every timed candidate has it, else ``end_to_end`` if every one
    has that, else each its own. Candidates without times come after those with.
    """
    correct = {key: verdict for key, verdict in verdicts.items() if verdict.correct}
    timed = [v for v in correct.values() if seconds(v) is not None]
    kind = next((k for k in ("device", "end_to_end") if timed and all(_median(v, k) for v in timed)), None)

    def order(key: K) -> tuple[float, K]:
        taken = _median(correct[key], kind) if kind else seconds(correct[key])
        return (math.inf if taken is None else taken, key)

    return sorted(correct, key=order)


def seconds(verdict: Verdict) -> float | None:
    """The time that counts: ``device``, else ``end_to_end``; the geometric mean where several cases were timed."""
    return _median(verdict, "device") or _median(verdict, "end_to_end")


def _median(verdict: Verdict, kind: str) -> float | None:
    medians = [t.median for t in verdict.timings if t.kind == kind and t.samples]
    if not verdict.measured or not medians or min(medians) <= 0:
        return None
    return math.exp(sum(map(math.log, medians)) / len(medians))
