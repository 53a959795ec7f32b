"""The setup call: a function of the file that fills file-scope tables before the entry runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks import expr
from cudaperf_agent.tasks.clauses import Clause
from cudaperf_agent.tasks.clauses import split as split_at
from cudaperf_agent.tasks.infer import infer
from cudaperf_agent.tasks.model import Extent, Origin, Parameter
from cudaperf_agent.tasks.parameters import Prototype, read_prototype, unknown_name
from cudaperf_agent.tasks.syntax import CFile, Function


@dataclass(frozen=True, slots=True)
class Setup:
    """A setup call, understood.

    Attributes:
        call: C text.
        function: What it calls.
        prototype: The function's own parameters.
        arguments: Text of each argument by the function's parameter name.
        inputs: Parameters that only the setup call takes, under the names that the call uses.
    """

    call: str
    function: Function
    prototype: Prototype
    arguments: dict[str, str]
    inputs: dict[str, Parameter]


def read_setup(clause: Clause, file: CFile, entry: Mapping[str, Parameter]) -> Setup:
    """Read ``setup CALL``: arguments are parameters of the entry, new names, or expressions over these.

    Raises:
        InputRefused: No such function, a wrong number of arguments, or an argument that is neither.
    """
    where = file.unit.at(clause.line)
    name, _, rest = clause.call.partition("(")
    name, text = name.strip(), rest.rsplit(")", 1)[0]
    function = file.functions.get(name)
    if function is None:
        raise unknown_name(name, list(file.functions), where, " in the setup call")
    arguments = [part.strip() for part, _ in split_at(text, ",") if part.strip()]
    if len(arguments) != len(function.parameters):
        raise InputRefused(
            f"{name} takes {len(function.parameters)} arguments, the setup call gives {len(arguments)}",
            where=where,
            hint=f"Its parameters are: {', '.join(p.name for p in function.parameters) or 'none'}.",
        )
    prototype = read_prototype(function, file.unit)
    inputs: dict[str, Parameter] = {}
    for argument, parameter in zip(arguments, prototype.parameters.values(), strict=True):
        if re.fullmatch(r"[A-Za-z_]\w*", argument) and argument not in entry:
            declaration = re.sub(rf"\b{parameter.name}$", argument, parameter.declaration)
            inputs[argument] = replace(
                parameter, name=argument, declaration=declaration, extent=_renamed(parameter.extent, {})
            )
    known = set(entry) | set(inputs)
    for argument in arguments:
        try:
            strangers = expr.names(argument) - known
        except expr.ExprError as error:
            raise InputRefused(f"in the setup call: {error}", where=where, hint="Use plain names.") from error
        if strangers:
            raise unknown_name(min(strangers), sorted(known), where, " in the setup call")
    by_name = dict(zip(prototype.parameters, arguments, strict=True))
    return Setup(clause.call, function, prototype, by_name, inputs)


def infer_setup(file: CFile, setup: Setup, at_least_one: set[str]) -> dict[str, Parameter]:
    """Complete the setup call's own inputs from what its function does with them."""
    inferred = infer(file, setup.function, setup.prototype.parameters, (), at_least_one).parameters
    done = dict(setup.inputs)
    for own, argument in setup.arguments.items():
        declared = done.get(argument)
        if declared is None:
            continue
        found = inferred[own]
        extent = declared.extent if declared.extent is not None else _renamed(found.extent, setup.arguments)
        role = found if declared.role_origin is Origin.DEFAULT else declared
        limits = replace(
            found.range,
            low=_over_arguments(found.range.low, setup.arguments),
            high=_over_arguments(found.range.high, setup.arguments),
        )
        done[argument] = replace(
            declared,
            extent=extent,
            role=role.role,
            role_origin=role.role_origin,
            index=declared.index or found.index,
            range=limits if declared.range.origin is Origin.DEFAULT else declared.range,
        )
    return done


def _renamed(extent: Extent | None, arguments: Mapping[str, str]) -> Extent | None:
    """An extent over the function's own names, over the call's arguments instead; `None` while these are unknown."""
    if extent is None or not arguments:
        return None
    return replace(extent, expr=_over_arguments(extent.expr, arguments) or extent.expr)


def _over_arguments(text: str | None, arguments: Mapping[str, str]) -> str | None:
    def replaced(match: re.Match[str]) -> str:
        text = arguments.get(match.group(), match.group())
        return text if re.fullmatch(r"\w+", text) else f"({text})"

    return None if text is None else re.sub(r"\b[A-Za-z_]\w*", replaced, text)
