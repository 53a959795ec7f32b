"""Updates of memory that several threads may make at once: which have an atomic, and its spelling."""

from __future__ import annotations

from cudaperf_agent.codegen.accesses import update_of
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.model import CType, TypeKind

_NAMES = {"+": "atomicAdd", "&": "atomicAnd", "|": "atomicOr", "^": "atomicXor"}


def supported(statement: ir.Assign) -> bool:
    """Whether an update has an atomic: 32- and 64-bit integers, and sums of ``float`` and ``double``."""
    update, value = update_of(statement)
    kind = statement.target.type
    if update not in _NAMES or value.type is None:
        return False
    if kind.kind is TypeKind.FLOAT:
        return update == "+"
    integers = (TypeKind.INT, TypeKind.UINT)
    return kind.kind in integers and kind.size in (4, 8) and value.type.kind in (*integers, TypeKind.BOOL)


def atomic_call(statement: ir.Assign, place: str, value: str) -> str:
    """The update as a call; ``place`` and ``value`` are its texts."""
    update, _ = update_of(statement)
    kind = statement.target.type
    subtracts = statement.op == "-=" or (
        statement.op == "=" and any(isinstance(n, ir.Binary) and n.op == "-" for n in [_top(statement.value)])
    )
    spelled = atomic_type(kind)
    pointer = f"&{place}" if spelled == kind.spelling else f"({spelled} *)&{place}"
    converted = f"({spelled})({value})" if kind.kind is not TypeKind.FLOAT or not subtracts else f"{value}"
    if subtracts:
        converted = f"({spelled})-({kind.spelling})({value})"
    return f"{_NAMES[update or '+']}({pointer}, {converted})"


def _top(value: ir.Expr) -> ir.Expr:
    while isinstance(value, ir.Cast):
        value = value.operand
    return value


def atomic_type(kind: CType) -> str:
    """The type of that size for which CUDA declares atomics: modular arithmetic makes signed and unsigned the same."""
    if kind.kind is TypeKind.FLOAT:
        return kind.spelling
    if kind.size == 8:
        return "unsigned long long"
    return kind.spelling if kind.spelling == "int" else "unsigned int"
