"""`cudaperf resume`: go on with a run that was stopped; nothing that had finished is repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cudaperf_agent.cli.output import JsonFlag
from cudaperf_agent.cli.runs import RunArgument
from cudaperf_agent.cli.translate import DisplayOption, OutOption, PolicyOption, drive

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from cudaperf_agent.cli.display import Display
    from cudaperf_agent.cli.translate import Work
    from graph.events import Event


def resume(
    run: RunArgument,
    policy: PolicyOption = None,
    out: OutOption = Path(),
    as_json: JsonFlag = False,
    display: DisplayOption = None,
) -> int:
    """Go on with a run that was interrupted, killed or stopped by an error.

    The run keeps its task, turns, trajectories, seed and policy; what had finished is not done again. A run that has
    ended is told, and its files are written, once more.
    """
    from cudaperf_agent.cli import compose
    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.cli.report import check_folder
    from cudaperf_agent.settings import load_settings

    settings = load_settings({"display": display}).settings
    with open_store(settings) as store:
        stored = store.get_run(run)
    check_folder(stored.task, out)

    def work(shown: Display, on_event: Callable[[Event], None], control: RunControl) -> Work:
        return compose.resume_async(
            stored.summary.id, settings, policy=policy, on_event=on_event, say=shown.note, control=control
        )

    return drive(work, settings.display, out, as_json=as_json)
