"""What a candidate must be, in words for a model: the rules, the exact signature to define, and the task itself."""

from __future__ import annotations

from cudaperf_agent.codegen.dropin import device_prototype
from cudaperf_agent.policies.module_contract import SYSTEM, SYSTEM_COMPACT, module_contract_text, module_task_text
from cudaperf_agent.tasks.model import Parameter, Role, Task, ValueRange

_SYSTEM = """You are an expert CUDA programmer. You translate C into CUDA C++ that is correct first and fast second.
Your file is compiled with nvcc, run on test inputs that you do not see (empty, tiny, odd and large sizes among them),
checked for out-of-bounds accesses, uninitialised reads and data races, compared with the C, and timed."""

_SYSTEM_COMPACT = "You translate C into correct, fast CUDA C++."

_RULES = """Rules:
- The work is done by kernels whose parallelism grows with the input; one thread doing all of it is rejected.
- Pointer parameters are device pointers already: no copies from or to the host. Never read them on the host.
- Launch on `stream`. Temporary device memory comes from cudaMallocAsync and goes back with cudaFreeAsync on `stream`.
- Handle sizes of 0 (launch nothing, still succeed) and sizes that are no multiple of the block.
- Return the first CUDA error, or cudaGetLastError() at the end. Do not synchronise.
- Keep the C's results: floats within rounding of the C, integers exactly.
- Define every helper and type that you use. No main, no printf, no library but the CUDA runtime."""

_RULES_COMPACT = """Pointers are device pointers; no host copies. Launch kernels on `stream`, return cudaGetLastError().
Guard indices; sizes may be 0. Use many threads. Define everything that you use."""

_PROGRAM = """Write a whole CUDA program (one .cu file with main) that reads the same standard input and writes exactly
the same standard output as the C program. The work is done by kernels whose parallelism grows with the input.
Check every CUDA call; on an error print it to stderr and exit with status 1. Define every helper that you use."""


def system_text(task: Task, *, compact: bool = False) -> str:
    """The system message."""
    if task.module is not None:
        return SYSTEM_COMPACT if compact else SYSTEM
    return _SYSTEM_COMPACT if compact else _SYSTEM


def contract_text(task: Task, *, compact: bool = False) -> str:
    """The contract section: what to define and the rules it must keep."""
    if task.module is not None:
        return module_contract_text(task, compact=compact)
    if task.mode == "program":
        return f"# What to write\n{_PROGRAM}"
    types = [task.type_declarations.strip()] if task.type_declarations.strip() else []
    signature = [*types, device_prototype(task)]
    lines = ["# What to write", "A .cu file that defines, beside its kernels:", "```cuda", *signature, "```"]
    if not compact:
        lines.append("It returns a cudaError_t as int.")
    if task.returns:
        lines.append("The return value of the C goes to `*result`, in device memory.")
    if task.tables:
        names = ", ".join(f"`{t.name}`" for t in task.tables)
        lines.append(f"The C's file-scope data come as device pointers, flattened: {names}.")
    lines.append(_RULES_COMPACT if compact else _RULES)
    return "\n".join(lines)


def task_text(task: Task, *, compact: bool = False) -> str:
    """The task section: the C, or the module, and what is known about its parameters."""
    if task.module is not None:
        return module_task_text(task, compact=compact)
    source = task.source.strip()
    lines = ["# The C to translate", "```c", source, "```"]
    if task.mode == "program":
        return "\n".join(lines)
    about = [_parameter(p, compact=compact) for p in task.parameters]
    about += [f"- `{t.name}`: {t.count} elements of {t.type.spelling}, read only" for t in task.tables]
    lines += [f"Entry: `{task.name}`. Parameters:", *about]
    if len(task.buffers) > 1 and not compact:
        lines.append("Buffers do not overlap.")
    return "\n".join(lines)


def _parameter(parameter: Parameter, *, compact: bool) -> str:
    text = f"- `{parameter.name}`: "
    if not parameter.pointer:
        return text + parameter.type.spelling + _range(parameter.range)
    role = {Role.IN: "read only", Role.OUT: "written only", Role.INOUT: "read and written"}.get(parameter.role, "")
    extent = f"{parameter.extent.expr} elements of " if parameter.extent else ""
    text += f"{role}, {extent}{parameter.type.spelling}{_range(parameter.range)}"
    if compact:
        return text
    text += ", used as subscripts" if parameter.index else ""
    return text + (", non-decreasing" if parameter.ascending else "")


def _range(values: ValueRange) -> str:
    odd = ", odd" if values.odd else ""
    if values.low is not None and values.high is not None:
        return f", from {values.low} to {values.high}{odd}"
    if values.low is not None:
        return f", at least {values.low}{odd}"
    if values.high is not None:
        return f", at most {values.high}{odd}"
    return odd
