"""What the benchmarks of verdicts judge: the C files of the tests, prepared, with correct kernels for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cudaperf_agent.codegen.plan import make_plan
from cudaperf_agent.codegen.steps import Declined
from cudaperf_agent.codegen.strategy import Strategy
from cudaperf_agent.codegen.variants import STRATEGIES, Variant, _distinct, generate
from cudaperf_agent.tasks.lower import lower_task
from cudaperf_agent.tasks.lowered import Unlowered
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases" / "c"
PROGRAMS = ROOT / "tests" / "codegen" / "programs"
HAND_WRITTEN = ROOT / "tests" / "cuda" / "mutants" / "kernels"
BLOCKS = (32, 64, 96, 160, 384, 1024)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A correct kernel: whose task, how it came about, and its text."""

    task: str
    made: str
    source: str


async def prepared(path: Path) -> Task:
    """A C file as a task that is ready."""
    return await prepare(load_task(path))


def hand_written() -> list[Kernel]:
    """Kernels that a person wrote, of the handed C files."""
    return [Kernel(path.stem, "by hand", path.read_text()) for path in sorted(HAND_WRITTEN.glob("*.cu"))]


def variants_of(task: Task, *, more: bool = False) -> Sequence[Variant]:
    """The generator's variants; with `more`, also each strategy with other sizes of blocks."""
    made = generate(task)
    naive = made.naive
    if naive is None or not more:
        return made.variants
    module = lower_task(task)
    if isinstance(module, Unlowered):
        return made.variants
    try:
        plan = make_plan(module, {p.name: p.extent.expr for p in task.buffers if p.extent is not None})
    except Declined:
        return made.variants
    others: list[Strategy] = []
    for block in BLOCKS:
        for strategy in STRATEGIES:
            if strategy.block == 256:
                tile = (32, block // 32)
                others.append(replace(strategy, name=f"{strategy.name}@{block}", block=block, tile=tile))
    known = {v.source.split("\n", 1)[1] for v in made.variants}
    extra = [v for v in _distinct(task, plan, naive, others) if v.source.split("\n", 1)[1] not in known]
    return (*made.variants, *extra)
