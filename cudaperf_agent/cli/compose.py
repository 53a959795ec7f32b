"""Translates a C or PyTorch file: from what the user names to the files of its best candidate.

What the command line does, a program does in two lines::

    translation = translate(Source(Path("saxpy.c")))
    write_files(translation, Path("out"))  # of cudaperf_agent.cli.report
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cudaperf_agent.cli import parts
from cudaperf_agent.cli.source import Source, read_task

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

    from cudaperf_agent.codegen.dropin import DropIn
    from cudaperf_agent.settings_model import Settings
    from cudaperf_agent.tasks.model import Task
    from graph.events import Event
    from graph.results import RunResult

    OnEvent = Callable[[Event], None]

__all__ = ["Source", "Translation", "resume_async", "translate", "translate_async"]


@dataclass(frozen=True, slots=True)
class Translation:
    """A run that has ended, and the files made of its best candidate.

    Attributes:
        task: What was translated, as far as it was understood.
        result: How the run ended.
        policy: Name of the policy.
        files: The linkable files; `None` if there is no correct candidate.
        sandbox: What confined the candidates, and what that does not cover.
    """

    task: Task
    result: RunResult
    policy: str
    files: DropIn | None
    sandbox: dict[str, Any]


def translate(source: Source, settings: Settings | None = None, *, on_event: OnEvent | None = None) -> Translation:
    """Translate a C file, from a program that is not asynchronous.

    Raises:
        CudaPerfError: The input is refused, or a backend is missing. That no candidate is correct is a result.
    """
    from cudaperf_agent.settings import load_settings
    from graph import loop

    return loop.run(translate_async(source, settings or load_settings().settings, on_event=on_event))


async def translate_async(
    source: Source,
    settings: Settings,
    *,
    on_event: OnEvent | None = None,
    say: Callable[[str], None] | None = None,
    control: RunControl | None = None,
    check: Callable[[Task], None] | None = None,
) -> Translation:
    """Understand the C, run the graph, make the files.

    Args:
        source: The C.
        settings: All settings.
        on_event: Called with every event of the run.
        say: Called with sentences for the user about decisions before the run.
        control: Its ``request_drain()`` ends the run after the node at work.
        check: Called with the task before anything costly is done; may raise.
    """
    from graph.config import GraphConfig
    from graph.runner import run_task

    task = read_task(source)
    if check is not None:
        check(task)
    wanted = settings.translate
    tell = say or _ignore
    module = task.module is not None
    async with parts.run_parts(settings, wanted.policy, wanted.turns, wanted.seed, tell, module=module) as made:
        made.check()
        parts.tell_of_building(made.verifier, tell)
        if task.module is not None:
            tell(f"{task.path}: running {task.name} to see what inputs it takes")
        else:
            tell(f"{task.path}: running the C of {task.name} under the sanitizers")
        task = await parts.prepared(task, made.verifier)
        config = GraphConfig(
            turns=wanted.turns,
            trajectories=wanted.trajectories,
            seed=wanted.seed,
            lean=True,
            seconds=wanted.time_budget,
        )
        result = await run_task(task, made.deps, config, on_event=on_event, control=control)
        return _translation(task, result, made)


async def resume_async(
    run_id: str,
    settings: Settings,
    *,
    policy: str | None = None,
    on_event: OnEvent | None = None,
    say: Callable[[str], None] | None = None,
    control: RunControl | None = None,
) -> Translation:
    """Go on with a stored run; its policy is made again by the name that the store knows, unless `policy` names it."""
    from graph.runner import resume_run

    with parts.open_store(settings) as store:
        run = store.get_run(run_id)
    seed = int(run.config.get("seed", 0))
    name = policy or run.summary.policy
    async with parts.run_parts(settings, name, run.summary.turns, seed, say or _ignore) as made:
        result = await resume_run(run.summary.id, made.deps, on_event=on_event, control=control)
        return _translation(run.task, result, made)


def _translation(task: Task, result: RunResult, made: parts.Parts) -> Translation:
    from cudaperf_agent.codegen.dropin import make_dropin
    from cudaperf_agent.codegen.modules.forms import module_files

    make_files = make_dropin if task.module is None else module_files
    files = make_files(task, result.best.source) if result.best else None
    sandbox = made.verifier.place.sandbox
    told = {"name": sandbox.name, "covers": list(sandbox.covers), "misses": list(sandbox.misses)}
    return Translation(task, result, made.policy.name, files, told)


def _ignore(_: str) -> None:
    pass
