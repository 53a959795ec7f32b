"""The CUDA variants of a task: the generator's, series over one parameter of one strategy, and single edits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cudaperf_agent.codegen.emit import Emitter, NotApplicable
from cudaperf_agent.codegen.plan import make_plan
from cudaperf_agent.codegen.steps import Declined, Plan
from cudaperf_agent.codegen.strategy import NAIVE, Strategy
from cudaperf_agent.codegen.variants import STRATEGIES, Variant, generate
from cudaperf_agent.tasks.lower import lower_task
from cudaperf_agent.tasks.lowered import Unlowered
from cudaperf_agent.tasks.model import Task
from training.dataset.mutate import EDITS


@dataclass(frozen=True, slots=True)
class SeriesConfig:
    """What is varied, one thing at a time.

    Attributes:
        most: Variants of one task at most; the generator's own come first.
        blocks: Threads per block of one-dimensional launches.
        tiles: Threads per block of launches over planes.
        strides: Blocks of a grid-stride launch at most.
        unrolls: Factors.
        items: Iterations per thread of reductions.
    """

    most: int = 18
    blocks: tuple[int, ...] = (32, 64, 512, 1024)
    tiles: tuple[tuple[int, int], ...] = ((32, 1), (64, 4), (8, 32), (4, 8), (128, 2), (32, 32), (1, 256))
    strides: tuple[int, ...] = (132, 4224)
    unrolls: tuple[int, ...] = (2, 8)
    items: tuple[int, ...] = (1, 2, 4, 16, 32)


SERIES = SeriesConfig()


@dataclass(frozen=True, slots=True)
class DataVariant:
    """One variant of the data set.

    Attributes:
        strategy: Label.
        parameters: Numbers of it.
        source: A device-form ``.cu``.
        origin: ``generator``, ``series`` (one parameter of a strategy varied) or ``edit`` (one edit of another).
        base: Label of what it was made from; its own strategy where nothing.
        naive: The plain CUDA.
    """

    strategy: str
    parameters: dict[str, int | str]
    source: str
    origin: str
    base: str
    naive: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the source."""
        return hashlib.sha256(self.source.encode()).hexdigest()


def variants_of(task: Task, *, turn: int = 0, config: SeriesConfig = SERIES) -> tuple[DataVariant, ...]:
    """All variants of a task, the naive one first; empty where the generator declines.

    Args:
        task: A loaded task.
        turn: Where the selection of series and edits starts, so that tasks of a family differ.
        config: What is varied, and how many are kept.
    """
    generation = generate(task)
    if generation.naive is None:
        return ()
    found = [DataVariant(v.strategy, dict(v.parameters), v.source, "generator", v.strategy, v.naive)
             for v in sorted(generation.variants, key=lambda v: not v.naive)]  # fmt: skip
    extra = [*_series(task, config), *_edited(task, generation.variants)]
    # Series and edits take turns, from a place of the task's own, so that a cut leaves some of each.
    extra = extra[turn % len(extra) :] + extra[: turn % len(extra)] if extra else []
    kinds = {"series": [v for v in extra if v.origin == "series"], "edit": [v for v in extra if v.origin == "edit"]}
    while any(kinds.values()):
        for name in ("series", "edit"):
            if kinds[name]:
                found.append(kinds[name].pop(0))
    distinct: dict[str, DataVariant] = {}
    for variant in found:
        distinct.setdefault(_code(variant.source), variant)
    return tuple(distinct.values())[: config.most]


def _series(task: Task, config: SeriesConfig) -> list[DataVariant]:
    module = lower_task(task)
    if isinstance(module, Unlowered):
        return []
    try:
        plan = make_plan(module, {p.name: p.extent.expr for p in task.buffers if p.extent is not None})
    except Declined:
        return []
    named = {s.name: s for s in STRATEGIES}
    base, tree, rows = named["restrict"], named["tree"], named["warp_rows"]
    wanted: list[Strategy] = []
    wanted += [replace(base, block=b, tile=(32, max(1, b // 32)), name="blocks") for b in config.blocks]
    wanted += [replace(base, tile=tile, name="tiles") for tile in config.tiles]
    wanted += [replace(named["grid_stride"], grid_stride=s, name="grid_stride") for s in config.strides]
    wanted += [replace(base, unroll=u, name="unrolled") for u in config.unrolls]
    wanted += [replace(tree, items=i, name="tree") for i in config.items]
    wanted += [replace(rows, block=b, name="warp_rows") for b in (64, 512)]
    wanted += [replace(NAIVE, block=b, tile=(32, b // 32), name="naive_blocks") for b in (64, 1024)]
    return list(_emitted(task, plan, wanted))


def _emitted(task: Task, plan: Plan, strategies: Iterable[Strategy]) -> Iterable[DataVariant]:
    for strategy in strategies:
        try:
            source = Emitter(task, plan, strategy).source()
        except NotApplicable:
            continue
        yield DataVariant(strategy.name, dict(strategy.parameters), source, "series", strategy.name)


def _edited(task: Task, variants: Iterable[Variant]) -> list[DataVariant]:
    found = []
    by_name = {v.strategy: v for v in variants}
    bases = [by_name[name] for name in ("naive", "restrict") if name in by_name]
    for number, edit in enumerate(EDITS):
        base = bases[number % len(bases)]
        source = edit.apply(task, base.source)
        if source is None:
            other = bases[(number + 1) % len(bases)]
            base, source = other, edit.apply(task, other.source)
        if source is not None and source != base.source:
            label = "\n".join(
                [f"// {task.name}: {edit.strategy} {edit.parameters or ''}".rstrip(), *source.split("\n")[1:]]
            )
            found.append(DataVariant(edit.strategy, dict(edit.parameters), label, "edit", base.strategy))
    return found


def _code(source: str) -> str:
    return source.split("\n", 1)[1]
