"""How a trajectory's rewards are shared out over its turns, and how a turn's credit becomes an advantage.

Plain numbers, no models. A reward of `None` is a turn of which nothing can be said (``unsupported``, ``unstable``):
it leaves its group, and for the turns around it the state counts as unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Credit = Literal["immediate", "gain", "discounted", "best_of_trajectory"]
Baseline = Literal["group_std", "leave_one_out"]

_STD_FLOOR = 1e-4  # as TRL adds it to the deviation


@dataclass(frozen=True, slots=True)
class CreditRule:
    """How rewards become advantages.

    Attributes:
        credit: ``immediate``: a turn's own reward. ``gain``: how far it raises the best reward so far (first turn: the
            reward), so that repeating a good kernel pays nothing. ``discounted``: the sum of this and later rewards,
            each later one weighted by `gamma`. ``best_of_trajectory``: the best reward of all turns, for each of them.
        gamma: Discount of ``discounted``. Kevin (arXiv 2507.11948) takes 0.4.
        baseline: ``group_std``: less the group's mean, over its deviation. ``leave_one_out``: less the mean of the
            others.
        least_spread: A group whose credits lie closer together teaches nothing and is skipped.
    """

    credit: Credit = "gain"
    gamma: float = 0.4
    baseline: Baseline = "leave_one_out"
    least_spread: float = 0.1


@dataclass(frozen=True, slots=True)
class GroupAdvantages:
    """Advantages of one group.

    Attributes:
        values: In the group's order; 0 for members that left it and throughout a skipped group.
        spread: Largest credit less smallest.
        members: How many had a credit.
        skipped: Whether the group teaches nothing: too little spread, or fewer than two members.
    """

    values: NDArray[np.float64]
    spread: float
    members: int
    skipped: bool


def credits_of(rewards: Sequence[float | None], rule: CreditRule, horizon: int | None = None) -> list[float | None]:
    """Credit of every turn of one trajectory.

    Args:
        rewards: By turn.
        rule: How.
        horizon: Turns that count. Where the trajectory stopped earlier, its last state repeats up to here: rewards
            can be negative, and stopping early must not pay.

    Returns:
        One credit per given reward; `None` for a turn that leaves its group.
    """
    if rule.credit == "immediate":
        return list(rewards)
    if rule.credit == "gain":
        return _gains(rewards)
    if rule.credit == "best_of_trajectory":
        known = [r for r in rewards if r is not None]
        return [None if r is None else max(known) for r in rewards]
    return _discounted(rewards, rule.gamma, horizon or len(rewards))


def advantages_of(credits: Sequence[float | None], rule: CreditRule) -> GroupAdvantages:
    """Advantages of one group of turns: same task, same turn."""
    values = np.array([np.nan if c is None else c for c in credits], dtype=np.float64)
    present = ~np.isnan(values)
    members = int(present.sum())
    known = values[present]
    spread = float(known.max() - known.min()) if members else 0.0
    found = np.zeros(len(values))
    if members < 2 or spread < rule.least_spread:
        return GroupAdvantages(found, spread, members, skipped=True)
    centred = known - known.mean()
    if rule.baseline == "leave_one_out":
        # x less the mean of the other n − 1 is n / (n − 1) of x less the mean of all.
        found[present] = centred * members / (members - 1)
    else:
        found[present] = centred / (known.std(ddof=1) + _STD_FLOOR)
    return GroupAdvantages(found, spread, members, skipped=False)


def _gains(rewards: Sequence[float | None]) -> list[float | None]:
    gains: list[float | None] = []
    best: float | None = None
    for turn, reward in enumerate(rewards):
        if reward is None or (best is None and turn > 0):
            # After turns of which nothing is known there is no "best so far": the gain cannot be told.
            gains.append(None)
        else:
            gains.append(reward if best is None else max(reward - best, 0.0))
        if reward is not None:
            best = reward if best is None else max(best, reward)
    return gains


def _discounted(rewards: Sequence[float | None], gamma: float, horizon: int) -> list[float | None]:
    filled: list[float] = []
    for turn in range(max(horizon, len(rewards))):
        reward = rewards[turn] if turn < len(rewards) else None
        filled.append(reward if reward is not None else filled[-1] if filled else 0.0)
    sums: list[float | None] = []
    for turn, reward in enumerate(rewards):
        later = sum(gamma**ahead * value for ahead, value in enumerate(filled[turn:]))
        sums.append(None if reward is None else later)
    return sums
