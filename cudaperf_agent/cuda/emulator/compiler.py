"""g++ as the emulator uses it: flags of each mode, the runtime library and precompiled headers in the cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from cudaperf_agent.cuda.reach import trace_flags
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.paths import cache_dir

Mode = Literal["check", "fast"]

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
RUNTIME = HERE / "runtime"
_SETUP_SECONDS = 180
_OLDEST = 11  # the first to tell volatile accesses apart (--param=tsan-distinguish-volatile)
_SETUP = threading.Lock()

# Check mode: hardly any optimisation that moves an access, so that a finding's line is the one a person would name.
# Contraction to fused multiply-add is what nvcc does by default.
_COMMON = (
    "-std=c++17",
    "-g1",
    "-fPIC",
    "-w",
    "-U_FORTIFY_SOURCE",
    "-ffp-contract=fast",
    "-fno-threadsafe-statics",
    "-fno-gnu-unique",
)
_MODE: dict[Mode, tuple[str, ...]] = {
    "check": (
        "-O1",
        "-fsanitize=thread",
        "--param=tsan-instrument-func-entry-exit=0",
        "--param=tsan-distinguish-volatile=1",
        "-fsanitize=bounds",
        "-fno-optimize-sibling-calls",
        "-fno-crossjumping",
        "-fno-tree-loop-im",
        "-fno-tree-sink",
        "-fno-ssa-phiopt",
        "-fno-tree-dse",
        "-DEMU_CHECK",
    ),
    "fast": ("-O2", "-fno-optimize-sibling-calls"),
}
_WRAPPED = ("memcpy", "memmove", "memset", "malloc", "_Znwm", "_Znam", "__assert_fail", "_exit", "_Exit", "quick_exit")
# GCC's own sanitizer libraries stay out: the runtime takes their place.
_LINK = (
    "-nodefaultlibs",
    "-lstdc++",
    "-lm",
    "-lc",
    "-lgcc_s",
    "-lgcc",
    "-ldl",
    "-Wl,-z,defs",
    "-Wl,--as-needed",
    *(f"-Wl,--wrap={name}" for name in _WRAPPED),
)


@dataclass(frozen=True, slots=True)
class Compiler:
    """The compiler in use: its path, its own words for its version, and flags that this processor allows."""

    path: str
    version: str
    target: tuple[str, ...]


@lru_cache(maxsize=1)
def find_compiler() -> Compiler:
    """g++ on the path.

    Raises:
        BackendUnavailable: There is none.
    """
    path = shutil.which("g++")
    if path is None:
        raise BackendUnavailable(
            "g++ is not installed, and the CPU emulator compiles candidates with it",
            hint="Install a C++ compiler, e.g. `apt-get install g++`.",
        )
    if platform.machine() != "x86_64":
        raise BackendUnavailable(
            f"the CPU emulator runs on x86-64 only, and this is {platform.machine()}",
            hint="Use a machine with an NVIDIA GPU, or an x86-64 one.",
        )
    done = subprocess.run([path, "-dumpfullversion"], capture_output=True, text=True, check=False)
    version = done.stdout.strip()
    if not version.split(".")[0].isdigit() or int(version.split(".")[0]) < _OLDEST:
        raise BackendUnavailable(
            f"the CPU emulator needs GNU g++ {_OLDEST} or newer, and {path} is {version or 'something else'}",
            hint="Install a newer one, e.g. `apt-get install g++-12`.",
        )
    return Compiler(path, version, _target())


def _target() -> tuple[str, ...]:
    try:
        flags = set(Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split())
    except OSError:
        return ()
    return ("-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mpopcnt") if {"fma", "avx2", "bmi1", "bmi2"} <= flags else ()


def flags(mode: Mode) -> tuple[str, ...]:
    """Compiler flags of a mode, without include paths."""
    return (*_COMMON, *_MODE[mode], *find_compiler().target)


def runtime_library(mode: Mode = "check") -> Path:
    """The runtime as a shared library, built once per version of its source. One library serves both modes.

    Raises:
        BackendUnavailable: It cannot be built.
    """
    del mode
    sources = sorted(RUNTIME.glob("*.cpp"))
    library = _runtime_path(sources)
    if not library.exists():
        compiler = find_compiler()
        command = [compiler.path, "-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall"]
        command += ["-Wl,-soname,libcudaperf_emulator.so", *(str(s) for s in sources), "-ldl"]
        _make(command, library)
    return library


def is_built(mode: Mode = "check") -> bool:
    """Whether runtime and headers are in the cache: making them takes some 20 s, which a user should know of.

    Raises:
        BackendUnavailable: There is no compiler that could make them.
    """
    library = _runtime_path(sorted(RUNTIME.glob("*.cpp")))
    return library.exists() and _compiled_header(mode).exists()


def _runtime_path(sources: Sequence[Path]) -> Path:
    return _cached("runtime", sources) / "libcudaperf_emulator.so"


def _compiled_header(mode: Mode) -> Path:
    return _cached(f"headers-{mode}", []) / "prelude.h.gch"


def precompiled_headers(mode: Mode) -> Path:
    """The header that every candidate of a mode begins with; its precompiled form lies beside where it would be.

    Raises:
        BackendUnavailable: It cannot be built.
    """
    compiled = _compiled_header(mode)
    header = compiled.with_suffix("")
    if not compiled.exists():
        command = [find_compiler().path, "-x", "c++-header", *flags(mode), "-I", str(INCLUDE)]
        _make([*command, str(INCLUDE / "cuda_runtime.h")], compiled)
    return header


def compile_command(mode: Mode, source: Path, output: Path, extra: Sequence[Path], *, program: bool) -> list[str]:
    """One command line from rewritten source and further objects to a library or program."""
    runtime = runtime_library(mode)
    command = [find_compiler().path, "-pipe", *flags(mode), "-I", str(INCLUDE)]
    command += ["-include", str(precompiled_headers(mode)), "-fmax-errors=20"]
    command += ["-x", "c++", str(source), "-x", "none", *(str(e) for e in extra)]
    command += [
        "-o",
        str(output),
        str(runtime),
        f"-Wl,-rpath,{runtime.parent}",
        *_LINK,
        *trace_flags(_exported(runtime)),
    ]
    return command if program else [*command, "-shared"]


@lru_cache(maxsize=2)
def _exported(runtime: Path) -> tuple[str, ...]:
    """The names of the runtime's own functions: a candidate that defines one would take its place."""
    command = ["nm", "-D", "--defined-only", "--format=posix", str(runtime)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SETUP_SECONDS, check=False)
    names = [line.split()[0].split("@")[0] for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not names:
        raise BackendUnavailable(f"nm does not read the emulator's {runtime.name}: {done.stderr.strip()[:300]}")
    return tuple(name for name in names if not name.startswith("_ZN"))


def preprocess_command(mode: Mode, source: Path, output: Path) -> list[str]:
    """One command line from a text to what the compiler of a mode reads of it."""
    command = [find_compiler().path, *flags(mode), "-I", str(INCLUDE), "-include", str(INCLUDE / "cuda_runtime.h")]
    return [*command, "-E", "-x", "c++", str(source), "-o", str(output)]


def _cached(name: str, sources: Sequence[Path]) -> Path:
    compiler = find_compiler()
    digest = hashlib.sha256(f"{compiler}{_COMMON}{_MODE}".encode())
    for path in sorted([*sources, *INCLUDE.rglob("*.h"), *RUNTIME.glob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    folder = cache_dir() / "emulator" / f"{name}-{digest.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _make(command: list[str], output: Path) -> None:
    """Runs a compiler into a temporary file and moves it in place, so that two processes may do so at once."""
    with _SETUP:
        if not output.exists():
            _make_once(command, output)


def _make_once(command: list[str], output: Path) -> None:
    number, name = tempfile.mkstemp(dir=output.parent, prefix=output.name)
    os.close(number)
    try:
        done = subprocess.run(
            [*command, "-o", name],
            capture_output=True,
            text=True,
            timeout=_SETUP_SECONDS,
            check=False,
            start_new_session=True,  # Ctrl-C lets the step at work end, of which this may be part
        )
        if done.returncode:
            raise BackendUnavailable(f"the emulator's {output.name} does not compile: {done.stderr.strip()[:600]}")
        os.chmod(name, 0o755)  # a sandbox may read it as another user
        os.replace(name, output)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
