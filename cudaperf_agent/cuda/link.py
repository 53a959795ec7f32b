"""The C text that is linked beside a candidate, so that harnesses can call it through one array of addresses.

It exports ``cudaperf_call`` and ``cudaperf_setup`` (see `tasks.stub`) over the drop-in. For a device-form candidate it
also exports ``int cudaperf_device_call(void *const *args)``: addresses of scalars as before, but device pointers in
place of buffers, then, where they exist, the device pointers of the result and of each table; and
``cudaperf_table(i, &data, &bytes)`` with the host content of table ``i`` (0 once there are no more).
"""

from __future__ import annotations

from cudaperf_agent.codegen.dropin import DropIn
from cudaperf_agent.tasks.model import Table, Task
from cudaperf_agent.tasks.stub import call_stub, entry_prototype

OWN_FIRST = "-fvisibility=protected"
"""gcc's flag for this text: functions of the user's C are called, whatever the C library has of their names.

Protected, not `-Bsymbolic` for the whole library: a candidate must not take the place of the emulator's functions.
"""
_OWN = 'extern __typeof__({name}) {name} __attribute__((visibility("protected")));'
"""The same for the entry, which the candidate defines: glibc exports an ``advance`` and a ``step`` that come first."""


def linked_c(task: Task, dropin: DropIn) -> str:
    """C text of the file to link with ``NAME.cu``: what stays C of the user's file, and the calls."""
    declared = f"{task.type_declarations}\n{entry_prototype(task)};\n"
    head = dropin.host_c if dropin.host_c is not None else declared
    parts = [head, _OWN.format(name=task.name), "#include <stddef.h>", call_stub(task)]
    if dropin.form == "device":
        parts.append(_device_call(task))
        parts.append(_tables(task))
    return "\n".join(parts)


def _device_call(task: Task) -> str:
    # Declared here with the pointers as `void *`: C linkage looks at the name only.
    declared, passed = [], []
    for index, parameter in enumerate(task.parameters):
        if parameter.pointer:
            declared.append("void *")
            passed.append(f"cudaperf_args[{index}]")
        else:
            declared.append(parameter.type.spelling)
            passed.append(f"*({parameter.type.spelling} *)cudaperf_args[{index}]")
    extra = len(list(task.inputs()))
    for index in range(extra, extra + bool(task.returns) + len(task.tables)):
        declared.append("void *")
        passed.append(f"cudaperf_args[{index}]")
    return (
        f"int {task.name}_device({', '.join([*declared, 'void *'])});\n"
        "int cudaperf_device_call(void *const *cudaperf_args)\n"
        f"{{\n    return {task.name}_device({', '.join([*passed, '(void *)0'])});\n}}\n"
    )


def _tables(task: Task) -> str:
    lines = ["int cudaperf_table(int index, const void **data, size_t *bytes)", "{"]
    for index, table in enumerate(task.tables):
        lines.append(
            f"    if (index == {index}) {{ *data = {_address(table)}; *bytes = sizeof {table.name}; return 1; }}"
        )
    return "\n".join([*lines, "    (void)index; (void)data; (void)bytes;", "    return 0;", "}", ""])


def _address(table: Table) -> str:
    return f"(const void *)&{table.name}"
