"""Normalisations, composed of means, variances and arithmetic."""

from __future__ import annotations

from cudaperf_agent.codegen.modules.build import mean, point, reshaped
from cudaperf_agent.codegen.modules.graph import Call, rule
from cudaperf_agent.codegen.modules.operators.reductions import ones_around, variance
from cudaperf_agent.codegen.modules.sizes import as_expr, product
from cudaperf_agent.codegen.modules.tensors import Tensor


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None, kind: str, label: str) -> Tensor:
    if weight is not None:
        x = point("mul", x, weight, dtype=kind, label=label)
    return point("add", x, bias, dtype=kind, label=label) if bias is not None else x


@rule("aten.native_layer_norm.default")
def _layer_norm(call: Call) -> tuple[Tensor | None, ...]:
    x, kind, label = call.tensor("input"), call.dtype, call.label
    axes = list(range(len(x.shape) - len(call.arguments["normalized_shape"]), len(x.shape)))
    spread, middle = variance(x, axes, kind, 0, keep=True, label=f"{label}_var")
    scale = point(
        "rsqrt", point("add", spread, call.number("eps", 1e-5), dtype=kind), dtype=kind, label=f"{label}_rstd"
    )
    result = point("mul", point("sub", x, middle, dtype=kind), scale, dtype=kind, label=label)
    return _scaled(result, call.maybe("weight"), call.maybe("bias"), kind, label), middle, scale


@rule("aten._fused_rms_norm.default", "aten.rms_norm.default")
def _rms_norm(call: Call) -> Tensor | tuple[Tensor | None, ...]:
    x, kind, label = call.tensor("input"), call.dtype, call.label
    axes = list(range(len(x.shape) - len(call.arguments["normalized_shape"]), len(x.shape)))
    squares = mean(point("mul", x, x, dtype=kind), axes, kind, keep=True, label=f"{label}_squares")
    default = {"float32": 1.1920928955078125e-07, "float16": 1.1920928955078125e-07, "bfloat16": 1.1920928955078125e-07}
    eps = call.number("eps", default[kind])
    scale = point("rsqrt", point("add", squares, eps, dtype=kind), dtype=kind, label=f"{label}_rstd")
    result = _scaled(point("mul", x, scale, dtype=kind, label=label), call.maybe("weight"), None, kind, label)
    return (result, scale) if call.op.startswith("aten._fused") else result


@rule("aten.native_group_norm.default")
def _group_norm(call: Call) -> tuple[Tensor | None, ...]:
    x, kind, label = call.tensor("input"), call.dtype, call.label
    groups, channels = call.whole("group", 1), x.shape[1]
    split = (x.shape[0], as_expr(groups), channels // groups, product(x.shape[2:]))
    parts = reshaped(x, split)
    spread, middle = variance(parts, [2, 3], kind, 0, keep=True, label=f"{label}_var")
    scale = point(
        "rsqrt", point("add", spread, call.number("eps", 1e-5), dtype=kind), dtype=kind, label=f"{label}_rstd"
    )
    result = reshaped(point("mul", point("sub", parts, middle, dtype=kind), scale, dtype=kind, label=label), x.shape)
    weight, bias = (
        None if t is None else ones_around(t, 1, len(x.shape)) for t in (call.maybe("weight"), call.maybe("bias"))
    )
    small = split[:2]
    return _scaled(result, weight, bias, kind, label), reshaped(middle, small), reshaped(scale, small)


@rule("aten._native_batch_norm_legit_no_training.default", "aten._native_batch_norm_legit.no_stats")
def _batch_norm(call: Call) -> tuple[Tensor | None, ...]:
    x, kind, label = call.tensor("input"), call.dtype, call.label
    rank = len(x.shape)
    if "no_stats" in call.op:
        axes = [k for k in range(rank) if k != 1]
        spread, middle = variance(x, axes, kind, 0, keep=True, label=f"{label}_var")
    else:
        spread, middle = (ones_around(call.tensor(f"running_{n}"), 1, rank) for n in ("var", "mean"))
    scale = point(
        "rsqrt", point("add", spread, call.number("eps", 1e-5), dtype=kind), dtype=kind, label=f"{label}_rstd"
    )
    result = point("mul", point("sub", x, middle, dtype=kind), scale, dtype=kind, label=label)
    weight, bias = (None if t is None else ones_around(t, 1, rank) for t in (call.maybe("weight"), call.maybe("bias")))
    return (_scaled(result, weight, bias, kind, label), *([None] * (len(call.out) - 1)))
