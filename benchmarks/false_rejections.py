"""How many correct kernels are rejected: by hand, the generator's with many shapes of blocks, the data set's variants.

    python -m benchmarks.false_rejections --count 520 --minutes 60 --out benchmarks/false_rejections.jsonl

Every kernel has to pass the visible and the hidden cases. `--out` is appended to, a line a kernel, and what is in it is
not judged again. Ends with 1 if more than `AIM` of them do not pass. What the generator makes is correct by its
dependence analysis; a rejection is looked at by hand before it is called false, and `WHY` says what was found.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.handed import CASES, HAND_WRITTEN, PROGRAMS, variants_of
from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from training.dataset import variants as dataset
from training.dataset.families import all_programs
from training.dataset.transfer import hand_written, transfer_names

AIM = 0.005


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel to judge: the task's name, how it came about, its text, and the C it belongs to (text, entry)."""

    task: str
    made: str
    source: str
    c_source: str
    entry: str | None = None

    @property
    def key(self) -> str:
        """Short digest of both texts."""
        return hashlib.sha256(f"{self.c_source}\0{self.source}".encode()).hexdigest()[:16]


def by_hand() -> Iterator[Candidate]:
    """Kernels that were written: of the handed C files, and of the transfer set."""
    for path in sorted(HAND_WRITTEN.glob("*.cu")):
        yield Candidate(path.stem, "by hand", path.read_text(), (CASES / f"{path.stem}.c").read_text())
    for name in transfer_names():
        program = hand_written(name)
        for kernel in program.kernels:
            yield Candidate(name, f"by hand: {kernel.strategy}", kernel.source, program.source, program.entry)


def of_families(seed: int = 0) -> Iterator[Candidate]:
    """One variant of each of the data set's tasks, drawn at random, tasks in random order."""
    rng = np.random.default_rng(seed)
    programs = list(all_programs())
    for at in rng.permutation(len(programs)):
        program = programs[at]
        task = load_task(source=program.source, entry=program.entry)
        made = dataset.variants_of(task, turn=int(at))
        if made:
            one = made[int(rng.integers(0, len(made)))]
            label = f"{one.origin}: {one.strategy} {json.dumps(one.parameters) if one.parameters else ''}".strip()
            yield Candidate(program.name, label, one.source, program.source, program.entry)


async def of_handed(ready: Callable[[Candidate], Any]) -> AsyncIterator[Candidate]:
    """The generator's variants of the handed C files, tasks in turn, its own before those with other blocks."""
    queues: list[list[Candidate]] = []
    for path in (*sorted(CASES.glob("*.c")), *sorted(PROGRAMS.glob("*.c"))):
        text = path.read_text()
        try:
            task: Task = await ready(Candidate(path.stem, "", "", text))
        except InputRefused:
            continue
        if task.mode == "function":
            queues.append([Candidate(path.stem, v.strategy, v.source, text) for v in variants_of(task, more=True)])
    while any(queues):
        for queue in queues:
            if queue:
                yield queue.pop(0)


async def candidates(ready: Callable[[Candidate], Any]) -> AsyncIterator[Candidate]:
    """All of them: those by hand, then the two others in turn."""
    for one in by_hand():
        yield one
    families = of_families()
    async for handed in of_handed(ready):
        yield handed
        if (drawn := next(families, None)) is not None:
            yield drawn
    for drawn in families:
        yield drawn


class Judging:
    """Judges candidates and keeps what came of each in a file."""

    def __init__(self, out: Path | None) -> None:
        self.verifier = Verifier(gpu=None)
        self.out = out
        self._tasks: dict[str, asyncio.Future[Task]] = {}
        lines = out.read_text().splitlines() if out and out.exists() else []
        self.rows: dict[str, dict[str, Any]] = {row["key"]: row for row in map(json.loads, lines)}

    async def ready(self, candidate: Candidate) -> Task:
        """The candidate's task, prepared once."""
        if candidate.task not in self._tasks:
            task = load_task(source=candidate.c_source, entry=candidate.entry)
            self._tasks[candidate.task] = asyncio.ensure_future(prepare(task))
        return await self._tasks[candidate.task]

    async def judge(self, candidate: Candidate) -> dict[str, Any]:
        """One line of the file, from it where it is there."""
        if candidate.key in self.rows:
            return self.rows[candidate.key]
        task = await self.ready(candidate)
        started = time.monotonic()
        verdict = await self.verifier.test(task, candidate.source)
        if verdict.correct:
            verdict = await self.verifier.test(task, candidate.source, hidden=True)
        row = {"task": candidate.task, "made": candidate.made, "key": candidate.key, "status": str(verdict.status),
               "seconds": round(time.monotonic() - started, 1)}  # fmt: skip
        if not verdict.correct:
            row["message"] = verdict.message
        self.rows[candidate.key] = row
        if self.out:
            with self.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
        return row


async def rejected(count: int, minutes: float, out: Path | None, at_once: int) -> float:
    """Judge them and print what is not correct; the share of rejections."""
    judging = Judging(out)
    started = time.monotonic()
    rows: list[dict[str, Any]] = []

    async def work(source: AsyncIterator[Candidate], lock: asyncio.Lock, taken: list[str]) -> None:
        while time.monotonic() - started < 60 * minutes:
            async with lock:
                if len(taken) >= count or (candidate := await anext(source, None)) is None:
                    return
                taken.append(candidate.key)
            row = await judging.judge(candidate)
            rows.append(row)
            if row["status"] != "correct":
                print(f"{row['task']} {row['made']}: {row['status']}: {row['message']}", flush=True)
            if len(rows) % 50 == 0:
                print(f"{len(rows)} kernels in {time.monotonic() - started:.0f} s", flush=True)

    lock, taken, source = asyncio.Lock(), list[str](), candidates(judging.ready)
    await asyncio.gather(*(work(source, lock, taken) for _ in range(at_once)))
    await judging.verifier.aclose()
    return summary(rows)


def summary(rows: Sequence[dict[str, Any]]) -> float:
    """Print counts; the share of rejections."""
    statuses = Counter(row["status"] for row in rows)
    total = statuses.total()
    share = 1 - statuses["correct"] / max(1, total)
    print(f"{total} kernels of {len({row['task'] for row in rows})} tasks, {dict(statuses)}: {share:.2%} rejected")
    return share


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=520)
    parser.add_argument("--minutes", type=float, default=120.0, help="no new kernel after this time")
    parser.add_argument("--out", type=Path, help="JSON lines to append to, and to take earlier verdicts from")
    parser.add_argument("--at-once", type=int, default=2, help="kernels judged at the same time")
    args = parser.parse_args()
    return 0 if asyncio.run(rejected(args.count, args.minutes, args.out, args.at_once)) <= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
