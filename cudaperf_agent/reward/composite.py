"""The composite reward R = R_ver + R_str, with its parts, and what is logged about a group of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.features.model import Features
from cudaperf_agent.reward.presets import ROBUST, Gate, RewardPreset
from cudaperf_agent.reward.verifiable import Outcome, Verifiable, verifiable_reward

MOST_CLIPPED = 0.20
"""Above this share of candidates at one clip no claim about training is made."""
LEAST_SPREAD = 0.1
"""A group whose rewards spread by less teaches nothing."""


class Scorer(Protocol):
    """What is asked of a ranker."""

    def score(self, features: Features) -> float:
        """The standardised score of one candidate."""
        ...


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward of one candidate.

    Attributes:
        total: R.
        verifiable: R_ver with its parts.
        structural: R_str as added, 0 where the gate keeps it out or there is no ranker.
        score: The ranker's standardised score, less that of the plain CUDA where the preset says so; `None` if it was
            not asked or there is no plain CUDA.
        structural_clipped: ``low`` or ``high`` if the score lies at or beyond the clip, else ``""``.
        gated: Whether the gate kept the structural part out.
        preset: Name of the preset.
        flags: Plain remarks.
    """

    total: float
    verifiable: Verifiable
    structural: float = 0.0
    score: float | None = None
    gated: bool = False
    preset: str = ROBUST.name
    flags: tuple[str, ...] = ()
    structural_clipped: str = ""


@dataclass(frozen=True, slots=True)
class GroupShares:
    """What is logged about the rewards of one group.

    Attributes:
        count: Rewards in the group.
        left: Candidates that left the group.
        low, high: Shares of the candidates whose speed lies at the low and at the high clip.
        spread: Largest reward less smallest.
        claim: Whether the clips leave room for a claim about training.
        teaches: Whether the spread is large enough to learn from.
    """

    count: int
    left: int
    low: float
    high: float
    spread: float
    claim: bool
    teaches: bool


def score(
    verdict: Verdict,
    features: Features | None,
    ranker: Scorer | None,
    preset: RewardPreset = ROBUST,
    plain: Callable[[], Features | None] = lambda: None,
) -> Reward | None:
    """The reward of one candidate; `None` if it leaves its group (unsupported, unstable).

    Args:
        verdict: What is known of it.
        features: What it looks like; `None` if it was not looked at, then R_str = 0.
        ranker: s_ψ; `None` means R_str = 0.
        preset: The numbers.
        plain: Gives what the task's plain CUDA looks like, `None` if there is none; asked only if that matters.
    """
    verifiable = verifiable_reward(verdict, preset)
    if verifiable is None:
        return None
    flags = list(verifiable.flags)
    if ranker is None or features is None:
        return Reward(verifiable.value, verifiable, preset=preset.name, flags=tuple(flags))
    if not passes_gate(verifiable.outcome, preset.structural_gate):
        return Reward(verifiable.value, verifiable, gated=True, preset=preset.name, flags=tuple(flags))
    if features.missing:
        flags.append("features incomplete: " + ", ".join(features.missing))
    raw = ranker.score(features)
    if preset.structural_over_plain:
        base = plain()
        if base is None:
            flags.append("there is no plain CUDA to compare with: R_str = 0")
            return Reward(verifiable.value, verifiable, preset=preset.name, flags=tuple(flags))
        raw -= ranker.score(base)
    if not math.isfinite(raw):
        flags.append("the ranker's score is not a number: R_str = 0")
        raw = 0.0
    clip = preset.structural_clip
    structural = preset.structural_scale * min(max(raw, -clip), clip)
    clipped = "low" if raw <= -clip else "high" if raw >= clip else ""
    return Reward(verifiable.value + structural, verifiable, structural, raw, False, preset.name, tuple(flags), clipped)


def passes_gate(outcome: Outcome, gate: Gate) -> bool:
    """Whether the structural reward is added to a candidate of this outcome."""
    if gate == "always":
        return True
    return outcome == "correct" if gate == "correct" else outcome != "uncompiled"


def group_shares(rewards: Sequence[Reward | None]) -> GroupShares:
    """What is logged about a group: shares at the clips and spread."""
    present = [r for r in rewards if r is not None]
    count = len(present)
    low = sum(r.verifiable.clipped == "low" for r in present) / count if count else 0.0
    high = sum(r.verifiable.clipped == "high" for r in present) / count if count else 0.0
    totals = [r.total for r in present]
    spread = max(totals) - min(totals) if totals else 0.0
    return GroupShares(
        count=count,
        left=len(rewards) - count,
        low=low,
        high=high,
        spread=spread,
        claim=max(low, high) <= MOST_CLIPPED,
        teaches=spread >= LEAST_SPREAD,
    )
