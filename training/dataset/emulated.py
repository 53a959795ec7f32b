"""The same measuring path on the CPU emulator, so that it is tested without a GPU: its times mean nothing."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from cudaperf_agent.cuda import emulator
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.tasks.model import Task
from training.dataset.bundle import Bundle


def emulator_compile(task: Task, text: Bundle, folder: Path, name: str) -> Path | str:
    """A `job.Compile` that makes libraries for the emulator."""
    calls, compiled = folder / f"{name}_calls.c", folder / f"{name}_calls.o"
    calls.write_text(text.calls)
    made = subprocess.run(
        ["gcc", "-O1", "-fPIC", "-c", "-o", str(compiled), str(calls)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        return made.stderr.strip()[:300]
    place = folder / f"{name}_emulated"
    place.mkdir()
    built = asyncio.run(emulator.build(text.cuda, path_name=f"{name}.cu", extra=[compiled], folder=place, mode="fast"))
    if built.library is None:
        return built.unsupported or "; ".join(d.message for d in built.diagnostics) or "the emulator refuses it"
    return built.library


def emulated_bench(source: Path, folder: Path) -> Path:
    """The bench as a program for the emulator.

    Raises:
        BackendUnavailable: It does not compile there.
    """
    built = asyncio.run(
        emulator.build(source.read_text(), path_name=source.name, folder=folder, mode="fast", program=True)
    )
    if built.program is None:
        raise BackendUnavailable(f"the emulator does not take the bench: {built.unsupported or built.diagnostics}")
    built.program.chmod(0o755)
    return built.program
