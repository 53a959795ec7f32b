"""Evaluations written by hand, so that every estimate can be computed by hand too."""

from __future__ import annotations

from training.evaluation.facts import Evaluation, Outcome, TaskFacts, TurnFacts

C, NAIVE, LIMIT = "C -O3 -march=native, one core", "naive CUDA", "speed of light"


def turn(status: str, c: float | None = None) -> TurnFacts:
    """A turn that is `c` times as fast as the C; the C takes eight seconds."""
    return TurnFacts(status, 8.0 / c if c else None, {C: c} if c else {})


def right(c: float, naive: float, limit: float, *turns: TurnFacts, seed: int = 0, number: int = 0) -> Outcome:
    """A correct trajectory with its speedups."""
    speedups = {C: c, NAIVE: naive, LIMIT: limit}
    return Outcome(seed, number, True, seconds=8.0 / c, speedups=speedups, cases=18, turns=turns)


def fails(reason: str, *turns: TurnFacts, seed: int = 0, number: int = 0) -> Outcome:
    """A failed one."""
    return Outcome(seed, number, False, reason, "y differs", turns=turns)


def task(name: str, *outcomes: Outcome, group: str = "g", family: str = "", **more: object) -> TaskFacts:
    """A finished task."""
    key = f"{group}/{name}"
    return TaskFacts(key, group, family or key, f"digest of {name}", "", outcomes, **more)  # type: ignore[arg-type]


def evaluation(
    *tasks: TaskFacts, n: int, turns: int = 2, seeds: int = 1, name: str = "e", **more: object
) -> Evaluation:
    """On the GPU."""
    return Evaluation(name, "suite", "policy", "gpu", n, turns, seeds, tasks, "NVIDIA H200", **more)  # type: ignore[arg-type]


def example() -> Evaluation:
    """Three tasks of two trajectories and one that is refused."""
    a = task(
        "a",
        right(4, 2, 0.5, turn("wrong"), turn("correct", 4)),
        fails("wrong", turn("wrong"), turn("wrong"), number=1),
    )
    b = task(
        "b",
        right(0.5, 1, 0.25, turn("correct", 0.5), turn("correct", 0.4)),
        right(8, 4, 0.8, turn("correct", 8), turn("wrong"), number=1),
    )
    c = task(
        "c",
        fails("compile_error", turn("wrong"), turn("compile_error")),
        fails("hidden wrong", turn("correct"), number=1),
    )
    refused = TaskFacts("g/d", "g", "g/d", refused="d.c:1: it is recursive")
    return evaluation(a, b, c, refused, n=2)
