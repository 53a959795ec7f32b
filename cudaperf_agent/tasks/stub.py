"""The C function through which the native runner calls an entry: one array of addresses in, the typed call inside.

Argument order is `argument_order(task)`: the entry's parameters, the setup call's own inputs, then the return value's
storage (zero bytes for ``void``). See `cudaperf_agent.execution.native` for the protocol.
"""

from __future__ import annotations

import numpy as np

from cudaperf_agent.execution.native import Argument
from cudaperf_agent.tasks.model import Case, Parameter, Task, Value


def entry_prototype(task: Task) -> str:
    """The entry as callers of the CUDA see it: array parameters as pointers. No semicolon."""
    returns = task.returns.spelling if task.returns else "void"
    parameters = ", ".join(p.declaration for p in task.parameters) or "void"
    return f"{returns} {task.name}({parameters})"


def call_stub(task: Task) -> str:
    """C text with ``cudaperf_call`` (and ``cudaperf_setup``), to be appended where the entry is declared."""
    inputs = list(task.inputs())
    lines = [_local(index, parameter) for index, parameter in enumerate(inputs)]
    unused = [f"    (void){p.name};" for p in inputs]
    call = f"{task.name}({', '.join(_passed(p) for p in task.parameters)})"
    if task.returns:
        call = f"*({task.returns.spelling} *)cudaperf_args[{len(inputs)}] = {call}"
    text = ["void cudaperf_call(void *const *cudaperf_args)", "{", *lines, *unused, f"    {call};", "}"]
    if task.setup:
        text += ["void cudaperf_setup(void *const *cudaperf_args)", "{", *lines, *unused, f"    {task.setup};", "}"]
    return "\n".join(text) + "\n"


def _local(index: int, parameter: Parameter) -> str:
    spelling = parameter.type.spelling
    if parameter.pointer:
        return f"    {spelling} *{parameter.name} = ({spelling} *)cudaperf_args[{index}];"
    return f"    {spelling} {parameter.name} = *({spelling} *)cudaperf_args[{index}];"


def _passed(parameter: Parameter) -> str:
    # Through void *, so that one text fits both the array parameter of the C and the pointer of the CUDA.
    return f"(void *){parameter.name}" if parameter.pointer else parameter.name


def native_arguments(task: Task, case: Case, *, fill: int | None = 0xFF, inputs_back: bool = True) -> list[Argument]:
    """The arguments of one call, in the stub's order.

    Args:
        task: The task.
        case: Its inputs; an ``out`` buffer gives size and dtype only.
        fill: Byte with which ``out`` buffers are poisoned; `None` sends the case's own bytes.
        inputs_back: Whether buffers that are only read come back too, so that a change of them can be seen.
    """
    arguments = []
    for parameter in task.inputs():
        data = np.ascontiguousarray(case.values[parameter.name])
        poisoned = parameter.pointer and not parameter.read and fill is not None
        returned = parameter.pointer and (parameter.written or inputs_back)
        arguments.append(Argument(data, returned=returned, fill=fill if poisoned else None))
    size = task.returns.dtype if task.returns else np.dtype("u1")
    storage = np.zeros(1 if task.returns else 0, dtype=size)
    arguments.append(Argument(storage, returned=True, fill=fill))
    return arguments


def outputs_by_name(task: Task, outputs: dict[int, Value]) -> dict[str, Value]:
    """The returned buffers by parameter name (inputs too, so that unwanted changes can be seen); ``return`` is 0-d."""
    named: dict[str, Value] = {}
    inputs = list(task.inputs())
    for index, parameter in enumerate(inputs):
        if index in outputs:
            named[parameter.name] = outputs[index]
    if task.returns and len(inputs) in outputs:
        named["return"] = outputs[len(inputs)].reshape(())
    return named
