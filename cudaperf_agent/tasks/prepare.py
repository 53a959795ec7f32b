"""Makes a parsed task ready for use: extents measured, the C legal on its inputs, roles confirmed by running it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.execution.native import Wrap, call_native
from cudaperf_agent.tasks.budget import leaves
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.checked import Finding, check_program, with_line
from cudaperf_agent.tasks.influence import without_influence
from cudaperf_agent.tasks.measure import measure_extents, with_parameter
from cudaperf_agent.tasks.model import Case, Origin, Parameter, Role, Task, Value
from cudaperf_agent.tasks.narrow import NARROW, NarrowConfig, Trouble, narrow, trouble
from cudaperf_agent.tasks.reference_build import Build, require_library
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name

_POISONS = (0xFF, 0x5A)
_ROUNDS = 3


async def prepare(task: Task, *, wrap: Wrap | None = None, config: NarrowConfig = NARROW) -> Task:
    """`task` with every extent known, ranges on which the C is legal, and roles that agree with what it does.

    What was narrowed, measured or changed is added to ``assumptions``.

    Raises:
        InputRefused: The C is not legal on its declared inputs, or an extent cannot be found.
        BackendUnavailable: There is no C compiler with sanitizers.
    """
    if task.mode == "program":
        return await _prepare_program(task, wrap)
    task = await measure_extents(task, wrap=wrap)
    for _ in range(_ROUNDS):
        found = await trouble(task, wrap=wrap, config=config)
        if found is not None:
            task = await _mend(task, found, wrap, config)
        confirmed = await _confirm_roles(task, wrap)
        if confirmed == task:
            break
        task = confirmed  # a buffer that is now an input has values of its own, which must be legal too
    idle = await without_influence(task, wrap=wrap)
    if idle:
        names = ", ".join(f"`{name}`" for name in idle)
        notice = f"no result depends on {names} as far as was tried: tests cannot tell whether a translation reads it."
        task = replace(task, assumptions=(*task.assumptions, notice))
    return replace(task, digest=_digest(task))


async def _mend(task: Task, found: Trouble, wrap: Wrap | None, config: NarrowConfig) -> Task:
    narrowed = await narrow(task, found, wrap=wrap, config=config)
    if narrowed is not None:
        return narrowed
    # No range helps. Perhaps an inferred extent is too small: the C itself can tell how much it needs.
    suspect = next((p for p in task.inputs() if found.finding and p.name == found.finding.parameter), None)
    if suspect is not None and suspect.extent is not None and not suspect.extent.origin.declared:
        try:
            again = await measure_extents(with_parameter(task, replace(suspect, extent=None)), wrap=wrap)
        except InputRefused:
            raise _refusal(task, found) from None
        still = await trouble(again, wrap=wrap, config=config)
        narrowed = again if still is None else await narrow(again, still, wrap=wrap, config=config)
        if narrowed is not None:
            return narrowed
    raise _refusal(task, found)


def _refusal(task: Task, found: Trouble) -> InputRefused:
    if found.finding is None:
        return InputRefused(
            f"too much of `{found.output}` is not finite on every range of inputs that was tried",
            where=f"{task.path}:{task.first_line}",
            hint=f"Write legal ranges above {task.name}, for example: {_example_range(task)}",
        )
    finding = with_line(task, found.finding)
    return InputRefused(
        f"{finding.message} (with {finding.case})", where=f"{task.path}:{finding.line}", hint=_remedy(task, finding)
    )


def _remedy(task: Task, finding: Finding) -> str:
    parameter = next((p for p in task.inputs() if p.name == finding.parameter), None)
    if parameter is not None and finding.index is not None and finding.index < 0:
        return f"Mend the access, or restrict the inputs above {task.name}, for example: {_example_range(task)}"
    if parameter is not None and parameter.extent is not None:
        extent = parameter.extent.expr
        return (
            f"`{parameter.name}` is {_said(parameter.extent.origin)} to have {extent} elements. Mend the access, or "
            f"declare more elements, e.g. /* cudaperf: {parameter.role.value} {parameter.name}[{extent}+1] */"
        )
    if finding.kind == "undefined":
        return f"Mend that line, or restrict the inputs above {task.name}, for example: {_example_range(task)}"
    if finding.kind in ("timeout", "memory"):
        return f"Restrict the inputs above {task.name}, for example: {_example_range(task)}"
    return f"Mend that line, or declare what is legal above {task.name}, for example: {_example_range(task)}"


def _said(origin: Origin) -> str:
    return "declared" if origin.declared else f"inferred ({origin.value})"


def _example_range(task: Task) -> str:
    free = [p for p in task.inputs() if p.range.low is None and p.range.high is None and (not p.pointer or p.read)]
    if not free:
        return "/* cudaperf: n in 1..1000 */"
    chosen = next((p for p in free if not p.pointer), free[0])
    extent = f"[{chosen.extent.expr}]" if chosen.extent else ""
    return f"/* cudaperf: {chosen.name}{extent} in 1..100 */"


async def _confirm_roles(task: Task, wrap: Wrap | None) -> Task:
    """Run the C with two poisons in the ``out`` buffers: what keeps the poison, or depends on it, is ``inout``.

    Raises:
        InputRefused: A buffer declared ``in`` is changed by the C.
    """
    cases = [*make_cases(task, hidden=False), *make_cases(task, hidden=True)]
    library = await require_library(task, Build.PLAIN)
    runs: list[list[dict[str, Value]]] = []
    for poison in _POISONS:
        calls = [native_arguments(task, case, fill=poison) for case in cases]
        run = await call_native(library, calls, wrap=wrap)
        runs.append([outputs_by_name(task, outcome.outputs) for outcome in run.outcomes])
    for parameter in list(task.inputs()):
        if not parameter.pointer:
            continue
        if parameter.role is Role.IN and _is_changed(parameter, cases, runs[0]):
            task = _now_inout(task, parameter, "the C changes it")
        elif parameter.role is Role.OUT:
            why = _not_only_out(parameter, runs)
            if why:
                task = _now_inout(task, parameter, why)
    return task


def _is_changed(parameter: Parameter, cases: list[Case], run: list[dict[str, Value]]) -> bool:
    pairs = zip(cases, run, strict=False)
    return any(case.values[parameter.name].tobytes() != out[parameter.name].tobytes() for case, out in pairs)


def _not_only_out(parameter: Parameter, runs: list[list[dict[str, Value]]]) -> str:
    for first, second in zip(*runs, strict=False):
        for one, other in zip(leaves(first[parameter.name]), leaves(second[parameter.name]), strict=True):
            a, b = np.ascontiguousarray(one.values), np.ascontiguousarray(other.values)
            if not a.size:
                continue
            old, new = a.view(np.uint8).reshape(a.size, -1), b.view(np.uint8).reshape(a.size, -1)
            if ((old == _POISONS[0]) & (new == _POISONS[1])).all(axis=1).any():
                return "the C leaves some of its elements as they were"
            if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                return "the C's result depends on what it held before"
    return ""


def _now_inout(task: Task, parameter: Parameter, why: str) -> Task:
    if parameter.role is Role.IN and parameter.role_origin in (Origin.SPEC, Origin.COMMENT):
        raise InputRefused(
            f"`{parameter.name}` is declared `in`, but the C changes it",
            where=f"{task.path}:{parameter.line or task.first_line}",
            hint=f"Declare it `inout {parameter.name}[…]` in the `cudaperf:` comment.",
        )
    changed = replace(parameter, role=Role.INOUT, role_origin=Origin.MEASURED)
    sentence = f"`{parameter.name}` is treated as inout: {why}."
    task = with_parameter(task, changed)
    return replace(task, assumptions=(*task.assumptions, sentence))


async def _prepare_program(task: Task, wrap: Wrap | None) -> Task:
    cases = [case for hidden in (False, True) for case in make_cases(task, hidden=hidden)]
    finding = await check_program(task, cases, wrap=wrap)
    if finding is not None:
        finding = with_line(task, finding)
        raise InputRefused(
            f"{finding.message} (on the input {finding.case})",
            where=f"{task.path}:{finding.line}",
            hint="Mend that line, or restrict the inputs in the `stdin` clause of the `cudaperf:` comment.",
        )
    return replace(task, digest=_digest(task))


def _digest(task: Task) -> str:
    """SHA-256 (hex) over everything that can change a verdict, after preparation."""
    text = repr(replace(task, digest="", path="", assumptions=()))
    digest = hashlib.sha256(text.encode())
    for file in task.stdin_files:
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()
