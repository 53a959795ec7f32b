"""What is told of an evaluation that was stopped."""

from __future__ import annotations

from eval_facts import evaluation, fails, right, task

from training.evaluation.facts import TaskFacts
from training.evaluation.front import front


def test_tasks_that_ended_ahead_of_others_are_left_out() -> None:
    good, bad = right(4, 2, 0.5), fails("wrong")
    refused = TaskFacts("h/r", "h", "h/r", refused="r.c:1: it is recursive")
    # In turn: g/a h/r g/b h/b g/c h/c; the first one at work is h/b.
    tasks = (
        task("a", bad),
        task("b", good),
        task("c", good),
        refused,
        task("b", group="h"),
        task("c", good, group="h", unreached=True),
    )
    found = front(evaluation(*tasks, n=1, notes=("One.",)))
    assert [t.key for t in found.finished()] == ["g/a", "g/b"]
    assert found.tasks[:2] == tasks[:2]
    assert found.tasks[3:5] == tasks[3:5]
    assert not found.tasks[5].unreached
    assert found.notes == (
        "One.",
        "Unfinished: 2 tasks that have ended ahead of others in the order of work are left out.",
    )


def test_a_finished_evaluation_and_one_that_ended_in_order_stay_as_they_are() -> None:
    whole = evaluation(task("a", fails("wrong")), task("b", right(4, 2, 0.5)), n=1)
    assert front(whole) is whole
    in_order = evaluation(task("a", fails("wrong")), task("b"), n=1)
    assert front(in_order) is in_order
