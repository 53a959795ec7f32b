"""The verifiable reward: what compiler, tests and clock say about a candidate, as one number with its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.cuda.work import Work
from cudaperf_agent.reward.presets import RewardPreset

Outcome = Literal["uncompiled", "wrong", "correct"]

UNCOMPILED = frozenset({Status.NO_CODE, Status.COMPILE_ERROR, Status.CHEAT})
WRONG = frozenset({Status.WRONG, Status.MEMORY_ERROR, Status.LAUNCH_ERROR, Status.CRASH, Status.TIMEOUT})
LEAVES_GROUP = frozenset({Status.UNSUPPORTED, Status.UNSTABLE})
"""Nothing can be said about these: they get no reward and leave their group."""


@dataclass(frozen=True, slots=True)
class Verifiable:
    """R_ver with its parts.

    Attributes:
        value: The reward.
        outcome: What kind of candidate it is.
        pass_rate: Share of cases passed; 1 if correct.
        speedup: S; 1 where nothing was timed or the candidate is not correct.
        baseline: Whose time S is taken over, ``""`` if nothing was timed.
        cv: Coefficient of variation that was charged for.
        clipped: ``low`` or ``high`` if log2 S, or the loss for work, lies at or beyond the clip, else ``""``.
        excess: Work beyond what is ordinary that was charged for, 1 if none was.
        flags: Plain remarks.
    """

    value: float
    outcome: Outcome
    pass_rate: float = 0.0
    speedup: float = 1.0
    baseline: str = ""
    cv: float = 0.0
    clipped: str = ""
    flags: tuple[str, ...] = ()
    excess: float = 1.0


def verifiable_reward(verdict: Verdict, preset: RewardPreset) -> Verifiable | None:
    """R_ver of one verdict; `None` for a status that leaves the group.

    A speedup that is zero, negative or not finite cannot come from a clock; it is taken as the low clip and flagged.
    """
    if verdict.status in LEAVES_GROUP:
        return None
    if verdict.status in UNCOMPILED:
        return Verifiable(preset.uncompiled, "uncompiled")
    if verdict.status in WRONG:
        rate = min(max(verdict.pass_rate, 0.0), 1.0)
        return Verifiable(preset.wrong_base - preset.wrong_slope * (1.0 - rate), "wrong", pass_rate=rate)
    return _correct(verdict, preset)


def _correct(verdict: Verdict, preset: RewardPreset) -> Verifiable:
    speedup, baseline, flags = 1.0, "", []
    cv = 0.0
    if not verdict.measured:
        return _untimed(verdict, preset)
    names = (*preset.baselines, *preset.fallbacks)
    found = next((s for name in names for s in verdict.speedups if s.baseline == name), None)
    if found is None:
        flags.append("timed without a baseline: S = 1")
    else:
        speedup, baseline = found.value, found.baseline
        if baseline in preset.fallbacks:
            flags.append(f"no {preset.baselines[0]} baseline: S is over {baseline}")
    timing = verdict.timing("device") or verdict.timing("end_to_end")
    cv = min(max(timing.cv, 0.0), preset.cv_cap) if timing is not None else 0.0
    if math.isfinite(speedup) and speedup > 0:
        logarithm = math.log2(speedup)
    else:
        logarithm = preset.speed_low
        flags.append(f"a speedup of {speedup} is not possible")
    if not math.isfinite(cv):
        cv = preset.cv_cap if math.isfinite(preset.cv_cap) else 0.0
        flags.append("the variation of the times is not a number")
    clipped = "low" if logarithm <= preset.speed_low else "high" if logarithm >= preset.speed_high else ""
    bounded = min(max(logarithm, preset.speed_low), preset.speed_high)
    value = preset.speed_weight * bounded - preset.cv_weight * cv
    return Verifiable(value, "correct", 1.0, speedup, baseline, cv, clipped, tuple(flags))


def _untimed(verdict: Verdict, preset: RewardPreset) -> Verifiable:
    """S = 1, less what is charged for work that plain CUDA does not do."""
    work = Work.of(verdict)
    if work is None or work.excess <= 1.0 or not preset.work_weight:
        return Verifiable(0.0, "correct", 1.0)
    loss = preset.work_weight * math.log2(work.excess)
    clipped = "low" if -loss <= preset.speed_low else ""
    flag = f"not timed: charged for work, {work.excess:.3g} times what is ordinary"
    value = max(-loss, preset.speed_low)
    return Verifiable(value, "correct", 1.0, clipped=clipped, excess=work.excess, flags=(flag,))
