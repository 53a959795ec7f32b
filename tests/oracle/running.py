"""Runs a C text as if it were a candidate: built apart from the oracle, compared as a candidate is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaperf_agent.execution.native import call_native
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Case, Comparison, Task
from cudaperf_agent.tasks.oracle import Oracle
from cudaperf_agent.tasks.reference_build import Build, require_library
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name


async def judge(
    task: Task,
    cases: Sequence[Case],
    source: str | None = None,
    *,
    build: Build = Build.PLAIN,
    oracle: Oracle | None = None,
) -> list[Comparison]:
    """The comparison of each case, with `source` (default: the task's own) in place of the candidate."""
    expected = await (oracle or Oracle(task)).expected(cases)
    candidate = replace(task, source=source if source is not None else task.source)
    library = await require_library(candidate, build)
    run = await call_native(library, [native_arguments(task, case) for case in cases])
    results = [
        compare(task, case, want, outputs_by_name(task, outcome.outputs))
        for case, want, outcome in zip(cases, expected, run.outcomes, strict=False)
    ]
    return results + [Comparison(False, float("inf"))] * (len(cases) - len(results))
