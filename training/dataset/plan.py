"""What a visit to a GPU shall measure, as a file: tasks and variants with their features, the most informative first.

Made beforehand, it fixes the sources that will be timed, whatever becomes of the generator, and it is what the times
are joined with later. Lines are those of `build.task_line`. Each task has its naive variant and the ``restrict`` one as
anchors: gains are over the naive times of the same visit, and what both visits timed tells how well they agree.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import ConfigError
from cudaperf_agent.features.extract import extract
from cudaperf_agent.tasks.parse import load_task
from training.dataset.build import area_of, features_by_name
from training.dataset.edits.every import FURTHER_STRATEGIES, further_variants
from training.dataset.families import Program, all_programs
from training.dataset.sampled import ORIGIN as POLICY
from training.dataset.sampled import Candidate, read_candidates
from training.dataset.variants import DataVariant, SeriesConfig, variants_of

ANCHORS = ("naive", "restrict")
"""Strategies that are timed again on every visit."""


_HEADERS = frozenset(
    f"<{name}>"
    for name in (
        "cuda_runtime.h", "cuda.h", "cuda_fp16.h", "cuda_bf16.h", "cooperative_groups.h", "device_launch_parameters.h",
        "math.h", "cmath", "stdint.h", "cstdint", "stddef.h", "cstddef", "limits.h", "climits", "float.h", "cfloat",
        "algorithm", "type_traits", "mma.h", "cub/cub.cuh", "math_constants.h", "cooperative_groups/reduce.h",
    )
)  # fmt: skip
_OUTSIDE = re.compile(
    r"\b(system|exit|_exit|_Exit|abort|kill|raise|asm|__asm__|mmap|munmap|read|write|open|unlink|remove|rename|link"
    r"|chmod|mkdir|rmdir|dup2?|pipe|std::filesystem|ifstream|ofstream|fstream)\s*\("
)


@dataclass(frozen=True, slots=True)
class PlanConfig:
    """What a plan has.

    Attributes:
        most: Of the first set, variants of a task at most.
        most_sampled: A policy's kernels of a task at most, distinct texts.
    """

    most: int = 18
    most_sampled: int = 32


PLAN = PlanConfig()


def described(variant: DataVariant) -> dict[str, Any]:
    """A variant with its features, as a line of a built file has it."""
    features = extract(variant.source)
    return {
        **asdict(variant),
        "variant": variant.digest,
        "phi": list(features.vector),
        "extended": features.extended,
        "missing": list(features.missing),
    }


def plan_lines(
    measured: Mapping[str, frozenset[str]],
    names: Sequence[str] = (),
    config: PlanConfig = PLAN,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[dict[str, Any]]:
    """Lines of all tasks that have something to measure: in turn one of each family, so that a cut leaves all families.

    Args:
        measured: Digests of the variants of each task that have been measured.
        names: Only these tasks (all where empty).
        config: How much of each.
        say: Progress.
    """
    chosen = [(turn, p) for turn, p in enumerate(all_programs()) if not names or p.name in names]
    for number, (turn, program) in enumerate(chosen, 1):
        task = load_task(source=program.source, entry=program.entry)
        first = variants_of(task, turn=turn, config=SeriesConfig(most=config.most))
        have = measured.get(program.name)
        # A task that was measured is not measured again for a variant whose text has changed since.
        old = [] if have else [v for v in first if v.strategy not in ANCHORS]
        new = [v for v in further_variants(task, turn=turn) if v.digest not in (have or ())]
        if first and (old or new):
            anchors = [v for v in first if v.origin == "generator" and v.strategy in ANCHORS]
            yield {
                "task": program.name, "family": program.family, "member": program.member,
                "area": area_of(program.family), "entry": program.entry, "source": program.source,
                "sizes": program.sizes, "digest": task.digest,
                "variants": [described(v) for v in (*anchors, *new, *old)],
            }  # fmt: skip
        if number % 25 == 0:
            say(f"{number}/{len(chosen)} tasks")


def write_plan(lines: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write lines to a file, compressed where its name ends in ``.gz``; returns how many variants it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = list(lines)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in kept).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return sum(len(line["variants"]) for line in kept)


def read_plan(path: Path) -> list[dict[str, Any]]:
    """Lines of a plan, or of any built file.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError, ValueError, EOFError) as error:
        hint = "make it: cudaperf dataset plan"
        raise ConfigError(f"the plan cannot be read: {error}", where=str(path), hint=hint) from None


def new_variants(path: Path) -> list[dict[str, Any]]:
    """Further variants of a plan, each with its features by name."""
    found = [v for line in read_plan(path) for v in line["variants"] if v["strategy"] in FURTHER_STRATEGIES]
    return [{**v, **features_by_name(v)} for v in found]


def harmless(source: str) -> bool:
    """Whether a source names nothing that reaches out of a computation: stricter than what a sandboxed run asks."""
    from cudaperf_agent.cuda.cheats import screen

    included = re.findall(r"^[ \t]*#[ \t]*include[ \t]*(.*?)[ \t]*$", source, re.MULTILINE)
    return screen(source) is None and not _OUTSIDE.search(source) and all(i in _HEADERS for i in included)


def with_candidates(
    lines: Sequence[Mapping[str, Any]], paths: Iterable[Path], config: PlanConfig = PLAN
) -> list[dict[str, Any]]:
    """A plan with a policy's kernels, the tasks that have some before the others.

    Only kernels that were found correct, on hidden cases too where those were run, and that name nothing outside of a
    computation (`harmless`) are timed: they share a process that has no sandbox.

    Args:
        lines: The plan; tasks that it lacks are added with their anchors.
        paths: Files of candidates (`sampled.read_candidates`).
        config: How many of a task.
    """
    found: dict[str, dict[str, Candidate]] = {}
    for path in paths:
        for candidate in read_candidates(path):
            if candidate.timeable and candidate.source is not None and harmless(candidate.source):
                found.setdefault(candidate.task, {}).setdefault(candidate.source, candidate)
    by_name = {line["task"]: dict(line) for line in lines}
    programs = {p.name: (turn, p) for turn, p in enumerate(all_programs())}
    first = []
    for name, texts in found.items():
        line = by_name.pop(name, None) or (_anchored(*programs[name]) if name in programs else None)
        if line is None:
            continue
        sampled = [
            {"strategy": POLICY, "parameters": {}, "source": text, "origin": POLICY, "base": POLICY, "naive": False,
             "variant": candidate.digest}
            for text, candidate in list(texts.items())[: config.most_sampled]
        ]  # fmt: skip
        known = {v["variant"] for v in line["variants"]}
        anchors, rest = line["variants"][: len(ANCHORS)], line["variants"][len(ANCHORS) :]
        first.append({**line, "variants": [*anchors, *(s for s in sampled if s["variant"] not in known), *rest]})
    return [*first, *by_name.values()]


def _anchored(turn: int, program: Program) -> dict[str, Any] | None:
    task = load_task(source=program.source, entry=program.entry)
    variants = [v for v in variants_of(task, turn=turn) if v.origin == "generator" and v.strategy in ANCHORS]
    if not variants:
        return None
    return {
        "task": program.name, "source": program.source, "entry": program.entry, "sizes": program.sizes,
        "variants": [{**asdict(v), "variant": v.digest} for v in variants],
    }  # fmt: skip
