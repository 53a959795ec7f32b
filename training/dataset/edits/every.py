"""All further variants of a task: vector loads, kernels split and joined, other layouts, beside those of `variants_of`.

They come on top: what `variants_of` gives stays as it is, text by text, since measured data are keyed by its digest.
Some make one edit, as the first set does; compound ones make two, on another strategy's source, and so differ from the
others of their task in many things at once, as kernels do that people write.
"""

from __future__ import annotations

from cudaperf_agent.tasks.model import Task
from training.dataset.edits.fission import FISSION_EDITS
from training.dataset.edits.shapes import SHAPE_EDITS
from training.dataset.edits.tiles import TILE_EDITS
from training.dataset.edits.vector_planes import VECTOR_EDITS
from training.dataset.mutate import EDITS
from training.dataset.variants import SERIES, DataVariant, SeriesConfig, variants_of

FURTHER_EDITS = (*VECTOR_EDITS, *FISSION_EDITS, *SHAPE_EDITS, *TILE_EDITS)
COMPOUND = "compound"
FURTHER_STRATEGIES = frozenset(edit.strategy for _, edit in FURTHER_EDITS) | {COMPOUND}
"""Labels that only further variants have."""
OTHER_BASES = ("block512", "unroll4", "block128", "square", "warp_rows128", "grid_stride")
"""Strategies that compound variants start from where a single edit starts from the plain or the ``restrict`` source."""
MOST_COMPOUND = 3


def further_variants(task: Task, *, turn: int = 0) -> tuple[DataVariant, ...]:
    """Variants by the edits of this package; none where the generator declines.

    Args:
        task: A loaded task.
        turn: Where the choice of compound ones starts, so that tasks of a family differ.
    """
    bases: dict[str, DataVariant] = {}
    for variant in variants_of(task, config=SeriesConfig(most=1000)):
        if variant.origin == "generator":
            bases.setdefault(variant.strategy, variant)
    known = {_code(v.source) for v in bases.values()}
    found: list[DataVariant] = []

    def keep(source: str | None, strategy: str, parameters: dict[str, int | str], base: str) -> bool:
        if source is None or _code(source) in known:
            return False
        known.add(_code(source))
        head = f"// {task.name}: {strategy} {parameters or ''}".rstrip()
        label = "\n".join([head, *source.split("\n")[1:]])
        found.append(DataVariant(strategy, dict(parameters), label, "edit", base))
        return True

    for names, edit in FURTHER_EDITS:
        base = next((bases[name] for name in names if name in bases), None)
        if base is not None:
            keep(edit.apply(task, base.source), edit.strategy, edit.parameters, base.strategy)
    used: set[str] = set()
    for number in range(len(FURTHER_EDITS)):
        names, edit = FURTHER_EDITS[(turn + number) % len(FURTHER_EDITS)]
        base = _other(bases, names, turn + number)
        first = edit.apply(task, base.source) if base is not None and edit.strategy not in used else None
        if first is None or base is None:
            continue
        for more in range(len(EDITS)):
            then = EDITS[(turn + 5 * number + 3 * more) % len(EDITS)]
            parameters = {"first": edit.strategy, **edit.parameters, "then": then.strategy}
            if keep(then.apply(task, first), COMPOUND, parameters, base.strategy):
                used.add(edit.strategy)
                break
        if len(used) == MOST_COMPOUND:
            break
    return tuple(found)


def _other(bases: dict[str, DataVariant], names: tuple[str, ...], turn: int) -> DataVariant | None:
    """A source for a compound variant: of another strategy where the edit takes the plain one."""
    if names[0] in ("naive", "restrict"):
        there = [name for name in OTHER_BASES if name in bases]
        return bases[there[turn % len(there)]] if there else None
    return next((bases[name] for name in names if name in bases), None)


def every_variant(task: Task, *, turn: int = 0, config: SeriesConfig = SERIES) -> tuple[DataVariant, ...]:
    """`variants_of` a task, and its further variants after them."""
    first = variants_of(task, turn=turn, config=config)
    return (*first, *further_variants(task, turn=turn)) if first else ()


def _code(source: str) -> str:
    return source.split("\n", 1)[1]
