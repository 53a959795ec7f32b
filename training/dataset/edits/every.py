"""All further variants of a task: vector loads, kernels split and joined, other layouts, beside those of `variants_of`.

They come on top: what `variants_of` gives stays as it is, text by text, since measured data are keyed by its digest.
"""

from __future__ import annotations

from cudaperf_agent.tasks.model import Task
from training.dataset.edits.fission import FISSION_EDITS
from training.dataset.edits.shapes import SHAPE_EDITS
from training.dataset.edits.tiles import TILE_EDITS
from training.dataset.edits.vector_planes import VECTOR_EDITS
from training.dataset.variants import SERIES, DataVariant, SeriesConfig, variants_of

FURTHER_EDITS = (*VECTOR_EDITS, *FISSION_EDITS, *SHAPE_EDITS, *TILE_EDITS)
FURTHER_STRATEGIES = frozenset(edit.strategy for _, edit in FURTHER_EDITS)
"""Labels that only further variants have."""


def further_variants(task: Task) -> tuple[DataVariant, ...]:
    """Variants by the edits of this package; none where the generator declines."""
    bases: dict[str, DataVariant] = {}
    for variant in variants_of(task, config=SeriesConfig(most=1000)):
        if variant.origin == "generator":
            bases.setdefault(variant.strategy, variant)
    found: dict[str, DataVariant] = {}
    known = {_code(v.source) for v in bases.values()}
    for names, edit in FURTHER_EDITS:
        base = next((bases[name] for name in names if name in bases), None)
        source = edit.apply(task, base.source) if base is not None else None
        if base is None or source is None or _code(source) in known:
            continue
        known.add(_code(source))
        head = f"// {task.name}: {edit.strategy} {edit.parameters or ''}".rstrip()
        label = "\n".join([head, *source.split("\n")[1:]])
        variant = DataVariant(edit.strategy, dict(edit.parameters), label, "edit", base.strategy)
        found.setdefault(variant.digest, variant)
    return tuple(found.values())


def every_variant(task: Task, *, turn: int = 0, config: SeriesConfig = SERIES) -> tuple[DataVariant, ...]:
    """`variants_of` a task, and its further variants after them."""
    first = variants_of(task, turn=turn, config=config)
    return (*first, *further_variants(task)) if first else ()


def _code(source: str) -> str:
    return source.split("\n", 1)[1]
