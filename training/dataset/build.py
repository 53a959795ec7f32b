"""Tasks and variants with their features, as JSON lines, resumable: one line per task, appended and flushed."""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import UsageError
from cudaperf_agent.features.extract import extract
from cudaperf_agent.features.model import ORDER
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from training.dataset.families import FAMILIES, Program, all_programs
from training.dataset.variants import SeriesConfig, variants_of

_AREAS = {family.name: family.area for family in FAMILIES}


@dataclass(frozen=True, slots=True)
class Built:
    """What a build did: tasks and variants that the file now has, and tasks the generator declined."""

    tasks: int
    variants: int
    declined: tuple[str, ...]


def task_line(program: Program, turn: int, most: int) -> dict[str, Any]:
    """One task with its variants and their φ."""
    task = load_task(source=program.source, entry=program.entry)
    variants = []
    for variant in variants_of(task, turn=turn, config=SeriesConfig(most=most)):
        features = extract(variant.source)
        variants.append(
            {
                **asdict(variant),
                "variant": variant.digest,
                "phi": list(features.vector),
                "extended": features.extended,
                "missing": list(features.missing),
            }
        )
    return {
        "task": program.name,
        "family": program.family,
        "member": program.member,
        "area": _AREAS[program.family],
        "entry": program.entry,
        "source": program.source,
        "sizes": program.sizes,
        "digest": task.digest,
        "variants": variants,
    }


def area_of(family: str) -> str:
    """The area that a family of programs belongs to."""
    return _AREAS[family]


def build(
    path: Path,
    *,
    most: int,
    names: Sequence[str] = (),
    say: Callable[[str], None] = lambda text: None,
) -> Built:
    """Write what is missing of the data set to `path`; a file that is there is continued.

    Args:
        path: JSON lines.
        most: Variants of a task at most.
        names: Only these tasks (all where empty).
        say: Progress.

    Raises:
        UsageError: There is no such task.
    """
    wanted = chosen_programs(names)
    path.parent.mkdir(parents=True, exist_ok=True)
    have = {line["task"]: line for line in read_lines(path)}
    missing = [(i, p) for i, p in wanted if p.name not in have]
    started = time.monotonic()
    with path.open("a") as file:
        for number, (turn, program) in enumerate(missing, 1):
            line = task_line(program, turn, most)
            have[program.name] = line
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())
            if number % 10 == 0 or number == len(missing):
                left = (time.monotonic() - started) / number * (len(missing) - number)
                say(f"{number}/{len(missing)} tasks, {left:.0f} s to go")
    lines = [have[p.name] for _, p in wanted]
    declined = tuple(line["task"] for line in lines if not line["variants"])
    return Built(len(lines), sum(len(line["variants"]) for line in lines), declined)


def chosen_programs(names: Sequence[str] = ()) -> list[tuple[int, Program]]:
    """The programs of these names, all where empty, each with its place among all.

    Raises:
        UsageError: There is no such task.
    """
    every = list(enumerate(all_programs()))
    known = [p.name for _, p in every]
    unknown = [name for name in names if name not in known]
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"tasks are named FAMILY/NUMBER, for instance {known[0]}"
        raise UsageError(f"there is no task {unknown[0]}", where="--task", hint=hint)
    return [(i, p) for i, p in every if not names or p.name in names]


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Whole lines of a file of JSON lines; a last line that was cut short is removed from the file."""
    if not path.exists():
        return
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if whole != raw:
        with path.open("r+b") as file:
            file.truncate(len(whole))
    for line in whole.splitlines():
        yield json.loads(line)


def features_by_name(line: dict[str, Any]) -> dict[str, float]:
    """φ of a built variant by feature name."""
    return dict(zip(ORDER, line["phi"], strict=True))


async def check_tasks(programs: Iterable[Program], say: Callable[[str], None]) -> dict[str, str]:
    """Prepare every task (sanitizers, roles, extents); what is wrong by task, empty if nothing. Slow."""
    from cudaperf_agent.errors import CudaPerfError
    from cudaperf_agent.tasks.prepare import prepare

    wrong: dict[str, str] = {}
    for program in programs:
        try:
            task = load_task(source=program.source, entry=program.entry)
            prepared = await prepare(task)
        except CudaPerfError as error:
            wrong[program.name] = str(error)
        else:
            changed = _differences(task, prepared)
            if changed:
                wrong[program.name] = changed
        say(f"{program.name}: {wrong.get(program.name, 'ok')}")
    return wrong


def _differences(task: Task, prepared: Task) -> str:
    """What preparing found out that the declared text does not say: roles, extents or ranges."""
    pairs = zip(task.inputs(), prepared.inputs(), strict=True)
    found = [
        f"{a.name}: {b.role} {b.range}" for a, b in pairs if (a.role, a.extent, a.range) != (b.role, b.extent, b.range)
    ]
    return "; ".join(found)


async def verify_sample(
    path: Path, verdicts: Path, *, share: float, seed: int, seconds: float, say: Callable[[str], None]
) -> dict[str, int]:
    """Run a random sample of the built variants through the verifier on the emulator; counts by status.

    Resumable: verdicts are appended to `verdicts`, and what is there is not run again.

    Args:
        path: A built file.
        verdicts: JSON lines of ``variant``, ``status``, ``message``.
        share: Of the variants, 0 to 1.
        seed: Of the choice.
        seconds: Wall time after which it stops.
        say: Progress.
    """
    import numpy as np

    from cudaperf_agent.cuda.verifier import Verifier
    from cudaperf_agent.tasks.prepare import prepare

    lines = list(read_lines(path))
    done = {v["variant"]: v for v in read_lines(verdicts)}
    rng = np.random.default_rng(seed)
    every = [(line, v) for line in lines for v in line["variants"]]
    chosen = [every[i] for i in rng.permutation(len(every))[: max(1, round(share * len(every)))]]
    verifier = Verifier(gpu=None)
    until = asyncio.get_running_loop().time() + seconds
    try:
        with verdicts.open("a") as file:
            for number, (line, variant) in enumerate(chosen, 1):
                if variant["variant"] in done:
                    continue
                if asyncio.get_running_loop().time() > until:
                    break
                task = await prepare(load_task(source=line["source"], entry=line["entry"]))
                verdict = await verifier.test(task, variant["source"])
                row = {
                    "variant": variant["variant"], "task": line["task"], "strategy": variant["strategy"],
                    "status": str(verdict.status), "message": verdict.message,
                }  # fmt: skip
                done[variant["variant"]] = row
                file.write(json.dumps(row) + "\n")
                file.flush()
                say(f"{number}/{len(chosen)} {line['task']} {variant['strategy']}: {verdict.status}")
    finally:
        await verifier.aclose()
    counts: dict[str, int] = {}
    for row in done.values():
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    return counts
