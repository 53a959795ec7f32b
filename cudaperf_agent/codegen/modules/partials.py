"""Long reductions of few rows in two steps: a block for each chunk of a row, and then the chunks."""

from __future__ import annotations

from dataclasses import fields, replace

from cudaperf_agent.codegen.modules.kernels import Style, Thresholds
from cudaperf_agent.codegen.modules.sizes import Expr, Size, as_expr, evaluated, text_of
from cudaperf_agent.codegen.modules.tensors import Contraction, Lookup, Partial, Program, Reduce, Tensor, is_float, walk


def with_partials(program: Program, style: Style, limits: Thresholds) -> Program:
    """The program with long reductions of few rows in two steps."""
    hints = dict(program.hints)
    made: dict[int, Tensor] = {}
    keep: list[Tensor] = []
    sizes: list[Size] = []
    for tensor in walk(*program.outputs):
        changed = _with_parts(tensor, made)
        if isinstance(changed, Reduce) and not isinstance(changed, Contraction):
            rows, length = (evaluated(n, hints) for n in (changed.count, changed.length))
            fixed_rows = changed.count.constant is not None and changed.length.constant is None
            if fixed_rows or _worth_cutting(rows, length, style, limits):
                formula = (
                    f"min(max(1, -(-({text_of(changed.length, python=True)}) // {limits.chunk})), {limits.most_chunks})"
                )
                size = Size(f"chunks{len(sizes)}", formula)
                hints[size.name] = min(max(1, -(-length // limits.chunk)), limits.most_chunks)
                sizes.append(size)
                changed = _two_steps(changed, as_expr(size))
        keep.append(changed)
        made[id(tensor)] = changed
    return replace(
        program, outputs=tuple(made[id(t)] for t in program.outputs), hints=hints, sizes=(*program.sizes, *sizes)
    )


def _worth_cutting(rows: int, length: int, style: Style, limits: Thresholds) -> bool:
    if style.split == "needed" or length < limits.long_row:
        return False
    if style.split == "eager":
        return rows < limits.few_rows
    return rows < limits.idle_rows or (rows < limits.few_rows and length >= limits.endless_row)


def _two_steps(whole: Reduce, chunks: Expr) -> Tensor:
    shape = (*whole.shape, chunks)
    values = Partial(shape=shape, dtype=_partial_type(whole), label=f"{whole.label}_parts", reduce=whole)
    if not whole.kind.startswith("arg"):
        return Reduce(shape=whole.shape, dtype=whole.dtype, label=whole.label, kind=whole.kind, source=values)
    places = Partial(shape=shape, dtype="int64", label=f"{whole.label}_places", reduce=whole, places=True)
    best = Reduce(shape=whole.shape, dtype="int64", label=f"{whole.label}_chunk", kind=whole.kind, source=values)
    return Lookup(
        shape=whole.shape, dtype="int64", label=whole.label, source=places, subscripts=(best,), limits=(chunks,),
        asked=(lambda index: index,), remap=lambda index, found: (*index, found[0]),
    )  # fmt: skip


def _partial_type(whole: Reduce) -> str:
    source = whole.source.dtype if whole.kind.startswith("arg") else whole.dtype
    return "compute" if is_float(source) else source


def _with_parts(tensor: Tensor, made: dict[int, Tensor]) -> Tensor:
    changes: dict[str, object] = {}
    for one in fields(tensor):
        value = getattr(tensor, one.name)
        if isinstance(value, Tensor) and made.get(id(value), value) is not value:
            changes[one.name] = made[id(value)]
        elif isinstance(value, tuple) and any(isinstance(v, Tensor) and made.get(id(v), v) is not v for v in value):
            changes[one.name] = tuple(made.get(id(v), v) if isinstance(v, Tensor) else v for v in value)
    return replace(tensor, **changes) if changes else tensor  # type: ignore[arg-type]
