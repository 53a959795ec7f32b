"""What the configuration files of training have in common: how one is read, and how a mistake in one is told."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import ConfigError

CONFIGS = Path(__file__).parent / "configs"
"""Folder of the shipped configurations."""


def read_toml(path: Path, method: str) -> dict[str, Any]:
    """The tables of a file.

    Args:
        path: Of the file.
        method: How the names of shipped files for it begin: ``sft`` or ``grpo``.

    Raises:
        ConfigError: It cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        hint = f"shipped ones, in {CONFIGS}: " + ", ".join(sorted(p.name for p in CONFIGS.glob(f"{method}*.toml")))
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from None
    except UnicodeDecodeError:
        raise ConfigError("not UTF-8 text", where=str(path), hint="save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        place = f"{path}:{found.group(1)}" if found else str(path)
        raise ConfigError(f"not valid TOML: {error}", where=place, hint="mend or delete that line") from None


def no_such_key(key: str, known: Iterable[str], where: str) -> ConfigError:
    """For a dotted key that nothing is called; `known` are the names in its table."""
    table, dot, name = key.rpartition(".")
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = (
        f"did you mean {table}{dot}{near[0]}?"
        if near
        else "delete it" + (f"; what there is: {', '.join(names)}" if names else "")
    )
    return ConfigError(f"there is no {key}", where=where, hint=hint)


def not_a_table(key: str, where: str) -> ConfigError:
    """For a value that stands where a table of values has to."""
    return ConfigError(f"{key} is a table", where=where, hint=f"write [{key}] and its keys below")


def wrong_value(key: str, wanted: str, value: object, default: object, where: str) -> ConfigError:
    """For a value that is of another kind, or out of range.

    Args:
        key: Dotted.
        wanted: What it should be: ``a valid integer``.
        value: What it is.
        default: What it is where it is left out.
        where: The file.
    """
    usual = "by default it is unset" if default is None else f"the default is {_toml(default)}"
    return ConfigError(
        f"{key} should be {wanted}, not {_toml(value)}", where=where, hint=f"change it or leave it out: {usual}"
    )


def _toml(value: object) -> str:
    return json.dumps(value, default=str)
