"""The large case of a reduction: who has one, and what only it shows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cudaperf_agent.codegen.variants import generate
from cudaperf_agent.cuda.building import Built
from cudaperf_agent.cuda.emulated import RunPlan, run_emulated
from cudaperf_agent.cuda.judge import CaseRuns
from cudaperf_agent.cuda.large_case import LARGE, large_suite, try_large
from cudaperf_agent.cuda.trials import Suite
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.tasks.model import Case, Task
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare

CASES = Path(__file__).parent.parent / "cases" / "c"
LOOP = "for (at += 256; at < even; at += 256)"
EACH = "for (int i = 0; i < n; i++) "
SUM = f"(int n, const int *a) {{ int s = 0; {EACH}s ^= a[i]; return s; }}"
FAULTS = [
    ("total = partials[at];", "total = partials[at > 0 ? at - 1 : 0];"),
    (LOOP, LOOP.replace("at += 256)", "at += 256 + 1)")),
    ("dot_combine(total, partials[at]);", "dot_combine(total, partials[at > 0 ? at - 1 : 0]);"),
]


async def handed(name: str) -> Task:
    return await prepare(load_task(CASES / f"{name}.c"))


def tree(task: Task) -> str:
    return next(v.source for v in generate(task).variants if v.strategy == "tree")


async def test_faults_of_many_blocks_are_found_by_it_alone() -> None:
    task = await handed("dot")
    sources = [tree(task)]
    for right, wrong in FAULTS:
        assert sources[0].count(right) == 1
        sources.append(sources[0].replace(right, wrong))

    async def verdicts(config: VerifierConfig) -> list[Verdict]:
        verifier = Verifier(config, gpu=None)
        try:
            return await asyncio.gather(*(verifier.test(task, s, hidden=True) for s in sources))
        finally:
            await verifier.aclose()

    without, found = await verdicts(VerifierConfig(large=False)), await verdicts(VerifierConfig())
    assert [str(v.status) for v in without] == ["correct"] * 4
    assert [str(v.status) for v in found] == ["correct", "wrong", "wrong", "wrong"], [v.message for v in found]
    for verdict in found[1:]:
        assert "[case n=1600001]" in verdict.message
        assert verdict.total == verdict.passed + 1 == without[0].total + 1


async def test_visible_cases_have_none() -> None:
    task = await handed("dot")
    source = tree(task).replace(*FAULTS[0])
    verifier = Verifier(gpu=None)
    try:
        verdict = await verifier.test(task, source)
    finally:
        await verifier.aclose()
    assert verdict.correct


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        (f"int total{SUM}", 1_600_001),
        (f"// cudaperf: n in 1..700000\nint total{SUM}", 700_000),
        (f"// cudaperf: n in 1..5000\nint total{SUM}", None),
        ("void twice(int n, const float *a, float *b) { for (int i = 0; i < n; i++) b[i] = 2 * a[i]; }", None),
        (f"int total{SUM.replace(EACH, EACH + EACH.replace('i', 'j').replace('jnt', 'int'))}", None),
    ],
)
async def test_only_flat_reductions_whose_range_allows_it_have_one(text: str, elements: int | None) -> None:
    task = await prepare(load_task(source=text))
    suite = await large_suite(task, 0, None)
    assert (suite and suite.cases[0].values["a"].size) == elements


async def test_a_c_that_takes_too_long_has_none() -> None:
    turns = "for (long k = 0; k < 4000000000; k++) h = h * 1664525u ^ (h >> 7);"
    wait = f"static int wait(int n) {{ unsigned h = 7; if (n > 1000000) {turns} return h & 1; }}\n"
    text = f"int total{SUM.replace('int s = 0;', 'int s = wait(n);')}"
    task = await prepare(load_task(source=wait + text, entry="total"))
    assert await large_suite(task, 0, None, replace(LARGE, reference_seconds=0.3)) is None
    quick = await prepare(load_task(source=wait.replace("4000000000", "4") + text, entry="total"))
    assert await large_suite(quick, 0, None) is not None


async def test_a_candidate_that_is_too_slow_has_the_benefit_of_the_doubt() -> None:
    task = await handed("dot")
    verifier = Verifier(gpu=None)
    suite = await large_suite(task, 0, None)
    assert isinstance(suite, Suite)
    try:
        built = await verifier._build(task, tree(task))
        known = Verdict(Status.CORRECT, passed=5, total=5)

        assert isinstance(built, Built)

        async def run(cases: Sequence[Case], plan: RunPlan) -> CaseRuns:
            config = verifier.place.config
            return await run_emulated(built.emulated, task, cases, plan, limits=config.emulated, wrap=None)

        assert await try_large(task, suite, known, run, replace(LARGE, seconds=0.02)) == known
        assert (await try_large(task, suite, known, run)).status is Status.CORRECT
    finally:
        await verifier.aclose()
