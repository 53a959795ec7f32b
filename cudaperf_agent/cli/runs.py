"""`cudaperf runs`: what was run, newest first."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cudaperf_agent.cli.output import JsonFlag, put, put_json, say, table

if TYPE_CHECKING:
    from cudaperf_agent.store.records import RunSummary


def runs(
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 20,
    task: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only tasks whose name or path contains this text.")
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """List the stored runs, newest first."""
    from dataclasses import asdict

    from cudaperf_agent.cli.compose import open_store
    from cudaperf_agent.settings import load_settings

    with open_store(load_settings().settings) as store:
        found = store.list_runs(limit, task=task)
    if as_json:
        put_json({"runs": [asdict(run) for run in found]})
    elif found:
        heading = ("run", "when", "task", "policy", "status", "result")
        put(table([_row(run) for run in found], heading=heading))
    else:
        say("no runs yet; make one: cudaperf translate FILE.c")
    return 0


def _row(run: RunSummary) -> tuple[str, ...]:
    when = datetime.fromtimestamp(run.created).astimezone().strftime("%Y-%m-%d %H:%M")
    result = run.reason
    if run.best_speedup is not None:
        result = f"{run.best_speedup:.2f} times as fast as {run.best_baseline}"
    return (run.id, when, f"{run.task_name} ({run.task_path})", run.policy, run.status.value, result[:80])
