"""The Python file of a candidate: the user's constructor, a forward that allocates and launches, and the CUDA text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cudaperf_agent.codegen.modules.emit import Code
from cudaperf_agent.codegen.modules.graph import Unsupported
from cudaperf_agent.codegen.modules.kernels import Schedule
from cudaperf_agent.codegen.modules.loader import with_loader
from cudaperf_agent.codegen.modules.prelude import prelude
from cudaperf_agent.codegen.modules.sizes import Expr, Size, text_of
from cudaperf_agent.codegen.modules.source_text import Skeleton
from cudaperf_agent.codegen.modules.tensors import Buffer, Index, Program

CODES = {"float32": (0, "float"), "float16": (1, "__half"), "bfloat16": (2, "__nv_bfloat16")}
"""How a float type is passed to the launcher, and what ``real`` becomes."""
_INDENT = " " * 4


@dataclass(frozen=True, slots=True)
class Built:
    """One program with its code.

    Attributes:
        program: The IR.
        schedule: Its kernels and buffers.
        code: Their text.
    """

    program: Program
    schedule: Schedule
    code: Code

    def same_text(self, other: Built) -> bool:
        """Whether both differ in what ``real`` stands for only."""
        return _without_type(self) == _without_type(other)


def _without_type(built: Built) -> tuple[Any, ...]:
    def plain(buffers: Sequence[Buffer]) -> list[Any]:
        main = built.program.main
        return [(b.name, b.shape, "real" if b.dtype == main else b.dtype) for b in buffers]

    schedule = built.schedule
    return (
        built.code.kernels, built.code.launches, plain(schedule.outputs), plain(schedule.scratch),
        plain(built.program.inputs), [(p, *plain([b])) for b, p in built.program.state],
    )  # fmt: skip


def module_file(builts: Sequence[Built], skeleton: Skeleton, graph: Mapping[str, Any], title: str) -> str:
    """The whole file.

    Args:
        builts: One program for each float type; those of the same text share their kernels.
        skeleton: What is taken over from the user's file.
        graph: The traced module, for what it was traced with.
        title: First line of the docstring.
    """
    groups: list[list[Built]] = []
    for built in builts:
        group = next((g for g in groups if g[0].same_text(built)), None)
        if group is None:
            groups.append([built])
        else:
            group.append(built)
    cuda = _cuda(groups)
    assert '"""' not in cuda
    parts = [
        f'"""{title}"""',
        skeleton.preamble,
        f'CUDA_SOURCE = r"""{cuda}"""',
        "KERNELS = load_cuda(CUDA_SOURCE)",
        _checks(graph),
        "",
        skeleton.class_text.rstrip() + "\n\n" + _forward(groups, skeleton, graph),
    ]
    text = "\n\n".join(p for p in parts if p != "") + "\n"
    return with_loader(re.sub(r"\n{4,}", "\n\n\n", text))


# CUDA -----------------------------------------------------------------------------------------------------------


def _cuda(groups: Sequence[Sequence[Built]]) -> str:
    bodies = [_group_text(group, number) for number, group in enumerate(groups)]
    body = "\n\n".join(bodies)
    return f"{prelude(body)}\n\n{body}\n"


def _group_text(group: Sequence[Built], number: int) -> str:
    code = group[0].code
    parameters = [f"{'' if written else 'const '}void *{name}" for name, (_, written) in code.buffers.items()]
    parameters += [f"long long {s}" for s in sorted(code.sizes)] + ["cudaStream_t stream"]
    names = [*code.buffers, *sorted(code.sizes), "stream"]
    kernels = [k.replace("<KERNEL>", "") for k in code.kernels]
    run = [
        "template <typename real>",
        f"static int run_{number}({', '.join(parameters)})",
        "{",
        *code.launches,
        "    return cudaGetLastError();",
        "}",
    ]
    entry = [
        f'extern "C" int forward_{number}(int dtype, {", ".join(parameters)})',
        "{",
        *(
            line
            for built in group
            for line in (
                f"    if (dtype == {CODES[built.program.main][0]})",
                f"        return run_{number}<{CODES[built.program.main][1]}>({', '.join(names)});",
            )
        ),
        "    return cudaErrorInvalidValue;",
        "}",
    ]
    return "\n\n".join([*kernels, "\n".join(run), "\n".join(entry)])


