"""C text to `Task`: the front door of this package's static part."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import InputRefused, UsageError
from cudaperf_agent.tasks.clang_c import parse_c
from cudaperf_agent.tasks.clauses import find_comments
from cudaperf_agent.tasks.declarations import kept_functions, read_tables, type_declarations
from cudaperf_agent.tasks.entry import entry_clauses, find_entry
from cudaperf_agent.tasks.infer import infer
from cudaperf_agent.tasks.macros import read_macros
from cudaperf_agent.tasks.model import Origin, Parameter, Task
from cudaperf_agent.tasks.parameters import apply_clauses, read_prototype, scalar_type
from cudaperf_agent.tasks.syntax import read_file


def load_task(
    path: Path | None = None,
    *,
    source: str | None = None,
    entry: str | None = None,
    spec: Mapping[str, Any] | Path | None = None,
    stdin_files: Sequence[Path] = (),
    include_dirs: Sequence[Path | str] = (),
    defines: Sequence[str] = (),
) -> Task:
    """Understand a C file without running it.

    Args:
        path: The file; also the name in messages when `source` is given.
        source: Its text, if it is not to be read from `path` (standard input).
        entry: Function to translate, where the file leaves it open.
        spec: A TOML or JSON file, or a mapping, that says what a ``cudaperf:`` comment could say.
        stdin_files: Example inputs for program mode.
        include_dirs: Extra ``-I`` folders.
        defines: Extra ``-D`` definitions, ``NAME=VALUE``.

    Raises:
        InputRefused: The text cannot be a task; says why, where, and the remedy.
        UsageError: A file cannot be read.
    """
    name = str(path) if path is not None else "<stdin>"
    text = source if source is not None else read_source(path)
    folders = tuple(str(d) for d in include_dirs)
    unit = parse_c(text, name, folders, tuple(defines))
    file = read_file(unit)
    comments = find_comments(text, name)
    function = find_entry(file, comments, entry)
    macros = read_macros(unit, folders, tuple(defines))
    prototype = read_prototype(function, unit)
    clauses = entry_clauses(file, comments, function)
    apply_clauses(prototype, clauses, macros, Origin.COMMENT)
    tables = read_tables(file, function)
    inferred = infer(file, function, prototype.parameters, tables, prototype.at_least_one)
    parameters = tuple(inferred.parameters.values())
    returns = scalar_type(function.returns, unit, function.first_line, function.name)
    task = Task(
        name=function.name,
        mode="function",
        source=text,
        path=name,
        parameters=parameters,
        returns=returns,
        tables=tables,
        kept_functions=kept_functions(file, function),
        type_declarations=type_declarations(unit, parameters, tables, ()),
        include_dirs=folders,
        defines=tuple(defines),
        assumptions=inferred.assumptions,
        first_line=function.first_line,
        last_line=function.last_line,
    )
    return with_digest(task)


def read_source(path: Path | None) -> str:
    """The text of a C file.

    Raises:
        UsageError: No path, or it cannot be read.
    """
    if path is None:
        raise UsageError("neither a file nor C text was given", hint="Name a C file, or - for standard input.")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputRefused("this is not a text file", where=str(path), hint="Pass C source text in UTF-8.") from error
    except OSError as error:
        raise UsageError(f"cannot read the file: {error.strerror}", where=str(path), hint="Check the name.") from error


def with_digest(task: Task) -> Task:
    """`task` with its digest computed anew; call it after every change of a task."""
    ignored = {"digest", "path", "assumptions"}
    parts = [(f.name, getattr(task, f.name)) for f in fields(task) if f.name not in ignored]
    return replace(task, digest=hashlib.sha256(repr(parts).encode()).hexdigest())


def unsettled(task: Task) -> tuple[Parameter, ...]:
    """Buffers whose number of elements nothing in the source settles; a measured run may."""
    return tuple(p for p in task.inputs() if p.pointer and p.extent is None)
