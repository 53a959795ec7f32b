"""How tests run the command line as a user does, in the test's own process or in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout."""
        return json.loads(self.out)


Cli = Callable[..., Outcome]


def in_process(*args: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs `cudaperf ARGS` in a fresh interpreter."""
    command = [sys.executable, "-m", "cudaperf_agent.cli.main", *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options)
