"""What a candidate looks like, what it is worth, and the words for both: ``assess`` and ``write_feedback`` of runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from graph.context import Assess, Assessment

if TYPE_CHECKING:
    from cudaperf_agent.cuda.verdict import Verdict
    from cudaperf_agent.features.model import Features
    from cudaperf_agent.reward.composite import Reward
    from cudaperf_agent.tasks.model import Task

    Worth = Callable[[Task, Verdict, Features | None], dict[str, Any] | None]


def assess_by(worth: Worth) -> Assess:
    """The graph's ``assess`` with rewards by `worth`, which is given no features where there was no code."""

    def assess_candidate(task: Task, source: str, verdict: Verdict) -> Assessment:
        from cudaperf_agent.features.extract import extract

        if not source:
            return Assessment(reward=worth(task, verdict, None))
        features = extract(source, entry=task.name)
        return looks_of(features, worth(task, verdict, features))

    return assess_candidate


def assess(task: Task, source: str, verdict: Verdict) -> Assessment:
    """Features, hints and the usual reward of a candidate; `source` is empty where there was no code."""
    return assess_by(_usual_worth)(task, source, verdict)


def looks_of(features: Features, reward: dict[str, Any] | None = None) -> Assessment:
    """Features and hints as they are stored."""
    from cudaperf_agent.features.hints import hints

    told = {**features.values, "extended": features.extended, "missing": list(features.missing)}
    return Assessment(told, tuple(asdict(hint) for hint in hints(features)), reward)


def reward_facts(reward: Reward | None) -> dict[str, Any] | None:
    """A reward as it is stored; `None` for a candidate that leaves its group."""
    if reward is None:
        return None
    return {
        "total": reward.total,
        "verifiable": reward.verifiable.value,
        "structural": reward.structural,
        "preset": reward.preset,
        "flags": list(reward.flags),
    }


def write_feedback(verdict: Verdict, assessment: Assessment) -> str:
    """What the next turn reads."""
    from cudaperf_agent.policies.feedback import build_feedback

    return build_feedback(verdict, features=assessment.features, hints=assessment.hints)


def _usual_worth(task: Task, verdict: Verdict, features: Features | None) -> dict[str, Any] | None:
    from cudaperf_agent.features.plain import plain_features
    from cudaperf_agent.reward.composite import score
    from cudaperf_agent.reward.structural import shipped_ranker

    ranker = None if features is None else shipped_ranker()
    return reward_facts(score(verdict, features, ranker, plain=lambda: plain_features(task)))
