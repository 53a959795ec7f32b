"""Fill in what neither the types nor the user said: roles, extents, index buffers and the least legal sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cudaperf_agent.tasks import expr
from cudaperf_agent.tasks.accesses import Findings
from cudaperf_agent.tasks.callers import apply_access, call_site_extents
from cudaperf_agent.tasks.extents import Reach, extent_text, picks, poly_of, reach
from cudaperf_agent.tasks.listed_ranges import listed_index, listed_size
from cudaperf_agent.tasks.model import Extent, Origin, Parameter, Role, Table, TypeKind, ValueRange
from cudaperf_agent.tasks.poly import Poly, dominates
from cudaperf_agent.tasks.roles import infer_role
from cudaperf_agent.tasks.syntax import CFile, Function
from cudaperf_agent.tasks.walk import Walker


@dataclass(frozen=True, slots=True)
class Inferred:
    """Completed parameters, and one sentence for each thing that was assumed."""

    parameters: dict[str, Parameter]
    assumptions: tuple[str, ...]


def infer(
    file: CFile,
    function: Function,
    parameters: Mapping[str, Parameter],
    tables: tuple[Table, ...],
    at_least_one: set[str],
) -> Inferred:
    """Complete the parameters of `function` from what its body does.

    Args:
        file: The parsed file.
        function: The entry, or the setup function.
        parameters: What is known so far; declared roles, extents and ranges stay.
        tables: File-scope tables, for the range of subscripts into them.
        at_least_one: Sizes that the types require to be one or more.
    """
    parameters = apply_access(file, function, parameters)
    calls = call_site_extents(file, function, parameters)
    findings = Walker(file, _ranges(parameters)).run(function)
    done: dict[str, Parameter] = {}
    assumptions: list[str] = []
    for name, parameter in parameters.items():
        if parameter.pointer:
            reaches = reach(findings, name)
            parameter = _extent(reaches, parameter, list(parameters), calls.get(name), assumptions)
            parameter = _role(findings, reaches, parameter)
        done[name] = parameter
    done = _indices(findings, done, tables, assumptions)
    done = _sizes(findings, done, at_least_one, assumptions)
    done = _picked(findings, done, assumptions)
    tested = [name for name in parameters if name in _tested_for_null(function)]
    if tested:
        names = " and ".join(f"`{name}`" for name in tested)
        assumptions.append(f"{names} {'is' if len(tested) == 1 else 'are'} taken not to be null, though the C tests it")
    return Inferred(done, tuple(assumptions))


def _tested_for_null(function: Function) -> set[str]:
    """Names of the pointers that are compared with the null pointer."""
    names = set()
    for node in function.expressions():
        if node.kind == "unary" and node.op == "!":
            sides = node.args
        elif node.kind == "binary" and node.op in ("==", "!="):
            sides = node.args
            if not any(all(e.kind in ("cast", "const") and not e.value for e in side.walk()) for side in sides):
                continue
        else:
            continue
        names |= {s.name for s in sides if s.kind == "name" and s.ctype.kind.name == "POINTER"}
    return names


def _ranges(parameters: Mapping[str, Parameter]) -> dict[str, tuple[Poly | None, Poly | None]]:
    ranges = {}
    for name, parameter in parameters.items():
        if parameter.pointer and parameter.type.kind in (TypeKind.INT, TypeKind.UINT):
            ends = parameter.range.low, parameter.range.high
            low, high = (poly_of(end) if end is not None else None for end in ends)
            ranges[name] = (low, high)
    return ranges


def _extent(
    reaches: tuple[Reach, ...] | None,
    parameter: Parameter,
    order: Sequence[str],
    called: Extent | None,
    assumptions: list[str],
) -> Parameter:
    if parameter.extent is not None:
        return parameter
    text = extent_text(reaches, order) if reaches is not None else None
    if called is not None:
        count = poly_of(called.expr)
        # A caller may pass more than is touched; if it seems to pass less, the loops are believed.
        if reaches is None or (count is not None and all(dominates(count, r.count) for r in reaches)):
            assumptions.append(f"{parameter.name} has {called.expr} elements, as in the call at line {called.line}")
            return replace(parameter, extent=called)
    if text is None:
        return parameter
    line = reaches[0].line if reaches else parameter.line
    assumptions.append(f"{parameter.name} has {text} elements, by the bounds of the loops that use it")
    return replace(parameter, extent=Extent(text, Origin.LOOP_BOUNDS, line))


def _role(findings: Findings, reaches: tuple[Reach, ...] | None, parameter: Parameter) -> Parameter:
    if parameter.role_origin is not Origin.DEFAULT:
        return parameter
    count = poly_of(parameter.extent.expr) if parameter.extent is not None else None
    if parameter.extent is not None and parameter.extent.origin is Origin.LOOP_BOUNDS and len(reaches or ()) == 1:
        count = reaches[0].count if reaches else count
    role = infer_role(findings, parameter.name, parameter.type, count)
    return replace(parameter, role=role, role_origin=Origin.LOOP_BOUNDS)


def _indices(
    findings: Findings, parameters: dict[str, Parameter], tables: tuple[Table, ...], assumptions: list[str]
) -> dict[str, Parameter]:
    counts = {t.name: str(t.count) for t in tables if len(t.dims) == 1}
    file_scope = {t.name for t in tables}
    done = dict(parameters)
    for subscript in findings.subscripts:
        # Into a local array alone it says nothing of the other buffers' extents: the run of the C finds the range.
        bounded = bool(subscript.target) or subscript.table in file_scope
        for name in subscript.taint & set(done) if bounded else ():
            if done[name].type.kind in (TypeKind.INT, TypeKind.UINT):
                done[name] = replace(done[name], index=True)
        target = next(iter(subscript.target)) if len(subscript.target) == 1 else None
        extent = parameters[target].extent if target in parameters else None
        count = extent.expr if extent is not None else counts.get(subscript.table)
        plain = done.get(subscript.plain or "")
        if plain is None or count is None or plain.range.origin is not Origin.DEFAULT or "?" in count:
            continue
        if plain.role is Role.OUT or plain.type.kind is TypeKind.STRUCT:
            continue
        last = poly_of(count)
        high = last.plus(-1).text() if last is not None else f"({count})-1"
        into = target or subscript.table
        assumptions.append(f"the values of {plain.name} lie in 0..{high}, as they index {into}")
        done[plain.name] = replace(plain, range=ValueRange("0", high, origin=Origin.LOOP_BOUNDS))
    return done


def _picked(findings: Findings, parameters: dict[str, Parameter], assumptions: list[str]) -> dict[str, Parameter]:
    """A scalar that is a subscript, and no size, lies in the buffer that it picks an element of."""
    done = dict(parameters)
    for name, parameter in parameters.items():
        count = poly_of(parameter.extent.expr) if parameter.extent is not None else None
        for scalar in sorted(picks(findings, name)) if count is not None else ():
            known = done.get(scalar)
            if known is None or count is None or known.range.origin is not Origin.DEFAULT:
                continue
            high = count.plus(-1).text()
            assumptions.append(listed_index(scalar, high, name))
            done[scalar] = replace(known, range=ValueRange("0", high, origin=Origin.LOOP_BOUNDS))
    return done


def _sizes(
    findings: Findings, parameters: dict[str, Parameter], at_least_one: set[str], assumptions: list[str]
) -> dict[str, Parameter]:
    """Integers that extents are made of are sizes: zero or more, or one or more inside variably modified types.

    A loop up to a negative number does nothing, but a negative stride or offset reaches elements outside the extent.
    """
    counting = {n for a in findings.accesses for loop in a.loops for end in (loop.low, loop.high) if end is not None
                for n in end.atoms}  # fmt: skip
    divisors = {n for p in parameters.values() if p.extent is not None for n in expr.divisors(p.extent.expr)}
    used = {n for p in parameters.values() if p.extent is not None for n in expr.names(p.extent.expr)}
    computed = [p.extent.expr for p in parameters.values() if p.extent and p.extent.origin is Origin.LOOP_BOUNDS]
    strides = {n for text in computed for n in expr.names(text) if text != n} - counting
    done = dict(parameters)
    for name in sorted(used | at_least_one):
        parameter = done.get(name)
        if parameter is None or parameter.pointer or parameter.range.origin is not Origin.DEFAULT:
            continue
        origin = Origin.TYPE if name in at_least_one else Origin.LOOP_BOUNDS
        low = "1" if name in at_least_one | divisors else "0"
        if name in strides - at_least_one and parameter.type.kind is TypeKind.INT:
            assumptions.append(listed_size(name, low))
        done[name] = replace(parameter, range=ValueRange(low, None, origin=origin))
    return done
