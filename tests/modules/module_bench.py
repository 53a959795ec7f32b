"""A verifier on the emulator that describes every module once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.modules.find import load_module_task


class ModuleBench:
    """Verifies candidates on the emulator."""

    def __init__(self) -> None:
        self.verifier = Verifier(VerifierConfig(), gpu=None)
        self._tasks: dict[str, Task] = {}

    async def described(self, path: Path, **options: Any) -> Task:
        """The task of a file."""
        key = f"{path} {options}"
        if key not in self._tasks:
            self._tasks[key] = await self.verifier.modules.reference.described(load_module_task(path, **options))
        return self._tasks[key]
