"""What an evaluation would have found with fewer turns: exact where its search ended at the first correct kernel."""

from __future__ import annotations

from dataclasses import replace

from cudaperf_agent.errors import UsageError
from training.evaluation.facts import Evaluation, Outcome


def cut(evaluation: Evaluation, turns: int) -> Evaluation:
    """The evaluation with trajectories of at most so many turns.

    A trajectory's first turns do not depend on how many may follow. Without timing in the search, its kernel is the
    first one that passes the visible tests, so that a shorter trajectory has chosen the same kernel or none.

    Args:
        evaluation: Searched without timing.
        turns: From 1 to its own.

    Raises:
        UsageError: It has fewer turns, or its search was timed: then a shorter one may have chosen another kernel.
    """
    if not 1 <= turns <= evaluation.turns:
        raise UsageError(
            f"{evaluation.name} has {evaluation.turns} turns, not {turns}", where="--turns", hint="name fewer"
        )
    if turns == evaluation.turns:
        return evaluation
    if evaluation.backend == "gpu":
        raise UsageError(
            f"the search of {evaluation.name} was timed: with fewer turns it may have chosen another kernel",
            where="--turns",
            hint=f"cudaperf eval run … --turns {turns}, or search without timing: --backend emulator",
        )
    tasks = tuple(replace(t, outcomes=tuple(_cut(o, turns) for o in t.outcomes)) for t in evaluation.tasks)
    word = "turn" if turns == 1 else "turns"
    note = f"Cut to the first {turns} {word} of each trajectory; it was run with up to {evaluation.turns}."
    return replace(evaluation, tasks=tasks, turns=turns, notes=(*evaluation.notes, note))


def _cut(outcome: Outcome, turns: int) -> Outcome:
    if len(outcome.turns) <= turns or any(t.correct for t in outcome.turns[:turns]):
        return replace(outcome, turns=outcome.turns[:turns])
    last = outcome.turns[turns - 1]
    return Outcome(
        outcome.seed, outcome.number, False, last.status or "error", end="turns", turns=outcome.turns[:turns]
    )
