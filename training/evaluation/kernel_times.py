"""Times of kernels that evaluations chose on the emulator: judged there by the thousand, timed on a GPU once each.

One file for all evaluations of a data folder: a kernel that two policies wrote is tested and timed once, and a task's
baselines are measured once for all policies. A line is written as soon as it is known; a kill loses nothing else.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from cudaperf_agent.cuda.base import CandidateVerifier
from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.errors import CudaPerfError, StoreError
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from graph.sources import source_key
from training.evaluation.plan import Plan
from training.evaluation.suite import in_turn

FILE = "kernel-times.jsonl"


@dataclass(slots=True)
class KernelTimes:
    """What was measured.

    Attributes:
        path: JSON lines; `None` keeps them in memory only.
        verdicts: By digests of task and source (layout and comments apart); without times where the kernel fails on
            the GPU.
        coarse: By the same, how they were timed where that was coarser than usual.
        coarsely: How what is added was timed, likewise; empty for as usual.
        tasks: Digests of tasks whose kernels have all been measured; of others nothing is said.
    """

    path: Path | None = None
    verdicts: dict[tuple[str, str], Verdict] = field(default_factory=dict)
    coarse: dict[tuple[str, str], str] = field(default_factory=dict)
    coarsely: str = ""
    tasks: set[str] = field(default_factory=set)

    @classmethod
    def load(cls, folder: Path, coarsely: str = "") -> KernelTimes:
        """What a folder of evaluations holds, to be added to with times that are taken so.

        Raises:
            StoreError: The file cannot be read.
        """
        found = cls(folder / FILE, coarsely=coarsely)
        try:
            text = (folder / FILE).read_text(encoding="utf-8")
        except FileNotFoundError:
            return found
        except OSError as error:
            raise StoreError(f"the times cannot be read: {error.strerror}", where=str(folder / FILE)) from error
        for line in text.splitlines():
            try:
                row = json.loads(line)
                if "verdict" in row:
                    key = row["task"], row["source"]
                    found.verdicts[key] = Verdict.from_dict(row["verdict"])
                    found.coarse[key] = row.get("coarse", "")
                else:
                    found.tasks.add(row["task"])
            except (ValueError, KeyError, TypeError):
                continue  # the last line of a killed process: it is measured again
        return found

    def of(self, task: str, source: str) -> Verdict | None:
        """The verdict of a kernel, if it was measured."""
        return self.verdicts.get((task, source_key(source)))

    def coarseness(self, task: str, source: str) -> str:
        """How a kernel was timed, if coarser than usual."""
        return self.coarse.get((task, source_key(source)), "")

    def add(self, task: str, source: str, verdict: Verdict) -> None:
        """Keep a kernel's verdict."""
        key = source_key(source)
        self.verdicts[task, key] = verdict
        self.coarse[task, key] = self.coarsely
        coarse = {"coarse": self.coarsely} if self.coarsely else {}
        self._write({"task": task, "source": key, **coarse, "verdict": verdict.to_dict()})

    def close(self, task: str) -> None:
        """All kernels of a task that there are have been measured."""
        if task not in self.tasks:
            self.tasks.add(task)
            self._write({"task": task})

    def _write(self, row: Mapping[str, object]) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A line that a kill cut short must not swallow this one; blank lines are nothing. One write, since other
            # processes may add to the same file.
            with self.path.open("ab", buffering=0) as file:
                file.write(f"\n{json.dumps(row, separators=(',', ':'))}\n".encode())
        except OSError as error:
            raise StoreError(f"the times cannot be written: {error.strerror}", where=str(self.path)) from error


@dataclass(frozen=True, slots=True)
class Part:
    """What one of several processes takes, each on a GPU of its own: every `parts`-th task of a group.

    Attributes:
        number: Which part, from 1 on.
        parts: How many there are.
    """

    number: int = 1
    parts: int = 1

    def of(self, groups: Mapping[str, str]) -> tuple[str, ...]:
        """Its tasks, of those with their groups."""
        seen: Counter[str] = Counter()
        own = []
        for key, group in groups.items():
            if seen[group] % self.parts == self.number - 1:
                own.append(key)
            seen[group] += 1
        return tuple(own)


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class _Pending:
    """A task with the kernels that trajectories of any evaluation chose and that passed the hidden tests."""

    task: Task
    sources: tuple[str, ...]


