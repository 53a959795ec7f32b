"""A candidate on cases that somebody else chose, such as a benchmark's own: one run, outputs compared with the C's."""

from __future__ import annotations

from collections.abc import Sequence

from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.building import Built, build_candidate
from cudaperf_agent.cuda.emulated import RunPlan, run_emulated
from cudaperf_agent.cuda.judge import judge
from cudaperf_agent.cuda.on_gpu import run_on_gpu
from cudaperf_agent.cuda.trials import FIRST_POISON
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.cuda.workplace import Workplace
from cudaperf_agent.errors import InputRefused
from cudaperf_agent.tasks.budget import Expected
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.oracle import Oracle


async def legal_cases(place: Workplace, task: Task, cases: Sequence[Case]) -> tuple[Case, ...]:
    """Those of the cases that the C itself gets through."""
    oracle = Oracle(task, place.sandbox.wrap)
    legal = []
    for case in cases:
        try:
            await oracle.expected([case])
        except InputRefused:
            continue
        legal.append(case)
    return tuple(legal)


async def run_given(place: Workplace, task: Task, source: str, cases: Sequence[Case]) -> Verdict:
    """Whether the candidate gives what the C gives.

    This is what a benchmark's own harness would ask, and less than `Verifier.test` asks: no second run with other
    memory, no look at how the launches grow. On a machine without a GPU the emulator's checker still looks on.

    Args:
        place: Tools, and the device if there is one.
        task: A prepared task.
        source: The candidate.
        cases: From `legal_cases`.

    Raises:
        BackendUnavailable: A compiler is missing.
    """
    built = await build_candidate(place, task, source)
    if not isinstance(built, Built):
        return built
    expected: tuple[Expected, ...] = await Oracle(task, place.sandbox.wrap).expected(cases)
    plan = RunPlan(FIRST_POISON)
    config = place.config
    async with place.running:
        if place.gpu is None:
            wrap = place.sandbox.reading(emulator.runtime_library()).wrap
            runs = await run_emulated(built.emulated, task, cases, plan, limits=config.emulated, wrap=wrap)
        else:
            assert built.compiled.artefact is not None
            wrap = place.sandbox.for_gpu().wrap
            runs = await run_on_gpu(built.compiled.artefact, task, cases, plan, limits=config.on_gpu, wrap=wrap)
    return judge(task, cases, expected, runs)
