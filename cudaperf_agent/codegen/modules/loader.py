"""The part that every light-form module file shares: compile CUDA text with nvcc, and call its launchers.

A *light-form* file is one Python file with CUDA text in string constants, ``extern "C"`` launchers in it that return a
``cudaError_t``, and a ``ModelNew`` that calls them through the two functions below. The same file runs for a user who
has only torch and nvcc, and for our verifier, which compiles the CUDA text itself (for a GPU or for the CPU emulator)
and names the folder with the results in ``$CUDAPERF_KERNELS``.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

LOADER_FUNCTIONS = ("load_cuda", "launch")
"""Names that the loader defines."""

LOADER = '''\
import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile

import torch


def load_cuda(source: str) -> ctypes.CDLL:
    """Compile CUDA text with nvcc (once: the result is kept in ~/.cache) and load it."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    ready = os.path.join(os.environ.get("CUDAPERF_KERNELS", ""), digest + ".so")
    if "CUDAPERF_KERNELS" in os.environ and os.path.exists(ready):
        return ctypes.CDLL(ready)
    arch = "sm_%d%d" % torch.cuda.get_device_capability()
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(home, "cudaperf-kernels")
    library = os.path.join(folder, "%s-%s.so" % (digest, arch))
    if not os.path.exists(library):
        toolkit = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
        nvcc = os.environ.get("CUDACXX") or shutil.which("nvcc") or os.path.join(toolkit, "bin", "nvcc")
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            text, made = os.path.join(work, "kernels.cu"), os.path.join(work, "kernels.so")
            with open(text, "w") as file:
                file.write(source)
            flags = ["-O3", "-std=c++17", "-arch=" + arch, "-shared", "-Xcompiler", "-fPIC"]
            done = subprocess.run([nvcc, *flags, "-o", made, text], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError("nvcc refuses the kernels:\\n" + done.stderr)
            os.replace(made, library)
    return ctypes.CDLL(library)


def launch(launcher, *arguments) -> None:
    """Call an extern "C" launcher on the current stream, which it gets as its last argument.

    A tensor is passed as the pointer to its data, None as a null pointer, an int as a 64-bit integer (an `int`
    parameter takes it too), a float as a `float`, and any ctypes value as it is.
    """
    device, values = None, []
    for value in arguments:
        if isinstance(value, torch.Tensor):
            device = value.device if value.is_cuda else device
            value = ctypes.c_void_p(value.data_ptr())
        elif value is None:
            value = ctypes.c_void_p()
        elif isinstance(value, float):
            value = ctypes.c_float(value)
        elif isinstance(value, int):
            value = ctypes.c_longlong(value)
        values.append(value)
    if device is None:
        status = launcher(*values, ctypes.c_void_p())
    else:
        with torch.cuda.device(device):
            status = launcher(*values, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    if status:
        raise RuntimeError("%s: CUDA error %d" % (launcher.__name__, status))
'''
"""Python text to put into a file, behind its docstring and ``__future__`` imports."""


def with_loader(text: str) -> str:
    """`text` with the loader put in, where it calls `load_cuda` or `launch` without defining them.

    Args:
        text: A Python file. Text that does not parse comes back unchanged: the compiler will say what is wrong.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if not used & set(LOADER_FUNCTIONS) - defined:
        return text
    lines = text.splitlines(keepends=True)
    at = insertion_line(tree)
    before = "".join(lines[:at])
    return f"{before}{LOADER}\n\n{''.join(lines[at:])}"


@dataclass(frozen=True, slots=True)
class Inserted:
    """Lines that `with_loader` puts into a text: how many, behind which line."""

    at: int
    count: int


def inserted_lines(text: str) -> Inserted:
    """What `with_loader` does to the line numbers of `text`."""
    count = with_loader(text).count("\n") - text.count("\n")
    return Inserted(insertion_line(ast.parse(text)) if count else 0, count)


def insertion_line(tree: ast.Module) -> int:
    """Lines of a file that must stay before anything else: its docstring and ``__future__`` imports."""
    at = 0
    for number, node in enumerate(tree.body):
        docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            break
        at = node.end_lineno or at
    return at
