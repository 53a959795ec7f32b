"""`cudaperf import`: read collections of tasks that others keep, and say which of their files can be tasks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cudaperf_agent.cli.output import JsonFlag, put, put_json, say
from cudaperf_agent.cli.translate import ModeOption, mode_of

if TYPE_CHECKING:
    from cudaperf_agent.tasks.modules.kernelbench import Problem

app = typer.Typer(name="import", help="Read collections of tasks.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Read collections of tasks."""


@app.command()
def kernelbench(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A checkout, or any folder of such files.")],
    check: Annotated[
        bool, typer.Option("--check", help="Run each module in the sandbox, and count the variants for it.")
    ] = False,
    mode: ModeOption = "pure-cuda",
    as_json: JsonFlag = False,
) -> int:
    """List the modules of a KernelBench folder: what can be translated, and why the rest cannot.

    Without --check files are only read. With it each module is made and run once, as translate does first.
    """
    from cudaperf_agent.tasks.modules.kernelbench import read_folder

    problems = read_folder(path, mode=mode_of(mode))
    rows = [_row(p) for p in problems]
    if check:
        from cudaperf_agent.cli import parts
        from graph import loop

        rows = loop.run(_checked(problems, parts.make_verifier(0)))
    if as_json:
        put_json({"problems": rows, "counts": dict(Counter(row["status"] for row in rows))})
    else:
        put("\n".join(_line(row) for row in rows))
        counts = Counter(row["status"] for row in rows)
        say(", ".join(f"{count} {status}" for status, count in counts.most_common()))
    return 0


async def _checked(problems: tuple[Problem, ...], verifier: Any) -> list[dict[str, Any]]:
    """The rows with what a run of each module shows."""
    import json

    from cudaperf_agent.codegen.modules.variants import generate_module
    from cudaperf_agent.errors import InputRefused

    rows = []
    try:
        for problem in problems:
            row = _row(problem)
            if problem.task is not None:
                try:
                    task = await verifier.modules.reference.described(problem.task)
                    generation = generate_module(json.loads(task.module.graph), class_source=task.source)
                    row["variants"] = len(generation.variants)
                    if generation.declined is not None and not generation.variants:
                        row["declined_variants"] = generation.declined.reason
                except InputRefused as error:
                    row |= {"status": "declined", "reason": error.message}
            rows.append(row)
            say(_line(row))
    finally:
        await verifier.aclose()
    return rows


def _row(problem: Problem) -> dict[str, Any]:
    row: dict[str, Any] = {
        "path": str(problem.path),
        "level": problem.level,
        "name": problem.name,
        "status": "declined" if problem.task is None else "loads",
    }
    if problem.task is None:
        row["reason"] = problem.declined
    else:
        row["digest"] = problem.task.digest
    return row


def _line(row: dict[str, Any]) -> str:
    level = f"level {row['level']}  " if row["level"] is not None else ""
    text = f"{level}{row['name']}: {row['status']}"
    if row.get("reason"):
        text += f": {row['reason']}"
    if "variants" in row:
        why = f" ({row['declined_variants']})" if row.get("declined_variants") else ""
        text += f", {row['variants']} variants{why}"
    return text
