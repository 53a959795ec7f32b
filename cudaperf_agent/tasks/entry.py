"""Which function is translated: asked for, marked ``cudaperf: entry``, or the only one that nothing else calls."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.clauses import Clause, Comment
from cudaperf_agent.tasks.syntax import CFile, Function


def find_entry(file: CFile, comments: Sequence[Comment], wanted: str | None) -> Function:
    """The entry function; ``main`` stands for program mode.

    Args:
        file: The parsed file.
        comments: Its ``cudaperf:`` comments.
        wanted: From ``--entry`` or the spec.

    Raises:
        InputRefused: There is none, or several are equally likely.
    """
    own = [f for f in file.functions.values() if f.in_main_file]
    if not own:
        raise InputRefused(
            "the file defines no function",
            where=file.unit.at(_last_line(file)),
            hint="Pass a C file that defines the function to translate.",
        )
    if wanted is not None:
        return _named(file, own, wanted)
    marked = [f for f in (_marked(own, c) for c in comments if _marks(c)) if f is not None]
    if len({f.name for f in marked}) > 1:
        raise _several(file, marked, "marked as entry")
    if marked:
        return marked[0]
    candidates = [f for f in own if not f.static]
    called = {name for f in own for name in f.calls() if name != f.name}
    free = [f for f in candidates if f.name not in called]
    chosen = free or candidates
    if len(chosen) == 1:
        return chosen[0]
    if not candidates:
        raise InputRefused(
            "every function of the file is static, so nothing could call the translation",
            where=file.unit.at(own[-1].first_line),
            hint=f"Drop `static` from the function to translate, or name it: --entry {own[-1].name}",
        )
    if any(f.name == "main" for f in chosen):
        return file.functions["main"]
    raise _several(file, chosen, "possible entries")


def _named(file: CFile, own: list[Function], wanted: str) -> Function:
    for function in own:
        if function.name == wanted:
            return function
    near = difflib.get_close_matches(wanted, [f.name for f in own], n=1)
    listed = ", ".join(f"{f.name} (line {f.first_line})" for f in own)
    raise InputRefused(
        f"the file defines no function `{wanted}`",
        where=file.unit.path,
        hint=(f"Did you mean --entry {near[0]}? " if near else "") + f"It defines: {listed}.",
    )


def _several(file: CFile, functions: Sequence[Function], what: str) -> InputRefused:
    listed = ", ".join(f"{f.name} (line {f.first_line})" for f in functions)
    example = functions[0].name
    return InputRefused(
        f"{len(functions)} functions are {what}: {listed}",
        where=file.unit.at(functions[0].first_line),
        hint=f"Say which: --entry {example}, or a comment /* cudaperf: entry */ above it.",
    )


def _marks(comment: Comment) -> bool:
    return any(clause.kind == "entry" for clause in comment.clauses)


def _marked(own: Sequence[Function], comment: Comment) -> Function | None:
    return attached(own, comment)


def attached(functions: Sequence[Function], comment: Comment) -> Function | None:
    """The function a comment stands in or above: the first whose body ends at or after the comment's end."""
    after = [f for f in functions if f.last_line >= comment.last_line]
    return min(after, key=lambda f: f.last_line, default=None)


def entry_clauses(file: CFile, comments: Sequence[Comment], entry: Function) -> list[Clause]:
    """The clauses that speak of `entry`.

    A comment speaks of the function it stands in or above. One above a helper, or above nothing, speaks of the entry
    too; so does one above another function, if none speaks of the entry directly and all its names are the entry's.
    """
    own = [f for f in file.functions.values() if f.in_main_file]
    helpers = {f.name for f in file.closure(entry.name)}
    names = {p.name for p in entry.parameters}
    direct: list[Clause] = []
    stray: list[Clause] = []
    for comment in comments:
        function = attached(own, comment)
        if function is None or function.name in helpers or function.static or entry.name == "main":
            direct += comment.clauses
        elif all(clause.name in names or not clause.name for clause in comment.clauses) and not _marks(comment):
            stray += comment.clauses
    return direct or stray


def _last_line(file: CFile) -> int:
    return max(file.unit.source.count("\n"), 1)
