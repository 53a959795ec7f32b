"""Pairs of variants of one task, the faster first: what the ranker learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from training.dataset.table import Table

PairKind = Literal["quartiles", "all"]


@dataclass(frozen=True, slots=True)
class PairConfig:
    """Which pairs count.

    Attributes:
        kind: ``quartiles``: y⁺ from the top quartile of a task's measured speedup, y⁻ from its bottom quartile (the
            paper); ``all``: every pair with a gap [ours].
        gap: Least distance in log2 of the speedup [ours].
        errors: And in standard errors of that distance [ours].
    """

    kind: PairKind = "quartiles"
    gap: float = 0.15
    errors: float = 2.0


@dataclass(frozen=True, slots=True)
class Pairs:
    """Row numbers of the faster and the slower of each pair, and weights that make tasks weigh equally (sum 1)."""

    better: NDArray[np.intp]
    worse: NDArray[np.intp]
    weight: NDArray[np.float64]


def make_pairs(table: Table, config: PairConfig | None = None) -> Pairs:
    """All pairs of a table; tasks without a pair do not count."""
    config = config or PairConfig()
    better: list[NDArray[np.intp]] = []
    worse: list[NDArray[np.intp]] = []
    weight: list[NDArray[np.float64]] = []
    for rows in table.tasks():
        first, second = task_pairs(table, rows, config)
        if first.size:
            better.append(first)
            worse.append(second)
            weight.append(np.full(first.size, 1.0 / first.size))
    if not better:
        none = np.array([], dtype=np.intp)
        return Pairs(none, none, np.array([]))
    weights = np.concatenate(weight)
    return Pairs(np.concatenate(better), np.concatenate(worse), weights / weights.sum())


class Two(NamedTuple):
    """Row numbers of the faster ones and of the slower ones."""

    better: NDArray[np.intp]
    worse: NDArray[np.intp]


def task_pairs(table: Table, rows: NDArray[np.intp], config: PairConfig) -> Two:
    """Row numbers of the pairs of one task: faster, slower."""
    gain, error = table.gain[rows], table.error[rows]
    apart = gain[:, None] - gain[None, :]
    needed = np.maximum(config.gap, config.errors * np.hypot(error[:, None], error[None, :]))
    wanted = apart >= needed
    if config.kind == "quartiles":
        low, high = np.quantile(gain, [0.25, 0.75])
        wanted &= (gain >= high)[:, None] & (gain <= low)[None, :]
    first, second = np.nonzero(wanted)
    return Two(rows[first], rows[second])
