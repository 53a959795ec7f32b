"""Rows of the warm start: a prompt as the graph writes it, and the answer that is learned.

Three kinds. ``task``: the first turn, answered by a correct variant; every strategy is drawn, those that the generator
holds for faster more often. ``repair``: the turn after a real attempt that failed, with the verifier's real feedback.
``improve``: the turn after a correct but plainer variant. Only families and members of the training split are used,
and no program that is one of an evaluation set under other names.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.errors import ConfigError, CudaPerfError
from cudaperf_agent.policies.base import Attempt
from cudaperf_agent.policies.prompts import PromptConfig, build_messages
from cudaperf_agent.tasks.model import Task
from training.sft.repairs import draw_written, feedback_on, read_attempts

RowKind = Literal["task", "repair", "improve"]


@dataclass(frozen=True, slots=True)
class RowsConfig:
    """How many rows of what.

    Attributes:
        programs: Seeds of C programs that are tried; each gives one row of kind ``task``, or a second one too.
        families: Share of programs that are members of families, written anew; the others are random.
        second: Share of programs with a second row, of another strategy.
        improve: Share of programs that give a row of kind ``improve`` as well.
        twins: Copies of each row of kind ``task`` with other names throughout.
        repeats: Rows of each kept attempt: one mends it, the next goes over to another strategy.
        uncommented: Share of programs whose ``cudaperf:`` comment is left out, where the C alone says enough.
        longest: Characters of an answer at most; longer variants are not drawn.
        steepness: Weight of the k-th of the fastest variants is 1 / (k + 1) ** steepness.
        seed: First seed of the programs.
    """

    programs: int = 16_000
    families: float = 0.42
    second: float = 0.35
    improve: float = 0.06
    twins: int = 1
    repeats: int = 2
    uncommented: float = 0.2
    longest: int = 3_000
    steepness: float = 0.6
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("families", "second", "improve", "uncommented"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(
                    f"{name} must be from 0 to 1", where=f"rows.{name}", hint="it is a share: 0.5 is half"
                )


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        kind: Of three.
        made_by: Family or program shape.
        strategy: Of the answer.
        system, user: The prompt's messages.
        answer: The completion.
    """

    kind: RowKind
    made_by: str
    strategy: str
    system: str
    user: str
    answer: str


def rows_of(seed: int, config: RowsConfig) -> list[Row]:
    """The rows of one program; none where it is kept out, refused, or declined by the generator."""
    from cudaperf_agent.tasks.parse import load_task

    rng = random.Random(f"rows {seed}")
    written = draw_written(seed, config.families)
    if written is None:
        return []
    try:
        task = load_task(source=written.source, entry=written.entry)
        if rng.random() < config.uncommented:
            task = _uncommented(task)
        drawn = _drawn(task, rng, config)
        first = next(drawn, None)
        if first is None:
            return []
        rows = [_row("task", written.made_by, first.strategy, task, (), first.source)]
        twice, improved = rng.random() < config.second, rng.random() < config.improve
        other = next(drawn, None) if twice or improved else None
    except CudaPerfError:
        return []
    if other is not None and twice:
        rows.append(_row("task", written.made_by, other.strategy, task, (), other.source))
    if other is not None and improved:
        better, worse = sorted((first, other), key=lambda one: one.place)
        cases = _cases(task)
        verdict = Verdict(Status.CORRECT, passed=cases, total=cases)
        past = Attempt(_turn(rng), worse.source, verdict, feedback_on(worse.source, task.name, verdict))
        rows.append(_row("improve", written.made_by, better.strategy, task, (past,), better.source))
    return rows


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A variant: its strategy, its place among the generator's, the likely fastest first, and its source."""

    strategy: str
    place: int
    source: str


def _drawn(task: Task, rng: random.Random, config: RowsConfig) -> Iterator[_Drawn]:
    """Variants in a random order, each made only when it is asked for: making all takes most of the time."""
    from cudaperf_agent.codegen.emit import Emitter, NotApplicable
    from cudaperf_agent.codegen.plan import make_plan
    from cudaperf_agent.codegen.steps import Declined
    from cudaperf_agent.codegen.strategy import NAIVE
    from cudaperf_agent.codegen.variants import STRATEGIES
    from cudaperf_agent.tasks.lower import lower_task
    from cudaperf_agent.tasks.lowered import Unlowered

    module = lower_task(task)
    if isinstance(module, Unlowered):
        return
    try:
        plan = make_plan(module, {p.name: p.extent.expr for p in task.buffers if p.extent is not None})
    except Declined:
        return
    left = list(enumerate((*STRATEGIES, NAIVE)))
    seen: set[str] = set()
    while left:
        weights = [1 / (place + 1) ** config.steepness for place, _ in left]
        chosen = rng.choices(left, weights)[0]
        left.remove(chosen)
        place, strategy = chosen
        try:
            source = Emitter(task, plan, strategy).source()
        except (NotApplicable, Declined):
            continue
        code = source.split("\n", 1)[1]
        if len(source) <= config.longest and code not in seen:
            seen.add(code)
            yield _Drawn(strategy.name, place, source)


