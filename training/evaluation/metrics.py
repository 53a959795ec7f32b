"""Estimators over independent trajectories: pass@k, speed@k, fast_p, correct-only means, headroom closed.

The unit is one trajectory. Its speedup S = T_baseline / T_candidate comes from hidden tests and a fresh timing; a
trajectory without a correct kernel has none. A task's estimate comes from its n trajectories; a benchmark's is the mean
over tasks, so that tasks weigh equally whatever n is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, log
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Trajectory:
    """How one trajectory of a task ended.

    Attributes:
        correct: Its selected kernel passed the hidden tests.
        speedup: T_baseline / T_candidate of that kernel, `None` where nothing was timed (or it is not correct).
    """

    correct: bool
    speedup: float | None = None

    def __post_init__(self) -> None:
        if self.speedup is not None and not self.speedup > 0:
            raise ValueError(f"a speedup is positive, not {self.speedup}")


class Mean(NamedTuple):
    """A mean with the number of values it was taken over."""

    value: float | None
    over: int


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Unbiased probability that at least one of k trajectories is correct: 1 − C(n−c,k)/C(n,k) (arXiv 2107.03374).

    Raises:
        ValueError: k is not in 1..n, or the counts are impossible.
    """
    _check(n, k)
    if not 0 <= correct <= n:
        raise ValueError(f"{correct} of {n} cannot be correct")
    return 1.0 - comb(n - correct, k) / comb(n, k)


def best_of_k(values: Sequence[float], k: int) -> float:
    """Unbiased expected maximum of k of the values drawn without replacement: Σ_{j≥k} C(j−1,k−1)/C(n,k)·v_(j).

    Raises:
        ValueError: k is not in 1..n.
    """
    n = len(values)
    _check(n, k)
    ordered = sorted(values)
    return sum(comb(j - 1, k - 1) / comb(n, k) * ordered[j - 1] for j in range(k, n + 1))


def log_speed_at_k(trajectories: Sequence[Trajectory], k: int, *, raw: bool = False) -> float:
    """Expected best-of-k of v for one task: v = max(log S, 0) of a correct trajectory, 0 of a failure.

    The user keeps the C when nothing is faster, so a slowdown costs nothing. The ``raw`` form keeps log S < 0 of
    correct trajectories (failures stay 0). A correct trajectory that was not timed counts as S = 1.
    """
    values = []
    for trajectory in trajectories:
        gain = log(trajectory.speedup) if trajectory.correct and trajectory.speedup is not None else 0.0
        values.append(gain if raw else max(gain, 0.0))
    return best_of_k(values, k)


def speed_at_k(tasks: Sequence[Sequence[Trajectory]], k: int, *, raw: bool = False) -> float:
    """speed@k over tasks: the exponentiated mean of `log_speed_at_k`, so a geometric mean."""
    return exp(sum(log_speed_at_k(t, k, raw=raw) for t in tasks) / len(tasks))


def fast_p(trajectories: Sequence[Trajectory], p: float) -> float:
    """Share of trajectories that are correct and more than p times as fast as the baseline (KernelBench)."""
    fast = sum(1 for t in trajectories if t.correct and t.speedup is not None and t.speedup > p)
    return fast / len(trajectories)


def correct_only_geometric_mean(trajectories: Sequence[Trajectory]) -> Mean:
    """Geometric mean speedup of the correct, timed trajectories, with their count: never one without the other."""
    logs = [log(t.speedup) for t in trajectories if t.correct and t.speedup is not None]
    return Mean(exp(sum(logs) / len(logs)) if logs else None, len(logs))


def headroom_closed(naive: float, candidate: float, speed_of_light: float) -> float | None:
    """log(T_naive/T) / log(T_naive/T_speed-of-light): 0 is naive, 1 is the machine's limit. Times in seconds.

    `None` where the naive kernel is already at (or, by error of measurement, past) the limit.
    """
    room = log(naive / speed_of_light)
    return log(naive / candidate) / room if room > 0 else None


def _check(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k = {k} needs at least {max(k, 1)} trajectories and k ≥ 1; there are {n}")