async def time_kernels(
    plans: Sequence[Plan],
    store: Store,
    verifier: CandidateVerifier,
    times: KernelTimes,
    *,
    at_once: int = 2,
    seconds: float | None = None,
    part: Part = WHOLE,
    say: Callable[[str], None] = lambda text: None,
) -> int:
    """Test and time the chosen kernels of evaluations, task by task, all evaluations' kernels of a task together.

    Tasks are taken of each group in turn, whatever was found on them, so that those that are done are no selection by
    results.

    Args:
        plans: The evaluations, judged on the emulator.
        store: Which has their runs.
        verifier: On the GPU.
        times: What is known already; added to.
        at_once: Tasks at once: as many as the verifier keeps the contents of.
        seconds: After so many no new task begins; `None` for no limit.
        part: The tasks to take, where several processes share them.
        say: Progress, a line per task.

    Returns:
        How many tasks of the part are left.

    Raises:
        StoreError: The store fails or the times cannot be written.
    """
    from training.evaluation.drive import ORIGIN, duration

    known = frozenset(run.id for run in await asyncio.to_thread(store.list_runs, None, origin=ORIGIN))
    groups = {key: entry["group"] for plan in plans for key, entry in plan.tasks.items()}
    keys = in_turn(part.of(groups), groups.__getitem__)
    until = monotonic() + seconds if seconds is not None else None
    free = asyncio.Semaphore(at_once)
    began, done, left = monotonic(), 0, 0

    async def kept(task: Task, source: str) -> Verdict:
        verdict = await _timed(verifier, task, source)
        times.add(task.digest, source, verdict)
        return verdict

    async def one(number: int, key: str) -> None:
        nonlocal done, left
        async with free:
            pending = await asyncio.to_thread(_pending, key, plans, store, known, times)
            if pending is None:
                return
            if until is not None and monotonic() >= until:
                left += 1
                return
            try:
                verdicts = await asyncio.gather(*(kept(pending.task, source) for source in pending.sources))
            except CudaPerfError as error:
                say(f"{key}: {error.message}")
                left += 1
                return
            times.close(pending.task.digest)
            done += 1
            told = ", ".join(_told(v) for v in verdicts) or "no correct kernel"
            rest = duration((monotonic() - began) / done * (len(keys) - number - 1))
            say(f"[{number + 1}/{len(keys)}] {key}: {told}; at most {rest} to go")

    await asyncio.gather(*(one(number, key) for number, key in enumerate(keys)))
    return left


def chosen_source(store: Store, run_id: str) -> dict[int, str]:
    """By trajectory: the kernel that was chosen and passed the hidden tests."""
    attempts = {(a.trajectory, a.turn): a for a in store.attempts(run_id)}
    found = {}
    for trajectory in store.trajectories(run_id):
        if trajectory.first_choice is None or trajectory.first_choice != trajectory.best_turn:
            continue
        attempt = attempts[trajectory.number, trajectory.first_choice]
        if attempt.source and attempt.hidden_verdict is not None and attempt.hidden_verdict.correct:
            found[trajectory.number] = attempt.source
    return found


async def _timed(verifier: CandidateVerifier, task: Task, source: str) -> Verdict:
    """The emulator's word is not enough: it has to pass on the device too."""
    verdict = await verifier.test(task, source, hidden=True)
    return await verifier.measure(task, source, verdict) if verdict.correct else verdict


def _pending(
    key: str, plans: Sequence[Plan], store: Store, known: frozenset[str], times: KernelTimes
) -> _Pending | None:
    """What is left to measure of a task; `None` if nothing is, or it was not judged yet."""
    task: Task | None = None
    sources: dict[str, str] = {}
    for plan in plans:
        if key not in plan.tasks:
            continue
        for seed in range(plan.settings.seeds):
            run_id = plan.run_id(key, seed)
            if run_id not in known:
                continue
            task = task or store.get_run(run_id).task
            if plan.tasks[key].get("task") == task.digest:
                for source in chosen_source(store, run_id).values():
                    sources.setdefault(source_key(source), source)
    if task is None:
        return None
    left = tuple(s for key, s in sources.items() if (task.digest, key) not in times.verdicts)
    return _Pending(task, left) if left or task.digest not in times.tasks else None


def _told(verdict: Verdict) -> str:
    if not verdict.correct:
        return verdict.status.value
    timing = verdict.timing("device") or verdict.timing("end_to_end")
    return f"{timing.median * 1e6:.1f} µs" if timing is not None else "not timed"
