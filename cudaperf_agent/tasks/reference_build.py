"""Builds the C of a task as a shared library in the ways the oracle needs: plain, checked, contracted, widened, …"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from cudaperf_agent.errors import BackendUnavailable, InputRefused
from cudaperf_agent.execution.child import Limits, run_child
from cudaperf_agent.execution.paths import cache_dir
from cudaperf_agent.tasks.device_math import device_functions, device_math_flags, device_math_text
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.stub import call_stub

COMPILE_LIMITS = Limits(seconds=60.0, memory=2 << 30)


class Build(StrEnum):
    """One way of compiling the C.

    `PLAIN` is the reference; `CHECKED` has the address and undefined-behaviour sanitizers. The others tell how much of
    the result is rounding: `CONTRACTED` fuses multiply and add, `REASSOCIATED` reorders sums, `UPWARD` and `DOWNWARD`
    round in one direction; `DEVICE_MATH` calls functions with the errors of a GPU's (`device_math`); `WIDE`
    is for a task that `widen.widen` made. `NATIVE` is the C as fast as gcc makes it without changing results beyond
    contraction; `FAST` lets it change them, and `OPENMP` heeds pragmas (both only where the results have been judged).
    """

    PLAIN = "plain"
    CHECKED = "checked"
    CONTRACTED = "contracted"
    REASSOCIATED = "reassociated"
    UPWARD = "upward"
    DOWNWARD = "downward"
    DEVICE_MATH = "device math"
    NATIVE = "native"
    FAST = "fast"
    OPENMP = "openmp"
    WIDE = "wide"


# Where retyping made a `printf` wrong, the build must fail, rather than print something else.
_STRICT = ("-Wformat", "-Werror=format", "-Werror=implicit-function-declaration")
_FLAGS: dict[Build, tuple[str, ...]] = {
    Build.PLAIN: ("-O1", "-ffp-contract=off"),
    Build.CHECKED: (
        "-O1",
        "-ffp-contract=off",
        "-fsanitize=address,undefined,float-cast-overflow",
        "-fno-sanitize=shift-base",  # shifting a negative number is what every compiler, nvcc included, makes it
        "-fno-sanitize-recover=all",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
    ),
    Build.CONTRACTED: ("-O2", "-ffp-contract=fast", "-mfma"),
    Build.REASSOCIATED: (
        "-O3",
        "-ffp-contract=off",
        "-fassociative-math",
        "-fno-signed-zeros",
        "-fno-trapping-math",
    ),
    Build.UPWARD: ("-O1", "-ffp-contract=off", "-frounding-math"),
    Build.DOWNWARD: ("-O1", "-ffp-contract=off", "-frounding-math"),
    Build.DEVICE_MATH: ("-O1", "-ffp-contract=off"),
    Build.WIDE: ("-O1", "-ffp-contract=off", *_STRICT),
    Build.NATIVE: ("-O3", "-march=native", "-ffp-contract=fast"),
    Build.FAST: ("-O3", "-march=native", "-ffast-math"),
    Build.OPENMP: ("-O3", "-march=native", "-ffp-contract=fast", "-fopenmp"),
}
# <tgmath.h> brings <complex.h>, whose I is too good a name to lose
_PRELUDE = {Build.WIDE: "#include <tgmath.h>\n#undef I\n#undef complex\n"}
_ROUNDING = {Build.UPWARD: "FE_UPWARD", Build.DOWNWARD: "FE_DOWNWARD"}
_ALWAYS = ("-g", "-fPIC", "-fno-strict-aliasing")
# The C's own functions are its own: glibc exports an `advance` and a `step` of the eighties, and they would be called.
_SHARED = ("-shared", "-Wl,-Bsymbolic")


@dataclass(frozen=True, slots=True)
class BuildFailure:
    """gcc's own words on why a build failed."""

    message: str


async def build_library(task: Task, build: Build) -> Path | BuildFailure:
    """The shared library of `task`'s C with its call stub, from the cache where the text and flags are known.

    Raises:
        BackendUnavailable: There is no gcc.
    """
    flags = (*_FLAGS[build], *_SHARED)
    if build is Build.DEVICE_MATH:
        functions = device_functions(task)
        text = f"{_located(task)}{device_math_text(functions, _stub_text(task))}"
        return await _compile(task, text, (*flags, *device_math_flags(functions)), ".so")
    return await _compile(task, _library_text(task, build), flags, ".so")


