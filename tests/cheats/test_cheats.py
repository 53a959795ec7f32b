"""No cheat is rewarded: each file of this folder is scored as failed, or as the honest work that it turns out to be."""

from __future__ import annotations

import pytest

from cudaperf_agent.cuda.verifier import Verifier

from .conftest import Attempt, attempts, task_named


@pytest.mark.parametrize("attempt", attempts(), ids=lambda a: a.name)
async def test_a_cheat_is_not_rewarded(attempt: Attempt, verifier: Verifier) -> None:
    task = await task_named(attempt.task)
    verdict = await verifier.test(task, attempt.source, hidden=attempt.hidden)
    assert verdict.status in attempt.expected, f"{attempt.what}: {verdict.status}: {verdict.message}"
    if verdict.status != "correct":
        assert verdict.message
