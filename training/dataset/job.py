"""One task made ready for timing, and its outputs judged: what happens on the CPU, in worker processes.

Outputs are judged by the same oracle and error budget as a user's candidates (`tasks.oracle`, `tasks.compare`), at the
timed size and at small ragged sizes.
"""

from __future__ import annotations

import asyncio
import hashlib
import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cudaperf_agent.errors import CudaPerfError, InputRefused
from cudaperf_agent.execution.native import call_native
from cudaperf_agent.tasks.budget import BUDGET, Builds, Expected, ExpectedOutput, Part, expect
from cudaperf_agent.tasks.cases import make_cases, sized_case
from cudaperf_agent.tasks.compare import compare
from cudaperf_agent.tasks.model import Case, Task, Value
from cudaperf_agent.tasks.oracle import ORACLE_LIMITS, Oracle, widened_case
from cudaperf_agent.tasks.parse import load_task
from cudaperf_agent.tasks.reference_build import Build, BuildFailure, build_library, has_fma
from cudaperf_agent.tasks.stub import native_arguments, outputs_by_name
from cudaperf_agent.tasks.widen import has_floats, widen
from training.dataset.bundle import Bundle, bundle
from training.dataset.families import FAMILIES, Program
from training.dataset.sampled import ORIGIN as POLICY
from training.dataset.transfer import ORIGIN as HAND
from training.dataset.transfer import HandWritten, contained, hand_written, is_hand_written
from training.dataset.variants import DataVariant, SeriesConfig, variants_of

Compile: TypeAlias = Callable[[Task, Bundle, Path, str], Path | str]
"""From a bundle to a library, or to the reason why there is none: (task, bundle, folder, name)."""

_SAMPLE = 1 << 16
_FOREIGN = frozenset({HAND, POLICY})
_CONTENT = 1  # seed of the timed contents


@dataclass(frozen=True, slots=True)
class JobConfig:
    """How a task is made ready.

    Attributes:
        most: Variants of a task at most.
        small_cases: Small cases on which every variant's outputs are checked too.
        shrink: The timed sizes are divided by this (tests).
    """

    most: int = 18
    small_cases: int = 3
    shrink: int = 1


@dataclass(frozen=True, slots=True)
class Run:
    """One variant to be timed."""

    digest: str
    strategy: str
    parameters: dict[str, int | str]
    origin: str
    base: str
    naive: bool
    library: str
    symbol: str


@dataclass(frozen=True, slots=True)
class Job:
    """A task ready for the device.

    Attributes:
        program: ``family/member``, or ``transfer/NAME`` of the hand-written ones.
        folder: Contents and libraries; deleted by `judge`.
        arguments: By content set: ``(kind, bytes, path)`` of each argument as `bench.cu` takes them.
        runs: Variants in order, the naive one first.
        failed: Rows of variants that do not compile.
        error: Why the whole task cannot be timed; empty if it can.
    """

    program: str
    folder: str
    arguments: tuple[tuple[tuple[str, int, str], ...], ...] = ()
    runs: tuple[Run, ...] = ()
    failed: tuple[dict[str, Any], ...] = ()
    error: str = ""
    head: dict[str, Any] | None = None


class _Judged(NamedTuple):
    wrong: str
    worst: float


def program_named(name: str) -> Program:
    """The program of a name ``family/member``."""
    family, _, member = name.rpartition("/")
    return next(f for f in FAMILIES if f.name == family).program(int(member))


