"""How many faulty kernels the hidden tests reject, and whether those that survive are wrong at all.

    python -m benchmarks.mutants --count 200 --inputs 10000 --seconds 30
    python -m benchmarks.mutants --only dot/tree:87 --only dot/tree:88

Kernels written by hand and the generator's likeliest ones are changed by `tests/cuda/mutants/mutate.py`. What does not
compile is left out. A survivor is run against the C on further inputs, without checks, until it differs or the inputs
or the time are used up. Ends with 1 if fewer than `AIM` of those that differ are rejected.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.handed import CASES, hand_written, prepared, variants_of
from cudaperf_agent.cuda.building import Built
from cudaperf_agent.cuda.emulated import RunPlan, build_emulated, run_emulated
from cudaperf_agent.cuda.judge import judge
from cudaperf_agent.cuda.link import linked_c
from cudaperf_agent.cuda.verdict import Status, Verdict
from cudaperf_agent.cuda.verifier import Verifier, VerifierConfig
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.tasks.cases import make_cases
from cudaperf_agent.tasks.model import Task
from cudaperf_agent.tasks.oracle import Oracle
from tests.cuda.mutants.mutate import Mutant, chosen, mutants_of

AIM = 0.98
GENERATED = (
    "gemm",
    "conv2d_same",
    "dot",
    "softmax_rows",
    "inclusive_scan",
    "floyd_warshall",
    "mandelbrot",
    "histogram",
)
LIMITS = Limits(seconds=15.0, memory=2 << 30, file_bytes=256 << 20)
LEFT_OUT = frozenset({Status.COMPILE_ERROR, Status.NO_CODE, Status.UNSUPPORTED})
FIRST_SEED = 1000


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one mutant. `inputs`: further ones a survivor was run on; `differed`: whether one told."""

    mutant: Mutant
    verdict: Verdict
    inputs: int = 0
    differed: bool = False


def task_of(kernel: str) -> str:
    """The handed file that a kernel, named ``TASK`` or ``TASK/STRATEGY``, is for."""
    return kernel.split("/", 1)[0]


async def all_mutants() -> list[Mutant]:
    """Of all correct kernels, in the order in which they are taken."""
    found = [m for kernel in hand_written() for m in mutants_of(kernel.task, kernel.source)]
    for name in GENERATED:
        first = variants_of(await prepared(CASES / f"{name}.c"))[0]
        found += mutants_of(f"{name}/{first.strategy}", first.source)
    return list(chosen(found))


async def compare_further(
    verifier: Verifier, task: Task, built: Built, inputs: int, seconds: float
) -> tuple[int, bool]:
    """Inputs tried without checks, and whether one of them gave another result than the C."""
    wrap = verifier.place.sandbox.wrap
    fast = await build_emulated(built.dropin.cu, linked_c(task, built.dropin), wrap=wrap, limits=LIMITS, mode="fast")
    if fast.artefact is None:
        return 0, False
    oracle, tried, seed, started = Oracle(task, wrap), 0, FIRST_SEED, time.monotonic()
    while tried < inputs and time.monotonic() - started < seconds:
        cases = make_cases(task, hidden=seed % 2 == 0, seed=seed)
        expected = await oracle.expected(cases)
        result = await run_emulated(fast, task, cases, RunPlan(0xFF, "random", seed), limits=LIMITS, wrap=wrap)
        tried += len(cases)
        seed += 1
        if not judge(task, cases, expected, result).correct:
            return tried, True
    return tried, False


