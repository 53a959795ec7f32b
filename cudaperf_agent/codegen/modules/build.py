"""Builds tensors of the IR: broadcasting, views, and what operators are composed of."""

from __future__ import annotations

from collections.abc import Sequence

from cudaperf_agent.codegen.modules.sizes import ONE, ZERO, Expr, as_expr, flattened, product, unflattened
from cudaperf_agent.codegen.modules.tensors import (
    Choice,
    Constant,
    Contraction,
    Index,
    Point,
    Position,
    Reduce,
    Tensor,
    Test,
    View,
    broadcast_shape,
    category,
    is_float,
)


def constant(value: float | int | bool, dtype: str, shape: Index = ()) -> Constant:
    """A number, of any shape."""
    return Constant(shape=shape, dtype=dtype, value=value, label="c")


def expanded(tensor: Tensor, shape: Index) -> Tensor:
    """Broadcast to a shape."""
    if tensor.shape == shape:
        return tensor
    if isinstance(tensor, Constant):
        return constant(tensor.value, tensor.dtype, shape)
    skip, old = len(shape) - len(tensor.shape), tensor.shape

    def remap(index: Index) -> Index:
        return tuple(ZERO if old[k] == ONE else index[skip + k] for k in range(len(old)))

    return View(shape=shape, dtype=tensor.dtype, label=tensor.label, source=tensor, remap=remap)


def cast(tensor: Tensor, dtype: str) -> Tensor:
    """Converted to another type; between float types the value keeps what the narrower one can hold."""
    if tensor.dtype == dtype:
        return tensor
    if isinstance(tensor, Constant):
        value = float(tensor.value) if is_float(dtype) else bool(tensor.value) if dtype == "bool" else int(tensor.value)
        return constant(value, dtype, tensor.shape)
    return Point(shape=tensor.shape, dtype=dtype, label=tensor.label, op="cast", arguments=(tensor,))


def point(op: str, *arguments: Tensor | float | int | bool, dtype: str, label: str = "", operands: str = "") -> Tensor:
    """An elementwise operation with broadcasting.

    Args:
        op: Its name in the table of operations.
        arguments: Tensors or numbers.
        dtype: Of the result.
        label: For the code.
        operands: The type that operands are converted to first; that of the result if empty.
    """
    tensors = [a if isinstance(a, Tensor) else constant(a, operands or dtype) for a in arguments]
    shape = broadcast_shape([t.shape for t in tensors])
    wanted = operands or dtype
    ready = []
    for position, tensor in enumerate(tensors):
        kept = op == "where" and position == 0
        ready.append(expanded(tensor if kept else compute_cast(tensor, wanted), shape))
    return Point(shape=shape, dtype=dtype, label=label or op, op=op, arguments=tuple(ready))


def compute_cast(tensor: Tensor, dtype: str) -> Tensor:
    """Converted for computing: floats of any width are computed in ``float`` and stay as they are."""
    return tensor if is_float(tensor.dtype) and is_float(dtype) else cast(tensor, dtype)


def promoted(*tensors: Tensor) -> str:
    """The type that operands of several types are compared in: the highest category, then the widest tensor."""
    top = max(category(t.dtype) for t in tensors)
    return max((t.dtype for t in tensors if category(t.dtype) == top), key=lambda d: (d == "int64", d == "int32"))


def permuted(tensor: Tensor, order: Sequence[int], label: str = "") -> Tensor:
    """Dimensions in another order: dimension k of the result is dimension ``order[k]``."""
    if list(order) == list(range(len(tensor.shape))):
        return tensor
    back = [list(order).index(k) for k in range(len(order))]
    return View(
        shape=tuple(tensor.shape[k] for k in order), dtype=tensor.dtype, label=label or tensor.label, source=tensor,
        remap=lambda index: tuple(index[k] for k in back),
    )  # fmt: skip


def reshaped(tensor: Tensor, shape: Index, label: str = "") -> Tensor:
    """The same elements in the same order."""
    old = tensor.shape
    if old == shape:
        return tensor
    if isinstance(tensor, Constant):
        return constant(tensor.value, tensor.dtype, shape)
    kept = [k for k, n in enumerate(shape) if n != ONE]
    if [n for n in old if n != ONE] == [shape[k] for k in kept]:
        # Only ones come or go: no arithmetic at all.
        places = iter(kept)
        source = [next(places) if n != ONE else None for n in old]

        def move(index: Index) -> Index:
            return tuple(ZERO if k is None else index[k] for k in source)

        return View(shape=shape, dtype=tensor.dtype, label=label or tensor.label, source=tensor, remap=move)

    def remap(index: Index) -> Index:
        return unflattened(flattened(index, shape), old)

    return View(shape=shape, dtype=tensor.dtype, label=label or tensor.label, source=tensor, remap=remap)


def sliced(tensor: Tensor, axis: int, start: Expr, count: Expr, step: int = 1) -> Tensor:
    """Every `step`-th of a dimension."""

    def remap(index: Index) -> Index:
        return (*index[:axis], start + index[axis] * step, *index[axis + 1 :])

    shape = (*tensor.shape[:axis], count, *tensor.shape[axis + 1 :])
    return View(shape=shape, dtype=tensor.dtype, label=tensor.label, source=tensor, remap=remap)


