"""The inputs of a case as text, short enough to read in a message or a prompt."""

from __future__ import annotations

from cudaperf_agent.tasks.model import Case, Task, Value

_ELEMENTS = 8
_STDIN = 200


def readable_inputs(task: Task, case: Case) -> dict[str, str]:
    """Input by name: scalars as they are, buffers by their size and first elements."""
    if task.mode == "program":
        text = case.stdin[:_STDIN].decode("utf-8", "replace")
        return {"stdin": text + ("…" if len(case.stdin) > _STDIN else "")}
    if task.module is not None:
        return {name: f"{value.size} elements {{{_text(value, _ELEMENTS)}}}" for name, value in case.values.items()}
    shown: dict[str, str] = {}
    for parameter in task.inputs():
        value = case.values.get(parameter.name)
        if value is None:
            continue
        if not parameter.pointer:
            shown[parameter.name] = _text(value.reshape(-1), 1)
        elif parameter.read:
            shown[parameter.name] = f"{parameter.type.spelling}[{value.size}] {{{_text(value.reshape(-1), _ELEMENTS)}}}"
        else:
            shown[parameter.name] = f"{parameter.type.spelling}[{value.size}], to be written"
    return shown


def _text(flat: Value, most: int) -> str:
    parts = [str(v.item()) if v.dtype.kind != "f" else f"{v:.9g}" for v in flat[:most]]
    return ", ".join(parts) + (", …" if flat.size > most else "")
