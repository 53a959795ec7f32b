"""`cudaperf show`: what happened in one run, attempt by attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cudaperf_agent.cli.output import JsonFlag, put, put_json, table
from cudaperf_agent.cli.runs import RunArgument
from cudaperf_agent.errors import UsageError

if TYPE_CHECKING:
    from cudaperf_agent.store.records import StoredAttempt
    from graph.results import RunResult


def show(
    run: RunArgument,
    as_json: JsonFlag = False,
    turn: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only this turn, with feedback and diagnostics.")
    ] = None,
    trajectory: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only this trajectory.")] = None,
    code: Annotated[bool, typer.Option("--code", help="Print the candidate: of --turn, else the best one.")] = False,
) -> int:
    """Show a run: its attempts, or one of them, or a candidate's code."""
    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.settings import load_settings
    from graph.results import load_result

    with open_store(load_settings().settings) as store:
        result = load_result(store, run)
    chosen = [
        a
        for a in result.attempts
        if (turn is None or a.turn == turn - 1) and (trajectory is None or a.trajectory == trajectory - 1)
    ]
    if not chosen and (turn is not None or trajectory is not None):
        raise UsageError(
            "the run has no such attempt", where=result.run, hint=f"`cudaperf show {result.run}` lists its attempts"
        )
    if as_json:
        put_json(_as_dict(result, chosen))
    elif code:
        put(_code(result, chosen, picked=turn is not None or trajectory is not None))
    elif turn is not None:
        put("\n\n".join(_detail(a) for a in chosen))
    else:
        put(_overview(result, chosen))
    return 0


def _code(result: RunResult, chosen: list[StoredAttempt], *, picked: bool) -> str:
    source = next((a.source for a in chosen if a.source), None) if picked else result.best and result.best.source
    if not source:
        what = "that attempt holds no code" if picked else "no candidate of the run is correct"
        raise UsageError(what, where=result.run, hint=_other_code(result))
    return source.rstrip("\n")


def _other_code(result: RunResult) -> str:
    """The command that shows the last candidate there is, correct or not."""
    last = next((a for a in reversed(result.attempts) if a.source), None)
    if last is None:
        return f"no attempt holds code; their answers: cudaperf show {result.run} --json"
    among = f" --trajectory {last.trajectory + 1}" if len(result.trajectories) > 1 else ""
    return f"the last candidate: cudaperf show {result.run}{among} --turn {last.turn + 1} --code"


def _overview(result: RunResult, chosen: list[StoredAttempt]) -> str:
    run = result.summary
    where = "the GPU" if run.backend == "gpu" else "the CPU emulator"
    lines = [
        f"run {run.id}: {run.task_name} of {run.task_path}, by {run.policy}, on {where}",
        f"{run.status.value}" + (f": {run.reason}" if run.reason else ""),
    ]
    if result.error:
        lines.append(f"{result.error.get('where') or run.task_path}: {result.error.get('hint') or ''}")
    rows = [
        (
            str(a.trajectory + 1),
            str(a.turn + 1),
            a.strategy or a.model,
            *_state(a),
            "best" if _is_best(result, a) else "",
        )
        for a in chosen
    ]
    heading = ("trajectory", "turn", "by", "status", "cases", "hidden", "message", "")
    return "\n".join(lines) + ("\n\n" + table(rows, heading=heading) if rows else "")


def _state(attempt: StoredAttempt) -> tuple[str, str, str, str]:
    verdict, hidden = attempt.verdict, attempt.hidden_verdict
    if verdict is None:
        return ("declined" if attempt.declined else "unfinished", "", "", (attempt.declined or "")[:80])
    if verdict.untested:
        return ("unfinished", "", "", "compiles, not tested yet")
    cases = f"{verdict.passed}/{verdict.total}" if verdict.total else ""
    checked = f"{hidden.status.value} {hidden.passed}/{hidden.total}" if hidden else ""
    return (verdict.status.value, cases, checked, verdict.message[:80] if not verdict.correct else "")


def _is_best(result: RunResult, attempt: StoredAttempt) -> bool:
    best = result.best
    return best is not None and (best.trajectory, best.turn) == (attempt.trajectory, attempt.turn)


def _detail(attempt: StoredAttempt) -> str:
    lines = [f"trajectory {attempt.trajectory + 1}, turn {attempt.turn + 1}: {' '.join(_state(attempt)).strip()}"]
    verdict = attempt.verdict
    if verdict is not None:
        if verdict.message:
            lines.append(verdict.message)
        lines += [f"line {d.line or '?'}: {d.severity}: {d.message}" for d in verdict.diagnostics]
        lines += [f"line {r.line or '?'}: {r.kind}: {r.message}" for r in verdict.reports]
    if attempt.features:
        numbers = {k: v for k, v in attempt.features.items() if isinstance(v, int | float)}
        lines.append("features: " + ", ".join(f"{k}={v:.3g}" for k, v in numbers.items()))
    if attempt.feedback:
        lines += ["", "feedback:", attempt.feedback.rstrip()]
    return "\n".join(lines)


def _as_dict(result: RunResult, chosen: list[StoredAttempt]) -> dict[str, Any]:
    from dataclasses import asdict

    best = result.best
    return {
        "run": asdict(result.summary),
        "best": {"trajectory": best.trajectory, "turn": best.turn, "verdict": best.verdict.to_dict()} if best else None,
        "error": None,
        "run_error": result.error,
        "trajectories": [asdict(t) for t in result.trajectories],
        "attempts": [asdict(a) for a in chosen],
    }
