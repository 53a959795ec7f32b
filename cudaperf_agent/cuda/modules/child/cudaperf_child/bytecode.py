"""Compiles what the processes of this package import into the folder that ``-X pycache_prefix`` names. No torch needed.

``python -I -X pycache_prefix=FOLDER bytecode.py CHILD PACKAGES...``: `CHILD` is the folder of this package, the others
are where packages lie. What is imported in the end shows what else is needed, and writes it while it is read.
"""

from __future__ import annotations

import compileall
import importlib
import importlib.util
import os
import sys
import warnings
from pathlib import Path

# Packages that torch imports when it needs them, each whole but for its tests.
_PACKAGES = ("torch", "triton", "sympy", "mpmath", "cudaperf_child")
_LEFT_OUT = ("/testing/", "/tests/", "/test/", "/benchmarks/")
_IMPORTED = (
    "cudaperf_child.supervise",
    "cudaperf_child.reference",
    "cudaperf_child.timed",
    "torch.profiler",
    "torch.fx",
    "torch.export",
    "torch.utils.cpp_extension",
    "torch._inductor.compile_fx",
)


def files() -> list[str]:
    """Every Python file of the packages that are there."""
    found: list[str] = []
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            found += [str(p) for p in sorted(Path(place).rglob("*.py"))]
    return [name for name in found if not any(part in name for part in _LEFT_OUT)]


def compile_all(wanted: list[str]) -> None:
    """With all processors at once."""
    processors = len(os.sched_getaffinity(0))
    started = []
    for number in range(processors):
        child = os.fork()
        if child == 0:
            for name in wanted[number::processors]:
                compileall.compile_file(name, quiet=2)
            os._exit(0)
        started.append(child)
    for child in started:
        os.waitpid(child, 0)


def main(child: str, packages: list[str]) -> None:
    """Compile, then import."""
    os.umask(0o022)  # the processes that read it may run as another user
    warnings.simplefilter("ignore")
    sys.path[:0] = [child]
    sys.path += packages
    compile_all(files())
    for name in _IMPORTED:
        try:
            importlib.import_module(name)
        except Exception as error:  # what is not there is not needed
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
