"""Results as they come: one JSON object a line, flushed, so that whatever ends the program keeps what was found."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Record:
    """A file of results, appended to. Lines of earlier runs stay, and parts that are done are not done again.

    `small` says that this is a rehearsal: sizes are to be such that the emulator can bear them.
    """

    path: Path
    until: float
    small: bool = False
    started: float = field(default_factory=time.monotonic)

    def add(self, part: str, **values: Any) -> None:
        """One result."""
        line = json.dumps({"part": part, "at": round(self.elapsed, 2), **values}, default=str)
        with self.path.open("a") as out:
            out.write(line + "\n")

    def say(self, text: str) -> None:
        """One line of progress."""
        print(f"{self.elapsed:6.1f} s  {text}", file=sys.stderr, flush=True)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds until the end that was asked for."""
        return self.until - self.elapsed

    def rows(self, part: str) -> list[dict[str, Any]]:
        """All results of a part, also of earlier runs; broken lines are skipped."""
        found = []
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if row.get("part") == part:
                    found.append(row)
        return found
