"""Sums, means, extremes, norms and running sums."""

from __future__ import annotations

import math

from cudaperf_agent.codegen.modules.build import (
    cast,
    constant,
    mean,
    permuted,
    point,
    reduced,
    reshaped,
    size_value,
)
from cudaperf_agent.codegen.modules.graph import Call, rule
from cudaperf_agent.codegen.modules.sizes import ONE, product
from cudaperf_agent.codegen.modules.tensors import Scan, Tensor, is_float


def _axes(call: Call, x: Tensor) -> list[int]:
    return call.axes("dim", len(x.shape))


def _keep(call: Call) -> bool:
    return bool(call.arguments.get("keepdim", False))


@rule("aten.sum.default", "aten.sum.dim_IntList")
def _sum(call: Call) -> Tensor:
    x = call.tensor("self")
    ready = x if is_float(x.dtype) and is_float(call.dtype) else cast(x, call.dtype)
    return reduced("sum", ready, _axes(call, x), call.dtype, keep=_keep(call), label=call.label)


@rule("aten.mean.default", "aten.mean.dim")
def _mean(call: Call) -> Tensor:
    x = call.tensor("self")
    return mean(x, _axes(call, x), call.dtype, keep=_keep(call), label=call.label)


@rule("aten.prod.default", "aten.prod.dim_int")
def _prod(call: Call) -> Tensor:
    x = call.tensor("self")
    return reduced("prod", cast(x, call.dtype), _axes(call, x), call.dtype, keep=_keep(call), label=call.label)