def repair_rows(attempt: dict[str, Any], config: RowsConfig) -> list[Row]:
    """Rows that mend a kept attempt; after a correct one, a row that goes on from it to another variant."""
    from cudaperf_agent.tasks.parse import load_task

    rng = random.Random(f"repair {attempt['seed']}")
    correct = attempt["status"] == Status.CORRECT
    verdict = Verdict(Status(attempt["status"]), passed=attempt["passed"], total=attempt["total"])
    kind: RowKind = "improve" if correct else "repair"
    try:
        task = load_task(source=attempt["c"], entry=attempt["entry"])
        others = [v for v in islice(_drawn(task, rng, config), 2) if v.strategy != attempt["strategy"]]
    except CudaPerfError:
        return []
    answers = [(one.strategy, one.source) for one in others[:1]]
    if not correct and len(attempt["answer"]) <= config.longest:
        answers.insert(0, (attempt["strategy"], attempt["answer"]))
    rows = []
    for strategy, answer in answers[: 1 if correct else config.repeats]:
        past = Attempt(_turn(rng), attempt["attempt"], verdict, attempt["feedback"])
        rows.append(_row(kind, attempt["made_by"], strategy, task, (past,), answer))
    return rows


def build_rows(
    config: RowsConfig, attempts: Iterable[dict[str, Any]], *, workers: int = 1, say: Callable[[str], None] = print
) -> Iterator[Row]:
    """All rows, in the order of their seeds, whatever the number of workers."""
    tried = range(config.seed, config.seed + config.programs)
    kept = list(attempts)
    if workers <= 1:
        for seed in tried:
            yield from with_twins(rows_of(seed, config), config)
        for attempt in kept:
            yield from repair_rows(attempt, config)
        return
    with ProcessPoolExecutor(workers) as pool:
        for done, rows in enumerate(pool.map(_rows_of, [(s, config) for s in tried], chunksize=40), 1):
            if done % 2000 == 0:
                say(f"{done} of {config.programs} programs")
            yield from rows
        for rows in pool.map(_repair_rows, [(a, config) for a in kept], chunksize=20):
            yield from rows


def with_twins(rows: Iterable[Row], config: RowsConfig) -> Iterator[Row]:
    """Each row, and after it its twins."""
    from training.sft.twins import renamed

    for row in rows:
        yield row
        for number in range(config.twins):
            twin = renamed(row, number)
            if twin is not None:
                yield twin


def write_rows(path: Path, rows: Iterable[Row]) -> int:
    """Write rows as compressed JSON lines; gives their number. The file appears when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    building, count = path.with_name(f".{path.name}.building"), 0
    with gzip.open(building, "wt", encoding="utf-8", compresslevel=6) as file:
        for row in rows:
            file.write(json.dumps(asdict(row), separators=(",", ":")) + "\n")
            count += 1
    building.replace(path)
    return count


def read_rows(path: Path) -> list[Row]:
    """The rows of a file that `write_rows` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [Row(**json.loads(line)) for line in file]


def shipped_attempts() -> list[dict[str, Any]]:
    """The kept attempts that come with the package."""
    from training.sft.repairs import SHIPPED

    return list(read_attempts(SHIPPED))


def answer_text(source: str) -> str:
    """A candidate as the answer to the prompt."""
    return f"```cuda\n{source.strip()}\n```"


def _row(kind: RowKind, made_by: str, strategy: str, task: Task, history: Sequence[Attempt], source: str) -> Row:
    system, user = build_messages(task, history, config=PromptConfig.compact())
    return Row(kind, made_by, strategy, system.content, user.content, answer_text(source))


def _uncommented(task: Task) -> Task:
    """The task without its comment, where everything that the comment said of extents follows from the C too."""
    from cudaperf_agent.tasks.parse import load_task

    kept = "\n".join(line for line in task.source.split("\n") if "cudaperf:" not in line)
    if kept.count("/*") != kept.count("*/"):
        return task
    try:
        bare = load_task(source=kept, entry=task.name)
    except CudaPerfError:
        return task
    same = [(p.role, bool(p.extent)) for p in task.parameters] == [(p.role, bool(p.extent)) for p in bare.parameters]
    return bare if same and all(p.extent is not None for p in bare.buffers) else task


def _cases(task: Task) -> int:
    from cudaperf_agent.tasks.cases import make_cases

    return len(make_cases(task, hidden=False, seed=0))


def _turn(rng: random.Random) -> int:
    return rng.choices(range(4), (6, 2, 1, 1))[0]


def _rows_of(job: tuple[int, RowsConfig]) -> list[Row]:
    return list(with_twins(rows_of(*job), job[1]))


def _repair_rows(job: tuple[dict[str, Any], RowsConfig]) -> list[Row]:
    return repair_rows(*job)
