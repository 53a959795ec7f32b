"""Setting keys of the user's configuration file for a while, and taking them back, without touching the rest.

Lines of ours end with a mark, and a line that they replace stays as a comment with a mark of its own, so that
`unmarked` gives the user's text back whatever was edited in between, after a crash too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from cudaperf_agent.errors import ConfigError

_MARK = "  # by cudaperf serve, for as long as it runs"
_REPLACED = "#[before cudaperf serve] "
_HEADER = re.compile(r"\s*\[\s*([\w.\-]+)\s*\]\s*(?:#.*)?$")


def marked(text: str, table: str, values: Mapping[str, str]) -> str:
    """`text` with the keys of a table set to strings, every line of ours marked. Marks of earlier calls go first.

    Raises:
        ConfigError: The file is written in a way that this edit would break (an inline table, say).
    """
    plain = unmarked(text)
    lines = plain.splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if (m := _HEADER.match(line)) and m.group(1) == table), None)
    ours = [f"{key} = {json.dumps(value)}{_MARK}\n" for key, value in values.items()]
    if start is None:
        ending = "" if not plain or plain.endswith("\n") else "\n"
        result = plain + ending + f"[{table}]{_MARK}\n" + "".join(ours)
    else:
        end = next((i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith("[")), len(lines))
        if not lines[end - 1].endswith("\n"):
            lines[end - 1] += "\n"
        body = [
            _REPLACED + line if (m := re.match(r"\s*([\w\-]+)\s*=", line)) and m.group(1) in values else line
            for line in lines[start + 1 : end]
        ]
        result = "".join([*lines[: start + 1], *ours, *body, *lines[end:]])
    _check(plain, result, table, values)
    return result


def unmarked(text: str) -> str:
    """`text` without our lines, and with those that they replaced."""
    lines = [line for line in text.splitlines(keepends=True) if not line.rstrip("\r\n").endswith(_MARK)]
    return "".join(line.removeprefix(_REPLACED) for line in lines)


def record(path: Path, table: str, values: Mapping[str, str]) -> None:
    """Set keys in the file, which is made if need be.

    Raises:
        ConfigError: As `marked`, or the file cannot be read or written.
    """
    _write(path, marked(_read(path), table, values))


def forget(path: Path) -> None:
    """Take `record` back; a file that holds nothing else is deleted.

    Raises:
        ConfigError: The file cannot be read or written.
    """
    text = _read(path)
    plain = unmarked(text)
    if plain == text:
        return
    if plain:
        _write(path, plain)
    else:
        path.unlink(missing_ok=True)


def _check(before: str, after: str, table: str, values: Mapping[str, str]) -> None:
    try:
        wanted = tomllib.loads(before)
        wanted.setdefault(table, {}).update(values)
        same = tomllib.loads(after) == wanted
    except (tomllib.TOMLDecodeError, AttributeError):
        same = False
    if not same:
        raise ConfigError(
            f"[{table}] is written in a way that cannot be edited", hint=f"give it a section of its own: [{table}]"
        )


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", where=str(path), hint="check the file") from None


def _write(path: Path, text: str) -> None:
    """In one step, with the permissions that the file had: it may hold a key."""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if target.exists():
            shutil.copymode(target, name)
        Path(name).replace(target)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=str(path), hint="check permissions") from None