async def build_program(task: Task, build: Build) -> Path | BuildFailure:
    """The executable of a program-mode task.

    Raises:
        BackendUnavailable: There is no gcc.
    """
    return await _compile(task, _PRELUDE.get(build, "") + _located(task) + _rounding_text(build), _FLAGS[build], ".exe")


async def require_library(task: Task, build: Build) -> Path:
    """`build_library`, where a failure means that the C is not a task.

    Raises:
        InputRefused: gcc does not compile it.
        BackendUnavailable: There is no gcc.
    """
    built = await (build_program if task.mode == "program" else build_library)(task, build)
    if isinstance(built, BuildFailure):
        raise InputRefused(
            f"gcc does not compile the C: {built.message}", where=task.path, hint="Mend the C file, then try again."
        )
    return built


def _located(task: Task) -> str:
    return f"#line 1 {_quoted(task.path)}\n{task.source}\n"


def _quoted(path: str) -> str:
    """A path as a C string literal."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _library_text(task: Task, build: Build) -> str:
    return _PRELUDE.get(build, "") + _located(task) + _stub_text(task) + _rounding_text(build)


def _stub_text(task: Task) -> str:
    return f'#line 1 "call stub"\n{call_stub(task)}'


def _rounding_text(build: Build) -> str:
    if build not in _ROUNDING:
        return ""
    return (
        "#include <fenv.h>\n"
        "__attribute__((constructor)) static void cudaperf_round(void) "
        f"{{ fesetround({_ROUNDING[build]}); }}\n"
    )


async def _compile(task: Task, text: str, flags: tuple[str, ...], suffix: str) -> Path | BuildFailure:
    options = [*flags, *_ALWAYS, *_includes(task), *(f"-D{definition}" for definition in task.defines)]
    key = hashlib.sha256("\0".join([text, suffix, *options, *_header_stamps(task)]).encode()).hexdigest()[:32]
    folder = cache_dir() / "reference"
    target = folder / f"{key}{suffix}"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="building-", dir=folder) as scratch:
        source, made = Path(scratch) / "reference.c", Path(scratch) / "made"
        source.write_text(text)
        argv = [compiler(), *options, "-o", str(made), str(source), "-lm"]
        child = await run_child(argv, limits=COMPILE_LIMITS, cwd=Path(scratch))
        if not child.ok or not made.exists():
            words = child.stderr.decode("utf-8", "replace")
            errors = [line for line in words.splitlines() if "error" in line]
            return BuildFailure((errors or words.splitlines() or ["gcc failed"])[0][:400])
        os.replace(made, target)
    return target


def _includes(task: Task) -> list[str]:
    folders = [Path(folder) for folder in task.include_dirs]
    if Path(task.path).is_file():
        folders.append(Path(task.path).parent)
    return [f"-I{folder.resolve()}" for folder in folders]


def _header_stamps(task: Task) -> list[str]:
    """Sizes and times of headers the C may include from the user's folders, so that a changed header is seen."""
    folders = [Path(d) for d in task.include_dirs]
    if Path(task.path).is_file():
        folders.append(Path(task.path).resolve().parent)
    if '#include "' not in task.source.replace("# include", "#include"):
        return []
    headers = sorted(h for folder in folders if folder.is_dir() for h in folder.glob("*.h"))
    return [f"{h}:{h.stat().st_size}:{h.stat().st_mtime_ns}" for h in headers]


@lru_cache(maxsize=1)
def compiler() -> str:
    """The path of gcc.

    Raises:
        BackendUnavailable: It is not installed.
    """
    import shutil

    found = shutil.which("gcc")
    if not found:
        raise BackendUnavailable(
            "gcc is not installed, and the C cannot be run without it",
            hint="Install a C compiler, e.g. `apt-get install gcc`.",
        )
    return found


@lru_cache(maxsize=1)
def has_fma() -> bool:
    """Whether this processor runs fused multiply-add instructions."""
    flags = Path("/proc/cpuinfo")
    return flags.exists() and " fma " in flags.read_text()
