"""The cheats in PyTorch form: a `.py` whose head says what it tries, on which module, and how it must be scored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "modules"


@dataclass(frozen=True)
class ModuleAttempt:
    """One file: what it tries, on which module, in which mode, the statuses that score it rightly, and the cases."""

    name: str
    what: str
    task: str
    mode: str
    expected: frozenset[str]
    hidden: bool
    on_gpu: str
    note: str
    source: str

    @property
    def emulated(self) -> bool:
        """Whether the emulator can run it."""
        return "only a GPU runs it" not in self.note

    @property
    def row(self) -> int:
        """The row of the list that it is of; 0 for an honest one."""
        match = re.match(r"\d+", self.what)
        return int(match.group()) if match else 0


def module_attempts() -> list[ModuleAttempt]:
    """All of them, by name."""
    found = []
    for path in sorted(HERE.glob("*.py")):
        text = path.read_text()
        head = dict(re.findall(r"^# (\w+): (.*)$", text, re.M))
        found.append(
            ModuleAttempt(
                path.stem,
                head["cheat"],
                head["task"],
                head.get("mode", "pure-cuda"),
                frozenset(head["expect"].split()),
                head.get("cases") == "hidden",
                head.get("gpu", ""),
                head.get("note", ""),
                text,
            )
        )
    return found
