"""The calls of one process that times a module: in which order and on which contents, checked and watched on the way.

Some calls of a candidate, at places that nothing in its process can know, are not timed but watched: each operator of
torch that runs is told of, so that what no test sees is not what is timed. Not covered: kernels of libraries that are
called past torch.

Blocking, for a thread of its own.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from cudaperf_agent.cuda.clocks import CLOCKS, batch_agreement, call_agreement
from cudaperf_agent.cuda.modules.config import ModuleConfig
from cudaperf_agent.cuda.modules.operators import forbidden_operator
from cudaperf_agent.cuda.modules.timed_outputs import problem_of
from cudaperf_agent.cuda.modules.timed_process import TimedEnded, TimedModule, seconds_of
from cudaperf_agent.cuda.timing import Timed
from cudaperf_agent.cuda.verdict import Status, Timing
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.modules.spec import ModuleSpec


@dataclass(frozen=True, slots=True, eq=False)
class TimedCalls(Timed):
    """What the calls of a process came to, and settings of torch there."""

    flags: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """What a process said before its turn: settings of torch, and how long its first call took, if it made one."""

    flags: dict[str, Any]
    first: float | None


def wait_ready(process: TimedModule, content: int | None) -> Ready:
    """Wait until all is imported; with `content`, make a first call, in which a baseline may compile for long."""
    flags = dict(process.answer().get("flags", {}))
    if content is None:
        return Ready(flags, None)
    process.ask(f"make {content}")
    return Ready(flags, seconds_of(process.ask("go")))


def calls(
    process: TimedModule,
    ready: Ready,
    folder: Path,
    module: ModuleSpec,
    who: str,
    expected: Sequence[Expected],
    entries: Sequence[dict[str, Any]],
    config: ModuleConfig,
    order: Sequence[int],
) -> TimedCalls:
    """Have all calls made; may raise `TimedEnded`.

    Args:
        process: It is its turn at the device.
        ready: What it said before.
        folder: Its folder.
        module: What is timed.
        who: ``candidate``, whose outputs are checked and which is watched, or a baseline.
        expected: Right outputs of every set of contents.
        entries: Name, type and shape of each output.
        config: Numbers.
        order: The sets of contents, call by call.
    """
    exchanges = [process.clocked("exchange")[1] for _ in range(config.exchanges)]
    sets = len(expected)
    inside: list[float] = []
    outside: list[float] = []
    null_calls: list[float] = []
    others = 0.0
    candidate = who == "candidate"
    # The first call of all is timed: it is the cold one.
    places = range(1, len(order)) if candidate else ()
    watched = secrets.SystemRandom().sample(places, min(config.watched, len(places)))

    def trouble(content: int) -> TimedCalls | None:
        kept = process.ask("keep").get("outputs", [])
        problem = problem_of(folder / "outputs.bin", kept, expected[content], entries, config.on_gpu.file_bytes)
        message = f"right in the tests, wrong at the timed size: {problem}"
        return TimedCalls(None, Status.WRONG, message) if problem else None

    for number, content in enumerate(order):
        if number in watched:
            other = secrets.randbelow(sets)
            process.ask(f"make {other}")
            forbidden = forbidden_operator(_operators(process.ask("watch")), module.mode)
            if forbidden:
                return TimedCalls(None, Status.CHEAT, f"allowed in the tests, not at the timed size: {forbidden}")
            if (wrong := trouble(other)) is not None:
                return wrong
        null_calls.append(process.clocked("exchange")[1])
        process.ask(f"make {content}")
        answer, seconds = process.clocked("go")
        inside.append(seconds_of(answer))
        outside.append(seconds)
        others += seconds_of(answer, "others")
        if candidate and (wrong := trouble(content)) is not None:
            return wrong
    shapes = ", ".join("×".join(map(str, i.shape)) for i in module.inputs if i.kind == "tensor")
    clocks = {
        "child_seconds": sum(inside),
        "parent_seconds": sum(outside),
        "exchange_seconds": len(order) * median(exchanges),
        "other_threads_cpu_seconds": others,
    }
    rule = replace(CLOCKS, slack=config.slack, slack_seconds=config.slack_seconds, late_calls=config.late_calls)
    agreement = call_agreement(inside, outside, exchanges, rule)
    # Recorded, and decides nothing: the empty calls are the candidate's own process's.
    clocks |= agreement.figures | batch_agreement(inside, outside, [0.0] * len(order), null_calls, rule).figures
    if candidate and not agreement.agree:
        message = f"the clocks disagree: {sum(outside):.6f} s outside, {sum(inside):.6f} s inside"
        return TimedCalls(None, Status.UNSTABLE, message, clocks)
    if candidate and others > config.other_cpu * sum(inside) and others > len(order) * config.slack_seconds:
        return TimedCalls(None, Status.CHEAT, f"other host threads computed for {others:.6f} s meanwhile", clocks)
    used = -(-len(order) // sets)
    note = f"{sets} contents, each " + ("once" if used == 1 else f"up to {used} times")
    cold = inside[0] if ready.first is None else ready.first
    timing = Timing("device", shapes, tuple(inside[config.warmups :]), cold, note)
    return TimedCalls(timing, Status.CORRECT, "", clocks, ready.flags)


def _operators(answer: dict[str, Any]) -> dict[str, int]:
    """How often each operator ran, as a stranger says.

    Raises:
        TimedEnded: It cannot be read.
    """
    try:
        return {str(name): int(count) for name, count in answer["operators"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TimedEnded("an answer cannot be read") from error


def call_order(sets: int, calls: int) -> list[int]:
    """Every set equally often, in an order that nothing in the child can know."""
    chance: random.Random = secrets.SystemRandom()
    order: list[int] = []
    while len(order) < calls:
        turn = list(range(sets))
        chance.shuffle(turn)
        order += turn
    return order[:calls]
