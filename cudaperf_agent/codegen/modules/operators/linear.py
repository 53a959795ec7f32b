"""Matrix products."""

from __future__ import annotations

from cudaperf_agent.codegen.modules.build import contraction, permuted, point, reduced, reshaped
from cudaperf_agent.codegen.modules.graph import Call, rule
from cudaperf_agent.codegen.modules.sizes import ONE
from cudaperf_agent.codegen.modules.tensors import Tensor, is_float


def _swapped(x: Tensor) -> Tensor:
    rank = len(x.shape)
    return permuted(x, [*range(rank - 2), rank - 1, rank - 2])


def _product(call: Call, left: Tensor, right: Tensor) -> Tensor:
    """`left` (…, m, k) times `right` (…, k, n)."""
    if not is_float(call.dtype):
        raise call.fail(f"on {call.dtype}")
    return contraction(left, _swapped(right), call.dtype, call.label)


@rule("aten.linear.default")
def _linear(call: Call) -> Tensor:
    x, weight, bias = call.tensor("input"), call.tensor("weight"), call.maybe("bias")
    if not is_float(call.dtype):
        raise call.fail(f"on {call.dtype}")
    rows = reshaped(x, (ONE, *x.shape)) if len(x.shape) == 1 else x
    lead = rows.shape[:-1]
    flat = rows if len(lead) == 1 else reshaped(rows, (call.sizes.dimension_of(lead), rows.shape[-1]))
    made: Tensor = contraction(flat, weight, call.dtype, call.label)
    made = reshaped(made, (*x.shape[:-1], weight.shape[0]))
    return point("add", made, bias, dtype=call.dtype, label=call.label) if bias is not None else made


@rule("aten.mm.default", "aten.bmm.default")
def _mm(call: Call) -> Tensor:
    return _product(call, call.tensor("self"), call.tensor("mat2"))


@rule("aten.addmm.default", "aten.baddbmm.default")
def _addmm(call: Call) -> Tensor:
    names = ("mat1", "mat2") if call.op.startswith("aten.addmm") else ("batch1", "batch2")
    made = _product(call, call.tensor(names[0]), call.tensor(names[1]))
    alpha, beta = call.number("alpha", 1), call.number("beta", 1)
    if alpha != 1:
        made = point("mul", made, alpha, dtype=call.dtype)
    if beta == 0:
        return made
    added: Tensor = call.tensor("self")
    if beta != 1:
        added = point("mul", added, beta, dtype=call.dtype)
    return point("add", made, added, dtype=call.dtype, label=call.label)


@rule("aten.matmul.default")
def _matmul(call: Call) -> Tensor:
    left, right = call.tensor("self"), call.tensor("other")
    if len(left.shape) == 1:
        left = reshaped(left, (ONE, *left.shape))
    if len(right.shape) == 1:
        right = reshaped(right, (*right.shape, ONE))
    if len(right.shape) == 2 and len(left.shape) > 2:
        lead = left.shape[:-1]
        left = reshaped(left, (call.sizes.dimension_of(lead), left.shape[-1]))
    return reshaped(_product(call, left, right), call.shape)


@rule("aten.mv.default", "aten.dot.default", "aten.vdot.default")
def _vector(call: Call) -> Tensor:
    x = call.tensor("self")
    y = call.tensor(next(name for name in ("vec", "tensor", "other") if name in call.arguments))
    terms = point("mul", x, y, dtype=call.dtype)
    return reduced("sum", terms, [len(x.shape) - 1], call.dtype, label=call.label)
