"""How many correct kernels are rejected: the generator's, with many shapes of blocks, and ones written by hand.

    python -m benchmarks.false_rejections --count 500

Every kernel has to pass the visible and the hidden cases. Ends with 1 if more than `AIM` of them do not. What the
generator makes is correct by its dependence analysis; a rejection is looked at by hand before it is called false.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator

from benchmarks.handed import CASES, PROGRAMS, Kernel, hand_written, prepared, variants_of
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.model import Task

AIM = 0.005


async def kernels(count: int) -> AsyncIterator[tuple[Task, Kernel]]:
    """Correct kernels: those by hand, then tasks in turn, the generator's own variants first."""
    tasks: dict[str, Task] = {}
    queues: dict[str, list[Kernel]] = {}
    given = 0
    for path in (*sorted(CASES.glob("*.c")), *sorted(PROGRAMS.glob("*.c"))):
        try:
            task = tasks[path.stem] = await prepared(path)
        except InputRefused:
            continue
        if task.mode == "function":
            queues[path.stem] = [Kernel(path.stem, v.strategy, v.source) for v in variants_of(task, more=True)]
    for kernel in hand_written():
        yield tasks[kernel.task], kernel
        given += 1
    while any(queues.values()):
        for name, queue in queues.items():
            if queue and given < count:
                yield tasks[name], queue.pop(0)
                given += 1
        if given >= count:
            return


async def rejected(count: int, minutes: float) -> float:
    """Judge them and print what is not correct; the share of rejections."""
    verifier = Verifier(gpu=None)
    statuses: Counter[str] = Counter()
    names: set[str] = set()
    started = time.monotonic()
    async for task, kernel in kernels(count):
        if time.monotonic() - started > 60 * minutes:
            break
        verdict: Verdict = await verifier.test(task, kernel.source)
        if verdict.correct:
            verdict = await verifier.test(task, kernel.source, hidden=True)
        statuses[verdict.status] += 1
        names.add(kernel.task)
        if not verdict.correct:
            print(f"{kernel.task} {kernel.made}: {verdict.status}: {verdict.message}", flush=True)
        if statuses.total() % 50 == 0:
            print(f"{statuses.total()} kernels in {time.monotonic() - started:.0f} s: {dict(statuses)}", flush=True)
    await verifier.aclose()
    total = statuses.total()
    share = 1 - statuses["correct"] / max(1, total)
    print(f"{total} kernels of {len(names)} tasks, {dict(statuses)}: {share:.2%} rejected")
    return share


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=120.0, help="no new kernel after this time")
    args = parser.parse_args()
    return 0 if asyncio.run(rejected(args.count, args.minutes)) <= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
