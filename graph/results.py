"""What a run came to, read from the store, so that a fresh, a resumed and a stored run are told alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.store.records import RunEnd, RunStatus, RunSummary, StoredAttempt, Trajectory
from cudaperf_agent.store.repository import Store
from graph.selection import ranked, seconds


@dataclass(frozen=True, slots=True)
class Best:
    """The chosen attempt of a run.

    Attributes:
        trajectory, turn: 0-based.
        attempt: Everything stored of it.
        source: The candidate.
        verdict: On the hidden cases, timed again: what may be told to people; on the visible ones in a run without
            hidden cases.
        search_verdict: On the visible cases, by which it was chosen.
    """

    trajectory: int
    turn: int
    attempt: StoredAttempt
    source: str
    verdict: Verdict
    search_verdict: Verdict


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run's end.

    Attributes:
        run: Id.
        status: ``correct``: a candidate passed the hidden cases; ``failed``: none did; ``interrupted`` and ``error``
            can be resumed.
        reason: One sentence.
        best: The chosen attempt, if any.
        trajectories: How each ended.
        attempts: All attempts, by trajectory and turn.
        error: Of the first trajectory that failed: ``kind``, ``message``, ``where``, ``hint``; set only if `status`
            is ``error``.
        summary: As listed.
    """

    run: str
    status: RunStatus
    reason: str
    best: Best | None
    trajectories: tuple[Trajectory, ...]
    attempts: tuple[StoredAttempt, ...]
    error: dict[str, Any] | None
    summary: RunSummary


def load_result(store: Store, run_id: str) -> RunResult:
    """The result of a stored run, as far as it got.

    Args:
        store: Where it is.
        run_id: Id, unique prefix or ``latest``.

    Raises:
        StoreError: There is no such run.
    """
    run = store.get_run(run_id)
    summary = run.summary
    trajectories = store.trajectories(summary.id)
    attempts = store.attempts(summary.id)
    error = next((t.error for t in trajectories if t.error), None) if summary.status is RunStatus.ERROR else None
    return RunResult(
        summary.id,
        summary.status,
        summary.reason,
        choose(trajectories, attempts),
        trajectories,
        attempts,
        error,
        summary,
    )


def choose(trajectories: tuple[Trajectory, ...], attempts: tuple[StoredAttempt, ...]) -> Best | None:
    """The best of the attempts that stand after the hidden cases, one per trajectory; in doubt the earliest turn."""
    by_key = {(a.turn, a.trajectory): a for a in attempts}
    standing = {}
    for trajectory in trajectories:
        if trajectory.best_turn is not None:
            attempt = by_key[trajectory.best_turn, trajectory.number]
            # Without hidden cases (`GraphConfig.hidden`) a best attempt stands by the visible ones.
            verdict = attempt.hidden_verdict or attempt.verdict
            if verdict is not None:
                standing[trajectory.best_turn, trajectory.number] = verdict
    order = ranked(standing)
    if not order:
        return None
    attempt = by_key[order[0]]
    assert attempt.source is not None
    assert attempt.verdict is not None
    return Best(attempt.trajectory, attempt.turn, attempt, attempt.source, standing[order[0]], attempt.verdict)


def conclude(trajectories: tuple[Trajectory, ...], best: Best | None, finished: float) -> RunEnd:
    """How the run ended, from how its trajectories did."""
    states = [t.status for t in trajectories]
    failed = [t for t in trajectories if t.status is RunStatus.ERROR]
    if RunStatus.INTERRUPTED in states or RunStatus.RUNNING in states:
        status, reason = RunStatus.INTERRUPTED, "stopped before the end"
    elif best is not None:
        which = "hidden" if best.attempt.hidden_verdict else "visible"
        status, reason = RunStatus.CORRECT, f"turn {best.turn + 1} passed the {which} cases"
    elif failed:
        status, reason = RunStatus.ERROR, failed[0].reason
    else:
        status, reason = RunStatus.FAILED, _why_not(trajectories)
    if best is None:
        return RunEnd(status, reason, finished)
    speedup = best.verdict.speedups[0] if best.verdict.measured and best.verdict.speedups else None
    return RunEnd(
        status,
        reason,
        finished,
        best_trajectory=best.trajectory,
        best_turn=best.turn,
        best_seconds=seconds(best.verdict),
        best_speedup=speedup.value if speedup else None,
        best_baseline=speedup.baseline if speedup else None,
    )


def _why_not(trajectories: tuple[Trajectory, ...]) -> str:
    if any(t.first_choice is not None for t in trajectories):
        return "no attempt passed the hidden cases"
    if any(t.reason == "budget" for t in trajectories):
        return "the time budget was spent before an attempt was correct"
    declined = [t.reason for t in trajectories if t.reason.startswith("declined: ")]
    return declined[0] if declined else "no attempt was correct"
