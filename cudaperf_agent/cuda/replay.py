"""A verdict again: the same source, task, cases and flags, and what came out differently."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cudaperf_agent.cuda.measure import baseline_name
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.cuda.workplace import VerifierConfig
from cudaperf_agent.errors import UsageError
from cudaperf_agent.tasks.model import Task


@dataclass(frozen=True, slots=True)
class Replay:
    """A verdict made again.

    Attributes:
        verdict: The new one.
        differences: One sentence for each thing that is not as it was; empty where the verdict stands.
    """

    verdict: Verdict
    differences: tuple[str, ...]


async def replay(
    record: Mapping[str, Any], task: Task, source: str, config: VerifierConfig | None = None, **tools: Any
) -> Replay:
    """Verify again what a verdict was about, on the same inputs.

    Args:
        record: `Verdict.to_dict()` of a verdict of `Verifier.test`.
        task: The task it was about.
        source: The candidate it was about.
        config: Numbers; the seed and the trust are the record's.
        tools: ``nvcc``, ``sandbox`` and ``gpu`` of `Verifier`.

    Raises:
        UsageError: The source or the task is another one.
    """
    digests = dict(record.get("digests", {}))
    if digests.get("source") != hashlib.sha256(source.encode()).hexdigest():
        raise UsageError("the source is not the one that the verdict is about", where="CANDIDATE")
    if digests.get("task") != task.digest:
        raise UsageError("the task is not the one that the verdict is about", where="--task")
    cases = record.get("profile", {}).get("cases", {})
    before = Verdict.from_dict(dict(record))
    seeded = replace(config or VerifierConfig(), seed=int(cases.get("seed", 0)), trust=before.trust)
    verifier = Verifier(seeded, **tools)
    try:
        again = await verifier.test(task, source, hidden=bool(cases.get("hidden", False)))
        if record.get("measured"):
            again = await verifier.measure(task, source, again)
    finally:
        await verifier.aclose()
    return Replay(again, tuple(_differences(before, again)))


def _differences(before: Verdict, after: Verdict) -> list[str]:
    found = []
    for name in ("status", "form", "passed", "total", "worst_error", "backend", "device", "trust"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            found.append(f"{name}: {old} before, {new} now")
    for kind, mine in (("digest", "digests"), ("version", "versions")):
        old_set, new_set = getattr(before, mine), getattr(after, mine)
        for key in sorted(old_set.keys() | new_set.keys()):
            if old_set.get(key) != new_set.get(key):
                found.append(f"{kind} of {key}: {old_set.get(key)} before, {new_set.get(key)} now")
    for old_speed in before.speedups:
        name = baseline_name(old_speed.baseline)
        new_speed = next((s for s in after.speedups if s.baseline == name), None)
        if new_speed is None or new_speed.high < old_speed.low or new_speed.low > old_speed.high:
            now = "none" if new_speed is None else f"{new_speed.value:.3g}"
            found.append(f"speedup over {old_speed.baseline}: {old_speed.value:.3g} before, {now} now")
    return found
