"""No fault takes the harness down: each is scored, in its time, and the next candidate is verified as ever."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from cudaperf_agent.cuda import building
from cudaperf_agent.cuda.compile import CompileConfig
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.sandbox import detect

from .conftest import Attempt, attempts, task_named

HONEST = (Path(__file__).parent / "00_honest.cu").read_text()
STRAYS = [Path(folder) / "cudaperf-stray" for folder in ("/usr", "/etc", "/root", "/tmp", "/dev/shm", "/var/tmp")]


@pytest.fixture
def past_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the screen would find is left to the sandbox and the limits."""

    async def nothing(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(building, "screen", lambda *_, **__: None)
    monkeypatch.setattr(building, "screen_linked", lambda *_, **__: None)
    monkeypatch.setattr(building, "screen_preprocessed", nothing)


@pytest.mark.usefixtures("past_the_screen")
@pytest.mark.parametrize("attempt", attempts("faults"), ids=lambda a: a.name)
async def test_a_fault_is_scored_and_the_harness_lives(attempt: Attempt) -> None:
    config = VerifierConfig(
        compile=CompileConfig(limits=Limits(seconds=6.0, memory=2 << 30)),
        emulated=Limits(seconds=3.0, memory=600 << 20, file_bytes=64 << 20, output=1 << 20),
    )
    verifier = Verifier(config, gpu=None)
    task = await task_named(attempt.task)
    started = time.monotonic()
    verdict = await verifier.test(task, attempt.source)
    assert verdict.status in attempt.expected, f"{attempt.what}: {verdict.status}: {verdict.message}"
    assert time.monotonic() - started < 60
    assert (await verifier.test(task, HONEST)).correct
    await verifier.aclose()


@pytest.mark.parametrize("attempt", [a for a in attempts("faults") if a.screened], ids=lambda a: a.name)
async def test_the_screen_finds_it_first(attempt: Attempt, verifier: Verifier) -> None:
    assert (await verifier.test(await task_named(attempt.task), attempt.source)).status == attempt.screened


async def test_a_source_of_a_megabyte_is_scored(verifier: Verifier) -> None:
    verdict = await verifier.test(await task_named("saxpy"), HONEST + "// filler\n" * 120_000)
    assert verdict.status == "compile_error"
    assert "longer than" in verdict.message


@pytest.mark.skipif(detect().kind != "bubblewrap", reason="needs bubblewrap")
async def test_nothing_is_left_outside(verifier: Verifier) -> None:
    source = (Path(__file__).parent / "faults" / "writes_outside.cu").read_text()
    assert (await verifier.test(await task_named("saxpy"), source)).correct
    assert not [stray for stray in STRAYS if await asyncio.to_thread(stray.exists)]


@pytest.mark.skipif(detect().kind != "bubblewrap", reason="needs bubblewrap")
@pytest.mark.usefixtures("past_the_screen")
async def test_no_daemon_is_left(verifier: Verifier) -> None:
    source = (Path(__file__).parent / "faults" / "daemon.cu").read_text()
    assert (await verifier.test(await task_named("saxpy"), source)).correct
    assert not await asyncio.to_thread(_processes_named, b"runner")


def _processes_named(name: bytes) -> list[str]:
    """Processes of the native runner that are nobody's child any more."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line, state = (folder / "cmdline").read_bytes(), (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if line.split(b"\0", 1)[0].endswith(b"/" + name) and state[1] == "1":
            found.append(folder.name)
    return found
