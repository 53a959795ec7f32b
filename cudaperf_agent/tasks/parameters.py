"""Parameters as the prototype and the declared clauses state them; what is left open is inferred elsewhere."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks import expr
from cudaperf_agent.tasks.c_types import CPP_KEYWORDS, is_pointer, object_type, pointer_shape
from cudaperf_agent.tasks.clang_c import Unit
from cudaperf_agent.tasks.clauses import Clause
from cudaperf_agent.tasks.cuda_names import why_not_entry
from cudaperf_agent.tasks.macros import Macros
from cudaperf_agent.tasks.model import CType, Extent, Origin, Parameter, Role, TypeKind, ValueRange
from cudaperf_agent.tasks.syntax import Expr, Function, Variable

_PRECEDENCE_FREE = ("name", "const", "call")


@dataclass(slots=True)
class Prototype:
    """Parameters under construction.

    Attributes:
        parameters: By name, in order.
        at_least_one: Names of sizes in variably modified types.
    """

    parameters: dict[str, Parameter]
    at_least_one: set[str] = field(default_factory=set)


def read_prototype(function: Function, unit: Unit) -> Prototype:
    """The parameters as their types state them: roles are provisional (``const`` reads, else reads and writes).

    Raises:
        InputRefused: A parameter whose type cannot be passed to the GPU, without a name, or named by a C++ keyword; a
            function whose name C++ or CUDA has already.
    """
    if function.variadic:
        raise InputRefused(
            f"{function.name} takes a variable number of arguments",
            where=unit.at(function.first_line),
            hint="Give it a fixed parameter list, e.g. an array and a count.",
        )
    if function.name in CPP_KEYWORDS:
        raise InputRefused(
            f"the function's name `{function.name}` is a keyword of C++, and CUDA is C++",
            where=unit.at(function.first_line),
            hint=f"Rename it, e.g. {function.name}_.",
        )
    taken = why_not_entry(function.name)
    if taken is not None:
        raise InputRefused(taken, where=unit.at(function.first_line), hint=f"Rename it, e.g. {function.name}_.")
    prototype = Prototype({})
    for variable in function.parameters:
        parameter = _parameter(function, variable, unit, prototype.at_least_one)
        prototype.parameters[parameter.name] = parameter
    return prototype


def _parameter(function: Function, variable: Variable, unit: Unit, at_least_one: set[str]) -> Parameter:
    name, line = variable.name, variable.line
    if not name:
        raise InputRefused(
            f"a parameter of {function.name} has no name", where=unit.at(line), hint="Name every parameter."
        )
    if name in CPP_KEYWORDS:
        raise InputRefused(
            f"parameter `{name}` is a keyword of C++, and CUDA is C++",
            where=unit.at(line),
            hint=f"Rename it, e.g. {name}_.",
        )
    what = f"parameter `{name}`"
    if not is_pointer(variable.ctype):
        if variable.ctype.get_canonical().is_volatile_qualified():
            raise _volatile(what, unit, line)
        ctype = object_type(variable.ctype, unit, line, what)
        return Parameter(
            name,
            ctype,
            False,
            Role.SCALAR,
            Origin.TYPE,
            f"{ctype.spelling} {name}",
            range=_enum_range(variable.ctype),
            line=line,
        )
    shape = pointer_shape(variable.ctype)
    if shape.volatile:
        raise _volatile(what, unit, line)
    ctype = object_type(shape.element, unit, line, what)
    dims = array_dims(variable)
    for dim in dims.inner:
        at_least_one |= expr.names(dim) if dim else set()
    extent = None
    if dims.outer and all(dims.inner):
        extent = Extent(product([dims.outer, *(d for d in dims.inner if d)]), Origin.TYPE, line)
    full = (dims.outer, *dims.inner)
    return Parameter(
        name,
        ctype,
        True,
        Role.IN if shape.const else Role.INOUT,
        Origin.TYPE if shape.const else Origin.DEFAULT,
        f"{'const ' if shape.const else ''}{ctype.spelling} *{name}",
        extent=extent,
        dims=tuple(d for d in full if d) if dims.outer and all(dims.inner) else (),
        range=_enum_range(shape.element),
        const=shape.const,
        line=line,
    )


def _enum_range(ctype: Any) -> ValueRange:
    """An enum's values are its constants, where these have no gaps."""
    canonical = ctype.get_canonical()
    if canonical.kind.name != "ENUM":
        return ValueRange()
    values = sorted({c.enum_value for c in canonical.get_declaration().get_children() if c.kind.name.endswith("_DECL")})
    if not values or values[-1] - values[0] != len(values) - 1:
        return ValueRange()
    return ValueRange(str(values[0]), str(values[-1]), origin=Origin.TYPE)


