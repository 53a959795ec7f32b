"""The drop-in: the C function's own name and ABI around a device-form candidate; a program links it instead of the C.

`NAME.cu` is the candidate followed by the wrapper: allocate, copy in, call ``NAME_device``, copy out, free. A CUDA
error ends the program with a message, since the C function has no way to report one, and so does a scalar that the
translation was not made for (`dropin_checks`). What callers of the file need
besides the entry stays C, in ``NAME_host.c``: the file without the entry, plus accessors for the file-scope state that
the entry reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from cudaperf_agent import __version__
from cudaperf_agent.codegen.dropin_checks import checking_function, extent_check, scalar_checks
from cudaperf_agent.codegen.forms import body_start, defines, detect_form, without_noise
from cudaperf_agent.codegen.layout import tail_begins, tail_differs
from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.cuda_names import kept_name, runtime_calls
from cudaperf_agent.tasks.model import CType, Parameter, Table, Task, TypeKind

# Legal parameter names in C that C++ reserves.
_CPP_ONLY = re.compile(
    r"""alignas|alignof|and|and_eq|asm|bitand|bitor|bool|catch|char16_t|char32_t|class|compl|constexpr|const_cast|decltype|
    delete|dynamic_cast|explicit|export|false|friend|mutable|namespace|new|noexcept|not|not_eq|nullptr|operator|or|or_eq|
    private|protected|public|reinterpret_cast|static_assert|static_cast|template|this|thread_local|throw|true|try|typeid|
    typename|using|virtual|wchar_t|xor|xor_eq""",
    re.X,
)


_MARK = "// ---- Drop-in for"
_CHECK = "cudaperf_check"
_MAKER = re.compile(rf"^({_MARK} \w+\(\), made by cudaperf) [\w.+-]+:", re.M)


@dataclass(frozen=True, slots=True)
class DropIn:
    """What a user links in place of the C file.

    Attributes:
        cu: Text of ``NAME.cu``.
        host_c: Text of ``NAME_host.c``, `None` where it is not needed.
        form: ``device``, ``whole`` or ``program``: what the candidate was.
    """

    cu: str
    host_c: str | None
    form: str


def make_dropin(task: Task, source: str) -> DropIn | None:
    """Make the linkable files from a candidate; `None` if it defines neither ``NAME_device`` nor ``NAME``.

    Args:
        task: Every buffer's extent is known (`tasks.prepare`).
        source: The candidate, in device form, whole-file form, or a whole program. With our own drop-in below it in
            any layout it is in device form, and stays as it is to the byte.
    """
    form = detect_form(task, source)
    if form is None:
        return None
    if len(kernels_of(task, source)) < len(source):
        return DropIn(source, host_part(task), "device")
    if form == "program":
        return DropIn(source, None, form)
    if form == "whole":
        code = without_noise(source)
        complete = all(defines(code, name) for name in task.kept_functions)
        return DropIn(source, None if complete else host_part(task), form)
    ending = "" if source.endswith("\n") else "\n"
    return DropIn(f"{source}{ending}\n{_wrapper(task)}", host_part(task), form)


def candidate_of(task: Task, text: str) -> str:
    """The candidate in a ``NAME.cu`` that we wrote, whatever our version then: without the drop-in below it.

    Any other text, with an edited drop-in for instance, comes back as it is.
    """
    head, mark, _ = text.partition(f"\n{_MARK} {task.name}()")
    if mark and detect_form(task, head) == "device":
        made = make_dropin(task, head)
        if made is not None and _MAKER.sub(r"\1:", made.cu) == _MAKER.sub(r"\1:", text):
            return head
    return text


def kernels_of(task: Task, source: str) -> str:
    """What somebody else wrote of a candidate: all of it, or what is above a drop-in of ours, in whatever layout.

    Only the end of a file is looked at, and only layout and comments may differ: all the rest is not ours.
    """
    if task.mode != "function" or not _has_dropin(source):
        return source
    at = tail_begins(source, _wrapper(task))
    above = source if at is None else source[:at]
    return above if detect_form(task, above) == "device" else source


def edited_dropin(task: Task, text: str) -> int | None:
    """Where a candidate has a drop-in of ours that was edited: the line of the last difference. `None` without one."""
    if task.mode != "function" or not _has_dropin(text) or len(kernels_of(task, text)) < len(text):
        return None
    return tail_differs(text, _wrapper(task))


def _has_dropin(source: str) -> bool:
    return _CHECK in source and _CHECK in without_noise(source)


def device_prototype(task: Task) -> str:
    """The signature a device-form candidate must have, without semicolon."""
    parts = [_spelled(p) for p in task.parameters]
    if task.returns:
        parts.append(f"{_cpp(task.returns)} *result")
    parts += [f"const {_cpp(t.type)} *{t.name}" for t in task.tables]
    return f'extern "C" int {task.name}_device({", ".join([*parts, "cudaStream_t stream"])})'


def host_part(task: Task) -> str | None:
    """Text of ``NAME_host.c``: the C file without the entry's body, and accessors; `None` if nobody needs it."""
    if not (task.kept_functions or task.tables):
        return None
    code = without_noise(task.source)
    body_start, body_end = _entry_body(task, code)
    # The entry becomes a declaration, since the functions that stay may call it.
    text = task.source[:body_start].rstrip() + ";" + task.source[body_end:]
    accessors = [
        f"const void *{_accessor(task, t)}(void) {{ return {'' if t.dims else '&'}{t.name}; }}" for t in task.tables
    ]
    comment = ["", "/* What the CUDA entry reads of this file's state. */"] if accessors else []
    return "\n".join([*_renaming(task, code), text.rstrip("\n"), *comment, *accessors, ""])


