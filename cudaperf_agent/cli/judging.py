"""Judges a candidate that the user wrote, and makes an earlier verdict again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cudaperf_agent.cli import parts
from cudaperf_agent.cli.source import Source, read_task

if TYPE_CHECKING:
    from cudaperf_agent.cuda.replay import Replay
    from cudaperf_agent.cuda.verdict import Verdict
    from cudaperf_agent.settings_model import Settings


async def verify_async(
    source: Source, candidate: str, settings: Settings, *, say: Callable[[str], None] = lambda text: None
) -> Verdict:
    """Judge a candidate by the visible and the hidden cases, and time it where there is a GPU.

    Args:
        source: What the candidate is to replace.
        candidate: Its text.
        settings: All settings.
        say: Called with what is being done.
    """
    from cudaperf_agent.codegen.dropin import candidate_of

    task = read_task(source)
    verifier = parts.make_verifier(settings.translate.seed, trust=settings.verify.trust)
    try:
        parts.tell_of_building(verifier, say)
        say(f"{task.path}: running {'the module' if task.module else 'the C'} of {task.name}")
        task = await parts.prepared(task, verifier)
        if not task.module:
            candidate = candidate_of(task, candidate)
        say("compiling the candidate and running the visible cases")
        verdict = await verifier.test(task, candidate)
        if verdict.correct:
            say("running the hidden cases")
            verdict = await verifier.test(task, candidate, hidden=True)
        return await verifier.measure(task, candidate, verdict) if verdict.correct else verdict
    finally:
        await verifier.aclose()


async def replay_async(source: Source, candidate: str, record: Mapping[str, Any]) -> Replay:
    """Make a verdict again, with the inputs that it was made with.

    Raises:
        UsageError: It is about another candidate or another task.
    """
    from cudaperf_agent.codegen.dropin import candidate_of
    from cudaperf_agent.cuda.replay import replay

    verifier = parts.make_verifier(0)
    try:
        task = await parts.prepared(read_task(source), verifier)
    finally:
        await verifier.aclose()
    return await replay(record, task, candidate if task.module else candidate_of(task, candidate))
