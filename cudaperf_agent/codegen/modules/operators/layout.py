"""Views, copies and joins: operators that only move elements, all of them index arithmetic here."""

from __future__ import annotations

from cudaperf_agent.codegen.modules.build import (
    constant,
    expanded,
    flipped,
    joined,
    padded,
    permuted,
    point,
    reshaped,
    selected,
    size_value,
    sliced,
)
from cudaperf_agent.codegen.modules.graph import MAXIMUM, Call, rule
from cudaperf_agent.codegen.modules.sizes import ONE, ZERO, Expr, as_expr, never_negative
from cudaperf_agent.codegen.modules.tensors import Choice, Position, Tensor, Test, View


@rule(
    "aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.unsqueeze.default",
    "aten.squeeze.dims", "aten.squeeze.dim", "aten.squeeze.default", "aten.flatten.using_ints",
)  # fmt: skip
def _reshape(call: Call) -> Tensor:
    return reshaped(call.tensor("self"), call.shape, call.label)


@rule("aten.permute.default")
def _permute(call: Call) -> Tensor:
    x = call.tensor("self")
    return permuted(x, [d % len(x.shape) for d in call.wholes("dims")], call.label)


@rule("aten.transpose.int", "aten.t.default")
def _transpose(call: Call) -> Tensor:
    x = call.tensor("self")
    rank = len(x.shape)
    if rank < 2:
        return x
    a, b = call.whole("dim0", 0) % rank, call.whole("dim1", 1) % rank
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return permuted(x, order, call.label)


@rule("aten.expand.default")
def _expand(call: Call) -> Tensor:
    return expanded(call.tensor("self"), call.shape)


@rule("aten.repeat.default")
def _repeat(call: Call) -> Tensor:
    x = call.tensor("self")
    lead = len(call.shape) - len(x.shape)
    old = x.shape
    return View(
        shape=call.shape, dtype=x.dtype, label=call.label, source=x,
        remap=lambda index: tuple(ZERO if n == ONE else index[lead + k] % n for k, n in enumerate(old)),
    )  # fmt: skip


@rule("aten.slice.Tensor")
def _slice(call: Call) -> Tensor:
    x = call.tensor("self")
    axis = call.whole("dim") % len(x.shape)
    start, step = call.size("start"), call.whole("step", 1)
    if not never_negative(start):
        start = x.shape[axis] + start if never_negative(x.shape[axis] + start) else ZERO
    if start.constant == MAXIMUM:
        raise call.fail("starts behind the end")
    return sliced(x, axis, start, call.shape[axis], step)


@rule("aten.select.int")
def _select(call: Call) -> Tensor:
    x = call.tensor("self")
    axis, at = call.whole("dim") % len(x.shape), call.size("index")
    return selected(x, axis, at if never_negative(at) else x.shape[axis] + at)


@rule("aten.split_with_sizes.default", "aten.split.Tensor", "aten.chunk.default")
def _split(call: Call) -> tuple[Tensor | None, ...]:
    x = call.tensor("self")
    axis = call.whole("dim") % len(x.shape)
    found: list[Tensor | None] = []
    start: Expr = ZERO
    for out in call.out:
        assert out is not None
        found.append(sliced(x, axis, start, out[0][axis]))
        start = start + out[0][axis]
    return tuple(found)


@rule("aten.unbind.int")
def _unbind(call: Call) -> tuple[Tensor | None, ...]:
    x = call.tensor("self")
    axis = call.whole("dim") % len(x.shape)
    return tuple(selected(x, axis, as_expr(k)) for k in range(len(call.out)))


@rule("aten.cat.default")
def _cat(call: Call) -> Tensor:
    found = [t for t in call.tensors("tensors") if t is not None and t.shape != (ZERO,)]
    return joined(found, call.whole("dim") % len(call.shape), call.label)


@rule("aten.stack.default")
def _stack(call: Call) -> Tensor:
    axis = call.whole("dim") % len(call.shape)
    found = [reshaped(t, (*t.shape[:axis], ONE, *t.shape[axis:])) for t in call.tensors("tensors") if t is not None]
    return joined(found, axis, call.label)


@rule("aten.flip.default")
def _flip(call: Call) -> Tensor:
    x = call.tensor("self")
    return flipped(x, call.axes("dims", len(x.shape)))


@rule("aten.roll.default")
def _roll(call: Call) -> Tensor:
    x, dims, shifts = call.tensor("self"), call.wholes("dims", []), call.wholes("shifts")
    if not dims:
        raise call.fail("over all dimensions at once")
    for axis, shift in zip([d % len(x.shape) for d in dims], shifts, strict=True):
        size = x.shape[axis]
        moved = sliced(x, axis, ZERO, size)
        amount = shift % size.constant if size.constant else None
        if amount is None:
            raise call.fail("along a dimension whose size varies")
        moved = sliced(x, axis, size - amount, as_expr(amount)) if amount else moved
        x = joined([moved, sliced(x, axis, ZERO, size - amount)], axis) if amount else x
    return x


@rule("aten.constant_pad_nd.default")
def _pad(call: Call) -> Tensor:
    x = call.tensor("self")
    amounts = call.wholes("pad")
    rank = len(x.shape)
    before, after = [ZERO] * rank, [ZERO] * rank
    for k in range(len(amounts) // 2):
        before[rank - 1 - k], after[rank - 1 - k] = as_expr(amounts[2 * k]), as_expr(amounts[2 * k + 1])
    value = call.operand("value") if call.has("value") else 0
    if isinstance(value, Tensor):
        raise call.fail("the fill is a tensor")
    return padded(x, before, after, constant(value, x.dtype))


@rule("aten.arange.start_step", "aten.arange.default", "aten.arange.start", "prims.iota.default")
def _arange(call: Call) -> Tensor:
    start = call.operand("start") if call.has("start") else 0
    step = call.operand("step") if call.has("step") else 1
    position = Position(shape=call.shape, dtype="int64", label=call.label, at=lambda index: index[0])
    scaled = point("mul", position, step, dtype=call.dtype)
    return point("add", scaled, start, dtype=call.dtype, label=call.label)


@rule("aten.tril.default", "aten.triu.default")
def _triangle(call: Call) -> Tensor:
    x = call.tensor("self")
    diagonal, lower = call.whole("diagonal", 0), call.op.startswith("aten.tril")

    def tests(index: tuple[Expr, ...]) -> tuple[Test, ...]:
        row, column = index[-2], index[-1]
        return (Test(column, row + diagonal + 1) if lower else Test(column, row + diagonal, at_least=True),)

    same = View(shape=x.shape, dtype=x.dtype, label=x.label, source=x, remap=lambda index: index)
    nothing = expanded(constant(0, x.dtype), x.shape)
    return Choice(shape=x.shape, dtype=x.dtype, label=call.label, tests=tests, inside=same, outside=nothing)


@rule("aten.sym_size.int")
def _size(call: Call) -> Tensor:
    return size_value(call.tensor("self").shape[call.whole("dim")], "int64")
