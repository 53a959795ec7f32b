"""C text to `Task`: the front door of this package's static part."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from cudaperf_agent.errors import InputRefused, UsageError, reading_hint
from cudaperf_agent.tasks.clang_c import parse_c
from cudaperf_agent.tasks.clauses import Clause, find_comments
from cudaperf_agent.tasks.cuda_names import kept_name, runtime_calls
from cudaperf_agent.tasks.declarations import kept_functions, read_tables, type_declarations
from cudaperf_agent.tasks.entry import entry_clauses, find_entry
from cudaperf_agent.tasks.infer import infer
from cudaperf_agent.tasks.macros import Macros, read_macros
from cudaperf_agent.tasks.model import Origin, Parameter, StdinItem, Task
from cudaperf_agent.tasks.parameters import Prototype, apply_clauses, read_prototype, scalar_type
from cudaperf_agent.tasks.read_syntax import read_file
from cudaperf_agent.tasks.refuse import check_code, check_text
from cudaperf_agent.tasks.setup import Setup, infer_setup, read_setup
from cudaperf_agent.tasks.spec import Spec, read_spec
from cudaperf_agent.tasks.stdin_items import missing_stdin, read_items
from cudaperf_agent.tasks.syntax import CFile, Function


@dataclass(frozen=True, slots=True)
class _Source:
    """A file and what is said about it."""

    text: str
    file: CFile
    macros: Macros
    entry: Function
    comment: list[Clause]
    spec: Spec

    def clause(self, kind: str) -> tuple[Clause, Origin] | None:
        """The clause of a kind that there may be one of; the spec's wins."""
        for clauses, origin in ((self.spec.clauses, Origin.SPEC), (self.comment, Origin.COMMENT)):
            found = [c for c in clauses if c.kind == kind]
            if len(found) > 1:
                raise InputRefused(
                    f"there are {len(found)} `{kind}` clauses",
                    where=self.file.unit.at(found[1].line),
                    hint="Keep one of them.",
                )
            if found:
                return found[0], origin
        return None


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
        BackendUnavailable: No C compiler is installed.
    """
    name = str(path) if path is not None else "<stdin>"
    text = check_text(source.encode() if source is not None else _read(path), name)
    for file in stdin_files:
        _check_example(file)
    try:
        return _load(text, name, entry, read_spec(spec), stdin_files, include_dirs, defines)
    except (RecursionError, ctypes.ArgumentError) as error:  # the latter where it strikes inside a libclang callback
        raise InputRefused(
            "an expression or block is nested too deeply", where=name, hint="Split it over several statements."
        ) from error


def _load(
    text: str,
    name: str,
    entry: str | None,
    said: Spec,
    stdin_files: Sequence[Path],
    include_dirs: Sequence[Path | str],
    defines: Sequence[str],
) -> Task:
    folders, definitions = tuple(str(d) for d in include_dirs), tuple(defines)
    unit = parse_c(text, name, folders, definitions)
    file = read_file(unit)
    comments = find_comments(text, name)
    function = find_entry(file, comments, entry or said.entry)
    macros = read_macros(unit, folders, definitions)
    read = _Source(text, file, macros, function, entry_clauses(file, comments, function), said)
    task = Task(
        name=function.name,
        mode="program" if function.name == "main" else "function",
        source=text,
        path=name,
        include_dirs=folders,
        defines=definitions,
        first_line=function.first_line,
        last_line=function.last_line,
    )
    program = task.mode == "program"
    check_code(file, function, "program" if program else "function")
    task = _program(task, read, stdin_files) if program else _function(task, read)
    return with_digest(task)


def _function(task: Task, read: _Source) -> Task:
    file, function, unit = read.file, read.entry, read.file.unit
    prototype = read_prototype(function, unit)
    returns = scalar_type(function.returns, unit, function.first_line, function.name)
    setup = _apply(read, prototype)
    tables = read_tables(file, function)
    inferred = infer(file, function, prototype.parameters, tables, prototype.at_least_one)
    inputs = infer_setup(file, setup, prototype.at_least_one) if setup else {}
    parameters = tuple(inferred.parameters.values())
    types = [t for t in (returns,) if t is not None]
    linkage = [f"{function.name} is static in the file; the translation can be linked to"] if function.static else []
    kept = kept_functions(file, function)
    renamed = [f"-D{name}={kept_name(function.name, name)}" for name in kept if runtime_calls(name)]
    if renamed:
        linkage.append(f"other files that call functions named as ones of CUDA's runtime need {' '.join(renamed)}")
    return replace(
        task,
        parameters=parameters,
        returns=returns,
        tables=tables,
        setup=setup.call if setup else None,
        setup_inputs=tuple(inputs.values()),
        kept_functions=kept,
        type_declarations=type_declarations(unit, [*parameters, *inputs.values()], tables, types),
        assumptions=(*linkage, *inferred.assumptions),
    )


def _apply(read: _Source, prototype: Prototype) -> Setup | None:
    """Apply the clauses of spec and comment to the entry's parameters and to the setup call's own inputs."""
    own = list(prototype.parameters)
    found = read.clause("setup")
    setup = read_setup(found[0], read.file, prototype.parameters) if found else None
    stray = read.clause("stdin")
    if stray:
        raise InputRefused(
            f"`stdin` describes what a whole program reads, but the entry is {read.entry.name}",
            where=read.file.unit.at(stray[0].line),
            hint="Drop the clause, or translate the program: --entry main.",
        )
    everything = Prototype({**prototype.parameters, **(setup.inputs if setup else {})})
    apply_clauses(everything, read.spec.clauses, read.macros, Origin.SPEC, read.spec.name)
    apply_clauses(everything, read.comment, read.macros, Origin.COMMENT)
    prototype.parameters = {name: everything.parameters[name] for name in own}
    if setup:
        setup.inputs.update({name: everything.parameters[name] for name in setup.inputs})
    return setup


def _program(task: Task, read: _Source, stdin_files: Sequence[Path]) -> Task:
    found = read.clause("stdin")
    items: tuple[StdinItem, ...] = read_items(found[0], read.macros, found[1]) if found else ()
    if not items and not stdin_files:
        others = [f.name for f in read.file.functions.values() if f.in_main_file and f.name != "main"]
        raise missing_stdin(task.path, read.entry.first_line, others)
    for clause in (*read.spec.clauses, *read.comment):
        if clause.kind in ("setup", "buffer", "range"):
            raise InputRefused(
                f"`{clause.name or clause.call}` is described, but a whole program has no parameters",
                where=read.file.unit.at(clause.line),
                hint="Describe what the program reads with `stdin`, or name a function: --entry NAME.",
            )
    return replace(
        task,
        stdin=items,
        stdin_files=tuple(str(f) for f in stdin_files),
        tables=read_tables(read.file, read.entry),
    )


def _read(path: Path | None) -> bytes:
    if path is None:
        raise UsageError("neither a file nor C text was given", hint="Name a C file, or - for standard input.")
    try:
        return path.read_bytes()
    except OSError as error:
        why = f"cannot read the file: {error.strerror}"
        raise UsageError(why, where=str(path), hint=reading_hint(error)) from error


def _check_example(file: Path) -> None:
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):
            hint = "Write to a file what the program is to read."
            raise UsageError("this example input is no file", where=str(file), hint=hint)
        file.open("rb").close()
    except OSError as error:
        why = f"this example input cannot be read: {error.strerror}"
        raise UsageError(why, where=str(file), hint=reading_hint(error)) from error


def with_digest(task: Task) -> Task:
    """`task` with its digest computed anew; call it after every change of a task."""
    ignored = {"digest", "path", "assumptions", "module"}
    parts: list[object] = [(f.name, getattr(task, f.name)) for f in fields(task) if f.name not in ignored]
    if task.module is not None:
        parts.append(("module", replace(task.module, graph="", torch="")))
    parts += [Path(f).read_bytes() for f in task.stdin_files]
    return replace(task, digest=hashlib.sha256(repr(parts).encode()).hexdigest())


def unsettled(task: Task) -> tuple[Parameter, ...]:
    """Buffers whose number of elements nothing in the source settles; a measured run may."""
    return tuple(p for p in task.inputs() if p.pointer and p.extent is None)


def unsettled_error(task: Task) -> InputRefused:
    """What to tell the user where not even a measured run settles the extents: the very line to write."""
    missing = unsettled(task)
    listed = " and ".join(f"`{p.name}`" for p in missing)
    sizes = [p.name for p in task.scalars if p.type.kind.value in ("int", "uint")]
    count = sizes[0] if sizes else "COUNT"
    line = "; ".join(f"{p.role.value} {p.name}[{count}]" for p in missing)
    return InputRefused(
        f"nothing says how many elements {listed} {'has' if len(missing) == 1 else 'have'}",
        where=f"{task.path}:{missing[0].line if missing else task.first_line}",
        hint=f"Write the right counts above the function, e.g. /* cudaperf: {line} */",
    )
