"""Nothing that an earlier export put into a file is lost unasked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import ConfigError
from training.dataset.table import read_rows

Row = dict[str, Any]


def check_kept(
    path: Path, kept: Callable[[Row], bool], told: Callable[[list[Row]], str], *, what: str, remedy: str = ""
) -> None:
    """Refuse to write over a file that holds rows which the new one will not.

    Args:
        path: The Parquet file; one that is not there loses nothing.
        kept: Whether a row of it will be there again.
        told: Of the rows that will not: what they are, as a subject.
        what: What the file should be, for a file that is none.
        remedy: More that can be done.

    Raises:
        ConfigError: Rows would be lost, or the file cannot be read.
    """
    if not path.exists():
        return
    try:
        lost = [row for row in read_rows(path) if not kept(row)]
    except (ValueError, KeyError, OSError) as error:
        hint = "move it away, or write over it with --replace"
        raise ConfigError(f"this is no {what}: {error}", where=str(path), hint=hint) from None
    if lost:
        hint = "name another folder with --out, or lose them with --replace" + (f"; {remedy}" if remedy else "")
        raise ConfigError(f"{told(lost)} would be lost", where=str(path), hint=hint)
