"""From the store to the facts of an evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.store.records import RunStatus, StoredAttempt, Trajectory
from cudaperf_agent.store.repository import Store
from graph.selection import seconds
from training.evaluation.baselines import LIMIT, kind_of
from training.evaluation.drive import HAND, ORIGIN
from training.evaluation.facts import Evaluation, Outcome, TaskFacts, TurnFacts
from training.evaluation.front import front
from training.evaluation.kernel_times import KernelTimes
from training.evaluation.plan import Plan

_TIMED_AFTER = (
    "Here the search was not timed: a trajectory ended at its first correct kernel. The kernels that passed the hidden "
    "tests on the emulator were then put to them on {device}, too, and timed there; one that failed counts as failed."
)


def collect(store: Store, plan: Plan, times: KernelTimes | None = None) -> Evaluation:
    """The facts as far as the evaluation got: a task counts once it and all before it have ended.

    Args:
        store: Which has its runs.
        plan: The evaluation.
        times: What was measured of chosen kernels after the search, if anything was.
    """
    if times is None or plan.backend == "gpu":
        times = KernelTimes()
    known = frozenset(run.id for run in store.list_runs(None, origin=ORIGIN))
    tasks, verdicts, coarse = [], [], Counter[str]()
    for key, entry in plan.tasks.items():
        digest = entry.get("task", "")
        found = [_run(store, plan.run_id(key, s), s, known, times, digest) for s in range(plan.settings.seeds)]
        hand = _run(store, plan.run_id(key, HAND), 0, known, times, digest) if entry["hand"] else None
        whole = all(f is not None and len(f.outcomes) == plan.settings.n for f in found)
        whole = whole and (not entry["hand"] or (hand is not None and len(hand.outcomes) == 1))
        given = entry.get("given") or {}
        outcomes = tuple(_with_given(o, given) for f in found if f is not None for o in f.outcomes) if whole else ()
        coarse.update(c for f in found if whole and f is not None for c in f.coarse)
        verdicts += [v for f in found if whole and f is not None for v in f.verdicts]
        tasks.append(
            TaskFacts(
                key,
                entry["group"],
                entry["family"],
                digest,
                entry.get("refused", ""),
                outcomes,
                _with_given(hand.outcomes[0], given, HAND) if whole and hand is not None else None,
                entry["facts"],
                bool(outcomes) and (digest not in times.tasks or any(f.unmeasured for f in found if f is not None)),
            )
        )
    reached = plan.backend != "gpu" and any(t.outcomes and not t.unreached for t in tasks)
    if not reached:
        tasks = [replace(t, unreached=False) for t in tasks]
    settings = plan.settings
    device = next((v.device for v in verdicts if v.device), "")
    notes = plan.notes
    if reached:
        device = next((v.device for v in times.verdicts.values() if v.device), device)
        notes = (*notes, _TIMED_AFTER.format(device=device or "a GPU"), *_coarse_notes(coarse))
    evaluation = Evaluation(
        name=plan.name,
        suite=settings.suite,
        policy=plan.policy,
        backend=plan.backend,
        n=settings.n,
        turns=settings.turns,
        seeds=settings.seeds,
        tasks=tuple(tasks),
        device=device,
        versions=_versions(verdicts),
        notes=notes,
    )
    return front(evaluation)


def _with_given(found: Outcome, given: Mapping[str, Any], name: str = "") -> Outcome:
    """With how it did on the benchmark's own cases."""
    key = f"{name or found.seed}/{found.number}"
    if key not in given:
        return found
    return replace(found, given=given[key] is not None and given[key]["status"] == "correct")


@dataclass(frozen=True, slots=True)
class _Run:
    """A stored run.

    Attributes:
        outcomes: Of its trajectories.
        verdicts: All.
        unmeasured: A correct kernel was not put to the GPU after the search.
        coarse: Of each kernel that was timed after the search: how, if coarser than usual.
    """

    outcomes: tuple[Outcome, ...]
    verdicts: Sequence[Verdict]
    unmeasured: bool
    coarse: tuple[str, ...]


def _run(store: Store, run_id: str, seed: int, known: frozenset[str], times: KernelTimes, task: str) -> _Run | None:
    if run_id not in known:
        return None
    attempts: dict[int, list[StoredAttempt]] = {}
    for attempt in store.attempts(run_id):
        attempts.setdefault(attempt.trajectory, []).append(attempt)
    ended = [t for t in store.trajectories(run_id) if t.status.final or t.status is RunStatus.ERROR]
    made = {t.number: attempts.get(t.number, []) for t in ended}
    chosen = {t.number: _chosen(t, made[t.number]) for t in ended}
    measured = {number: times.of(task, source) for number, source in chosen.items()}
    coarse = (times.coarseness(task, chosen[n]) for n, v in measured.items() if v is not None and v.measured)
    outcomes = tuple(outcome(t, made[t.number], seed, measured[t.number]) for t in ended)
    verdicts = [v for made in attempts.values() for a in made for v in (a.hidden_verdict, a.verdict) if v is not None]
    return _Run(outcomes, verdicts, any(o.correct and measured[o.number] is None for o in outcomes), tuple(coarse))


