"""The generator of correct device-form sources: one naive variant and others by strategy, or a reasoned refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cudaperf_agent.codegen.emit import Emitter, NotApplicable
from cudaperf_agent.codegen.plan import make_plan
from cudaperf_agent.codegen.remedies import remedy_for
from cudaperf_agent.codegen.rewrites import Form, forms
from cudaperf_agent.codegen.rules.rolling import expanded
from cudaperf_agent.codegen.steps import Declined, Plan
from cudaperf_agent.codegen.strategy import NAIVE, Strategy
from cudaperf_agent.tasks.lower import lower_task
from cudaperf_agent.tasks.lowered import Module, Unlowered
from cudaperf_agent.tasks.model import Task


@dataclass(frozen=True, slots=True)
class Variant:
    """One generated source.

    Attributes:
        strategy: Name of the strategy.
        source: A device-form ``.cu``.
        description: One sentence.
        parameters: Numbers of the strategy.
        naive: The plain CUDA that others are compared with.
    """

    strategy: str
    source: str
    description: str
    parameters: dict[str, int | str] = field(default_factory=dict)
    naive: bool = False


@dataclass(frozen=True, slots=True)
class Decline:
    """Why there is no translation: the reason, the 1-based line of the C that stands in the way, and what to do."""

    reason: str
    line: int
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """What the generator has for a task: variants, the likely fastest first, or a decline."""

    variants: tuple[Variant, ...] = ()
    declined: Decline | None = None

    @property
    def naive(self) -> Variant | None:
        """The plain variant."""
        return next((v for v in self.variants if v.naive), None)


STRATEGIES = (
    Strategy("tiled", "Tiles of rows and columns in shared memory.", restrict=True, tiled=True, needs="tiled"),
    Strategy(
        "privatised",
        "Counts are gathered per block in shared memory.",
        restrict=True,
        privatised=True,
        needs="privatised",
    ),
    Strategy(
        "warp_rows", "One warp per row, lanes share its loops.", restrict=True, rows="warp", tree=True, needs="rows"
    ),
    Strategy(
        "warp_rows128", "One warp per row, four rows a block.", block=128, restrict=True, rows="warp", needs="rows"
    ),
    Strategy(
        "tree",
        "Partial results by warp shuffles, eight items a thread.",
        restrict=True,
        tree=True,
        items=8,
        needs="tree",
    ),
    Strategy("restrict", "Read-only pointers are __restrict__, partial results by shuffles.", restrict=True, tree=True),
    Strategy(
        "grid_stride",
        "At most 1056 blocks, threads stride over the rest.",
        restrict=True,
        grid_stride=1056,
        needs="stride",
    ),
    Strategy("block128", "Blocks of 128 threads.", block=128, tile=(32, 4), restrict=True, tree=True),
    Strategy("block512", "Blocks of 512 threads.", block=512, tile=(32, 16), restrict=True, tree=True),
    Strategy("square", "Square blocks of 16 by 16 threads.", tile=(16, 16), restrict=True, needs="plane"),
    Strategy("unroll4", "Innermost loops are unrolled four times.", restrict=True, unroll=4, tree=True),
)
"""What is tried on every plan, the likely fastest first."""


def generate(task: Task) -> Generation:
    """All variants of a task.

    Never raises for a C that it cannot translate; the result says why.
    """
    found = _plain(task)
    if isinstance(found, Decline):
        return Generation(declined=found)
    plan, naive = found
    others = _distinct(task, plan, naive, STRATEGIES)
    return Generation((*others, naive))


def plain_variant(task: Task) -> Variant | None:
    """The naive variant alone; `None` where the generator declines, and for PyTorch modules."""
    found = _plain(task) if task.module is None else None
    return found[1] if isinstance(found, tuple) else None


def _plain(task: Task) -> tuple[Plan, Variant] | Decline:
    if task.mode == "program":
        return _decline("whole programs are not generated, only functions", task.first_line)
    module = lower_task(task)
    if isinstance(module, Unlowered):
        return _decline(module.reason, module.line)
    try:
        plan = _planned(module, {p.name: p.extent.expr for p in task.buffers if p.extent is not None})
        source = Emitter(task, plan, NAIVE).source()
    except Declined as stop:
        return _decline(stop.reason, stop.line)
    return plan, Variant(NAIVE.name, source, NAIVE.description, NAIVE.parameters, True)


def _decline(reason: str, line: int) -> Decline:
    return Decline(reason, line, remedy_for(reason))


def _planned(module: Module, extents: dict[str, str]) -> Plan:
    """The plan of a module, or that of its form with swapped rows in a table, or of a rewritten form.

    Raises:
        Declined: What stands in the way in the form that got furthest.
    """
    try:
        return make_plan(module, extents)
    except Declined as stop:
        declined = stop
    table = expanded(module.entry)
    others = [] if table is None else [Form(replace(module, entry=table), {})]
    for form in (*others, *forms(module)):
        try:
            return make_plan(form.module, extents)
        except Declined as stop:
            if not stop.vague or declined.vague:
                declined = Declined(form.explained(stop.reason), stop.line, vague=stop.vague)
    raise declined


def _distinct(task: Task, plan: Plan, naive: Variant, candidates: Sequence[Strategy]) -> list[Variant]:
    seen = {_code(naive.source)}
    made: list[Variant] = []
    for strategy in candidates:
        try:
            source = Emitter(task, plan, strategy).source()
        except NotApplicable:
            continue
        code = _code(source)
        if code not in seen:
            seen.add(code)
            made.append(Variant(strategy.name, source, strategy.description, strategy.parameters))
    return made


def _code(source: str) -> str:
    """The text without its first comment, which names the strategy."""
    return source.split("\n", 1)[1]
