"""Bytecode of PyTorch's Python files, in the cache folder, where the installation itself has none that can be used.

Without it every process that imports torch compiles more than a thousand files anew: an image may have been made with
``PYTHONDONTWRITEBYTECODE`` or by an installer that compiles nothing, and our processes write nothing beside packages.
It is made once per interpreter and installation, by a process of our own that runs no candidate; processes in the
sandbox can read it only. Where it cannot be made they compile as before.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.execution.paths import cache_dir

_LOG = logging.getLogger(__name__)
# Files that every import of torch reads; where all have bytecode the rest has it too.
_SAMPLE = ("__init__.py", "_tensor.py", "functional.py", "nn/functional.py", "nn/modules/module.py")
_HEADER = 16
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class BytecodeConfig:
    """Numbers of the making.

    Attributes:
        seconds: It is given up after that.
        told_after: The user is told what is being done if it takes longer than that, seconds.
        kept: Installations whose bytecode is kept.
    """

    seconds: float = 180.0
    told_after: float = 2.0
    kept: int = 3


BYTECODE = BytecodeConfig()


def bytecode_prefix(child: Path, packages: Sequence[str], config: BytecodeConfig = BYTECODE) -> Path | None:
    """The folder for ``-X pycache_prefix`` of this interpreter; `None` where none is needed or none can be made.

    Blocking, for seconds, when it is first asked for on a machine.

    Args:
        child: Folder of what our processes import besides torch.
        packages: Where packages lie.
        config: Numbers.
    """
    with _LOCK:
        return _prefix(child, tuple(packages), config, cache_dir())


@functools.lru_cache(maxsize=8)
def _prefix(child: Path, packages: tuple[str, ...], config: BytecodeConfig, cache: Path) -> Path | None:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    torch = Path(spec.origin).parent
    if all(usable(torch / name) for name in _SAMPLE):
        return None
    try:
        place = cache / "bytecode" / _key(torch, child)
        return place if place.is_dir() else _made(place, child, packages, config)
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.warning("PyTorch's files have no bytecode and none can be kept (%s): each import takes longer.", error)
        return None


def usable(source: Path) -> bool:
    """Whether an import of `source` by this interpreter finds its bytecode beside it."""
    compiled = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
    try:
        with compiled.open("rb") as file:
            head = file.read(_HEADER)
        about = source.stat()
    except OSError:
        return False
    if len(head) < _HEADER or head[:4] != importlib.util.MAGIC_NUMBER:
        return False
    if int.from_bytes(head[4:8], "little"):
        return True  # by the source's digest, not by its time
    stamp = [int(about.st_mtime) & 0xFFFFFFFF, about.st_size & 0xFFFFFFFF]
    return [int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little")] == stamp


def _key(torch: Path, child: Path) -> str:
    """Changes with the interpreter, the installation of torch and our own part of it."""
    parts = [sys.executable, sys.version, str(torch)]
    for path in (torch / "__init__.py", torch / "version.py", *sorted(child.rglob("*.py"))):
        about = path.stat()
        parts.append(f"{path} {about.st_mtime_ns} {about.st_size}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _made(place: Path, child: Path, packages: tuple[str, ...], config: BytecodeConfig) -> Path:
    """Make it under another name, then give it its own: what is there is whole.

    Raises:
        OSError: It cannot be written.
        SubprocessError: It took too long, or failed.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix="new-", dir=place.parent))
    try:
        script = child / "cudaperf_child" / "bytecode.py"
        argv = [sys.executable, "-I", "-X", f"pycache_prefix={new}", str(script), str(child), *packages]
        _run(argv, new, config)
        new.chmod(0o755)
        with contextlib.suppress(OSError):  # another process was faster
            new.rename(place)
        _prune(place.parent, config.kept)
        return place
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _run(argv: Sequence[str], folder: Path, config: BytecodeConfig) -> None:
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, text=True
    ) as process:
        try:
            said = process.communicate(timeout=config.told_after)[1]
        except subprocess.TimeoutExpired:
            _LOG.warning("Compiling PyTorch's Python files to bytecode, which its installation lacks; once, seconds.")
            try:
                said = process.communicate(timeout=config.seconds)[1]
            except BaseException:
                process.kill()
                raise
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise subprocess.SubprocessError((said.strip().splitlines() or [f"exit status {process.returncode}"])[-1][:200])


def _prune(folder: Path, kept: int) -> None:
    made = sorted((p for p in folder.iterdir() if not p.name.startswith("new-")), key=lambda p: -p.stat().st_mtime)
    for old in made[kept:]:
        shutil.rmtree(old, ignore_errors=True)
