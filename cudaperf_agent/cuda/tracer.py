"""Builds `tracer.cpp` where CUPTI is there: in the toolkit, or in NVIDIA's wheels."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cudaperf_agent.cuda.toolchain import Nvcc
from cudaperf_agent.execution.paths import cache_dir

SOURCE = Path(__file__).with_name("tracer.cpp")
_SECONDS = 60.0
_INCLUDES = ("include", "extras/CUPTI/include", "targets/x86_64-linux/include")
_LIBRARIES = ("lib64", "lib", "extras/CUPTI/lib64", "targets/x86_64-linux/lib")


@dataclass(frozen=True, slots=True)
class Tracer:
    """The built library, and the folders that a sandbox has to show beside it."""

    path: Path
    needs: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _Cupti:
    include: Path
    library: Path


@lru_cache(maxsize=2)
def tracer_library(nvcc: Nvcc) -> Tracer | None:
    """The tracer, built once into the cache folder; `None` where there is no CUPTI or it does not fit."""
    cupti = next((found for found in map(_cupti, _roots(nvcc)) if found is not None), None)
    if cupti is None:
        return None
    text = f"{SOURCE.read_text()}\0{cupti.include}\0{cupti.library}\0{nvcc.version}"
    target = cache_dir() / "tracer" / hashlib.sha256(text.encode()).hexdigest()[:16] / "tracer.so"
    if target.exists() or _built(cupti, target):
        return Tracer(target, (cupti.library.resolve().parent,))
    return None


def _roots(nvcc: Nvcc) -> list[Path]:
    """Toolkits, that of nvcc first: what is called nvcc may be a script that calls another."""
    named = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    purelib = Path(sysconfig.get_path("purelib"))
    return [nvcc.root, *named, Path("/usr/local/cuda"), *sorted(purelib.glob("nvidia/cu*"), reverse=True)]


def _cupti(root: Path) -> _Cupti | None:
    includes = [root / place for place in _INCLUDES if (root / place / "cupti.h").exists()]
    libraries = [lib for place in _LIBRARIES for lib in sorted((root / place).glob("libcupti.so*"))]
    return _Cupti(includes[0], libraries[0]) if includes and libraries else None


def _built(cupti: _Cupti, target: Path) -> bool:
    compiler = shutil.which("g++")
    if compiler is None:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    building = target.with_name(f"tracer.{os.getpid()}")
    folder = cupti.library.resolve().parent
    command = [
        compiler,
        "-std=c++17",
        "-O2",
        "-shared",
        "-fPIC",
        f"-I{cupti.include}",
        "-o",
        str(building),
        str(SOURCE),
    ]
    try:
        done = subprocess.run(
            [*command, str(cupti.library), f"-Wl,-rpath,{folder}"],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            start_new_session=True,  # Ctrl-C lets the step at work end, of which this may be part
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if done.returncode:
        return False
    os.replace(building, target)
    return True
