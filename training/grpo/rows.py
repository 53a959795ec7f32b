"""From stored trajectories to training rows: one turn, one row, with its advantage.

A row's prompt is what the policy read (task, condensed history, feedback), its completion is what the policy wrote;
only the completion bears loss. Token ids and log-probabilities are as they were generated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cudaperf_agent.store.records import StoredAttempt
from training.grpo.credit import CreditRule, GroupAdvantages, advantages_of, credits_of


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as training sees it.

    Attributes:
        task, run, trajectory, turn: Where it stands; trajectories count within the task.
        prompt_ids, ids, logprobs: As generated.
        status: The verdict's.
        reward: What it is worth; `None` if it leaves its group.
        parts: The reward's components and remarks, as stored.
        source_key: Digest of the normalised source, empty where there was no code.
        truncated: Whether the answer was cut at its limit.
        credit: What the turn is credited with.
        advantage: What the policy is pushed by.
    """

    task: str
    run: str
    trajectory: int
    turn: int
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    status: str
    reward: float | None
    parts: dict[str, Any] = field(default_factory=dict)
    source_key: str = ""
    truncated: bool = False
    credit: float | None = None
    advantage: float = 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """Turns that are compared with each other: of one task and one turn."""

    task: str
    turn: int
    turns: tuple[Turn, ...]
    advantages: GroupAdvantages


def turn_of(task: str, attempt: StoredAttempt, number: int | None = None) -> Turn | None:
    """A stored attempt as a turn; `None` where there are no tokens to learn from (an error, a policy that declined).

    Args:
        task: Name of the task.
        attempt: As stored.
        number: Number of the trajectory within the task; the run's own where `None`.
    """
    tokens = attempt.tokens
    if tokens is None or not tokens.prompt or not tokens.completion or tokens.logprobs is None:
        return None
    parts = attempt.reward or {}
    return Turn(
        task=task,
        run=attempt.run,
        trajectory=attempt.trajectory if number is None else number,
        turn=attempt.turn,
        prompt_ids=tokens.prompt,
        ids=tokens.completion,
        logprobs=tokens.logprobs,
        status=attempt.status,
        reward=parts.get("total"),
        parts=parts,
        source_key=attempt.source_key or "",
        truncated=attempt.finish_reason == "length",
    )


def make_groups(
    turns: Iterable[Turn], rule: CreditRule, horizon: int, *, mask_truncated: bool, shared_history: bool = False
) -> list[Group]:
    """Credit and advantages of all turns, by group.

    Args:
        turns: Of any number of tasks.
        rule: Of credit and baseline.
        horizon: Turns of a whole trajectory.
        mask_truncated: Whether an answer that was cut bears no loss; it counts in its group's baseline all the same.
        shared_history: Whether the samples of a turn branch from one history: then a turn's own reward is its credit,
            since the best reward so far is the same for the whole group.
    """
    by_trajectory: dict[tuple[str, int], list[Turn]] = defaultdict(list)
    for turn in turns:
        by_trajectory[turn.task, turn.trajectory].append(turn)
    by_group: dict[tuple[str, int], list[Turn]] = defaultdict(list)
    for members in by_trajectory.values():
        members.sort(key=lambda t: t.turn)
        rewards = [t.reward for t in members]
        credited = rewards if shared_history else credits_of(rewards, rule, horizon)
        for turn, credit in zip(members, credited, strict=True):
            by_group[turn.task, turn.turn].append(replace(turn, credit=credit))
    groups = []
    for (task, number), members in by_group.items():
        found = advantages_of([t.credit for t in members], rule)
        pushed = [
            replace(t, advantage=0.0 if mask_truncated and t.truncated else float(a))
            for t, a in zip(members, found.values, strict=True)
        ]
        groups.append(Group(task, number, tuple(pushed), found))
    return groups


def permute_structural(turns: Sequence[Turn], seed: int) -> list[Turn]:
    """The control of the structural reward: within each group, R_str is exchanged at random between the sources.

    Its distribution stays, its relation to the kernels goes. Turns with one source keep one R_str between them, as
    with the ranker's own; what the gate kept out stays out.

    Args:
        turns: With rewards.
        seed: Of the exchange; another step, another exchange.
    """
    by_group: dict[tuple[str, int], list[int]] = defaultdict(list)
    for index, turn in enumerate(turns):
        if turn.reward is not None and turn.parts.get("score") is not None and turn.source_key:
            by_group[turn.task, turn.turn].append(index)
    exchanged = list(turns)
    for number, key in enumerate(sorted(by_group)):
        members = by_group[key]
        sources = sorted({turns[i].source_key for i in members})
        given = {turns[i].source_key: float(turns[i].parts["structural"]) for i in members}
        order = np.random.default_rng([seed, number]).permutation(len(sources))
        other = {source: given[sources[at]] for source, at in zip(sources, order, strict=True)}
        for i in members:
            turn = turns[i]
            assert turn.reward is not None
            new = other[turn.source_key]
            exchanged[i] = replace(
                turn,
                reward=turn.reward - given[turn.source_key] + new,
                parts={**turn.parts, "structural": new, "permuted": True},
            )
    return exchanged
