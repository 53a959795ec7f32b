"""No cheat is rewarded: each file of this folder is scored as failed, or as the honest work that it turns out to be."""

from __future__ import annotations

import pytest

from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.features.extract import extract

from .conftest import HERE, Attempt, attempts, task_named
from .module_files import module_attempts
from .table import DOCUMENT, ELSEWHERE, ROWS, page, row_of


@pytest.mark.parametrize("attempt", attempts(), ids=lambda a: a.name)
async def test_a_cheat_is_not_rewarded(attempt: Attempt, verifier: Verifier) -> None:
    task = await task_named(attempt.task)
    verdict = await verifier.test(task, attempt.source, hidden=attempt.hidden)
    assert verdict.status in attempt.expected, f"{attempt.what}: {verdict.status}: {verdict.message}"
    if verdict.status != "correct":
        assert verdict.message


def test_what_no_launch_reaches_counts_for_no_feature() -> None:
    padded, honest = ((HERE / f"{name}.cu").read_text() for name in ("32_dead_kernel", "00_honest"))
    assert extract(padded).values == extract(honest).values


def test_every_row_has_a_file_or_a_reason() -> None:
    rows = {row_of(attempt) for attempt in attempts()} | {attempt.row for attempt in module_attempts()}
    assert rows | set(ELSEWHERE) >= set(ROWS)
    assert not rows & set(ELSEWHERE)
    assert page() == DOCUMENT.read_text(), "python -m tests.cheats.table > docs/cheats.md"