def _volatile(what: str, unit: Unit, line: int) -> InputRefused:
    return InputRefused(
        f"{what} is volatile", where=unit.at(line), hint="Drop `volatile`: a kernel works on a copy of the data."
    )


@dataclass(frozen=True, slots=True)
class ArrayDims:
    """Dimensions of an array parameter as C text: the outermost (`None` if a pointer or ``[]``), then the others."""

    outer: str | None
    inner: tuple[str | None, ...]


def array_dims(variable: Variable) -> ArrayDims:
    """The dimensions that a parameter's declaration states."""
    levels: list[int | None] = []
    ctype: Any = variable.ctype.get_canonical()
    outer_is_array = ctype.kind.name != "POINTER"
    if not outer_is_array:
        ctype = ctype.get_pointee().get_canonical()
    while ctype.kind.name.endswith("ARRAY"):
        levels.append(ctype.element_count if ctype.kind.name == "CONSTANTARRAY" else None)
        ctype = ctype.get_array_element_type().get_canonical()
    stated = [*variable.dims, *([None] * len(levels))]
    texts: list[str | None] = []
    for count, dim in zip(levels, stated, strict=False):
        texts.append(str(count) if count is not None else to_text(dim) if dim is not None else None)
    if outer_is_array:
        return ArrayDims(texts[0] if texts else None, tuple(texts[1:]))
    return ArrayDims(None, tuple(texts))


def product(factors: Sequence[str]) -> str:
    """``a*b*c``, parenthesised where needed."""
    if len(factors) == 1:
        return factors[0]
    return "*".join(f if expr.parse(f).op in ("name", "num", "*") else f"({f})" for f in factors)


def to_text(node: Expr) -> str | None:
    """C text of an integer expression over names and constants; `None` where it holds anything else."""
    if node.kind == "const":
        return str(node.value)
    if node.kind == "name":
        return node.name
    parts = [to_text(a) for a in node.args]
    if any(p is None for p in parts):
        return None
    texts = [p if a.kind in _PRECEDENCE_FREE else f"({p})" for p, a in zip(parts, node.args, strict=True)]
    if node.kind == "binary":
        return f"{texts[0]}{node.op}{texts[1]}"
    if node.kind == "unary" and node.op in ("-", "+", "~", "!"):
        return f"{node.op}{texts[0]}"
    if node.kind == "ternary":
        return f"{texts[0]} ? {texts[1]} : {texts[2]}"
    if node.kind == "cast":
        return parts[0]
    return None


def apply_clauses(
    prototype: Prototype, clauses: Iterable[Clause], macros: Macros, origin: Origin, place: str | None = None
) -> None:
    """Let declared clauses override what the types say; what an earlier call of higher authority set stays.

    Args:
        prototype: Changed in place.
        clauses: ``buffer`` and ``range`` clauses; others are ignored.
        macros: To expand expressions.
        origin: `Origin.SPEC` or `Origin.COMMENT`.
        place: Where the clauses are written, if not in the C file.

    Raises:
        InputRefused: Unknown parameter, a scalar with brackets, an unknown name in an expression, said twice.
    """
    unit = macros.unit
    seen: dict[str, Clause] = {}
    for clause in clauses:
        if clause.kind not in ("buffer", "range"):
            continue
        where = place or unit.at(clause.line)
        parameter = prototype.parameters.get(clause.name)
        if parameter is None:
            raise unknown_name(clause.name, list(prototype.parameters), where)
        previous = seen.get(clause.name)
        if previous is not None and (previous.kind == clause.kind or (previous.range and clause.range)):
            raise InputRefused(f"`{clause.name}` is described twice", where=where, hint="Keep one of the two clauses.")
        seen[clause.name] = clause
        names = {p.name for p in prototype.parameters.values() if not p.pointer}
        prototype.parameters[clause.name] = _declared(parameter, clause, macros, origin, names, where)


