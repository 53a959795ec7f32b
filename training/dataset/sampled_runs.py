"""A policy's answers as candidates, from where runs are kept: evaluations in the store, and exported runs.

First turns alone by default: later ones depend on what the earlier ones came to. Where a first answer to a task has no
verdict yet, as in a search that was stopped, the whole task is left out: what takes longest is no random choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

from cudaperf_agent.cuda.measure import NAIVE
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.errors import BackendUnavailable, ConfigError
from cudaperf_agent.store.records import StoredAttempt
from cudaperf_agent.store.repository import Store
from graph.selection import seconds
from training.dataset.export_runs import turn_status
from training.dataset.sampled import Candidate
from training.evaluation.kernel_times import KernelTimes
from training.evaluation.plan import Plan

_COLUMNS = ("task", "task_path", "task_digest", "policy", "run", "trajectory", "turn", "source", "status")
_OPEN = "unfinished"
_STEP = re.compile(r"step-0*(\d+)")
_KEY = re.compile(r"[\w.-]+/\d+")
_REMEDY = "`cudaperf dataset export --runs` writes such files"


@dataclass(frozen=True, slots=True)
class Answers:
    """What was read.

    Attributes:
        candidates: In the order of tasks and trajectories.
        left_out: Tasks that were begun and have a first answer without a verdict.
    """

    candidates: tuple[Candidate, ...]
    left_out: int


def evaluation_answers(store: Store, plan: Plan, times: KernelTimes, *, every_turn: bool = False) -> Answers:
    """The answers of an evaluation, with the times of those that were timed in the search or after it.

    A kernel that fails on the GPU is not correct, whatever the emulator said. Tasks of our families are named as in
    the families (``gram/2``), others as in the suite; `phase` is the evaluation's name.

    Args:
        store: Which has its runs.
        plan: The evaluation.
        times: Of kernels that were timed after a search on the emulator.
        every_turn: Later turns, too.

    Raises:
        ConfigError: No task has been judged.
        StoreError: The store cannot be read.
    """
    from training.evaluation.drive import ORIGIN

    known = frozenset(run.id for run in store.list_runs(None, origin=ORIGIN))
    found: list[Candidate] = []
    left_out = 0
    for key, entry in plan.tasks.items():
        runs = [plan.run_id(key, seed) for seed in range(plan.settings.seeds)]
        begun = [(seed, store.attempts(run)) for seed, run in enumerate(runs) if run in known]
        if not begun:
            continue
        firsts = [a for _, attempts in begun for a in attempts if a.turn == 0]
        wanted = plan.settings.n * plan.settings.seeds
        if len(firsts) < wanted or any(turn_status(a) == _OPEN for a in firsts):
            left_out += 1
            continue
        task, family = _named(key, entry["family"])
        for seed, attempts in begun:
            for attempt in attempts:
                if attempt.turn == 0 or (every_turn and turn_status(attempt) != _OPEN):
                    place = {"task": task, "family": family, "phase": plan.name, "turn": attempt.turn}
                    number = seed * plan.settings.n + attempt.trajectory
                    verdict = times.of(entry.get("task", ""), attempt.source) if attempt.source else None
                    found.append(_judged(attempt, verdict, place | {"trajectory": number}))
    if not found:
        raise ConfigError(
            f"no task of the evaluation {plan.name} has verdicts on all its first answers",
            hint=f"go on with it by the command it was begun with, or see: cudaperf eval report {plan.name}",
        )
    return Answers(tuple(found), left_out)


def exported_answers(path: Path, *, every_turn: bool = False) -> Answers:
    """The answers in a Parquet file of exported runs: verdicts, no times.

    `phase` is the file's name without its ending, a slash, and the last part of the policy's name; ``step-3`` for what
    answered in a GRPO run's third step. A random program is a family of its own.

    Args:
        path: Of ``dataset export --runs``.
        every_turn: Later turns, too.

    Raises:
        ConfigError: The file cannot be read, holds something else, or has no first turn with a verdict.
        BackendUnavailable: pyarrow is not installed.
    """
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for row in _rows(path):
        runs.setdefault(row["run"], []).append(row)
    found: list[Candidate] = []
    left_out = 0
    for rows in runs.values():
        if any(row["turn"] == 0 and row["status"] == _OPEN for row in rows):
            left_out += 1
            continue
        for row in rows:
            if row["turn"] == 0 or (every_turn and row["status"] != _OPEN):
                found.append(_exported(row, path.stem))
    if not found:
        raise ConfigError("no run in it has verdicts on all its first answers", where=str(path), hint=_REMEDY)
    return Answers(tuple(found), left_out)


def _named(key: str, family: str) -> tuple[str, str]:
    """Task and family; what a suite calls ``group/family-2`` is ``family/2`` where the families are told."""
    member = key.rpartition("/")[2].removeprefix(f"{family}-")
    return (f"{family}/{member}" if member.isdecimal() else key), family


def _judged(attempt: StoredAttempt, measured: Verdict | None, place: Mapping[str, Any]) -> Candidate:
    hidden = attempt.hidden_verdict
    for verdict in (hidden, attempt.verdict):
        if measured is None and verdict is not None and verdict.measured:
            measured = verdict
    status = turn_status(attempt)
    if measured is not None and not measured.correct:
        status = measured.status.value
    timed = measured is not None and measured.correct and measured.timing("device") is not None
    return Candidate(
        source=attempt.source,
        status=status,
        hidden=hidden.status.value if hidden is not None else None,
        **(_times(measured) if timed and measured is not None else {}),
        **place,
    )


def _times(verdict: Verdict) -> dict[str, Any]:
    """Of a verdict with device times; geometric means where several sizes were timed, which have no samples."""
    taken = seconds(verdict)
    if taken is None:
        return {}
    samples = [t.samples for t in verdict.timings if t.kind == "device"]
    over = [log(s.value) for s in verdict.speedups if s.baseline == NAIVE and s.value > 0]
    naive = taken * exp(sum(over) / len(over)) if over else None
    return {"seconds": taken, "samples": tuple(samples[0]) if len(samples) == 1 else (), "naive": naive}


def _exported(row: Mapping[str, Any], stem: str) -> Candidate:
    name = row["task_path"] or ""
    # Files of one name may be of different tasks, and their folder is nobody's business.
    task = name if _KEY.fullmatch(name) else f"{row['task']}-{row['task_digest'][:8]}"
    policy = (row["policy"] or "").rpartition("/")[2]
    step = _STEP.fullmatch(policy)
    return Candidate(
        task=task,
        family=task if task != name or task.startswith("program/") else "",
        source=row["source"],
        status=row["status"],
        phase=f"{stem}/step-{int(step[1]) + 1}" if step else f"{stem}/{policy}",
        trajectory=row["trajectory"],
        turn=row["turn"],
    )


def _rows(path: Path) -> Sequence[Mapping[str, Any]]:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as missing:
        raise BackendUnavailable(
            "reading Parquet needs pyarrow, which is not installed",
            hint='Install it with: pip install "cudaperf-agent[training]"',
        ) from missing
    try:
        raw = path.read_bytes()
    except OSError as error:
        why = f"the exported runs cannot be read: {error.strerror}"
        raise ConfigError(why, where=str(path), hint=_REMEDY) from None
    try:
        file = parquet.ParquetFile(arrow.BufferReader(raw))
        absent = [name for name in _COLUMNS if name not in file.schema_arrow.names]
        if absent:
            raise ConfigError(f"it has no column {', '.join(absent)}", where=str(path), hint=_REMEDY)
        found: list[dict[str, Any]] = file.read(columns=list(_COLUMNS)).to_pylist()
    except (OSError, arrow.ArrowException):
        raise ConfigError("it is no whole Parquet file", where=str(path), hint=_REMEDY) from None
    return found
