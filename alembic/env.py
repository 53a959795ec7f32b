"""Alembic's entry: runs the migrations on the store's own connection, or on the configured database."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import Connection

from alembic import context
from cudaperf_agent.store.columns import Json
from cudaperf_agent.store.engine import database_url, open_engine
from cudaperf_agent.store.models import Base


def render_item(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    """Migrations name plain column types only, so that an old one never depends on today's code."""
    return "sa.Text()" if kind == "type" and isinstance(item, Json) else False


def migrate(connection: Connection) -> None:
    """Run the requested command in one transaction."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        render_item=render_item,
        compare_type=True,
        transaction_per_migration=False,
    )
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    context.configure(url=database_url(), target_metadata=Base.metadata, render_as_batch=True, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()
elif (given := context.config.attributes.get("connection")) is not None:
    migrate(given)
    given.commit()
else:
    engine = open_engine(database_url())
    with engine.connect() as opened:
        migrate(opened)
        opened.commit()
    engine.dispose()
