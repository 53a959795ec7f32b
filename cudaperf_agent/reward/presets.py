"""The two reward presets as frozen configurations: `PAPER` as stated, `ROBUST` with its defects repaired (default)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cudaperf_agent.cuda.measure import C_END_TO_END, C_ONE_CORE, NAIVE
from cudaperf_agent.cuda.modules.timing import EAGER

Gate = Literal["always", "compiled", "correct"]
"""When the structural reward is added. The paper's sources are ambiguous about it."""


@dataclass(frozen=True, slots=True)
class RewardPreset:
    """Every number of a reward. Source: the paper (arXiv 2607.20908) as far as known; see ``docs/features.md``.

    Attributes:
        name: ``paper`` or ``robust``.
        baselines: Names of the speedup's baseline, the first that a verdict has counts.
        fallbacks: Names taken where there is none of them; flagged.
        uncompiled: Reward of what does not compile, of no code and of a cheat.
        wrong_base: Reward of a wrong candidate whose pass rate is 1 (a finding of the memory checker).
        wrong_slope: Loss per unit of 1 − pass rate.
        speed_weight: Weight of the clipped log2 S.
        speed_low, speed_high: Where log2 S is clipped.
        cv_weight: Loss per unit of the coefficient of variation.
        cv_cap: Largest coefficient of variation that counts.
        work_weight: Where nothing was timed: loss per doubling of what the emulator counted beyond ordinary work
            (`cuda.work.Work.excess`), as far as the low clip. Without it whatever is right is worth the same,
            however slow it must be.
        structural_scale: Weight of the ranker's score.
        structural_clip: Largest size of the ranker's score that counts.
        structural_gate: When the structural reward is added.
        structural_over_plain: Whether the score of the task's plain CUDA is taken off first. The ranker learns from
            differences within tasks: what it adds for a whole task means nothing, and would fill the clip.
    """

    name: str
    baselines: tuple[str, ...]
    fallbacks: tuple[str, ...]
    uncompiled: float
    wrong_base: float
    wrong_slope: float
    speed_weight: float
    speed_low: float
    speed_high: float
    cv_weight: float
    cv_cap: float
    work_weight: float
    structural_scale: float
    structural_clip: float
    structural_gate: Gate
    structural_over_plain: bool


PAPER = RewardPreset(
    name="paper",
    baselines=(C_ONE_CORE, C_END_TO_END),
    fallbacks=(),
    uncompiled=-3.0,
    wrong_base=0.0,
    wrong_slope=2.0,
    speed_weight=1.0,
    speed_low=-0.5,
    speed_high=4.0,
    cv_weight=0.5,
    cv_cap=float("inf"),
    work_weight=0.0,
    structural_scale=1.0,
    structural_clip=float("inf"),
    structural_gate="always",
    structural_over_plain=False,
)
"""As stated, but for the ranker's scale (its scores are divided by their within-task standard deviation)."""

ROBUST = RewardPreset(
    name="robust",
    baselines=(NAIVE, EAGER),
    fallbacks=(C_ONE_CORE, C_END_TO_END),
    uncompiled=-3.0,
    wrong_base=-1.8,
    wrong_slope=0.6,
    speed_weight=1.0,
    speed_low=-1.0,
    speed_high=4.0,
    cv_weight=0.5,
    cv_cap=0.5,
    work_weight=1.0,
    structural_scale=0.25,
    structural_clip=1.0,
    structural_gate="compiled",
    structural_over_plain=True,
)
"""Correct beats wrong beats uncompiled whatever the ranker and the gate say; S is taken over naive CUDA."""

PRESETS: dict[str, RewardPreset] = {preset.name: preset for preset in (PAPER, ROBUST)}