def _renaming(task: Task, code: str) -> list[str]:
    """Lines that give names of their own to functions and tables of the file that CUDA's runtime would come upon."""
    words = [word for word in dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*", code)) if runtime_calls(word)]
    tables = {table.name for table in task.tables}
    found = [word for word in words if word in tables or defines(code, word)]
    if not found:
        return []
    told = ["/* CUDA's runtime, linked into the same program, calls the C library's functions of these names. */"]
    return [*told, *(f"#define {name} {kept_name(task.name, name)}" for name in found)]


def _wrapper(task: Task) -> str:
    body = _body(task)
    lines = [
        f"{_MARK} {task.name}(), made by cudaperf {__version__}: its name and ABI, host pointers.",
        "// Where the data live on the device already, call the _device function above instead.",
        "#include <cstdio>",
        "#include <cstdlib>",
        "#include <cuda_runtime.h>",
        "",
        f"static void {_CHECK}(int status, const char *step)",
        "{",
        "    if (status == cudaSuccess)",
        "        return;",
        f'    std::fprintf(stderr, "{task.name}: %s: %s\\n", step, cudaGetErrorString((cudaError_t)status));',
        "    std::abort();",
        "}",
        "",
        *(checking_function(task) if any("cudaperf_require(" in line for line in body) else []),
        *(f'extern "C" const void *{_accessor(task, t)}(void);' for t in task.tables),
        f'extern "C" {_cpp(task.returns) if task.returns else "void"} {task.name}({_host_parameters(task)})',
        "{",
        *body,
        "}",
        "",
    ]
    return "\n".join(lines)


def _body(task: Task) -> list[str]:
    lines = scalar_checks(task, partial(_widened, task))
    for parameter in task.buffers:
        lines += _stage_in(task, parameter)
    for table in task.tables:
        lines += _stage_table(task, table)
    if task.returns:
        spelling = _cpp(task.returns)
        lines += [
            f"    {spelling} *cudaperf_result = nullptr;",
            f'    cudaperf_check(cudaMalloc((void **)&cudaperf_result, sizeof({spelling})), "allocating the result");',
        ]
    arguments = [f"cudaperf_d_{p.name}" if p.pointer else _name(p) for p in task.parameters]
    arguments += ["cudaperf_result"] * bool(task.returns)
    arguments += [f"cudaperf_t_{t.name}" for t in task.tables]
    lines += [
        f'    cudaperf_check({task.name}_device({", ".join([*arguments, "(cudaStream_t)0"])}), "launching");',
        '    cudaperf_check(cudaStreamSynchronize((cudaStream_t)0), "running");',
    ]
    for parameter in task.buffers:
        if parameter.written:
            lines += [
                f"    if (cudaperf_n_{parameter.name})",
                f"        cudaperf_check(cudaMemcpy((void *){_name(parameter)}, cudaperf_d_{parameter.name}, "
                f'cudaperf_n_{parameter.name}, cudaMemcpyDeviceToHost), "copying {parameter.name} back");',
            ]
    if task.returns:
        lines += [
            f"    {_cpp(task.returns)} cudaperf_value;",
            "    cudaperf_check(cudaMemcpy(&cudaperf_value, cudaperf_result, sizeof cudaperf_value, "
            'cudaMemcpyDeviceToHost), "copying the result back");',
            "    cudaFree(cudaperf_result);",
        ]
    lines += [f"    cudaFree(cudaperf_d_{p.name});" for p in task.buffers]
    lines += [f"    cudaFree(cudaperf_t_{t.name});" for t in task.tables]
    lines += ["    return cudaperf_value;"] * bool(task.returns)
    return lines


def _stage_in(task: Task, parameter: Parameter) -> list[str]:
    if parameter.extent is None:
        raise InputRefused(
            f"the size of `{parameter.name}` is not known",
            where=f"{task.path}:{parameter.line or task.first_line}",
            hint=f"Add /* cudaperf: {parameter.role.value} {parameter.name}[EXPR] */ to the C file.",
        )
    name, spelling = parameter.name, _cpp(parameter.type)
    extent = _widened(task, parameter.extent.expr)
    bytes_ = f"(size_t)cudaperf_e_{name} * sizeof({spelling})"
    lines = [
        f"    const long long cudaperf_e_{name} = (long long)({extent});",
        *extent_check(task, parameter, f"cudaperf_e_{name}", partial(_widened, task)),
        f"    const size_t cudaperf_n_{name} = cudaperf_e_{name} > 0 ? {bytes_} : 0;",
        f"    {spelling} *cudaperf_d_{name} = nullptr;",
        f"    if (cudaperf_n_{name})",
        f'        cudaperf_check(cudaMalloc((void **)&cudaperf_d_{name}, cudaperf_n_{name}), "allocating {name}");',
    ]
    if parameter.read:
        lines += [
            f"    if (cudaperf_n_{name})",
            f"        cudaperf_check(cudaMemcpy(cudaperf_d_{name}, {_name(parameter)}, cudaperf_n_{name}, "
            f'cudaMemcpyHostToDevice), "copying {name}");',
        ]
    return lines


def _stage_table(task: Task, table: Table) -> list[str]:
    spelling, size = _cpp(table.type), f"{table.count} * sizeof({_cpp(table.type)})"
    return [
        f"    {spelling} *cudaperf_t_{table.name} = nullptr;",
        f'    cudaperf_check(cudaMalloc((void **)&cudaperf_t_{table.name}, {size}), "allocating {table.name}");',
        f"    cudaperf_check(cudaMemcpy(cudaperf_t_{table.name}, {_accessor(task, table)}(), {size}, "
        f'cudaMemcpyHostToDevice), "copying {table.name}");',
    ]


def _host_parameters(task: Task) -> str:
    return ", ".join(_spelled(p) for p in task.parameters)


def _spelled(parameter: Parameter) -> str:
    const = "const " if parameter.pointer and parameter.const else ""
    return f"{const}{_cpp(parameter.type)} {'*' if parameter.pointer else ''}{_name(parameter)}"


def _accessor(task: Task, table: Table) -> str:
    return f"cudaperf_{task.name}_{table.name}"


def _cpp(ctype: CType) -> str:
    return "bool" if ctype.kind is TypeKind.BOOL else ctype.spelling


def _name(parameter: Parameter) -> str:
    return f"{parameter.name}_" if _CPP_ONLY.fullmatch(parameter.name) else parameter.name


def _widened(task: Task, expr: str) -> str:
    """The expression in 64-bit arithmetic: ``n*n`` elements need not fit an int."""
    for parameter in task.scalars:
        expr = re.sub(rf"\b{parameter.name}\b", f"((long long){_name(parameter)})", expr)
    return expr


def _entry_body(task: Task, code: str) -> tuple[int, int]:
    """Offsets of the entry's body, braces included: found by text, since only braces and literals matter here."""
    start = body_start(code, task.name)
    if start is not None:
        depth = 0
        for at in range(start, len(code)):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            if not depth:
                return start, at + 1
    raise InputRefused(
        f"the body of `{task.name}` was not found in the text (is the function made by a macro?)",
        where=f"{task.path}:{task.first_line}",
        hint="Write the function's name and body out in the C file.",
    )
