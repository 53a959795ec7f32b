"""Faulty kernels are rejected by the hidden cases: a sample here, `benchmarks/mutants.py` for all of them."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path

import pytest

from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.cuda.verifier import Verifier
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.prepare import prepare
from tests.cuda.mutants.mutate import OPERATORS, Mutant, chosen, mutants_of

KERNELS = sorted((Path(__file__).parent / "mutants" / "kernels").glob("*.cu"))
SAMPLE = 24
# Mutants that compute the same: (kernel, line, operator) and why.
EQUIVALENT = {
    ("nbody_forces", 31, "wrong constant"): "one more block, all of whose threads are beyond the end",
}


def all_mutants() -> list[Mutant]:
    """Of the kernels written by hand, in the order of the benchmark."""
    return list(chosen([m for path in KERNELS for m in mutants_of(path.stem, path.read_text())]))


def test_mutants_are_many_distinct_and_always_the_same() -> None:
    mutants = all_mutants()
    assert mutants == all_mutants()
    assert len({m.source for m in mutants}) == len(mutants) > 400
    assert {m.operator for m in mutants} == {o.name for o in OPERATORS} | {"stale halo"}
    assert {m.kernel for m in mutants} == {path.stem for path in KERNELS}


def test_a_mutant_differs_from_its_kernel_in_its_line() -> None:
    for mutant in all_mutants():
        original = next(p for p in KERNELS if p.stem == mutant.kernel).read_text().splitlines()
        added = 1 if mutant.source.startswith("#include <cuda_fp16.h>") else 0
        changed = mutant.source.splitlines()[added:]
        first = next(n for n, (a, b) in enumerate(zip(original, changed, strict=False), 1) if a != b)
        assert first in range(mutant.line, mutant.line + 3), mutant


@pytest.mark.slow
async def test_the_hidden_cases_reject_a_sample(c_cases: Path) -> None:
    verifier = Verifier(gpu=None)
    tasks = {p.stem: await prepare(load_task(c_cases / f"{p.stem}.c")) for p in KERNELS}

    async def survives(mutant: Mutant) -> bool:
        verdict = await verifier.test(tasks[mutant.kernel], mutant.source, hidden=True)
        assert verdict.status is not Status.COMPILE_ERROR, verdict.message
        return verdict.correct

    sample = list(islice(all_mutants(), SAMPLE))
    fates = await asyncio.gather(*(survives(m) for m in sample))
    await verifier.aclose()
    left = [(m.kernel, m.line, m.operator) for m, alive in zip(sample, fates, strict=True) if alive]
    assert [m for m in left if m not in EQUIVALENT] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
async def test_the_kernels_themselves_are_correct(path: Path, c_cases: Path) -> None:
    verifier, source = Verifier(gpu=None), await asyncio.to_thread(path.read_text)
    task = await prepare(load_task(c_cases / f"{path.stem}.c"))
    for hidden in (False, True):
        verdict = await verifier.test(task, source, hidden=hidden)
        assert verdict.correct, verdict.message
    await verifier.aclose()
