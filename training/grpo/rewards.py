"""Features, hints and reward of a candidate in a training run, with everything that is logged about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.features.extract import extract
from cudaperf_agent.features.hints import hints
from cudaperf_agent.reward.composite import Reward, Scorer, score
from cudaperf_agent.reward.presets import PRESETS, RewardPreset
from cudaperf_agent.reward.structural import load_ranker, shipped_ranker
from cudaperf_agent.tasks.model import Task
from graph.context import Assessment
from training.grpo.config import RewardSection

AssessCandidate = Callable[[Task, str, Verdict], Assessment]


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


def make_assess(section: RewardSection) -> AssessCandidate:
    """What the graph's ``assess`` node does in a run with these rewards.

    Raises:
        ConfigError: The ranker's artefact is missing or broken.
    """
    preset = reward_preset(section)
    ranker: Scorer | None = None
    if section.structural != "none":
        ranker = load_ranker(section.ranker) if section.ranker is not None else shipped_ranker()

    def assess(task: Task, source: str, verdict: Verdict) -> Assessment:
        if not source:
            return Assessment(reward=reward_facts(score(verdict, None, None, preset), verifiable=True))
        # No structure redeems a cheat.
        verifiable = section.verifiable or verdict.status is Status.CHEAT
        features = extract(source, entry=task.name)
        told = {**features.values, "extended": features.extended, "missing": list(features.missing)}
        reward = score(verdict, features, ranker, preset)
        facts = reward_facts(reward, verifiable=verifiable)
        return Assessment(told, tuple(asdict(hint) for hint in hints(features)), facts)

    return assess


def reward_facts(reward: Reward | None, *, verifiable: bool) -> dict[str, Any] | None:
    """A reward as it is stored.

    Args:
        reward: `None` for a candidate that leaves its group.
        verifiable: Whether R_ver counts.
    """
    if reward is None:
        return None
    parts = reward.verifiable
    return {
        "total": (parts.value if verifiable else 0.0) + reward.structural,
        "verifiable": parts.value,
        "structural": reward.structural,
        "score": reward.score,
        "outcome": parts.outcome,
        "speedup": parts.speedup,
        "baseline": parts.baseline,
        "clipped": parts.clipped,
        "cv": parts.cv,
        "preset": reward.preset,
        "flags": list(reward.flags),
    }
