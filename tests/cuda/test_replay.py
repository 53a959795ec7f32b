"""A verdict can be repeated from its record, and says what is not as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cudaperf_agent.cuda.replay import replay
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.errors import UsageError
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

CHEATS = Path(__file__).parent.parent / "cheats"


async def test_a_verdict_is_repeated_on_the_same_inputs() -> None:
    task = await prepare(load_task(CHEATS / "tasks" / "saxpy.c"))
    source = (CHEATS / "30_no_tail.cu").read_text()
    verifier = Verifier(VerifierConfig(seed=3), gpu=None)
    verdict = await verifier.test(task, source, hidden=True)
    await verifier.aclose()
    record = json.loads(json.dumps(verdict.to_dict()))
    again = await replay(record, task, source, gpu=None)
    assert again.differences == ()
    assert again.verdict.digests == verdict.digests
    assert again.verdict.status == verdict.status != "correct"

    changed = await replay({**record, "passed": 0, "versions": {}}, task, source, gpu=None)
    assert any("passed" in d for d in changed.differences)
    assert any("nvcc" in d for d in changed.differences)


async def test_another_source_is_refused() -> None:
    task = await prepare(load_task(CHEATS / "tasks" / "saxpy.c"))
    verifier = Verifier(gpu=None)
    source = (CHEATS / "00_honest.cu").read_text()
    record = (await verifier.test(task, source)).to_dict()
    await verifier.aclose()
    with pytest.raises(UsageError):
        await replay(record, task, source + "\n", gpu=None)