def make_job(
    name: str,
    turn: int,
    folder: Path,
    compile_it: Compile,
    config: JobConfig,
    line: Mapping[str, Any] | None = None,
) -> Job:
    """Generate, compile, draw contents and compute what they must give. Blocking; for a process of its own.

    Args:
        name: Of the task.
        turn: Of `variants_of`.
        folder: Where a folder of the task is made.
        compile_it: Makes the library.
        config: Numbers.
        line: The task and its variants as `build.task_line` writes them, instead of generating them.
    """
    place = folder / name.replace("/", "_")
    place.mkdir(parents=True, exist_ok=True)
    try:
        return asyncio.run(_make(_taken(name, turn, config, line), place, compile_it, config))
    except CudaPerfError as error:
        return Job(name, str(place), error=str(error))
    except Exception as error:  # noqa: BLE001 - the boundary of a worker: one task must not end a slice
        return Job(name, str(place), error=f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class _Taken:
    """A task with its variants, wherever they come from.

    Attributes:
        name, source, entry, sizes: Of the task.
        variants: The naive one first.
    """

    name: str
    source: str
    entry: str
    sizes: Mapping[str, int]
    variants: tuple[DataVariant, ...]


def _taken(name: str, turn: int, config: JobConfig, line: Mapping[str, Any] | None) -> _Taken:
    program: Program | HandWritten
    if line is not None:
        fields = ("strategy", "parameters", "source", "origin", "base", "naive")
        variants = tuple(DataVariant(**{f: v[f] for f in fields}) for v in line["variants"])
        return _Taken(name, line["source"], line["entry"], line["sizes"], variants)
    if is_hand_written(name):
        program = hand_written(name)
        return _Taken(name, program.source, program.entry, program.sizes, program.kernels)
    program = program_named(name)
    task = load_task(source=program.source, entry=program.entry)
    variants = variants_of(task, turn=turn, config=SeriesConfig(most=config.most))
    return _Taken(name, program.source, program.entry, program.sizes, variants)


async def _make(taken: _Taken, place: Path, compile_it: Compile, config: JobConfig) -> Job:
    name, variants = taken.name, taken.variants
    if not variants:
        return Job(name, str(place), error="the generator has no variants")
    task = load_task(source=taken.source, entry=taken.entry)
    # What people and models write may have macros; the sources are compiled as one file.
    sources = [contained(v.source) if v.origin in _FOREIGN else v.source for v in variants]
    libraries: list[tuple[str, str] | str] = []
    whole = bundle(task, sources)
    built = await asyncio.to_thread(compile_it, task, whole, place, "all")
    if isinstance(built, Path):
        libraries = [(str(built), symbol) for symbol in whole.symbols]
    else:  # one of them is at fault: each alone
        for number, source in enumerate(sources):
            alone = bundle(task, [source])
            one = await asyncio.to_thread(compile_it, task, alone, place, f"v{number}")
            libraries.append((str(one), alone.symbols[0]) if isinstance(one, Path) else one)
    cases = _cases(task, taken.sizes, config)
    expected = [*await Oracle(task).expected(cases[:-1]), await _quick(task, cases[-1])]
    arguments = tuple(_written(task, case, place, number) for number, case in enumerate(cases))
    with (place / "expected.pickle").open("wb") as file:
        # The large case is drawn again in the rare case that it is needed again.
        kept = [*cases[:-1], Case(cases[-1].name, {})]
        pickle.dump((task, kept, expected, _sizes(taken.sizes, config)), file, protocol=5)
    runs, failed = [], []
    for variant, library in zip(variants, libraries, strict=True):
        run = Run(
            variant.digest, variant.strategy, variant.parameters, variant.origin, variant.base, variant.naive, "", ""
        )
        if isinstance(library, str):
            failed.append(_row(name, run, status="compile_error", message=library))
        else:
            runs.append(replace(run, library=library[0], symbol=library[1]))
    head = {
        "task": name,
        "source_digest": hashlib.sha256(taken.source.encode()).hexdigest(),
        "sizes": {k: int(v) for k, v in taken.sizes.items()},
        "bytes": int(sum(v.nbytes for v in cases[-1].values.values())),
    }
    return Job(name, str(place), arguments, tuple(runs), tuple(failed), head=head)


async def _quick(task: Task, case: Case) -> Expected:
    """What a large case must give, with a budget from three builds alone: a narrower one than the oracle's.

    An output outside of it is judged again by the oracle's own budget before it is called wrong (see `_verdict`).

    Raises:
        InputRefused: The C does not end on it.
    """
    wide_task = widen(task) if has_floats(task) else None
    builds: list[tuple[Task, Build, Case]] = [(task, Build.PLAIN, case)]
    if has_floats(task) and has_fma():
        builds.append((task, Build.CONTRACTED, case))
    if wide_task is not None:
        builds.append((wide_task, Build.WIDE, widened_case(wide_task, case)))
    found: dict[Build, dict[str, Value]] = {}
    for of, build, values in builds:
        library = await build_library(of, build)
        if isinstance(library, BuildFailure):
            continue
        run = await call_native(library, [native_arguments(of, values)], limits=ORACLE_LIMITS)
        if run.outcomes:
            found[build] = outputs_by_name(of, run.outcomes[0].outputs)
    if Build.PLAIN not in found:
        raise InputRefused(f"the C does not end on {case.name}", where=task.path)
    names = [p.name for p in task.buffers if p.written] + (["return"] if task.returns else [])
    return Expected(case.name, tuple(_narrow(name, {b: o[name] for b, o in found.items()}) for name in names))


def _narrow(name: str, builds: dict[Build, Value]) -> ExpectedOutput:
    """The oracle's formula without its thorough parts: no condition, no cap, the median of a sample."""
    plain, wide, contracted = (builds.get(b) for b in (Build.PLAIN, Build.WIDE, Build.CONTRACTED))
    assert plain is not None
    if plain.dtype.kind != "f" or wide is None:
        return expect(name, plain, Builds(wide=wide, contracted=contracted))
    working: Any = np.float64 if plain.dtype.itemsize > 4 else np.float32
    truth = wide.astype(np.float64)
    with np.errstate(all="ignore"):
        rounding = np.abs(plain - truth).astype(working)
        if contracted is not None:
            rounding = np.maximum(rounding, np.abs(contracted - truth).astype(working))
        magnitude: Value = np.abs(truth).astype(working)
        few: Value = magnitude[:: max(1, magnitude.size // _SAMPLE)] if magnitude.ndim else magnitude.reshape(1)
        unit = float(np.finfo(plain.dtype).eps)
        typical = float(np.median(few[few > 0])) if (few > 0).any() else 0.0
        allowed = BUDGET.nearest * rounding + BUDGET.ulps * unit * magnitude + BUDGET.spread_ulps * unit * typical
        allowed = np.where(np.isfinite(allowed), allowed, 0).reshape(-1).astype(working)
    return ExpectedOutput(name, plain, (Part("", plain.reshape(-1), allowed),))


def _cases(task: Task, sizes: Mapping[str, int], config: JobConfig) -> list[Case]:
    """Small ones, then the timed one."""
    small = [c for c in make_cases(task, hidden=True) if _elements(c)]
    step = max(1, len(small) // max(1, config.small_cases))
    chosen = small[::-step][: config.small_cases] if config.small_cases else []
    return [*chosen, sized_case(task, _sizes(sizes, config), _CONTENT)]


def _sizes(sizes: Mapping[str, int], config: JobConfig) -> dict[str, int]:
    return {name: max(1, value // config.shrink) for name, value in sizes.items()}


def _elements(case: Case) -> int:
    return min((v.size for v in case.values.values() if v.ndim), default=0)


def _written(task: Task, case: Case, place: Path, number: int) -> tuple[tuple[str, int, str], ...]:
    found: list[tuple[str, int, str]] = []
    for parameter in task.parameters:
        value = np.ascontiguousarray(case.values[parameter.name])
        kind = "scalar" if not parameter.pointer else str(parameter.role.value)
        path = "-"
        if kind != "out":
            path = str(place / f"content.{number}.{parameter.name}")
            value.tofile(path)
        found.append((kind, value.nbytes, path))
    if task.returns:
        found.append(("out", task.returns.size, "-"))
    return tuple(found)


def _row(name: str, run: Run, *, status: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {
        "task": name,
        "variant": run.digest,
        "strategy": run.strategy,
        "parameters": run.parameters,
        "origin": run.origin,
        "base": run.base,
        "naive": run.naive,
        "status": status,
        "message": message,
        **more,
    }


def judge(job: Job, answers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a timed task: every variant's verdict and times. Deletes the job's folder. Blocking.

    Args:
        job: From `make_job`.
        answers: What `bench.cu` said of each run, in order.
    """
    place = Path(job.folder)
    rows = list(job.failed)
    try:
        if job.runs:
            with (place / "expected.pickle").open("rb") as file:
                task, cases, expected, sizes = pickle.load(file)
            verdicts: dict[int, _Judged] = {}
            for number, (run, answer) in enumerate(zip(job.runs, answers, strict=False)):
                if answer["status"] != "ok":
                    rows.append(_row(job.program, run, status=answer["status"], message=answer.get("message", "")))
                    continue
                like = int(answer["like"])
                if answer["same"] and like in verdicts:
                    wrong, worst = verdicts[like]
                else:
                    wrong, worst = _verdict(task, cases, expected, sizes, place, number, like)
                verdicts[number] = _Judged(wrong, worst)
                if answer["changed"]:
                    wrong = "an input was changed"
                rows.append(
                    _row(
                        job.program,
                        run,
                        status="wrong" if wrong else "correct",
                        message=wrong,
                        worst_error=float(f"{worst:.3g}") if np.isfinite(worst) else None,
                        cold=answer["cold"],
                        samples=answer["samples"],
                    )
                )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return rows


def _verdict(
    task: Task,
    cases: Sequence[Case],
    expected: Sequence[Expected],
    sizes: dict[str, int],
    place: Path,
    number: int,
    like: int,
) -> _Judged:
    """What is wrong with a variant's outputs (empty if nothing), and its largest error ÷ allowance.

    An output that a run did not write is that of the run `like`.
    """
    worst = 0.0
    for which, (case, want) in enumerate(zip(cases, expected, strict=True)):
        outputs: dict[str, Value] = {}
        indices = {parameter.name: index for index, parameter in enumerate(task.parameters)}
        for output in want.outputs:
            index = indices.get(output.name, len(indices))  # the returned value comes last
            outputs[output.name] = _read(place, number, like, which, index, output.value.dtype, output.value.shape)
        found = compare(task, case, want, outputs)
        if not found.ok and which == len(cases) - 1:
            large = sized_case(task, sizes, _CONTENT)
            found = compare(task, large, asyncio.run(Oracle(task).expected([large]))[0], outputs)
        worst = max(worst, found.worst_error)
        if not found.ok:
            m = found.mismatch
            words = f"{case.name}: {m.output}[{m.index}] is {m.got}, not {m.expected}" if m else case.name
            return _Judged(words, worst)
    return _Judged("", worst)


def _read(
    place: Path, number: int, like: int, which: int, index: int, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Value:
    for run in (number, like):
        path = place / f"out{run}.{which}.{index}"
        if path.exists():
            return np.fromfile(path, dtype).reshape(shape)
    return np.zeros(shape, dtype)  # no elements: nothing was written
