"""Brings a database to this version's schema with Alembic, or says why that cannot be done."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DatabaseError

from cudaperf_agent.errors import StoreError

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0001"
"""The newest revision this code knows (a test compares it with the scripts): a database at it opens without Alembic."""


def migrations_dir() -> Path:
    """The Alembic folder: inside the package when installed from a wheel, else ``alembic/`` of the checkout.

    Raises:
        StoreError: Neither is there.
    """
    package = Path(__file__).parent / "migrations"
    checkout = Path(__file__).parents[2] / "alembic"
    for folder in (package, checkout):
        if (folder / "env.py").is_file():
            return folder
    raise StoreError(
        "the database migrations are missing from this installation",
        where=str(package),
        hint="Install cudaperf-agent again: pip install --force-reinstall cudaperf-agent",
    )


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration for this project's migrations, on an open connection if one is given."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations_dir()).replace("%", "%%"))
    if connection is not None:
        config.attributes["connection"] = connection
    return config


def upgrade(engine: Engine) -> None:
    """Create the tables, or bring them up to date; nothing happens when they are.

    Raises:
        StoreError: The file is no database, cannot be written, holds something else, or is of a newer version.
    """
    where = str(engine.url.database)
    try:
        with engine.connect() as connection:
            version = _version(connection)
        if version == HEAD:
            return
        with _exclusive(Path(where)), engine.connect() as connection:
            _upgrade(connection, _version(connection), where)
    except DatabaseError as error:
        raise StoreError(
            f"the database cannot be opened: {error.orig}",
            where=where,
            hint="Check that it is an SQLite file of cudaperf and that you may write to it and to its folder.",
        ) from error


def _version(connection: Connection) -> str | None:
    tables = set(inspect(connection).get_table_names())
    if "alembic_version" in tables:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return "" if tables else None


def _upgrade(connection: Connection, version: str | None, where: str) -> None:
    from alembic.script import ScriptDirectory

    from alembic import command

    config = alembic_config(connection)
    if version == "":
        raise StoreError(
            "the database holds tables of another program",
            where=where,
            hint="Name another file in CUDAPERF_DATABASE_URL.",
        )
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version is not None and version not in known:
        raise StoreError(
            f"the database is of a newer version of cudaperf (schema {version}, this one knows up to {HEAD})",
            where=where,
            hint="Upgrade: pip install --upgrade cudaperf-agent; or name another file in CUDAPERF_DATABASE_URL.",
        )
    connection.rollback()
    command.upgrade(config, "head")


@contextmanager
def _exclusive(database: Path) -> Iterator[None]:
    """One process migrates at a time; the lock goes with the process, however it ends."""
    try:
        lock = database.with_name(database.name + "-migrating").open("a")
    except OSError as error:
        raise StoreError(
            f"the folder of the database cannot be written: {error.strerror}",
            where=str(database.parent),
            hint="Set CUDAPERF_DATABASE_URL or CUDAPERF_DATA_DIR to a place that can be written.",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
