"""Arithmetic, comparisons, logic, elementary functions, and conversions."""

from __future__ import annotations

from cudaperf_agent.codegen.modules.build import cast, constant, expanded, point, promoted
from cudaperf_agent.codegen.modules.graph import Call, rule
from cudaperf_agent.codegen.modules.tensors import Tensor, is_float

_UNARY = {
    "abs": "abs", "neg": "neg", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2",
    "log10": "log10", "log1p": "log1p", "sqrt": "sqrt", "rsqrt": "rsqrt", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "asinh",
    "acosh": "acosh", "atanh": "atanh", "erf": "erf", "erfc": "erfc", "sigmoid": "sigmoid", "floor": "floor",
    "ceil": "ceil", "trunc": "trunc", "round": "round", "reciprocal": "reciprocal", "sign": "sign", "sgn": "sign",
}  # fmt: skip
_KEEP_WHOLE = frozenset({"abs", "neg", "sign"})  # defined on integers too
_IDENTITY_WHOLE = frozenset({"floor", "ceil", "trunc", "round"})
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def _unary(call: Call) -> Tensor:
    name = _UNARY[call.op.split(".")[1]]
    x = call.tensor("self")
    if not is_float(call.dtype):
        if name in _IDENTITY_WHOLE:
            return x
        if name not in _KEEP_WHOLE:
            raise call.fail(f"on {call.dtype}")
    return point(name, x, dtype=call.dtype, label=call.label)


for _name in _UNARY:
    rule(f"aten.{_name}.default")(_unary)


@rule("aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar")
def _add(call: Call) -> Tensor:
    op = call.op.split(".")[1]
    other, alpha = call.operand("other"), call.number("alpha", 1)
    if call.dtype == "bool":
        return point("or", call.operand("self"), other, dtype="bool", label=call.label)
    if alpha != 1:
        other = point("mul", other, alpha, dtype=call.dtype)
    return point(op, call.operand("self"), other, dtype=call.dtype, label=call.label)


@rule("aten.rsub.Scalar", "aten.rsub.Tensor")
def _rsub(call: Call) -> Tensor:
    mine = point("mul", call.tensor("self"), call.number("alpha", 1), dtype=call.dtype)
    return point("sub", call.operand("other"), mine, dtype=call.dtype, label=call.label)


@rule("aten.mul.Tensor", "aten.mul.Scalar")
def _mul(call: Call) -> Tensor:
    op = "and" if call.dtype == "bool" else "mul"
    return point(op, call.operand("self"), call.operand("other"), dtype=call.dtype, label=call.label)


@rule("aten.div.Tensor", "aten.div.Scalar")
def _div(call: Call) -> Tensor:
    return point("div", call.operand("self"), call.operand("other"), dtype=call.dtype, label=call.label)


@rule("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.floor_divide.default")
def _div_mode(call: Call) -> Tensor:
    mode = call.arguments.get("rounding_mode", "floor" if "floor" in call.op else None)
    op = {"floor": "floor_divide", "trunc": "trunc_divide", None: "div"}[mode]
    return point(op, call.operand("self"), call.operand("other"), dtype=call.dtype, label=call.label)


@rule(
    "aten.remainder.Tensor", "aten.remainder.Scalar", "aten.fmod.Tensor", "aten.fmod.Scalar", "aten.atan2.default",
    "aten.maximum.default", "aten.minimum.default",
)  # fmt: skip
def _binary(call: Call) -> Tensor:
    return point(call.op.split(".")[1], call.operand("self"), call.operand("other"), dtype=call.dtype, label=call.label)


def _compare(call: Call) -> Tensor:
    a, b = call.tensor("self"), call.operand("other")
    other = b if isinstance(b, Tensor) else constant(b, "float32" if isinstance(b, float) else "int64")
    kind = promoted(a, other) if isinstance(b, Tensor) else a.dtype
    if isinstance(b, float) and not is_float(a.dtype):
        kind = "float32"
    elif kind == "bool" and not isinstance(b, Tensor) and not isinstance(b, bool):
        kind = "int32"
    return point(call.op.split(".")[1], a, b, dtype="bool", operands=kind, label=call.label)


