"""Makes the pool of worked examples for few-shot prompts: measured translations of the training split, of all families.

Of each family that may be learned from, the task whose best kernel gains most; where families are fewer than places,
their second tasks, and so on. Of the kernels, only those that a person could learn from: the generator's, also with
another parameter, never edits made to be slow. Each must pass the hidden cases of the verifier before it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cudaperf_agent.policies.examples import PoolConfig, example_line
from cudaperf_agent.policies.similarity import loop_features
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from training.splits import split_of

BASELINE = "plain CUDA"
"""What the speedups of the data set are over."""
_ORIGINS = frozenset({"generator", "series"})


@dataclass(frozen=True, slots=True)
class PoolRule:
    """What may enter the pool.

    Attributes:
        size: Entries at most.
        longest: Characters of a kernel's source at most: five examples have to fit a prompt.
        least: Speedup over the plain kernel that an example must have.
    """

    size: int = PoolConfig().pool
    longest: int = 4500
    least: float = 1.0


@dataclass(frozen=True, slots=True)
class Worked:
    """A candidate for the pool.

    Attributes:
        task: ``family/member``.
        split: Of `training.splits`.
        c_task: The C, loaded.
        source: The kernel.
        speedup: Over the plain CUDA of the task, medians.
    """

    task: str
    split: str
    c_task: Task
    source: str
    speedup: float


def worked_examples(
    variants: Iterable[Mapping[str, Any]], tasks: Iterable[Mapping[str, Any]], rule: PoolRule | None = None
) -> list[Worked]:
    """The best translation of each task of the training split: the best of each family first, then their second, ….

    Args:
        variants: Rows of ``variants.parquet``.
        tasks: Rows of ``tasks.parquet``.
        rule: What may enter.
    """
    rule = rule or PoolRule()
    allowed = {row["task"]: row for row in tasks if split_of(row["family"], row["member"]) == "train"}
    best: dict[str, Mapping[str, Any]] = {}
    for row in variants:
        fit = row["status"] == "correct" and row["gain"] is not None and row["origin"] in _ORIGINS
        if row["task"] in allowed and fit and len(row["source"]) <= rule.longest and 2 ** row["gain"] >= rule.least:
            known = best.get(row["task"])
            if known is None or row["gain"] > known["gain"]:
                best[row["task"]] = row
    by_gain = sorted(best.values(), key=lambda row: (-row["gain"], row["task"]))
    turns: Counter[str] = Counter()
    turn: dict[str, int] = {}
    for row in by_gain:
        turn[row["task"]] = turns[row["family"]]
        turns[row["family"]] += 1
    found = []
    for row in sorted(by_gain, key=lambda row: turn[row["task"]]):
        line = allowed[row["task"]]
        task = load_task(source=line["source"], entry=line["entry"])
        if loop_features(task) is not None:
            split = split_of(line["family"], line["member"])
            found.append(Worked(row["task"], split, task, row["source"], round(float(2 ** row["gain"]), 2)))
    return found


async def pool_lines(
    found: Sequence[Worked],
    passes: Callable[[Worked], Awaitable[bool]],
    rule: PoolRule | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[str]:
    """Lines of a pool file: the first `rule.size` that pass.

    Args:
        found: From `worked_examples`.
        passes: Whether a kernel passes the visible and the hidden cases.
        rule: How many.
        say: Progress and what did not pass.
    """
    rule = rule or PoolRule()
    lines: list[str] = []
    for worked in found:
        if len(lines) >= rule.size:
            break
        if await passes(worked):
            line = example_line(worked.c_task, worked.source, worked.speedup, split=worked.split, baseline=BASELINE)
            lines.append(line)
            say(f"{len(lines)}/{rule.size} {worked.task}: {worked.speedup:.2f} times {BASELINE}")
        else:
            say(f"{worked.task}: does not pass, left out")
    return lines