def _declared(
    parameter: Parameter, clause: Clause, macros: Macros, origin: Origin, names: set[str], where: str
) -> Parameter:
    changes: dict[str, Any] = {}
    if clause.dims:
        if not parameter.pointer:
            raise InputRefused(
                f"`{clause.name}` is a scalar, not an array", where=where, hint=f"Write {clause.name} in A..B"
            )
        dims = [checked_names(macros.expand(d), d, names, where) for d in clause.dims]
        if parameter.extent is None or parameter.extent.origin is not Origin.SPEC:
            changes["extent"] = Extent(product(dims), origin, clause.line)
        if len(dims) > 1:
            changes["dims"] = tuple(dims)
    role = {"in": Role.IN, "index": Role.IN, "out": Role.OUT, "inout": Role.INOUT}.get(clause.role or "")
    if role is not None and parameter.role_origin is not Origin.SPEC:
        if role is not Role.IN and parameter.const:
            raise InputRefused(
                f"`{clause.name}` is declared `{clause.role}`, but the C says const",
                where=where,
                hint=f"Write in {clause.name}[…], or drop `const` from the parameter.",
            )
        changes["role"], changes["role_origin"] = role, origin
    if clause.role == "index":
        changes["index"] = True
    if clause.ascending:
        changes["ascending"] = True
    if clause.odd and parameter.type.kind not in (TypeKind.INT, TypeKind.UINT):
        raise InputRefused(f"`{clause.name}` is no integer, so it cannot be odd", where=where, hint="Drop `odd`.")
    if clause.range is not None and parameter.range.origin is not Origin.SPEC:
        if parameter.type.kind is TypeKind.STRUCT:
            raise InputRefused(
                f"`{clause.name}` holds structs, which have no range", where=where, hint="Drop `in A..B`."
            )
        ends = [
            None if end is None else checked_names(macros.expand(end), end, names - {clause.name}, where)
            for end in (clause.range.low, clause.range.high)
        ]
        changes["range"] = ValueRange(ends[0], ends[1], clause.odd, origin)
    return replace(parameter, **changes)


def checked_names(expanded: str, written: str, allowed: set[str], where: str) -> str:
    """`expanded`, if its names are all scalar parameters.

    Raises:
        InputRefused: A name is unknown; close matches are offered.
    """
    for name in sorted(expr.names(expanded)):
        if name not in allowed:
            raise unknown_name(name, sorted(allowed), where, f" in `{written}`")
    return re.sub(r"\s+", "", expanded) if " " in expanded and "?" not in expanded else expanded


def unknown_name(name: str, known: Sequence[str], where: str, place: str = "") -> InputRefused:
    """The error for a name that is no parameter."""
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    listed = ", ".join(known) or "none"
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    return InputRefused(f"unknown name `{name}`{place}", where=where, hint=f"{hint}Known names: {listed}.")


def scalar_type(ctype: Any, unit: Unit, line: int, function: str) -> CType | None:
    """The return type as `CType`, `None` for ``void``.

    Raises:
        InputRefused: A pointer or a struct is returned.
    """
    canonical = ctype.get_canonical()
    if canonical.kind.name == "VOID":
        return None
    if canonical.kind.name in ("POINTER", "RECORD"):
        what = "a pointer" if canonical.kind.name == "POINTER" else "a struct"
        raise InputRefused(
            f"{function} returns {what}",
            where=unit.at(line),
            hint="Return void and write the result through a pointer parameter, e.g. `T *result`.",
        )
    return object_type(ctype, unit, line, f"the result of {function}")