# Python ---------------------------------------------------------------------------------------------------------


def _checks(graph: Mapping[str, Any]) -> str:
    """Functions and tables that refuse what the kernels were not made for."""
    attributes = [f"    {name!r}: {value},".replace("'", '"') if "'" not in value else f"    {name!r}: {value},"
                  for name, value in graph["attributes"].items()]  # fmt: skip
    return "\n".join(
        [
            "# Numbers that the kernels contain; a module built from others needs kernels of its own.",
            "BUILT_FOR = {",
            *attributes,
            "}",
            "",
            "",
            "def check_module(module):",
            "    parts = dict(module.named_modules())",
            "    for path, value in BUILT_FOR.items():",
            '        part, _, name = path.rpartition(".")',
            "        found = getattr(parts.get(part), name, None)",
            "        if found != value:",
            '            raise ValueError("these kernels are for %s = %r, not %r" % (path, value, found))',
            "",
            "",
            "def check_tensor(name, tensor, shape, dtype):",
            "    if tuple(tensor.shape) != shape:",
            '        raise ValueError("%s has shape %s, and %s is needed" % (name, tuple(tensor.shape), shape))',
            "    if tensor.dtype != dtype:",
            '        raise TypeError("%s holds %s, and %s is needed" % (name, tensor.dtype, dtype))',
        ]
    )


def _forward(groups: Sequence[Sequence[Built]], skeleton: Skeleton, graph: Mapping[str, Any]) -> str:
    first = groups[0][0].program
    entries = graph["graphs"][first.main]["inputs"]
    if len(entries) > len(skeleton.parameters):
        raise Unsupported("forward takes its inputs as *arguments")
    parameters = list(skeleton.parameters[: len(entries)])
    lines = [f"def forward(self, {', '.join(parameters)}):"]
    if graph["training_differs"]:
        lines += [
            "    if self.training:",
            '        raise RuntimeError("these kernels are for evaluation: call .eval() first")',
        ]
    lines += ['    if "built_for" not in self.__dict__:', "        check_module(self)", "        self.built_for = True"]
    for entry, parameter in zip(entries, parameters, strict=True):
        if "shape" not in entry:
            value = entry["value"]
            shown = f"float({value['float']!r})" if isinstance(value, dict) else repr(value)
            lines += [
                f"    if {parameter} != {shown}:",
                f'        raise ValueError("these kernels are for {parameter} = %r" % ({shown},))',
            ]
    tensors = [p for e, p in zip(entries, parameters, strict=True) if "shape" in e]
    renamed = dict(zip([b.name for b in first.inputs], tensors, strict=True))
    key = _key(first, renamed)
    if len(groups) == 1:
        lines += [f"    {line}" for line in _group_forward(groups[0], 0, renamed, key)]
    else:
        for number, group in enumerate(groups):
            types = ", ".join(f"torch.{b.program.main}" for b in group)
            lines.append(f"    if {key}.dtype in ({types},):")
            lines.append(f"        return self.forward_{number}({', '.join(tensors)})")
        lines.append(f'    raise TypeError("there are no kernels for %s" % {key}.dtype)')
        for number, group in enumerate(groups):
            lines += ["", f"def forward_{number}(self, {', '.join(tensors)}):"]
            lines += [f"    {line}" for line in _group_forward(group, number, renamed, key)]
    return "\n".join(f"{_INDENT}{line}" if line else "" for line in lines)


def _key(program: Program, renamed: Mapping[str, str]) -> str:
    """The tensor whose type is that of the module."""
    for buffer in program.inputs:
        if buffer.dtype == program.main:
            return renamed[buffer.name]
    for buffer, path in program.state:
        if buffer.dtype == program.main:
            return f"self.{path}"
    return renamed[program.inputs[0].name] if program.inputs else ""


