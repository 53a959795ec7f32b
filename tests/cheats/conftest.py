"""The cheats and faults as files: a `.cu` whose head says what it tries, on which C, and how it must be scored."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Attempt:
    """One file: what it tries, on which C, the statuses that score it rightly, and which cases show it.

    `screened`: what the screen of names makes of it first, where `expected` is what happens past that.
    """

    name: str
    what: str
    task: str
    expected: frozenset[str]
    hidden: bool
    source: str
    screened: str | None = None


def head_of(source: str) -> dict[str, str]:
    """What the first lines of a file say."""
    return dict(re.findall(r"^// (\w+): (.*)$", source, re.M))


def attempts(folder: str = ".") -> list[Attempt]:
    """All files of a folder, by name."""
    found = []
    for path in sorted((HERE / folder).glob("*.cu")):
        text = path.read_text()
        head = head_of(text)
        what = head.get("cheat") or head["fault"]
        statuses = frozenset(head["expect"].split())
        found.append(
            Attempt(path.stem, what, head["task"], statuses, head.get("cases") == "hidden", text, head.get("screened"))
        )
    return found


async def task_named(name: str) -> Task:
    """A prepared task of this folder."""
    return await prepare(load_task(HERE / "tasks" / f"{name}.c"))


@pytest.fixture
async def verifier() -> AsyncIterator[Verifier]:
    """On the emulator, with limits that end an endless loop within a test's patience."""
    config = VerifierConfig(emulated=Limits(seconds=4.0, memory=1 << 30, file_bytes=64 << 20, output=1 << 20))
    made = Verifier(config, gpu=None)
    yield made
    await made.aclose()
