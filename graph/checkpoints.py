"""The file of checkpoints: apart from the store, plain values only, gone once a trajectory has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from cudaperf_agent.errors import StoreError
from cudaperf_agent.execution.paths import data_dir

_BUSY_SECONDS = 30.0
_AGAIN_SECONDS = 0.02
# The state is dicts, lists, strings and numbers: no class may be made from what a file says.
_ALLOWED_CLASSES: tuple[tuple[str, ...], ...] | None = None


def checkpoint_file(path: Path | None = None) -> Path:
    """`path`, or ``checkpoints.sqlite`` in the data folder."""
    return path if path is not None else data_dir() / "checkpoints.sqlite"


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    """A saver on the file, which is made if need be.

    ``synchronous=NORMAL`` is enough: a checkpoint that a power cut takes is made again from the store's steps, and one
    that knows more than the store is not used (see `State.steps`).

    Raises:
        StoreError: The file cannot be opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = await aiosqlite.connect(path, timeout=_BUSY_SECONDS)
    except (OSError, aiosqlite.Error) as error:
        raise StoreError(
            f"the checkpoints cannot be opened: {error}",
            where=str(path),
            hint="Set CUDAPERF_DATA_DIR to another folder.",
        ) from error
    try:
        serializer = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=_ALLOWED_CLASSES)
        saver = AsyncSqliteSaver(connection, serde=serializer)
        await _set_up(saver)
        await connection.execute("PRAGMA synchronous=NORMAL")
        yield saver
    finally:
        await connection.close()


async def _set_up(saver: AsyncSqliteSaver) -> None:
    """Tables and the write-ahead log; waits for whoever does the same to a new file at the same time.

    SQLite itself does not wait there: two who change a file's journal could wait for each other for ever.
    """
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            await saver.setup()
            return
        except aiosqlite.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
        await asyncio.sleep(_AGAIN_SECONDS)
