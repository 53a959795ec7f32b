"""Turns against parallel samples at the same budget: k trajectories of t turns against t·k first turns.

Hidden verdicts exist for the chosen kernels only, so both sides are judged by the visible tests and the search's
timing here. Every trajectory's first turn has seen no feedback: it is an independent single sample. Trajectories may
use fewer turns than they have (they end where nothing more is to gain), so the budget is an upper bound on their side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from training.evaluation.facts import Outcome, TaskFacts
from training.evaluation.intervals import BootstrapConfig, Interval, paired_difference, share_difference
from training.evaluation.metrics import Trajectory, log_speed_at_k, pass_at_k


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One comparison.

    Attributes:
        budget: Attempts per task, k · t.
        trajectories: k.
        turns: t.
        pass_turns: pass@k of trajectories cut off after t turns.
        pass_samples: pass@(k · t) of single samples.
        pass_difference: The first less the second, paired over tasks.
        speed_turns, speed_samples: speed@ the same, where timed, against the main baseline.
        speed_ratio: The first over the second.
        used: Turns that a trajectory of t turns used, on average.
    """

    budget: int
    trajectories: int
    turns: int
    pass_turns: float
    pass_samples: float
    pass_difference: Interval
    used: float
    speed_turns: float | None = None
    speed_samples: float | None = None
    speed_ratio: Interval | None = None


def budget_rows(
    tasks: Sequence[TaskFacts], turns: int, baseline: str, config: BootstrapConfig
) -> tuple[BudgetRow, ...]:
    """For the full number of turns: every k whose budget the single samples cover."""
    if turns < 2 or not tasks:
        return ()
    each = min(len(t.outcomes) for t in tasks)
    families = [t.family for t in tasks]
    cut = [[_after(o, turns, baseline) for o in t.outcomes] for t in tasks]
    single = [[_after(o, 1, baseline) for o in t.outcomes] for t in tasks]
    used = [min(turns, len(o.turns)) for t in tasks for o in t.outcomes]
    rows = []
    for k in range(1, each // turns + 1):
        passes = [
            [pass_at_k(len(r), sum(t.correct for t in r), at) for r in side]
            for side, at in _sides(cut, single, k, turns)
        ]
        row = BudgetRow(
            k * turns,
            k,
            turns,
            sum(passes[0]) / len(tasks),
            sum(passes[1]) / len(tasks),
            share_difference(passes[0], passes[1], clusters=families, config=config),
            sum(used) / len(used),
        )
        rows.append(_with_speed(row, cut, single, families, config) if baseline else row)
    return tuple(rows)


def _sides(
    cut: Sequence[Sequence[Trajectory]], single: Sequence[Sequence[Trajectory]], k: int, turns: int
) -> list[tuple[Sequence[Sequence[Trajectory]], int]]:
    return [(cut, k), (single, k * turns)]


def _with_speed(
    row: BudgetRow,
    cut: Sequence[Sequence[Trajectory]],
    single: Sequence[Sequence[Trajectory]],
    families: Sequence[str],
    config: BootstrapConfig,
) -> BudgetRow:
    logs = [[log_speed_at_k(r, at) for r in side] for side, at in _sides(cut, single, row.trajectories, row.turns)]
    ratio = paired_difference(logs[0], logs[1], clusters=families, config=config).exponentiated()
    first, second = (exp(sum(side) / len(side)) for side in logs)
    return BudgetRow(
        row.budget,
        row.trajectories,
        row.turns,
        row.pass_turns,
        row.pass_samples,
        row.pass_difference,
        row.used,
        first,
        second,
        ratio,
    )


def _after(outcome: Outcome, turns: int, baseline: str) -> Trajectory:
    """The best of the first turns by the visible tests and the search's timing."""
    correct = [t for t in outcome.turns[:turns] if t.correct]
    timed = [t for t in correct if t.seconds is not None and baseline in t.speedups]
    best = min(timed, key=lambda t: t.seconds or 0.0, default=None)
    return Trajectory(bool(correct), best.speedups[baseline] if best is not None else None)