def selected(tensor: Tensor, axis: int, at: Expr) -> Tensor:
    """One place of a dimension, which goes away."""
    shape = (*tensor.shape[:axis], *tensor.shape[axis + 1 :])
    return View(
        shape=shape, dtype=tensor.dtype, label=tensor.label, source=tensor,
        remap=lambda index: (*index[:axis], at, *index[axis:]),
    )  # fmt: skip


def flipped(tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Dimensions backwards."""
    shape = tensor.shape
    return View(
        shape=shape, dtype=tensor.dtype, label=tensor.label, source=tensor,
        remap=lambda index: tuple(shape[k] - 1 - i if k in axes else i for k, i in enumerate(index)),
    )  # fmt: skip


def padded(tensor: Tensor, before: Sequence[Expr], after: Sequence[Expr], fill: Tensor) -> Tensor:
    """More room at both ends of every dimension, or less for negative amounts."""
    old = tensor.shape
    shape = tuple(n + a + b for n, a, b in zip(old, before, after, strict=True))
    moved = View(
        shape=shape, dtype=tensor.dtype, label=tensor.label, source=tensor,
        remap=lambda index: tuple(i - b for i, b in zip(index, before, strict=True)),
    )  # fmt: skip

    def tests(index: Index) -> tuple[Test, ...]:
        found: list[Test] = []
        for at, low, high, size in zip(index, before, after, old, strict=True):
            if low != ZERO:
                found.append(Test(at, low, at_least=True))
            if high != ZERO:
                found.append(Test(at, size + low))
        return tuple(found)

    outside = expanded(fill, shape)
    return Choice(shape=shape, dtype=tensor.dtype, label=tensor.label, tests=tests, inside=moved, outside=outside)


def joined(tensors: Sequence[Tensor], axis: int, label: str = "cat") -> Tensor:
    """One behind the other along a dimension."""
    first, *others = tensors
    for other in others:
        first = _two_joined(first, other, axis, label)
    return first


def _two_joined(left: Tensor, right: Tensor, axis: int, label: str) -> Tensor:
    edge = left.shape[axis]
    shape = (*left.shape[:axis], edge + right.shape[axis], *left.shape[axis + 1 :])
    before = View(shape=shape, dtype=left.dtype, label=left.label, source=left, remap=lambda index: index)
    behind = View(
        shape=shape, dtype=right.dtype, label=right.label, source=right,
        remap=lambda index: (*index[:axis], index[axis] - edge, *index[axis + 1 :]),
    )  # fmt: skip
    return Choice(
        shape=shape, dtype=left.dtype, label=label, tests=lambda index: (Test(index[axis], edge),),
        inside=before, outside=behind,
    )  # fmt: skip


def reduced(
    kind: str, tensor: Tensor, axes: Sequence[int], dtype: str, *, keep: bool = False, label: str = ""
) -> Tensor:
    """Dimensions combined; they go to the end of the source first."""
    rank = len(tensor.shape)
    gone = sorted({a % rank for a in axes}) if rank else []
    stay = [k for k in range(rank) if k not in gone]
    source = permuted(tensor, [*stay, *gone])
    made: Tensor = Reduce(
        shape=tuple(tensor.shape[k] for k in stay), dtype=dtype, label=label or kind, kind=kind, source=source
    )
    if not gone:
        made = cast(tensor, dtype) if not kind.startswith("arg") else constant(0, dtype, tensor.shape)
    if keep:
        made = reshaped(made, tuple(ONE if k in gone else n for k, n in enumerate(tensor.shape)))
    return made


def mean(tensor: Tensor, axes: Sequence[int], dtype: str, *, keep: bool = False, label: str = "mean") -> Tensor:
    """The mean over dimensions."""
    rank = len(tensor.shape)
    total = reduced("sum", tensor, axes, dtype, keep=keep, label=f"{label}_sum")
    count = product(tensor.shape[k] for k in sorted({a % rank for a in axes})) if rank else ONE
    return point("div", total, size_value(count, dtype), dtype=dtype, label=label)


def size_value(value: Expr, dtype: str) -> Tensor:
    """A size as a number of the graph."""
    known = value.constant
    if known is not None:
        return constant(float(known) if is_float(dtype) else known, dtype)
    whole = Position(shape=(), dtype="int64", label="size", at=lambda _: value)
    return cast(whole, dtype)


def contraction(left: Tensor, right: Tensor, dtype: str, label: str) -> Contraction:
    """``Σ_k left[b…, m, k] · right[b…, n, k]``, batch dimensions broadcast."""
    batch = broadcast_shape([left.shape[:-2], right.shape[:-2]])
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-2]
    left, right = expanded(left, (*batch, rows, depth)), expanded(right, (*batch, columns, depth))
    shape, at = (*batch, rows, columns), len(batch)
    whole = (*shape, depth)
    spread = [
        View(
            shape=whole, dtype=t.dtype, label=t.label, source=t,
            remap=lambda index, drop=drop: (*index[:drop], *index[drop + 1 :]),  # type: ignore[misc]
        )
        for t, drop in ((left, at + 1), (right, at))
    ]  # fmt: skip
    source = point("mul", *spread, dtype=dtype, label="product")
    return Contraction(
        shape=shape, dtype=dtype, label=label, kind="sum", source=source, left=left, right=right, batch=at
    )


def int_index(values: Sequence[int | Expr]) -> Index:
    """Numbers as an index."""
    return tuple(as_expr(v) for v in values)
