"""`cudaperf runs`: what was run, newest first."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cudaperf_agent.cli.output import JsonFlag, put, put_json, say, table

if TYPE_CHECKING:
    from cudaperf_agent.store.records import RunSummary

TRANSLATE = "translate"
EVERY = "all"

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="Id of the run, its beginning, or latest, the newest of translate.")
]


def runs(
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 20,
    task: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only tasks whose name or path contains this text.")
    ] = None,
    origin: Annotated[
        str, typer.Option(metavar="NAME", help="What made them: translate, eval, grpo, …; all for every run.")
    ] = TRANSLATE,
    as_json: JsonFlag = False,
) -> int:
    """List the stored runs, newest first: those of `translate`, unless others are asked for.

    How many others there are is said on stderr.
    """
    from dataclasses import asdict

    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.settings import load_settings

    with open_store(load_settings().settings) as store:
        found = store.list_runs(limit, task=task, origin=None if origin == EVERY else origin)
        counts = store.count_runs(task=task)
    if as_json:
        put_json({"runs": [asdict(run) for run in found]})
    elif found:
        heading = ("run", "when", "task", "policy", "status", "result")
        put(table([_row(run) for run in found], heading=heading))
    elif not counts and task is None:
        say("no runs yet; make one: cudaperf translate FILE.c")
    else:
        say("no such runs" if origin == EVERY else f"no such runs of {origin}")
    others = {name: count for name, count in counts.items() if origin not in (EVERY, name)}
    if others:
        total = sum(others.values())
        each = ", ".join(f"{name} {count}" for name, count in others.items())
        what = "run" if total == 1 else "runs"
        say(f"{total} {what} of another origin not shown ({each}); --origin {EVERY} shows all")
    return 0


def _row(run: RunSummary) -> tuple[str, ...]:
    when = datetime.fromtimestamp(run.created).astimezone().strftime("%Y-%m-%d %H:%M")
    result = run.reason
    if run.best_speedup is not None:
        result = f"{run.best_speedup:.2f} times as fast as {run.best_baseline}"
    return (run.id, when, f"{run.task_name} ({run.task_path})", run.policy, run.status.value, result[:80])
