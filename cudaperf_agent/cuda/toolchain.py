"""Finding nvcc: named by the user, on the PATH, in a toolkit's usual place, or in NVIDIA's wheels."""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cudaperf_agent.errors import BackendUnavailable, ConfigError

DEFAULT_ARCH = "sm_90"
MINIMUM = (11, 8)
"""The first release that knows both ``-std=c++17`` (11.0) and ``sm_90`` (11.8), of `compile.CompileConfig`'s flags."""
_VERSION_SECONDS = 20.0
_REMEDY = 'pip install "cudaperf-agent[nvcc]", or install a CUDA toolkit and set CUDAPERF_NVCC to its nvcc.'


@dataclass(frozen=True, slots=True)
class Nvcc:
    """A CUDA compiler.

    Attributes:
        path: The executable.
        version: ``13.0.88``.
        root: The toolkit's folder, which a sandbox must show.
        library_dirs: Folders with the CUDA runtime that nvcc does not know of itself (the wheels' ``lib``).
        origin: Where it was found, for ``doctor``.
    """

    path: Path
    version: str
    root: Path
    library_dirs: tuple[Path, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    origin: str


def find_nvcc(setting: str | Path | None = None) -> Nvcc:
    """The compiler to use.

    Args:
        setting: The user's choice; ``CUDAPERF_NVCC`` where `None`.

    Raises:
        ConfigError: The user's choice is not a working nvcc, or too old.
        BackendUnavailable: None is found that is new enough.
    """
    chosen = str(setting or os.environ.get("CUDAPERF_NVCC", ""))
    if chosen:
        path = Path(chosen).expanduser()
        found = _probe(path, "CUDAPERF_NVCC")
        if found is None:
            raise ConfigError(f"{path} is not a working nvcc", where="CUDAPERF_NVCC", hint=_REMEDY)
        if not _new_enough(found):
            raise ConfigError(_too_old(found), where="CUDAPERF_NVCC", hint=_REMEDY)
        return found
    old: Nvcc | None = None
    for place in _places():
        found = _probe(place.path, place.origin)
        if found is not None and _new_enough(found):
            return found
        old = old or found
    if old is not None:
        raise BackendUnavailable(_too_old(old), where=str(old.path), hint=_REMEDY)
    raise BackendUnavailable("nvcc is not installed, and CUDA cannot be compiled without it", hint=_REMEDY)


def _new_enough(nvcc: Nvcc) -> bool:
    return tuple(int(number) for number in nvcc.version.split(".")[:2]) >= MINIMUM


def _too_old(nvcc: Nvcc) -> str:
    least = ".".join(map(str, MINIMUM))
    return f"nvcc {nvcc.version} at {nvcc.path} is too old: it must be {least} or newer, which knows {DEFAULT_ARCH}"


def _places() -> Iterator[_Place]:
    on_path = shutil.which("nvcc")
    if on_path:
        yield _Place(Path(on_path), "PATH")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield _Place(Path(os.environ[variable]) / "bin" / "nvcc", variable)
    yield _Place(Path("/usr/local/cuda/bin/nvcc"), "/usr/local/cuda")
    for folder in dict.fromkeys([sysconfig.get_path("purelib"), *site.getsitepackages(), site.getusersitepackages()]):
        for path in sorted(Path(folder).glob("nvidia/cu*/bin/nvcc"), reverse=True):
            yield _Place(path, "NVIDIA's wheels")


def _probe(path: Path, origin: str) -> Nvcc | None:
    if not os.access(path, os.X_OK):
        return None
    return _asked(path, path.stat().st_mtime_ns, origin)


@lru_cache(maxsize=8)
def _asked(path: Path, _changed: int, origin: str) -> Nvcc | None:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"release \S+, V(\d+\.\d+\S*)", done.stdout)
    if done.returncode or not version:
        return None
    root = path.resolve().parent.parent
    # A toolkit's own nvcc.profile names its lib64; the wheels have lib, which nothing points the linker to.
    wheels = root / "lib"
    ours = (wheels,) if (wheels / "libcudart_static.a").exists() or any(wheels.glob("libcudart.so*")) else ()
    return Nvcc(path, version.group(1), root, ours, origin)
