"""Opens the database file: where it lies, and how SQLite is told to serve one writer beside many readers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from cudaperf_agent.errors import StoreError
from cudaperf_agent.execution.paths import data_dir

DATABASE_VARIABLE = "CUDAPERF_DATABASE_URL"
_BUSY_SECONDS = 30.0


def database_url(url: str | None = None) -> URL:
    """The database: the argument, else ``CUDAPERF_DATABASE_URL``, else ``runs.sqlite`` in the data folder.

    Args:
        url: ``sqlite:///FILE``; a bare path to a file is taken too.

    Raises:
        StoreError: It is not a URL of an SQLite file.
    """
    given = url or os.environ.get(DATABASE_VARIABLE) or str(data_dir() / "runs.sqlite")
    hint = f"Set {DATABASE_VARIABLE}=sqlite:////absolute/path/runs.sqlite, or unset it for the default."
    if "://" not in given:
        return URL.create("sqlite", database=str(Path(given).expanduser()))
    try:
        parsed = make_url(given)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"{given!r} is not a database URL", where=DATABASE_VARIABLE, hint=hint) from error
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        shown = parsed.render_as_string(hide_password=True)
        raise StoreError(f"{shown} does not name an SQLite file", where=DATABASE_VARIABLE, hint=hint)
    return parsed


def open_engine(url: URL) -> Engine:
    """An engine on an SQLite file, its folder made if need be.

    Write-ahead logging lets other processes read while one writes. With ``synchronous=NORMAL`` what was stored survives
    the death of the process at once, and the file is never damaged; a power cut may take the last moments' writes.

    Raises:
        StoreError: The folder cannot be made.
    """
    path = Path(str(url.database))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the folder of the database cannot be made: {error.strerror}",
            where=str(path.parent),
            hint=f"Set {DATABASE_VARIABLE} or CUDAPERF_DATA_DIR to a place that can be written.",
        ) from error
    engine = create_engine(url, connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False})
    event.listen(engine, "connect", _set_pragmas)
    return engine


def _set_pragmas(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    try:
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
    finally:
        cursor.close()