for _name in _COMPARE:
    rule(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")(_compare)


@rule("aten.pow.Tensor_Scalar")
def _pow_number(call: Call) -> Tensor:
    x, exponent = call.tensor("self"), call.number("exponent", 1)
    if exponent in (1, 2, 3, 4):
        result = x
        if exponent == 4:
            half = point("mul", x, x, dtype=call.dtype)
            return point("mul", half, half, dtype=call.dtype, label=call.label)
        for _ in range(int(exponent) - 1):
            result = point("mul", result, x, dtype=call.dtype, label=call.label)
        return result
    if not is_float(call.dtype):
        raise call.fail(f"on {call.dtype} with exponent {exponent}")
    if exponent == 0.5:
        return point("sqrt", x, dtype=call.dtype, label=call.label)
    if exponent == -0.5:
        return point("rsqrt", x, dtype=call.dtype, label=call.label)
    if exponent == -1:
        return point("reciprocal", x, dtype=call.dtype, label=call.label)
    return point("pow", x, exponent, dtype=call.dtype, label=call.label)


@rule("aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def _pow(call: Call) -> Tensor:
    if not is_float(call.dtype):
        raise call.fail(f"on {call.dtype}")
    return point("pow", call.operand("self"), call.operand("exponent"), dtype=call.dtype, label=call.label)


@rule("aten.clamp.default", "aten.clamp.Tensor", "aten.clamp_min.default", "aten.clamp_max.default",
      "aten.clamp_min.Tensor", "aten.clamp_max.Tensor", "aten.hardtanh.default")  # fmt: skip
def _clamp(call: Call) -> Tensor:
    result = call.tensor("self")
    hard = call.op.startswith("aten.hardtanh")
    for name, op, default in (("min", "maximum", -1.0), ("max", "minimum", 1.0)):
        key = f"{name}_val" if hard else name
        if call.has(key):
            result = point(op, result, call.operand(key), dtype=call.dtype, label=call.label)
        elif hard:
            result = point(op, result, default, dtype=call.dtype, label=call.label)
    return result


@rule("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def _where(call: Call) -> Tensor:
    return point(
        "where", call.tensor("condition"), call.operand("self"), call.operand("other"), dtype=call.dtype,
        label=call.label,
    )  # fmt: skip


@rule("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def _masked_fill(call: Call) -> Tensor:
    return point(
        "where", call.tensor("mask"), call.operand("value"), call.tensor("self"), dtype=call.dtype, label=call.label
    )


@rule("aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default")
def _logical(call: Call) -> Tensor:
    op = call.op.split(".")[1].removeprefix("logical_")
    a, b = (cast(call.tensor(n), "bool") for n in ("self", "other"))
    return point(op, a, b, dtype="bool", label=call.label)


@rule("aten.logical_not.default")
def _logical_not(call: Call) -> Tensor:
    return point("not", cast(call.tensor("self"), "bool"), dtype="bool", label=call.label)


@rule("aten.bitwise_and.Tensor", "aten.bitwise_or.Tensor", "aten.bitwise_xor.Tensor", "aten.bitwise_and.Scalar",
      "aten.bitwise_or.Scalar", "aten.bitwise_xor.Scalar")  # fmt: skip
def _bitwise(call: Call) -> Tensor:
    op = call.op.split(".")[1].removeprefix("bitwise_")
    return point(op, call.operand("self"), call.operand("other"), dtype=call.dtype, label=call.label)


@rule("aten.bitwise_not.default")
def _bitwise_not(call: Call) -> Tensor:
    op = "not" if call.dtype == "bool" else "invert"
    return point(op, call.tensor("self"), dtype=call.dtype, label=call.label)


@rule("aten.isnan.default", "aten.isinf.default")
def _is(call: Call) -> Tensor:
    x = call.tensor("self")
    return point(call.op.split(".")[1], x, dtype="bool", operands=x.dtype, label=call.label)


@rule("aten._to_copy.default", "aten.to.dtype", "prims.convert_element_type.default")
def _to(call: Call) -> Tensor:
    return cast(call.tensor("self" if "self" in call.arguments else "a"), call.dtype)


@rule("aten.clone.default", "aten.alias.default", "aten.detach.default", "aten.lift_fresh_copy.default",
      "aten.contiguous.default", "aten.dropout.default", "aten.native_dropout.default")  # fmt: skip
def _same(call: Call) -> Tensor:
    if "dropout" in call.op and call.arguments.get("train") is not False:
        raise call.fail("random numbers cannot be compared with a reference")
    return call.tensor("self" if "self" in call.arguments else "input")


@rule("aten.full.default", "aten.full_like.default", "aten.scalar_tensor.default")
def _full(call: Call) -> Tensor:
    value = call.operand("fill_value" if "fill_value" in call.arguments else "s")
    if isinstance(value, Tensor):
        return expanded(cast(value, call.dtype), call.shape)
    return expanded(cast(constant(value, call.dtype), call.dtype), call.shape)
