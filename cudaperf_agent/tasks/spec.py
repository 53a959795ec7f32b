"""The ``--spec`` file (TOML or JSON), or the same as a mapping: what a ``cudaperf:`` comment can say, in tables.

entry = "spmv"
setup = "load_table(values, k)"
stdin = "n in 0..1000, a[n] in -5..5"
clauses = ["in x[n]"]              # any clause of the comment, as it is written there

[parameters.row_ptr]
role = "in"                        # in, out, inout or index
extent = "rows+1"                  # or a list, one expression per dimension
range = "0..nnz"                   # or [low, high]; an absent end is ""
ascending = true
odd = false
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cudaperf_agent.errors import InputRefused, UsageError, reading_hint
from cudaperf_agent.tasks.clauses import Clause, RangeText, checked, parse_clause, parse_range

_TOP = ("entry", "setup", "stdin", "clauses", "parameters")
_PARAMETER = ("role", "extent", "range", "ascending", "odd")
_ROLES = ("in", "out", "inout", "index")


@dataclass(frozen=True, slots=True)
class Spec:
    """What a spec says: the entry, and the rest as clauses."""

    entry: str | None = None
    clauses: tuple[Clause, ...] = ()
    name: str = "--spec"


def read_spec(spec: Mapping[str, Any] | Path | None) -> Spec:
    """Read a spec.

    Args:
        spec: A file ending in ``.json`` or ``.toml``, or its content, or nothing.

    Raises:
        UsageError: The file cannot be read.
        InputRefused: It is not TOML or JSON, has an unknown key, or a value that is no clause.
    """
    if spec is None:
        return Spec()
    if isinstance(spec, Path):
        return _from_mapping(_load(spec), str(spec))
    return _from_mapping(spec, "--spec")


def _load(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        why = f"cannot read the spec: {error.strerror}"
        raise UsageError(why, where=str(path), hint=reading_hint(error)) from error
    except UnicodeDecodeError as error:
        raise InputRefused("the spec is not UTF-8 text", where=str(path), hint="Write it as TOML or JSON.") from error
    try:
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        line = getattr(error, "lineno", None)
        kind = "JSON" if path.suffix == ".json" else "TOML"
        where = f"{path}:{line}" if line else str(path)
        raise InputRefused(f"the spec is not valid {kind}: {error}", where=where, hint="Mend its syntax.") from error
    if not isinstance(content, dict):
        raise InputRefused("the spec is not a table of keys", where=str(path), hint=f"Keys: {', '.join(_TOP)}.")
    return content


def _from_mapping(content: Mapping[str, Any], name: str) -> Spec:
    _known(content, _TOP, name)
    clauses: list[Clause] = []
    for text in _listed(content, "clauses", name):
        clauses.append(parse_clause(text, name, None))
    for key in ("setup", "stdin"):
        if key in content:
            clauses.append(parse_clause(f"{key} {_text(content, key, name)}", name, None))
    parameters = content.get("parameters", {})
    if not isinstance(parameters, Mapping):
        raise _wrong("parameters", "a table per parameter", name)
    for parameter, table in parameters.items():
        clauses.append(_parameter(str(parameter), table, name))
    marked = [c for c in clauses if c.kind == "entry"]
    if marked:
        raise InputRefused("a spec names the entry", where=name, hint='Write entry = "NAME" instead of a clause.')
    entry = _text(content, "entry", name) if "entry" in content else None
    return Spec(entry, tuple(clauses), name)


def _parameter(parameter: str, table: object, name: str) -> Clause:
    key = f"parameters.{parameter}"
    if not isinstance(table, Mapping):
        raise _wrong(key, "a table", name)
    _known(table, _PARAMETER, f"{name}: {key}")
    role = table.get("role")
    if role is not None and role not in _ROLES:
        raise _wrong(f"{key}.role", f"one of {', '.join(_ROLES)}", name)
    extent = table.get("extent", [])
    parts = extent if isinstance(extent, list) else [extent]
    dims = tuple(checked(str(part), f"{key}.extent", name) for part in parts)
    for flag in ("ascending", "odd"):
        if not isinstance(table.get(flag, False), bool):
            raise _wrong(f"{key}.{flag}", "true or false", name)
    limits = _limits(table.get("range"), key, name)
    kind = "buffer" if dims or role or table.get("ascending") else "range"
    return Clause(
        "buffer" if kind == "buffer" else "range",
        None,
        parameter,
        cast(Any, role),
        dims,
        limits,
        bool(table.get("ascending", False)),
        bool(table.get("odd", False)),
    )


def _limits(value: object, key: str, name: str) -> RangeText | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 2:
        return parse_range("..".join(str(end) for end in value), f"{key}.range", name)
    if isinstance(value, str):
        return parse_range(value, f"{key}.range", name)
    raise _wrong(f"{key}.range", '"A..B" or [A, B]', name)


def _known(table: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), allowed, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise InputRefused(f"unknown key `{key}`", where=where, hint=f"{hint}Known keys: {', '.join(allowed)}.")


def _text(content: Mapping[str, Any], key: str, name: str) -> str:
    value = content[key]
    if not isinstance(value, str) or not value.strip():
        raise _wrong(key, "a text", name)
    return value.strip()


def _listed(content: Mapping[str, Any], key: str, name: str) -> list[str]:
    value = content.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise _wrong(key, "a list of texts", name)
    return value


def _wrong(key: str, wanted: str, name: str) -> InputRefused:
    return InputRefused(f"`{key}` must be {wanted}", where=name, hint="See the description of --spec.")
