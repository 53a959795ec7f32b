"""What others say about the entry: GCC's ``access`` attribute on its declarations, and the calls in the same file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from cudaperf_agent.tasks.extents import poly_of
from cudaperf_agent.tasks.model import Extent, Origin, Parameter, Role
from cudaperf_agent.tasks.parameters import to_text
from cudaperf_agent.tasks.poly import Poly
from cudaperf_agent.tasks.syntax import CFile, Expr, Function, Variable

_ACCESS = re.compile(
    r"\b(?:__)?access(?:__)?\s*\(\s*(?:__)?(read_only|write_only|read_write|none)(?:__)?\s*,\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)"
)
# write_only promises no read, but not that every element is written: whether it is `out` the body must prove.
_MODES = {"read_only": Role.IN, "read_write": Role.INOUT}


def apply_access(file: CFile, entry: Function, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Take roles and extents from ``__attribute__((access(MODE, WHICH, SIZE)))``, in the text: clang drops it."""
    done = dict(parameters)
    order = list(parameters)
    for text, line in _declarations(file, entry):
        for match in _ACCESS.finditer(text):
            which = int(match.group(2)) - 1
            if not 0 <= which < len(order) or not done[order[which]].pointer:
                continue
            parameter = done[order[which]]
            role = _MODES.get(match.group(1))
            if role is not None and parameter.role_origin is Origin.DEFAULT:
                parameter = replace(parameter, role=role, role_origin=Origin.ATTRIBUTE)
            size = int(match.group(3)) - 1 if match.group(3) else -1
            if parameter.extent is None and 0 <= size < len(order):
                at = line + text.count("\n", 0, match.start())
                parameter = replace(parameter, extent=Extent(order[size], Origin.ATTRIBUTE, at))
            done[order[which]] = parameter
    return done


class _Text(NamedTuple):
    text: str
    line: int


def _declarations(file: CFile, entry: Function) -> Iterator[_Text]:
    """The text of each declaration of the entry, with what stands before it, up to ``;`` or ``{``."""
    data = file.unit.source.encode()
    previous = 0
    if "access" not in file.unit.source:
        return
    for cursor in file.unit.top_level():
        end = cursor.extent.end.offset
        if cursor.kind.name == "FUNCTION_DECL" and cursor.spelling == entry.name:
            body = next((c for c in cursor.get_children() if c.kind.name == "COMPOUND_STMT"), None)
            stop = body.extent.start.offset if body is not None else data.find(b";", end)
            text = data[previous : stop if stop >= 0 else len(data)].decode(errors="replace")
            yield _Text(text, data.count(b"\n", 0, previous) + 1)
        previous = max(previous, end)


def call_site_extents(file: CFile, entry: Function, parameters: Mapping[str, Parameter]) -> dict[str, Extent]:
    """Extents that every call in the file agrees on: sizes of the arrays passed, over the sizes passed with them."""
    found: dict[str, list[Extent | None]] = {}
    for function in file.functions.values():
        if function.name == entry.name:
            continue
        for node in function.expressions():
            if node.kind == "call" and node.name == entry.name:
                for name, extent in _from_call(file, function, node, entry, parameters).items():
                    found.setdefault(name, []).append(extent)
    agreed: dict[str, Extent] = {}
    for name, extents in found.items():
        first = extents[0]
        if first is not None and all(e is not None and e.expr == first.expr for e in extents):
            agreed[name] = first
    return agreed


def _from_call(
    file: CFile, caller: Function, call: Expr, entry: Function, parameters: Mapping[str, Parameter]
) -> dict[str, Extent | None]:
    passed = dict(zip((p.name for p in entry.parameters), call.args[1:], strict=False))
    sizes = {
        name: poly
        for name, argument in passed.items()
        if not parameters[name].pointer and (poly := poly_of(to_text(argument) or "?")) is not None
    }
    extents: dict[str, Extent | None] = {}
    for name, argument in passed.items():
        if not parameters[name].pointer:
            continue
        count = _elements(file, caller, argument, parameters[name].type.size)
        text = _over_parameters(count, sizes) if count is not None else None
        extents[name] = Extent(text, Origin.CALL_SITE, call.line) if text is not None else None
    return extents


def _elements(file: CFile, caller: Function, argument: Expr, size: int) -> Poly | None:
    """Elements of the array or allocation that a plain argument names, in the caller's terms."""
    if argument.kind != "name":
        return None
    variable = _variable(file, caller, argument.key)
    if variable is None:
        return None
    if variable.ctype.get_canonical().kind.name.endswith("ARRAY"):
        total: Poly | None = Poly.number(1)
        for dim in variable.dims:
            factor = poly_of(to_text(dim) or "?") if dim is not None else None
            total = total * factor if total is not None and factor is not None else None
        return total
    allocations = [variable.init] if variable.init is not None else []
    for node in caller.expressions():
        if node.kind == "assign" and node.args[0].kind == "name" and node.args[0].key == argument.key:
            allocations.append(node.args[1])
    if len(allocations) != 1:
        return None
    return _allocated(allocations[0], size)


def _allocated(node: Expr, size: int) -> Poly | None:
    while node.kind == "cast":
        node = node.args[0]
    if node.kind != "call" or node.name not in ("malloc", "calloc", "aligned_alloc"):
        return None
    factors = node.args[1:] if node.name == "calloc" else node.args[-1:]
    total = Poly.number(1)
    for factor in factors:
        poly = poly_of(to_text(factor) or "?")
        if poly is None:
            return None
        total = total * poly
    return total.divided(Poly.number(size))


def _variable(file: CFile, caller: Function, key: int) -> Variable | None:
    if key in file.variables:
        return file.variables[key]
    for statement in caller.body.walk():
        for variable in statement.variables:
            if variable.key == key:
                return variable
    return None


def _over_parameters(count: Poly, sizes: Mapping[str, Poly]) -> str | None:
    """`count` in terms of the entry's parameters, given what is passed for them; `None` if that does not say it."""
    if count.constant is not None:
        same = [name for name, poly in sizes.items() if poly.constant == count.constant]
        if len(same) == 1:
            return same[0]
        products = [
            f"{a}*{b}"
            for a, p in sizes.items()
            for b, q in sizes.items()
            if a < b and p.constant is not None and q.constant is not None and p.constant * q.constant == count.constant
        ]
        return products[0] if len(products) == 1 and not same else None
    for name, poly in sizes.items():
        if len(poly.terms) == 1 and poly.terms[0][1] == 1 and len(poly.terms[0][0]) == 1:
            count = count.substitute(poly.terms[0][0][0], Poly.atom(f"{name}@"))
    if not all(atom.endswith("@") for atom in count.atoms):
        return None
    for atom in count.atoms:
        count = count.substitute(atom, Poly.atom(atom.removesuffix("@")))
    return count.text()
