"""Activations, composed of elementwise operations."""

from __future__ import annotations

import math

from cudaperf_agent.codegen.modules.build import constant, point, reshaped
from cudaperf_agent.codegen.modules.graph import Call, rule
from cudaperf_agent.codegen.modules.sizes import ONE
from cudaperf_agent.codegen.modules.tensors import Tensor


@rule("aten.relu.default")
def _relu(call: Call) -> Tensor:
    return point("maximum", call.tensor("self"), 0, dtype=call.dtype, label=call.label)


@rule("aten.relu6.default")
def _relu6(call: Call) -> Tensor:
    low = point("maximum", call.tensor("self"), 0, dtype=call.dtype)
    return point("minimum", low, 6, dtype=call.dtype, label=call.label)


@rule("aten.silu.default")
def _silu(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    below = point("add", point("exp", point("neg", x, dtype=kind), dtype=kind), 1.0, dtype=kind)
    return point("div", x, below, dtype=kind, label=call.label)


@rule("aten.gelu.default")
def _gelu(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    if call.arguments.get("approximate", "none") == "tanh":
        cube = point("mul", point("mul", x, x, dtype=kind), x, dtype=kind)
        inner = point("add", x, point("mul", cube, 0.044715, dtype=kind), dtype=kind)
        bent = point("tanh", point("mul", inner, math.sqrt(2 / math.pi), dtype=kind), dtype=kind)
    else:
        bent = point("erf", point("mul", x, math.sqrt(0.5), dtype=kind), dtype=kind)
    half = point("mul", x, 0.5, dtype=kind)
    return point("mul", half, point("add", bent, 1.0, dtype=kind), dtype=kind, label=call.label)


@rule("aten.leaky_relu.default")
def _leaky_relu(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    low = point("mul", x, call.number("negative_slope", 0.01), dtype=kind)
    return point("where", point("gt", x, 0.0, dtype="bool", operands=kind), x, low, dtype=kind, label=call.label)


@rule("aten.elu.default")
def _elu(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    alpha, scale, inner = call.number("alpha", 1.0), call.number("scale", 1.0), call.number("input_scale", 1.0)
    bent = point("expm1", point("mul", x, inner, dtype=kind), dtype=kind)
    low, high = point("mul", bent, alpha * scale, dtype=kind), point("mul", x, scale, dtype=kind)
    return point("where", point("gt", x, 0.0, dtype="bool", operands=kind), high, low, dtype=kind, label=call.label)


@rule("aten.softplus.default")
def _softplus(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    beta, threshold = call.number("beta", 1.0), call.number("threshold", 20.0)
    scaled = point("mul", x, beta, dtype=kind)
    soft = point("div", point("log1p", point("exp", scaled, dtype=kind), dtype=kind), beta, dtype=kind)
    far = point("gt", scaled, threshold, dtype="bool", operands=kind)
    return point("where", far, x, soft, dtype=kind, label=call.label)


@rule("aten.hardsigmoid.default", "aten.hardswish.default")
def _hard(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    moved = point("add", x, 3.0, dtype=kind)
    cut = point("minimum", point("maximum", moved, 0.0, dtype=kind), 6.0, dtype=kind)
    if call.op.startswith("aten.hardswish"):
        cut = point("mul", cut, x, dtype=kind)
    return point("div", cut, 6.0, dtype=kind, label=call.label)


@rule("aten.mish.default")
def _mish(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    soft = point("log1p", point("exp", x, dtype=kind), dtype=kind)
    soft = point("where", point("gt", x, 20.0, dtype="bool", operands=kind), x, soft, dtype=kind)
    return point("mul", x, point("tanh", soft, dtype=kind), dtype=kind, label=call.label)


@rule("aten.softshrink.default", "aten.hardshrink.default")
def _shrink(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    edge = call.number("lambd", 0.5)
    high = point("gt", x, edge, dtype="bool", operands=kind)
    low = point("lt", x, -edge, dtype="bool", operands=kind)
    soft = call.op.startswith("aten.softshrink")
    above, under = (point("sub", x, s, dtype=kind) if soft else x for s in (edge, -edge))
    nothing = point("mul", x, 0.0, dtype=kind)  # keeps NaN
    return point("where", high, above, point("where", low, under, nothing, dtype=kind), dtype=kind, label=call.label)


@rule("aten.prelu.default", "aten._prelu_kernel.default")
def _prelu(call: Call) -> Tensor:
    x, weight, kind = call.tensor("self"), call.tensor("weight"), call.dtype
    if len(weight.shape) == 1 and len(x.shape) > 1:
        weight = reshaped(weight, (ONE, weight.shape[0], *([ONE] * (len(x.shape) - 2))))
    low = point("mul", x, weight, dtype=kind)
    return point("where", point("gt", x, 0.0, dtype="bool", operands=kind), x, low, dtype=kind, label=call.label)


@rule("aten.threshold.default")
def _threshold(call: Call) -> Tensor:
    x, kind = call.tensor("self"), call.dtype
    low = point("le", x, call.number("threshold", 0.0), dtype="bool", operands=kind)
    value = constant(call.number("value", 0.0), kind)
    return point("where", low, value, x, dtype=kind, label=call.label)


@rule("aten.log_sigmoid_forward.default")
def _log_sigmoid(call: Call) -> tuple[Tensor | None, ...]:
    x, kind = call.tensor("self"), call.dtype
    low = point("minimum", x, 0.0, dtype=kind)
    away = point("exp", point("neg", point("abs", x, dtype=kind), dtype=kind), dtype=kind)
    return point("sub", low, point("log1p", away, dtype=kind), dtype=kind, label=call.label), None