def _chosen(trajectory: Trajectory, attempts: Sequence[StoredAttempt]) -> str:
    """The source of the kernel that a trajectory chose; empty if it chose none."""
    return next((a.source or "" for a in attempts if a.turn == trajectory.first_choice), "")


def _coarse_notes(coarse: Counter[str]) -> list[str]:
    """One sentence for each unusual way in which kernels were timed."""
    partly = len(coarse) > 1
    return [f"{'Partly timed' if partly else 'Timed'} with {how}." for how in sorted(coarse) if how]


def outcome(
    trajectory: Trajectory, attempts: Sequence[StoredAttempt], seed: int, measured: Verdict | None = None
) -> Outcome:
    """What a trajectory came to by the rule of evaluation: a best that fails the hidden tests is a failure.

    Args:
        trajectory: As stored.
        attempts: Of it.
        seed: Of the evaluation.
        measured: What the chosen kernel came to on a GPU after a search without one.
    """
    by_turn = {a.turn: a for a in attempts}
    chosen = by_turn.get(trajectory.first_choice) if trajectory.first_choice is not None else None
    hidden = chosen.hidden_verdict if chosen is not None else None
    if measured is not None and hidden is not None and hidden.correct and not hidden.measured:
        hidden = measured
    correct = hidden is not None and trajectory.best_turn == trajectory.first_choice and hidden.correct
    reason, detail = ("", "") if correct else _reason(trajectory, attempts, hidden)
    timed = hidden if correct and hidden is not None else None
    device = (timed.timing("device") or timed.timing("end_to_end")) if timed is not None else None
    return Outcome(
        seed=seed,
        number=trajectory.number,
        correct=correct,
        reason=reason,
        detail=" ".join(detail.split())[:300],
        end=trajectory.reason.partition(":")[0][:80] if trajectory.status is not RunStatus.ERROR else "error",
        seconds=seconds(timed) if timed is not None else None,
        cold=device.cold if device is not None else None,
        speedups=_speedups(timed),
        cases=hidden.total if hidden is not None else 0,
        turns=tuple(_turn(a) for a in attempts),
    )


def _reason(trajectory: Trajectory, attempts: Sequence[StoredAttempt], hidden: Verdict | None) -> tuple[str, str]:
    if trajectory.status is RunStatus.ERROR:
        return "error", trajectory.reason
    if hidden is not None and not hidden.correct:
        return f"hidden {hidden.status.value}", hidden.message
    judged = [a.verdict for a in attempts if a.verdict is not None]
    if judged:
        return judged[-1].status.value, judged[-1].message
    return "declined", trajectory.reason.removeprefix("declined: ")


def _turn(attempt: StoredAttempt) -> TurnFacts:
    verdict = attempt.verdict
    timed = verdict if verdict is not None and verdict.correct else None
    status = verdict.status.value if verdict is not None else attempt.status
    taken = seconds(timed) if timed is not None else None
    return TurnFacts(status, taken, _speedups(timed), attempt.strategy)


def _speedups(verdict: Verdict | None) -> dict[str, float]:
    """By baseline; the geometric mean where several sizes were timed."""
    if verdict is None or not verdict.measured:
        return {}
    found: dict[str, list[float]] = {}
    for speedup in verdict.speedups:
        if speedup.value > 0:
            found.setdefault(speedup.baseline, []).append(log(speedup.value))
    means = {baseline: exp(sum(logs) / len(logs)) for baseline, logs in found.items()}
    limit = speed_of_light(verdict)
    device = verdict.timing("device")
    if limit is not None and device is not None and device.median > 0 and not any(kind_of(b) == "limit" for b in means):
        means[LIMIT] = limit / device.median
    return means


def speed_of_light(verdict: Verdict) -> float | None:
    """Seconds below which this device cannot be: an empty call, and the greater of two times.

    These are moving every buffer once at the measured rate of a copy, and the C's arithmetic at the measured rate where
    its operations could be counted (else it is left out, and the limit is lower than it should be).
    """
    profile = verdict.profile
    moved, rate = _number(profile.get("moved_bytes")), _number(profile.get("peak_bytes_per_second"))
    if not moved or not rate:
        return None
    operations, peak = _number(profile.get("flop")), _number(profile.get("peak_flop_per_second"))
    computing = operations / peak if operations and peak else 0.0
    return _number(profile.get("null_call_seconds")) + max(moved / rate, computing)


def _number(value: object) -> float:
    """A positive number, or 0."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
    return float(value) if known else 0.0  # type: ignore[arg-type]


def _versions(verdicts: Sequence[Verdict]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for verdict in verdicts:
        for name, version in _pairs(verdict.versions):
            found.setdefault(name, set()).add(version)
    return {name: " and ".join(sorted(found[name])) for name in sorted(found)}


def _pairs(versions: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(version)) for name, version in versions.items()]
