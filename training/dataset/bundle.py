"""All variants of a task in one library: one run of nvcc for all, since most of its time goes into its own headers.

Each source gets a namespace of its own; ``NAME_device`` becomes ``vK_device``, and ``vK_call`` passes it an array of
addresses (see `cuda.link`). Only for sources of our own generator, or written by hand in its form.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.tasks.model import Task

FLAGS = ("-O3", "-std=c++17")
"""As candidates are compiled (`cuda.compile`)."""
_COMPILE_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Bundle:
    """Text of a library: its CUDA, the C beside it, and the symbol to call for each variant."""

    cuda: str
    calls: str
    symbols: tuple[str, ...]


def bundle(task: Task, sources: Sequence[str]) -> Bundle:
    """One library of several sources."""
    headers = ["#include <cuda_runtime.h>", "#include <math.h>"]
    for source in sources:
        headers += re.findall(r"^[ \t]*(#include .*?)[ \t]*$", source, re.MULTILINE)
    parts = [*dict.fromkeys(headers), ""]
    calls = []
    for number, source in enumerate(sources):
        body = re.sub(r"^\s*#include .*$", "", source, flags=re.MULTILINE)
        body = re.sub(rf"\b{task.name}_device\b", f"v{number}_device", body)
        parts += [f"namespace v{number} {{", body, f"}} // namespace v{number}", ""]
        calls.append(_call(task, number))
    return Bundle("\n".join(parts), "\n".join(calls), tuple(f"v{number}_call" for number in range(len(sources))))


def _call(task: Task, number: int) -> str:
    # Declared here with pointers as `void *`: C linkage looks at the name only.
    declared, passed = [], []
    for index, parameter in enumerate(task.parameters):
        declared.append("void *" if parameter.pointer else parameter.type.spelling)
        cast = "" if parameter.pointer else f"*({parameter.type.spelling} *)"
        passed.append(f"{cast}args[{index}]")
    if task.returns:
        declared.append("void *")
        passed.append(f"args[{len(task.parameters)}]")
    return (
        f"int v{number}_device({', '.join([*declared, 'void *'])});\n"
        f"int v{number}_call(void *const *args)\n"
        f"{{\n    return v{number}_device({', '.join([*passed, '(void *)0'])});\n}}\n"
    )


def native(arch: str) -> list[str]:
    """Flags for code of one architecture (``sm_90``) and no other, which compiles fastest."""
    return ["-gencode", f"arch={arch.replace('sm_', 'compute_')},code={arch}"]


def compile_bundle(nvcc: Path, arch: str, text: Bundle, folder: Path, name: str) -> Path | str:
    """The library, or the compiler's first words on why not. Blocking."""
    cuda, calls, library = folder / f"{name}.cu", folder / f"{name}_calls.c", folder / f"{name}.so"
    cuda.write_text(text.cuda)
    calls.write_text(text.calls)
    argv = [
        str(nvcc),
        *FLAGS,
        *native(arch),
        "-shared",
        "-Xcompiler",
        "-fPIC",
        "-o",
        str(library),
        str(cuda),
        str(calls),
    ]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False, cwd=folder)
    except subprocess.TimeoutExpired:
        return "nvcc did not end in time"
    if done.returncode:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line]
        return (errors or ["nvcc failed"])[0][:300]
    return library
