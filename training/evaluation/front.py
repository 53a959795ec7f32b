"""Which tasks of an unfinished evaluation may be told: those up to the first one that is still at work."""

from __future__ import annotations

from dataclasses import replace

from training.evaluation.facts import Evaluation
from training.evaluation.suite import in_turn


def front(evaluation: Evaluation) -> Evaluation:
    """The evaluation without the tasks that ended ahead of others, in the order in which they are worked on.

    Many tasks are at work at once, and those that end first are not like the rest: their kernels were right at once.
    An evaluation that was stopped would seem better than it is. Nothing changes in a finished one.
    """
    ordered = in_turn(evaluation.tasks, lambda task: task.group)
    reached = next((place for place, task in enumerate(ordered) if not (task.outcomes or task.refused)), len(ordered))
    ahead = {task.key for task in ordered[reached:] if task.outcomes}
    if not ahead:
        return evaluation
    tasks = tuple(
        replace(t, outcomes=(), hand=None, unreached=False) if t.key in ahead else t for t in evaluation.tasks
    )
    told = "1 task that has ended ahead of others in the order of work is left out."
    if len(ahead) > 1:
        told = f"{len(ahead)} tasks that have ended ahead of others in the order of work are left out."
    note = f"Unfinished: {told}"
    return replace(evaluation, tasks=tasks, notes=(*evaluation.notes, note))
