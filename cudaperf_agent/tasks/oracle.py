"""The oracle: what the C itself gives for a case, and how far a right answer may be from it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cudaperf_agent.errors import InputRefused
from cudaperf_agent.execution.child import Limits
from cudaperf_agent.execution.native import NativeRun, Wrap, call_native
from cudaperf_agent.tasks.budget import BUDGET, FEW_BUILDS, BudgetConfig, Builds, Expected, ExpectedOutput, expect
from cudaperf_agent.tasks.device_math import TURNS, device_functions
from cudaperf_agent.tasks.model import Case, Task, Value
from cudaperf_agent.tasks.reference_build import Build, BuildFailure, build_library, has_fma, require_library
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name
from cudaperf_agent.tasks.usage import tokens
from cudaperf_agent.tasks.widen import has_floats, widen

__all__ = ["Expected", "ExpectedOutput", "Oracle"]

ORACLE_LIMITS = Limits(seconds=120.0, memory=16 << 30, file_bytes=8 << 30)
BATCH_BYTES = 64 << 20
_LARGE = 1 << 20
_SAMPLES = (Build.REASSOCIATED, Build.UPWARD, Build.DOWNWARD)
_FEW_SAMPLES: tuple[Build, ...] = ()
_MOVES = 2
_WIDE = ("wide", *(f"moved {number}" for number in range(_MOVES)))
_DEVICE = tuple(f"device math {turn}" for turn in range(TURNS))
Outputs = dict[str, Value]


class Oracle:
    """Expected outputs of one task, computed in child processes and kept in this one, by content of the case.

    Args:
        task: A prepared task.
        wrap: The sandbox of the child processes.
        limits: Of each child.
        budget: Numbers of the error budget.
        batch_bytes: Inputs that one child gets at most; a case that is larger has a child of its own, and a budget
            from fewer builds.
    """

    def __init__(
        self,
        task: Task,
        wrap: Wrap | None = None,
        *,
        limits: Limits = ORACLE_LIMITS,
        budget: BudgetConfig = BUDGET,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._task = task
        self._wrap = wrap
        self._limits = limits
        self._budget = budget
        self._batch_bytes = batch_bytes
        self._known: dict[str, Expected] = {}

    async def expected(self, cases: Sequence[Case]) -> tuple[Expected, ...]:
        """What each case must give.

        Raises:
            InputRefused: The C does not compile, crashes, or does not end on one of them.
            BackendUnavailable: There is no compiler.
        """
        large = _bytes(cases) > _LARGE
        digests = await asyncio.to_thread(lambda: [*map(case_digest, cases)]) if large else [*map(case_digest, cases)]
        keys = list(digests)
        fresh = {key: case for key, case in zip(keys, cases, strict=True) if key not in self._known}
        if fresh:
            if self._task.mode == "program":
                from cudaperf_agent.tasks.program import expected_program

                made = await expected_program(
                    self._task, list(fresh.values()), wrap=self._wrap, limits=self._limits, budget=self._budget
                )
            else:
                made = []
                for batch in _batches(list(fresh.values()), self._batch_bytes):
                    made += await self._compute(batch, thorough=_bytes(batch) <= self._batch_bytes)
            self._known.update(zip(fresh, made, strict=True))
        return tuple(replace(self._known[key], case=case.name) for key, case in zip(keys, cases, strict=True))

    async def _compute(self, cases: list[Case], thorough: bool) -> list[Expected]:
        """Expected values of one batch; where not `thorough` (a large case, for timing), from half as many builds."""
        plain_library = await require_library(self._task, Build.PLAIN)
        plain = await self._run(plain_library, self._task, cases)
        if len(plain) < len(cases):
            raise InputRefused(
                f"the C itself fails or does not end on the case {cases[len(plain)].name}",
                where=f"{self._task.path}:{self._task.first_line}",
                hint="Restrict the legal inputs with a `cudaperf:` comment, e.g. `cudaperf: n in 1..1000`.",
            )
        if not has_floats(self._task):
            return [self._expected(case, out, {}, self._budget) for case, out in zip(cases, plain, strict=True)]
        builds = [*(_SAMPLES if thorough else _FEW_SAMPLES), *((Build.CONTRACTED,) if has_fma() else ())]
        widening = asyncio.create_task(self._widened(cases, _MOVES if thorough else 1))
        erring = asyncio.create_task(self._device_math(cases))
        try:
            sampled = await asyncio.gather(*(self._sample(b, cases) for b in builds))
            wide, device = await widening, await erring
        finally:
            widening.cancel()
            erring.cancel()
        found: list[dict[str, Outputs]] = [{} for _ in cases]
        for name, outputs in (
            *zip(builds, sampled, strict=True),
            *zip(_WIDE, wide, strict=False),
            *zip(_DEVICE, device, strict=False),
        ):
            for index, output in enumerate(outputs):
                found[index][name] = output
        budget = self._budget if thorough else replace(self._budget, neighbours=FEW_BUILDS)
        made = [
            asyncio.to_thread(self._expected, c, out, other, budget)
            for c, out, other in zip(cases, plain, found, strict=True)
        ]
        return list(await asyncio.gather(*made))

    async def _sample(self, build: Build, cases: list[Case]) -> list[Outputs]:
        library = await build_library(self._task, build)
        return [] if isinstance(library, BuildFailure) else await self._run(library, self._task, cases)

    async def _device_math(self, cases: list[Case]) -> list[list[Outputs]]:
        """Outputs with the errors of a GPU's mathematical functions, pattern by pattern; none where none are called."""
        if not device_functions(self._task):
            return []
        library = await build_library(self._task, Build.DEVICE_MATH)
        if isinstance(library, BuildFailure):
            return []
        turns = [case for case in cases for _ in range(TURNS)]
        outputs = await self._run(library, self._task, turns)
        if len(outputs) < len(turns):
            return []  # an error led somewhere else altogether
        return [outputs[turn::TURNS] for turn in range(TURNS)]

    async def _widened(self, cases: list[Case], moves: int) -> list[list[Outputs]]:
        """Outputs of the widened build, then of it (or where there is none, of the plain build) with moved inputs."""
        wide = widen(self._task)
        library = await build_library(wide, Build.WIDE) if wide is not None else None
        if wide is None or library is None or isinstance(library, BuildFailure):
            plain = await require_library(self._task, Build.PLAIN)
            return [[], *await self._trials(plain, self._task, cases, moves)]
        widened = [widened_case(wide, case) for case in cases]
        return await self._trials(library, wide, widened, moves, unmoved=True)

    async def _trials(
        self, library: Path, task: Task, cases: list[Case], moves: int, unmoved: bool = False
    ) -> list[list[Outputs]]:
        """Outputs of the cases as they are, if wanted, and moved so often; all in one child."""
        trials = [cases] if unmoved else []
        trials += [await asyncio.to_thread(self._moved, task, cases, k) for k in range(moves)]
        outputs = await self._run(library, task, [case for trial in trials for case in trial])
        return [outputs[k * len(cases) : (k + 1) * len(cases)] for k in range(len(trials))]

    def _moved(self, task: Task, cases: list[Case], number: int) -> list[Case]:
        """The cases with every float input moved by ε of itself: of `double` where the C knows it, else of `float`.

        First all upward, which is the worst that can happen to a sum whatever its terms' signs; then each up or down at
        random, for what upward moves cancel in. Random moves alone can cancel too, and a right sum would be rejected.
        """
        double = any(t.text == "double" for t in tokens(self._task.source))
        step = float(np.finfo(np.float64 if double else np.float32).eps)
        rng = np.random.default_rng([number, 11]) if number else None
        names = {p.name for p in task.inputs() if p.read or not p.pointer}
        return [
            replace(case, values={n: _moved_by(v, step, rng) if n in names else v for n, v in case.values.items()})
            for case in cases
        ]

    async def _run(self, library: Path, task: Task, cases: list[Case]) -> list[Outputs]:
        run = await self._call(library, task, cases)
        return [outputs_by_name(task, outcome.outputs) for outcome in run.outcomes]

    async def _call(self, library: Path, task: Task, cases: list[Case]) -> NativeRun:
        calls = [native_arguments(task, case, inputs_back=False) for case in cases]
        return await call_native(library, calls, limits=self._limits, wrap=self._wrap)

    def _expected(self, case: Case, plain: Outputs, other: dict[str, Outputs], budget: BudgetConfig) -> Expected:
        names = [p.name for p in self._task.inputs() if p.pointer and p.written]
        names += ["return"] if self._task.returns else []

        def pick(build: str, name: str) -> Value | None:
            return other[build][name] if build in other else None

        def many(wanted: Sequence[str], name: str) -> tuple[Value, ...]:
            return tuple(other[b][name] for b in wanted if b in other)

        outputs = tuple(
            expect(
                name,
                plain[name],
                Builds(
                    wide=pick("wide", name),
                    contracted=pick(Build.CONTRACTED, name),
                    nearest=many([Build.REASSOCIATED], name),
                    directed=many([Build.UPWARD, Build.DOWNWARD], name),
                    moved=many(_WIDE[1:], name),
                    device=many(_DEVICE, name),
                ),
                budget,
            )
            for name in names
        )
        return Expected(case.name, outputs)


