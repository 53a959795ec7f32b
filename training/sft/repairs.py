"""Attempts with their real verdicts: correct variants and such with a mistake in them, put to the verifier.

They are kept as data, because verification takes seconds each: the rows on mending are built from them.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.errors import CudaPerfError
from training.sft.augment import SEEN, written_anew
from training.sft.faults import with_a_fault
from training.sft.likeness import evaluation_sets
from training.sft.programs import Written, write_program

if TYPE_CHECKING:
    from cudaperf_agent.cuda.verifier import Verifier

SHIPPED = Path(__file__).with_name("attempts.jsonl.gz")
"""What was verified with the release's generator, some hundred attempts."""

_SOUND = 0.25
"""Share of attempts without a mistake: their verdicts check the generator, and their feedback is the real one."""
_OWN = 0.5
"""Share of attempts on members of families; the rest are on random programs."""


def draw_written(seed: int, families: float) -> Written | None:
    """The C text of a seed, of a family with that probability; `None` if it is of an evaluation set."""
    rng = random.Random(f"written {seed}")
    written = written_anew(rng.choice(SEEN), seed) if rng.random() < families else write_program(seed)
    return None if evaluation_sets().out(written.source) else written


def feedback_on(source: str, entry: str, verdict: Verdict) -> str:
    """The words that the graph would give on this candidate."""
    from cudaperf_agent.features.extract import extract
    from graph.assessing import looks_of, write_feedback

    return write_feedback(verdict, looks_of(extract(source, entry=entry)))


async def verify_attempts(
    path: Path, *, first: int, count: int, seconds: float, say: Callable[[str], None], at_once: int = 2
) -> int:
    """Append attempts of the seeds from `first` on to `path`; what is there is not done again.

    Returns:
        How many were added within `seconds`.
    """
    from cudaperf_agent.cuda.verifier import Verifier

    done = {line["seed"] for line in read_attempts(path)}
    verifier = Verifier(gpu=None)
    clock = asyncio.get_running_loop().time
    until, added = clock() + seconds, 0
    waiting = iter(seed for seed in range(first, first + count) if seed not in done)

    async def work() -> None:
        nonlocal added
        for seed in waiting:
            if clock() > until:
                return
            line = await _attempt(seed, verifier)
            if line is None:
                continue
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
            added += 1
            say(f"{seed}: {line['fault'] or 'sound'}: {line['status']}")

    try:
        await asyncio.gather(*(work() for _ in range(at_once)))
    finally:
        await verifier.aclose()
    return added


async def _attempt(seed: int, verifier: Verifier) -> dict[str, Any] | None:
    from cudaperf_agent.codegen.variants import generate
    from cudaperf_agent.tasks.parse import load_task
    from cudaperf_agent.tasks.prepare import prepare

    rng = random.Random(f"attempt {seed}")
    written = draw_written(seed, _OWN)
    if written is None:
        return None
    try:
        task = await prepare(load_task(source=written.source, entry=written.entry), wrap=verifier.place.sandbox.wrap)
        variants = (await asyncio.to_thread(generate, task)).variants
    except CudaPerfError:
        return None
    if not variants:
        return None
    good = rng.choice(variants)
    source, fault = good.source, ""
    if rng.random() >= _SOUND:
        faulty = with_a_fault(source, rng)
        if faulty is None:
            return None
        source, fault = faulty.source, faulty.fault
    verdict = await verifier.test(task, source)
    return {
        "seed": seed, "made_by": written.made_by, "c": written.source, "entry": written.entry, "fault": fault,
        "strategy": good.strategy, "attempt": source, "answer": good.source, "status": str(verdict.status),
        "passed": verdict.passed, "total": verdict.total, "feedback": feedback_on(source, task.name, verdict),
    }  # fmt: skip


def read_attempts(path: Path) -> Iterator[dict[str, Any]]:
    """The attempts of a file, compressed or not; none where there is no file."""
    if not path.exists():
        return
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)
