"""Pooling and convolution: sums and maxima over windows of a padded input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cudaperf_agent.codegen.modules.build import (
    constant,
    contraction,
    expanded,
    mean,
    permuted,
    point,
    reduced,
    reshaped,
)
from cudaperf_agent.codegen.modules.graph import Call, rule
from cudaperf_agent.codegen.modules.operators.reductions import ones_around
from cudaperf_agent.codegen.modules.sizes import ZERO, Expr, as_expr, product
from cudaperf_agent.codegen.modules.tensors import Choice, Index, Tensor, Test, View, is_float

_FEW_PRODUCTS = 16  # a group of a convolution with fewer channels in and out than this is no matrix product


@dataclass(frozen=True, slots=True)
class Window:
    """How windows lie on the last dimensions of a tensor; a value for each of them."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool = False


def _window(call: Call, count: int, kernel: Sequence[int]) -> Window:
    def values(name: str, default: Sequence[int]) -> tuple[int, ...]:
        found = call.wholes(name, list(default)) or list(default)
        return tuple(found * count if len(found) == 1 else found)

    sizes = tuple(kernel) * count if len(kernel) == 1 else tuple(kernel)
    return Window(
        sizes, values("stride", sizes), values("padding", [0]), values("dilation", [1]),
        bool(call.arguments.get("ceil_mode", False)),
    )  # fmt: skip


def windows(x: Tensor, window: Window, outer: Index, fill: float) -> Tensor:
    """Every window of `x`: its shape is the leading dimensions, `outer`, and then the window's own dimensions.

    Args:
        x: The tensor.
        window: The windows on its last dimensions.
        outer: How many windows there are along each of them.
        fill: What lies around the tensor.
    """
    count = len(window.kernel)
    lead, sizes = x.shape[:-count], x.shape[-count:]
    skip = len(lead)
    shape = (*lead, *outer, *(as_expr(n) for n in window.kernel))

    def places(index: Index) -> tuple[Expr, ...]:
        return tuple(
            index[skip + d] * window.stride[d] + index[skip + count + d] * window.dilation[d] - window.padding[d]
            for d in range(count)
        )

    inside = View(
        shape=shape, dtype=x.dtype, label=x.label, source=x, remap=lambda index: (*index[:skip], *places(index))
    )
    if not window.ceil and not any(window.padding):
        return inside

    def tests(index: Index) -> tuple[Test, ...]:
        found = []
        for d, place in enumerate(places(index)):
            if window.padding[d]:
                found.append(Test(place, ZERO, at_least=True))
            if window.padding[d] or window.ceil:
                found.append(Test(place, sizes[d]))
        return tuple(found)

    around = expanded(constant(fill, x.dtype), shape)
    return Choice(shape=shape, dtype=x.dtype, label=f"{x.label}_near", tests=tests, inside=inside, outside=around)


def _inner(tensor: Tensor, count: int) -> list[int]:
    return list(range(len(tensor.shape) - count, len(tensor.shape)))


@rule("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default", "aten.max_pool1d.default",
      "aten.max_pool2d.default")  # fmt: skip
def _max_pool(call: Call) -> Tensor | tuple[Tensor | None, ...]:
    x = call.tensor("self")
    count = int(call.op.split("max_pool")[1][0])
    window = _window(call, count, call.wholes("kernel_size"))
    lowest = -math.inf if is_float(x.dtype) else -(1 << 31)
    near = windows(x, window, call.shape[-count:], lowest)
    result = reduced("max", near, _inner(near, count), call.dtype, label=call.label)
    return (result, None) if "with_indices" in call.op else result