def _bytes(cases: Sequence[Case]) -> int:
    return sum(value.nbytes for case in cases for value in case.values.values())


def _batches(cases: list[Case], most: int) -> list[list[Case]]:
    """Neighbouring cases that together have at most `most` bytes; a larger one is alone."""
    found: list[list[Case]] = []
    for case in cases:
        if found and _bytes(found[-1]) + _bytes([case]) <= most:
            found[-1].append(case)
        else:
            found.append([case])
    return found


def widened_case(wide: Task, case: Case) -> Case:
    """The same inputs in the types of the widened task."""
    return replace(case, values={p.name: convert(case.values[p.name], p.type.dtype) for p in wide.inputs()})


def convert(values: Value, dtype: np.dtype[np.generic]) -> Value:
    """`values` in another type of the same form, structs member by member."""
    if values.dtype.names is None:
        return np.asarray(values).astype(dtype.base if dtype.subdtype else dtype)
    out = np.zeros(values.shape, dtype)
    for name in values.dtype.names:
        out[name] = convert(values[name], out.dtype[name])
    return out


def _moved_by(values: Value, step: float, rng: np.random.Generator | None) -> Value:
    if values.dtype.names is not None:
        out = values.copy()
        for name in values.dtype.names:
            out[name] = _moved_by(values[name], step, rng)
        return out
    if values.dtype.kind != "f":
        return values
    with np.errstate(all="ignore"):
        if rng is None:
            moved = values + np.abs(values) * values.dtype.type(step)
        else:
            signs = (rng.integers(0, 2, values.shape, dtype=np.int8) * 2 - 1).astype(values.dtype)
            moved = values * (1 + signs * values.dtype.type(step))
    return np.asarray(moved, dtype=values.dtype)


def case_digest(case: Case) -> str:
    """SHA-256 (hex) of a case's inputs."""
    digest = hashlib.sha256(case.stdin)
    for name in sorted(case.values):
        value = np.ascontiguousarray(case.values[name])
        digest.update(f"{name}:{value.dtype}:{value.shape};".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()
