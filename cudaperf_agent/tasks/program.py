"""Program mode: standard inputs from the ``stdin`` clause or the user's files, and what the C program prints."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.execution.child import ChildResult, Limits, run_child
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.tasks.budget import BUDGET, BudgetConfig, Expected, Part
from cudaperf_agent.tasks.model import Case, CType, StdinItem, Task, TypeKind
from cudaperf_agent.tasks.printed import Word, words
from cudaperf_agent.tasks.reference_build import Build, BuildFailure, build_program, has_fma, require_library
from cudaperf_agent.tasks.sizes import PLAN, SizePlan, Sizes, bounds_of, choose, count_of, integers
from cudaperf_agent.tasks.values import HIDDEN_PROFILES, VISIBLE_PROFILES, Profile, draw
from cudaperf_agent.tasks.widen import has_floats, widen

PROGRAM_LIMITS = Limits(seconds=60.0, output=64 << 20)
_LONG = CType("long", TypeKind.INT, 8, 8)
_DOUBLE = CType("double", TypeKind.FLOAT, 8, 8)
_PER_LINE = 20


def program_cases(task: Task, *, hidden: bool, seed: int = 0, plan: SizePlan = PLAN) -> tuple[Case, ...]:
    """Standard inputs of a program: drawn from its ``stdin`` clause, else the user's files.

    Of the user's files the visible set has every second one (all, if there are fewer than three), the hidden set all.

    Raises:
        InputRefused: There is neither a clause nor a file, or no combination of sizes is legal.
    """
    cases = [*_from_files(task, hidden), *_from_clause(task, hidden, seed, plan)]
    if not cases:
        raise InputRefused(
            "nothing says what this program reads" if not task.stdin else "no combination of sizes is legal",
            where=f"{task.path}:{task.first_line}",
            hint="Add a comment such as `cudaperf: stdin n in 0..1000, a[n] in -100..100`, or give `--stdin FILE`.",
        )
    return tuple(cases)


def _from_files(task: Task, hidden: bool) -> list[Case]:
    files = list(task.stdin_files)
    chosen = files if hidden or len(files) < 3 else files[::2]
    return [Case(Path(f).name, {}, hidden, Path(f).read_bytes()) for f in chosen]


def _from_clause(task: Task, hidden: bool, seed: int, plan: SizePlan) -> list[Case]:
    if not task.stdin:
        return []
    known = integers(task)
    profiles = HIDDEN_PROFILES if hidden else VISIBLE_PROFILES
    rng = np.random.default_rng([seed, int(hidden), 0])
    cases = []
    for number, sizes in enumerate(choose(known, hidden=hidden, rng=rng, plan=plan)):
        own = np.random.default_rng([seed, int(hidden), number, 1])
        text = _input_text(task.stdin, sizes, profiles[number % len(profiles)], own)
        if text is not None:
            name = " ".join(f"{n}={sizes[n]}" for n in known.sizes) or f"input {number + 1}"
            cases.append(Case(name, {}, hidden, text))
    return cases


def sized_input(task: Task, sizes: Sizes, profile: Profile, seed: int) -> Case | None:
    """A standard input of given sizes, `None` where they are not legal."""
    text = _input_text(task.stdin, sizes, profile, np.random.default_rng([seed, 2]))
    return None if text is None else Case(" ".join(f"{n}={v}" for n, v in sizes.items()), {}, False, text)


def _input_text(items: Sequence[StdinItem], sizes: Sizes, profile: Profile, rng: np.random.Generator) -> bytes | None:
    """The items in order: neighbouring scalars share a line, an array has lines of its own."""
    env: dict[str, int | float] = dict(sizes)
    lines: list[list[str]] = [[]]
    for item in items:
        bounds = bounds_of(item.range, env)
        count = 1 if item.extent is None else count_of(item.extent, env)
        if bounds is None or count is None:
            return None
        if item.extent is None and item.name in sizes:
            lines[-1].append(str(sizes[item.name]))
            continue
        if count and bounds.empty:
            return None
        whole = not any(e and ("." in e or "e" in e.lower()) for e in (item.range.low, item.range.high))
        values = draw(_LONG if whole else _DOUBLE, count, bounds, profile, rng) if count else np.zeros(0)
        shown = [str(int(v)) if whole else f"{float(v):.9g}" for v in values]
        if item.extent is None:
            env[item.name] = values[0].item()
            lines[-1] += shown
        else:
            lines += [shown[k : k + _PER_LINE] for k in range(0, count, _PER_LINE)] + [[]]
    return b"".join(" ".join(line).encode() + b"\n" for line in lines if line)


async def run_program(
    program: Path, case: Case, *, wrap: Wrap | None, limits: Limits = PROGRAM_LIMITS, env: dict[str, str] | None = None
) -> ChildResult:
    """Run an executable on one standard input, in an empty folder of its own."""
    with tempfile.TemporaryDirectory(prefix="cudaperf-program-") as scratch:
        folder = Path(scratch)
        argv = [str(program)]
        base = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": scratch, "TMPDIR": scratch, "LC_ALL": "C"}
        return await run_child(
            wrap(argv, folder) if wrap else argv,
            limits=limits,
            cwd=folder,
            env={**base, **(env or {})},
            stdin=case.stdin,
        )


async def expected_program(
    task: Task, cases: Sequence[Case], *, wrap: Wrap | None, limits: Limits, budget: BudgetConfig = BUDGET
) -> list[Expected]:
    """What the C program prints for each case, with a budget for each number.

    Raises:
        InputRefused: It does not compile, or fails or does not end on a case.
    """
    limits = replace(limits, output=max(limits.output, PROGRAM_LIMITS.output))
    plain = await require_library(task, Build.PLAIN)
    samples = await _sample_programs(task)
    found = []
    for case in cases:
        runs = await asyncio.gather(*(run_program(p, case, wrap=wrap, limits=limits) for p in (plain, *samples)))
        own = runs[0]
        if own.timed_out or own.out_of_memory or own.output_cut or own.returncode < 0:
            raise InputRefused(
                f"the C program itself fails or does not end on the input {case.name}",
                where=f"{task.path}:{task.first_line}",
                hint="Restrict the legal inputs in the `stdin` clause of the `cudaperf:` comment.",
            )
        printed = [words(run.stdout) for run in runs[1:] if run.ok]
        part = _number_budget(task, words(own.stdout), printed, budget)
        found.append(Expected(case.name, (), own.stdout, part, own.returncode))
    return found


async def _sample_programs(task: Task) -> list[Path]:
    if not has_floats(task):
        return []
    builds = [Build.REASSOCIATED, Build.UPWARD, Build.DOWNWARD, *((Build.CONTRACTED,) if has_fma() else ())]
    wide = widen(task)
    jobs = [build_program(task, b) for b in builds] + ([build_program(wide, Build.WIDE)] if wide else [])
    return [p for p in await asyncio.gather(*jobs) if not isinstance(p, BuildFailure)]


def _number_budget(task: Task, own: list[Word], others: list[list[Word]], budget: BudgetConfig) -> Part:
    """One allowance per printed number: the builds' own spread, and a few units of roundoff for a float.

    An integer has none unless the builds print different ones, and then theirs is the spread.
    """
    single = "double" not in task.source
    unit = float(np.finfo(np.float32 if single else np.float64).eps)
    numbers = [i for i, w in enumerate(own) if w.number is not None]
    alike = [o for o in others if len(o) == len(own)]
    values = np.array([float(own[i].number or 0) for i in numbers], np.float64)
    allowed = np.zeros(len(numbers), np.float64)
    for slot, index in enumerate(numbers):
        word = own[index]
        seen = [o[index].number for o in alike]
        spread = max((abs(float(s) - float(word.number or 0)) for s in seen if s is not None), default=0.0)
        if not np.isfinite(spread):
            spread = 0.0
        allowed[slot] = spread if word.exact else max(spread, budget.ulps * unit * abs(values[slot]))
    return Part("", values, np.nan_to_num(allowed, nan=0.0, posinf=0.0))