@rule("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
def _avg_pool(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    count = int(call.op.split("avg_pool")[1][0])
    window = _window(call, count, call.wholes("kernel_size"))
    outer = call.shape[-count:]
    near = windows(x, window, outer, 0.0)
    total = reduced("sum", near, _inner(near, count), kind, label=call.label)
    everything = bool(call.arguments.get("count_include_pad", True))
    if call.has("divisor_override"):
        return point("div", total, call.number("divisor_override", 1), dtype=kind, label=call.label)
    if window.ceil and everything and any(window.padding):
        raise call.fail("with ceil_mode and padding that counts")
    if (everything and not window.ceil) or not (window.ceil or any(window.padding)):
        return point("div", total, float(math.prod(window.kernel)), dtype=kind, label=call.label)
    ones = windows(expanded(constant(1.0, kind), x.shape), window, outer, 0.0)
    number = reduced("sum", ones, _inner(ones, count), kind, label=f"{call.label}_count")
    return point("div", total, number, dtype=kind, label=call.label)


@rule("aten._adaptive_avg_pool2d.default", "aten._adaptive_avg_pool3d.default", "aten.adaptive_avg_pool1d.default",
      "aten.adaptive_avg_pool2d.default")  # fmt: skip
def _adaptive(call: Call) -> Tensor:
    x = call.tensor("self")
    wanted = call.wholes("output_size")
    count = len(wanted)
    if all(n == 1 for n in wanted):
        return mean(x, _inner(x, count), call.dtype, keep=True, label=call.label)
    split: list[Expr] = []
    for size, n in zip(x.shape[-count:], wanted, strict=True):
        known = size.constant
        if known is None or known % n:
            raise call.fail("to a size that does not divide the input's")
        split += [as_expr(n), as_expr(known // n)]
    lead = len(x.shape) - count
    parts = reshaped(x, (*x.shape[:lead], *split))
    return mean(parts, [lead + 2 * d + 1 for d in range(count)], call.dtype, label=call.label)


@rule("aten.convolution.default")
def _convolution(call: Call) -> Tensor:
    x, weight, bias = call.tensor("input"), call.tensor("weight"), call.maybe("bias")
    if call.arguments.get("transposed"):
        raise call.fail("transposed")
    count = len(weight.shape) - 2
    batched = len(x.shape) == count + 2
    if not batched:
        raise call.fail("on an input without batches")
    sizes = [n.constant for n in weight.shape]
    if any(n is None for n in sizes):
        raise call.fail("with a weight whose size varies")
    known = [n for n in sizes if n is not None]
    groups = call.whole("groups", 1)
    window = _window(call, count, known[2:])
    outer = call.shape[2:]
    each_out, each_in = known[0] // groups, known[1]
    # (batch, group, channels of the group, windows, inside a window)
    near = windows(x, window, outer, 0.0)
    near = reshaped(near, (x.shape[0], as_expr(groups), as_expr(each_in), *near.shape[2:]))
    if each_in * each_out < _FEW_PRODUCTS:
        made = _direct(call, near, weight, groups, each_out, count)
    else:
        made = _as_product(call, near, weight, groups, each_out, count)
    made = reshaped(made, call.shape)
    if bias is None:
        return made
    return point("add", made, ones_around(bias, 1, count + 2), dtype=call.dtype, label=call.label)


def _direct(call: Call, near: Tensor, weight: Tensor, groups: int, each_out: int, count: int) -> Tensor:
    """A sum of products per output element: (n, g, ci, o…, k…) times (g, co, ci, k…)."""
    rank = len(near.shape)
    outer = list(range(3, 3 + count))
    order = [0, 1, *outer, 2, *range(3 + count, rank)]
    left = permuted(near, order)
    left = reshaped(left, (*left.shape[:2], as_expr(1), *left.shape[2:]))
    kernel = weight.shape[1:]
    right = reshaped(weight, (as_expr(1), as_expr(groups), as_expr(each_out), *([as_expr(1)] * count), *kernel))
    terms = point("mul", left, right, dtype=call.dtype)
    return reduced("sum", terms, _inner(terms, count + 1), call.dtype, label=call.label)


def _as_product(call: Call, near: Tensor, weight: Tensor, groups: int, each_out: int, count: int) -> Tensor:
    """A matrix product per batch and group: (co, ci·k…) times (o…, ci·k…)."""
    rank = len(near.shape)
    order = [0, 1, *range(3, 3 + count), 2, *range(3 + count, rank)]
    moved = permuted(near, order)
    depth = product(weight.shape[1:])
    right = reshaped(
        moved, (near.shape[0], as_expr(groups), call.sizes.dimension_of(moved.shape[2 : 2 + count]), depth)
    )
    left = reshaped(weight, (as_expr(1), as_expr(groups), as_expr(each_out), depth))
    return contraction(left, right, call.dtype, call.label)
