"""The file of checkpoints, opened by many at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiosqlite
import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph.checkpoints import open_checkpoints


async def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    async def opened(number: int) -> None:
        async with open_checkpoints(tmp_path / "new.sqlite") as saver:
            async for _ in saver.alist({"configurable": {"thread_id": str(number)}}):
                pytest.fail("a new file holds nothing")

    await asyncio.gather(*(opened(number) for number in range(24)))


async def test_a_file_that_is_being_made_ready_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up, failures = AsyncSqliteSaver.setup, 3

    async def locked_at_first(saver: AsyncSqliteSaver) -> None:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise aiosqlite.OperationalError("database is locked")
        await set_up(saver)

    monkeypatch.setattr(AsyncSqliteSaver, "setup", locked_at_first)
    async with open_checkpoints(tmp_path / "new.sqlite"):
        pass
    assert failures == -1


async def test_another_failure_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(saver: AsyncSqliteSaver) -> None:
        raise aiosqlite.OperationalError("disk I/O error")

    monkeypatch.setattr(AsyncSqliteSaver, "setup", broken)
    with pytest.raises(aiosqlite.OperationalError, match="disk I/O error"):
        async with open_checkpoints(tmp_path / "new.sqlite"):
            pass