def _group_forward(group: Sequence[Built], number: int, renamed: Mapping[str, str], key: str) -> list[str]:
    built = group[0]
    program, code = built.program, built.code
    typed = any(b.dtype == program.main for b in (*program.inputs, *(b for b, _ in program.state)))
    if not key:
        raise Unsupported("forward takes no tensors")
    types = {f"torch.{b.program.main}": CODES[b.program.main][0] for b in group}
    lines = [f"{b.name} = {renamed[b.name]}.contiguous()" for b in program.inputs]
    lines += [f"{b.name} = {_attribute(path)}.contiguous()" for b, path in program.state]
    origin = {renamed[b.name]: b.name for b in program.inputs} | {_attribute(p): b.name for b, p in program.state}
    key = origin.get(key, key)
    if typed:
        lines += [
            f"dtype = {key}.dtype",
            f"code = {{{', '.join(f'{t}: {c}' for t, c in types.items())}}}.get(dtype)",
            "if code is None:",
            '    raise TypeError("there are no kernels for %s" % dtype)',
        ]
    else:
        lines.append("code, dtype = 0, torch.float32")
    lines += _sizes(built)
    for buffer in (*program.inputs, *(b for b, _ in program.state)):
        lines.append(f'check_tensor("{buffer.name}", {buffer.name}, {_shape(buffer.shape)}, {_type(buffer, program)})')
    known = {b.name for b in program.inputs} | {b.name for b, _ in program.state}
    for buffer in dict.fromkeys([*built.schedule.outputs, *built.schedule.scratch]):
        if buffer.name not in known:
            lines.append(
                f"{buffer.name} = torch.empty({_shape(buffer.shape)}, dtype={_type(buffer, program)}, "
                f"device={key}.device)"
            )
    arguments = ", ".join(["code", *code.buffers, *sorted(code.sizes)])
    lines.append(f"launch(KERNELS.forward_{number}, {arguments})")
    names = [b.name for b in built.schedule.outputs]
    if program.structure == "one":
        lines.append(f"return {names[0]}")
    else:
        brackets = "[]" if program.structure == "list" else "()"
        comma = "," if program.structure == "tuple" and len(names) == 1 else ""
        lines.append(f"return {brackets[0]}{', '.join(names)}{comma}{brackets[1]}")
    return lines


def _attribute(path: str) -> str:
    """A parameter by its path; numbers in it are members of a sequence."""
    text = "self"
    for part in path.split("."):
        text += f"[{part}]" if part.isdigit() else f".{part}"
    return text


def _shape(shape: Index) -> str:
    inner = ", ".join(text_of(n, python=True) for n in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def _type(buffer: Buffer, program: Program) -> str:
    if buffer.dtype == program.main:
        return "dtype"
    return "torch.float32" if buffer.dtype == "compute" else f"torch.{buffer.dtype}"


def _sizes(built: Built) -> list[str]:
    """Statements that give every size its value."""
    lines: list[str] = []
    bound: set[str] = set()
    for buffer in built.program.inputs:
        for axis, extent in enumerate(buffer.shape):
            found = _alone(extent)
            if found is not None and found[0].name not in bound and not found[0].formula:
                bound.add(found[0].name)
                divide = f" // {found[1]}" if found[1] != 1 else ""
                lines.append(f"{found[0].name} = {buffer.name}.shape[{axis}]{divide}")
    needed: dict[str, Size] = {}
    shapes = [b.shape for b in (*built.program.inputs, *built.schedule.outputs, *built.schedule.scratch)]
    todo = [*built.code.sizes.values()]
    todo += [a for shape in shapes for n in shape for a in n.atoms if isinstance(a, Size)]
    everything = {s.name: s for s in built.program.sizes} | {s.name: s for s in todo}
    while todo:
        size = todo.pop()
        if size.name not in needed:
            needed[size.name] = size
            todo += [everything[n] for n in re.findall(r"[A-Za-z_]\w*", size.formula) if n in everything]
    order = [*[n for n in everything if n in needed]]
    for name in sorted(order, key=lambda n: (n.startswith("chunks"), list(everything).index(n))):
        if needed[name].formula:
            lines.append(f"{name} = {needed[name].formula}")
        elif name not in bound:
            raise Unsupported(f"the size {name} cannot be read from an input's shape")
    return lines


def _alone(extent: Expr) -> tuple[Size, int] | None:
    if len(extent.terms) == 1 and len(extent.terms[0][0]) == 1:
        atom = extent.terms[0][0][0]
        if isinstance(atom, Size):
            return atom, extent.terms[0][1]
    return None