@rule("aten.amax.default", "aten.amin.default", "aten.max.default", "aten.min.default")
def _extreme(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.op.split(".")[1][-3:]
    return reduced(kind, x, _axes(call, x), call.dtype, keep=_keep(call), label=call.label)


@rule("aten.max.dim", "aten.min.dim")
def _extreme_with_place(call: Call) -> tuple[Tensor | None, ...]:
    x, kind = call.tensor("self"), call.op.split(".")[1]
    axes, keep = [call.whole("dim") % len(x.shape)] if x.shape else [], _keep(call)
    return (
        reduced(kind, x, axes, call.dtype, keep=keep, label=call.label),
        reduced(f"arg{kind}", x, axes, "int64", keep=keep, label=f"{call.label}_at"),
    )


@rule("aten.argmax.default", "aten.argmin.default")
def _place(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.op.split(".")[1]
    return reduced(kind, x, _axes(call, x), "int64", keep=_keep(call), label=call.label)


@rule("aten.any.default", "aten.any.dim", "aten.any.dims", "aten.all.default", "aten.all.dim", "aten.all.dims")
def _truth(call: Call) -> Tensor:
    x = cast(cast(call.tensor("self"), "bool"), "int32")
    kind = "max" if call.op.startswith("aten.any") else "min"
    return cast(reduced(kind, x, _axes(call, x), "int32", keep=_keep(call), label=call.label), "bool")


def variance(
    x: Tensor, axes: list[int], dtype: str, correction: float, *, keep: bool, label: str
) -> tuple[Tensor, Tensor]:
    """Variance and mean over dimensions, in two passes: the mean first."""
    middle = mean(x, axes, dtype, keep=True, label=f"{label}_mean")
    away = point("sub", x, middle, dtype=dtype, label=f"{label}_centred")
    total = reduced("sum", point("mul", away, away, dtype=dtype), axes, dtype, keep=True, label=f"{label}_squares")
    count = size_value(product(x.shape[k] for k in axes), dtype)
    if correction:
        count = point("maximum", point("sub", count, float(correction), dtype=dtype), 0.0, dtype=dtype)
    result = point("div", total, count, dtype=dtype, label=label)
    if keep:
        return result, middle
    shape = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    return reshaped(result, shape), reshaped(middle, shape)


@rule("aten.var.correction", "aten.var_mean.correction", "aten.std.correction", "aten.var.dim", "aten.std.dim",
      "aten.var_mean.dim")  # fmt: skip
def _variance(call: Call) -> Tensor | tuple[Tensor | None, ...]:
    x = call.tensor("self")
    if call.op.endswith(".dim"):
        correction = 1.0 if call.arguments.get("unbiased", True) else 0.0
    else:
        correction = call.number("correction", 1.0)
    spread, middle = variance(x, _axes(call, x), call.dtype, correction, keep=_keep(call), label=call.label)
    if call.op.startswith("aten.var_mean"):
        return spread, middle
    return point("sqrt", spread, dtype=call.dtype) if call.op.startswith("aten.std") else spread


@rule("aten.linalg_vector_norm.default", "aten.norm.ScalarOpt_dim", "aten.norm.Scalar")
def _norm(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    order = call.number("ord" if "ord" in call.arguments else "p", 2.0)
    axes, keep = _axes(call, x), _keep(call)
    size = point("abs", x, dtype=kind)
    if math.isinf(order):
        return reduced("max" if order > 0 else "min", size, axes, kind, keep=keep, label=call.label)
    if order == 0:
        some = cast(point("ne", x, 0.0, dtype="bool", operands=x.dtype), kind)
        return reduced("sum", some, axes, kind, keep=keep, label=call.label)
    if order == 1:
        return reduced("sum", size, axes, kind, keep=keep, label=call.label)
    if order == 2:
        squares = reduced("sum", point("mul", x, x, dtype=kind), axes, kind, keep=keep, label=call.label)
        return point("sqrt", squares, dtype=kind, label=call.label)
    powers = reduced("sum", point("pow", size, order, dtype=kind), axes, kind, keep=keep, label=call.label)
    return point("pow", powers, 1.0 / order, dtype=kind, label=call.label)


@rule("aten.logsumexp.default")
def _logsumexp(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    axes = _axes(call, x)
    top = reduced("max", x, axes, kind, keep=True, label=f"{call.label}_max")
    finite = point("where", point("isinf", top, dtype="bool", operands=kind), 0.0, top, dtype=kind)
    away = point("exp", point("sub", x, finite, dtype=kind), dtype=kind)
    total = reduced("sum", away, axes, kind, keep=True, label=f"{call.label}_sum")
    result = point("add", point("log", total, dtype=kind), finite, dtype=kind, label=call.label)
    if _keep(call):
        return result
    return reshaped(result, tuple(n for k, n in enumerate(x.shape) if k not in axes))


@rule("aten.cumsum.default", "aten.cumprod.default")
def _running(call: Call) -> Tensor:
    x = cast(call.tensor("self"), call.dtype)
    rank = len(x.shape)
    if rank == 0:
        return x
    axis = call.whole("dim") % rank
    order = [k for k in range(rank) if k != axis] + [axis]
    source = permuted(x, order)
    kind = "sum" if "sum" in call.op else "prod"
    made = Scan(shape=source.shape, dtype=call.dtype, label=call.label, kind=kind, source=source)
    return permuted(made, [order.index(k) for k in range(rank)], call.label)


@rule("aten._softmax.default", "aten._log_softmax.default", "aten._safe_softmax.default", "aten.softmax.int",
      "aten.log_softmax.int")  # fmt: skip
def _softmax(call: Call) -> Tensor:
    x, kind, label = call.tensor("self"), call.dtype, call.label
    axes = [call.whole("dim") % len(x.shape)] if x.shape else []
    top = reduced("max", x, axes, kind, keep=True, label=f"{label}_max")
    away = point("sub", x, top, dtype=kind, label=f"{label}_shifted")
    powers = point("exp", away, dtype=kind, label=f"{label}_exp")
    total = reduced("sum", powers, axes, kind, keep=True, label=f"{label}_sum")
    if "log" in call.op:
        return point("sub", away, point("log", total, dtype=kind), dtype=kind, label=label)
    result = point("div", powers, total, dtype=kind, label=label)
    if "safe" in call.op:
        gone = point("eq", top, constant(-math.inf, kind), dtype="bool", operands=kind)
        return point("where", gone, 0.0, result, dtype=kind, label=label)
    return result


def ones_around(values: Tensor, axis: int, rank: int) -> Tensor:
    """A vector as a tensor of more dimensions, along one of them."""
    return reshaped(values, tuple(values.shape[0] if k == axis else ONE for k in range(rank)))
