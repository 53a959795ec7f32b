"""Features, hints and reward of a candidate in a training run, with everything that is logged about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.features.model import Features
from cudaperf_agent.features.plain import plain_features
from cudaperf_agent.reward.composite import Reward, Scorer, score
from cudaperf_agent.reward.presets import PRESETS, RewardPreset
from cudaperf_agent.reward.structural import load_ranker, shipped_ranker
from cudaperf_agent.tasks.model import Task
from graph.assessing import assess_by, reward_facts
from graph.context import Assess
from training.grpo.config import RewardSection


def reward_preset(section: RewardSection) -> RewardPreset:
    """The preset with the section's own numbers."""
    preset = PRESETS[section.preset]
    if section.structural_scale is not None:
        preset = replace(preset, structural_scale=section.structural_scale)
    gate = section.structural_gate
    if gate is None and not section.verifiable:
        # Alone, R_str must reach what does not compile too, or not compiling would be worth more than a low score.
        gate = "always"
    return replace(preset, structural_gate=gate) if gate is not None else preset


def make_assess(section: RewardSection) -> Assess:
    """What the graph's ``assess`` node does in a run with these rewards.

    Raises:
        ConfigError: The ranker's artefact is missing or broken.
    """
    preset = reward_preset(section)
    ranker: Scorer | None = None
    if section.structural != "none":
        ranker = load_ranker(section.ranker) if section.ranker is not None else shipped_ranker()

    def worth(task: Task, verdict: Verdict, features: Features | None) -> dict[str, Any] | None:
        if features is None:
            return rewarded(score(verdict, None, None, preset), verifiable=True)
        # No structure redeems a cheat.
        verifiable = section.verifiable or verdict.status is Status.CHEAT
        found = score(verdict, features, ranker, preset, plain=lambda: plain_features(task))
        return rewarded(found, verifiable=verifiable)

    return assess_by(worth)


def rewarded(reward: Reward | None, *, verifiable: bool) -> dict[str, Any] | None:
    """A reward as it is stored, with what R_ver was made of.

    Args:
        reward: `None` for a candidate that leaves its group.
        verifiable: Whether R_ver counts.
    """
    facts = reward_facts(reward)
    if reward is None or facts is None:
        return None
    parts = reward.verifiable
    return {
        **facts,
        "total": (parts.value if verifiable else 0.0) + reward.structural,
        "score": reward.score,
        "outcome": parts.outcome,
        "speedup": parts.speedup,
        "baseline": parts.baseline,
        "clipped": parts.clipped,
        "structural_clipped": reward.structural_clipped,
        "excess": reward.verifiable.excess,
        "cv": parts.cv,
    }
