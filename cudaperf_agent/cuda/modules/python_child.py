"""A sandboxed Python process with torch: what it is given, and what it gives back, lies in a folder of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaperf_agent.cuda.blame import require_started
from cudaperf_agent.cuda.modules.bytecode import bytecode_prefix
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import ChildResult, Limits, run_child
from cudaperf_agent.execution.sandbox import Sandbox

CHILD = Path(__file__).parent / "child"
TORCH_HINT = 'pip install "cudaperf-agent[torch]" (for a GPU: the torch that fits its driver, see pytorch.org).'
# Nothing of what torch makes when it is imported is ever let go, so there is nothing to collect meanwhile, nor later.
_BOOTSTRAP = """import gc, sys
from pathlib import Path
sys.path[:0] = [{child!r}]
sys.path += {extra!r}
gc.disable()
from cudaperf_child.{part} import main
gc.freeze()
gc.enable()
main(Path({folder!r}))
"""


def require_torch(python: str | None) -> None:
    """Refuse early where PyTorch is missing; it is looked for, not imported.

    Raises:
        BackendUnavailable: It is not there.
    """
    if python is None and importlib.util.find_spec("torch") is None:
        raise BackendUnavailable("PyTorch is not installed, and a module cannot be run without it", hint=TORCH_HINT)


async def run_python(
    part: str,
    folder: Path,
    *,
    sandbox: Sandbox,
    limits: Limits,
    python: str | None = None,
    readable: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
) -> ChildResult:
    """Run one part of the child's package on a folder.

    Args:
        part: ``reference`` or ``candidate``.
        folder: With its request; the only folder it may write to.
        sandbox: What confines it.
        limits: Of the process.
        python: The interpreter; this one where `None`.
        readable: More that it may read.
        env: More variables.

    Raises:
        BackendUnavailable: torch is missing, or nothing starts in the sandbox.
    """
    await prepare_python(python)
    command = python_command(part, folder, sandbox=sandbox, python=python, readable=readable)
    child = await run_child(command.argv, limits=limits, cwd=folder, env={**command.env, **(env or {})})
    if child.returncode:
        await require_started(child, sandbox.wrap)
        if b"No module named 'torch'" in child.stderr:
            raise BackendUnavailable(f"PyTorch is not installed for {python or sys.executable}", hint=TORCH_HINT)
    return child


async def prepare_python(python: str | None) -> None:
    """Make, in a thread, what every process shares, where it is not there yet; `python_command` only looks it up."""
    await asyncio.to_thread(_prefix, python)


@dataclass(frozen=True, slots=True)
class PythonCommand:
    """A command line in its sandbox, and the environment that it is to have."""

    argv: list[str]
    env: dict[str, str]


def python_command(
    part: str, folder: Path, *, sandbox: Sandbox, python: str | None = None, readable: Sequence[Path] = ()
) -> PythonCommand:
    """The command of `run_python`, for whoever runs it otherwise.

    Raises:
        BackendUnavailable: torch is missing.
    """
    require_torch(python)
    program = Path(python or sys.executable)
    extra = _packages() if python is None else []
    prefix = _prefix(python)
    cached = [] if prefix is None else [prefix]
    shown = sandbox.reading(*_homes(program), *(Path(p) for p in extra), CHILD, *cached, *readable)
    code = _BOOTSTRAP.format(child=str(CHILD), extra=extra, part=part, folder=str(folder))
    env = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        # Its user has no name in the sandbox; torch.compile asks for one, and for folders.
        "USER": "cudaperf",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "4",
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }
    options = ["-I", "-B"]
    if prefix is not None:
        options += ["-X", f"pycache_prefix={prefix}"]
        # For interpreters that torch.compile starts.
        env |= {"PYTHONPYCACHEPREFIX": str(prefix), "PYTHONDONTWRITEBYTECODE": "1"}
    return PythonCommand(shown.wrap([str(program), *options, "-c", code], folder), env)


def _prefix(python: str | None) -> Path | None:
    """Bytecode for this interpreter, where the installation has none; of another one nothing is known."""
    return bytecode_prefix(CHILD, _packages()) if python is None else None


def _packages() -> list[str]:
    """Where this interpreter finds its packages, beside what an isolated one does."""
    return [p for p in sys.path if p.endswith(("site-packages", "dist-packages")) and Path(p).is_dir()]


def _homes(program: Path) -> list[Path]:
    """Folders that an interpreter needs: its own, that of the one it was made from, and what links lead to."""
    homes = [program.parent.parent, program.resolve().parent.parent]
    if str(program) == sys.executable:
        homes += [Path(sys.prefix), Path(sys.base_prefix)]
    return [h for h in dict.fromkeys(homes) if h != Path("/")]