async def fates(
    count: int, inputs: int, seconds: float, minutes: float, only: frozenset[str] = frozenset()
) -> list[Fate]:
    """Judge mutants until `count` compiled, or the time is used up; of those in `only`, as ``KERNEL:LINE``, if any."""
    verifier = Verifier(VerifierConfig(emulated=LIMITS), gpu=None)
    tasks: dict[str, Task] = {}
    found: list[Fate] = []
    left_out, started = 0, time.monotonic()
    for mutant in await all_mutants():
        if only and f"{mutant.kernel}:{mutant.line}" not in only:
            continue
        if len(found) == count or time.monotonic() - started > 60 * minutes:
            break
        name = task_of(mutant.kernel)
        if name not in tasks:
            tasks[name] = await prepared(CASES / f"{name}.c")
        verdict = await verifier.test(tasks[name], mutant.source, hidden=True)
        if verdict.status in LEFT_OUT:
            left_out += 1
            continue
        fate = Fate(mutant, verdict)
        if verdict.correct:
            built = await verifier._build(tasks[name], mutant.source)
            assert isinstance(built, Built)
            tried, differed = await compare_further(verifier, tasks[name], built, inputs, seconds)
            fate = Fate(mutant, verdict, tried, differed)
        found.append(fate)
        print(f"{len(found):4} {mutant.kernel}:{mutant.line} {mutant.operator}: {said(fate)}", flush=True)
    print(f"{left_out} more did not compile")
    await verifier.aclose()
    return found


def said(fate: Fate) -> str:
    """One phrase."""
    if not fate.verdict.correct:
        return f"{fate.verdict.status} ({fate.verdict.message[:80]})"
    return f"SURVIVED, {'differs' if fate.differed else 'the same'} on {fate.inputs} further inputs"


def table(found: Sequence[Fate]) -> str:
    """Kill rates by operator, then the survivors, as Markdown."""
    totals, killed = Counter(f.mutant.operator for f in found), Counter[str]()
    killed.update(f.mutant.operator for f in found if not f.verdict.correct)
    missed = Counter(f.mutant.operator for f in found if f.differed)
    rows = [
        "| fault | mutants | rejected | survive and differ | survive, no difference seen |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in sorted(totals):
        same = totals[name] - killed[name] - missed[name]
        rows.append(f"| {name} | {totals[name]} | {killed[name]} | {missed[name]} | {same} |")
    all_missed = sum(missed.values())
    same = len(found) - sum(killed.values()) - all_missed
    rows.append(f"| all | {len(found)} | {sum(killed.values())} | {all_missed} | {same} |")
    rows += ["", "Survivors:", ""]
    rows += [
        f"- `{f.mutant.kernel}`, line {f.mutant.line}, {f.mutant.operator}: {said(f)}"
        for f in found
        if f.verdict.correct
    ]
    statuses = Counter(str(f.verdict.status) for f in found)
    return "\n".join([*rows, "", "By status: " + ", ".join(f"{k} {v}" for k, v in statuses.most_common())])


def rate(found: Sequence[Fate]) -> float:
    """Share of the rejected among those rejected for another output, or known to differ."""
    differ = [f for f in found if f.differed]
    killed = sum(f.verdict.status in (Status.WRONG, Status.UNSTABLE) for f in found)
    return killed / max(1, killed + len(differ))


def main() -> int:
    """Parse the flags and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--inputs", type=int, default=10_000, help="further inputs for a survivor")
    parser.add_argument("--seconds", type=float, default=600.0, help="and the time for them")
    parser.add_argument("--minutes", type=float, default=120.0, help="no new mutant after this time")
    parser.add_argument("--json", type=Path, help="write what became of each to this file")
    parser.add_argument("--only", action="append", default=[], metavar="KERNEL:LINE", help="only this; repeatable")
    args = parser.parse_args()
    only = frozenset(args.only)
    found = asyncio.run(fates(args.count, args.inputs, args.seconds, args.minutes, only))
    print(table(found))
    print(f"\nrejected of those that give another output: {rate(found):.1%}")
    if args.json:
        rows = [
            {"kernel": f.mutant.kernel, "operator": f.mutant.operator, "line": f.mutant.line, "source": f.mutant.source,
             "status": str(f.verdict.status), "message": f.verdict.message, "inputs": f.inputs, "differed": f.differed}
            for f in found
        ]  # fmt: skip
        args.json.write_text(json.dumps(rows, indent=1))
    return 0 if rate(found) >= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
