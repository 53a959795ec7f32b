"""One trajectory from a C file to a stored, chosen candidate: real LangGraph, real SQLite, real compiler."""

from __future__ import annotations

from pathlib import Path

from cudaperf_agent.cuda.verdict import Status
from cudaperf_agent.store.records import RunStatus
from cudaperf_agent.store.repository import Store
from graph.events import Event, EventKind
from graph.runner import run_task
from tests.graph.graph_world import GccVerifier, ScriptedPolicy, make_deps, saxpy_task

BROKEN = "void saxpy(int n, float a, const float *x, float *y) { return 1 }\n"
WRONG = "void saxpy(int n, float a, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] = a * x[i]; }\n"
RIGHT = "void saxpy(int n, float a, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }\n"


async def test_a_candidate_is_refined_until_it_is_correct_and_everything_is_stored(tmp_path: Path) -> None:
    events: list[Event] = []
    policy = ScriptedPolicy([BROKEN, WRONG, RIGHT])
    with Store() as store:
        result = await run_task(saxpy_task(), make_deps(policy, GccVerifier(tmp_path), store), on_event=events.append)
        assert result.status is RunStatus.CORRECT
        assert result.best is not None
        assert (result.best.trajectory, result.best.turn, result.best.source) == (0, 2, RIGHT)
        assert result.best.verdict.passed == 5
        assert [a.verdict.status for a in result.attempts if a.verdict] == [
            Status.COMPILE_ERROR,
            Status.WRONG,
            Status.CORRECT,
        ]
        assert result.attempts[0].verdict is not None
        assert result.attempts[0].verdict.diagnostics[0].line == 1
        assert "compile_error: gcc refuses it" in policy.asked[1].messages[-1].content
        assert [a.verdict.status for a in policy.asked[2].history] == [Status.COMPILE_ERROR, Status.WRONG]
        assert store.get_run(result.run).task == saxpy_task()
        assert store.list_runs()[0].status is RunStatus.CORRECT
    assert events[0].kind is EventKind.RUN_STARTED
    assert events[-1].kind is EventKind.RUN_FINISHED
    assert events[-1].data["best"] == {"trajectory": 0, "turn": 2}
    nodes = [(e.turn, e.node) for e in events if e.kind is EventKind.NODE_STARTED]
    assert nodes == [
        *[(0, n) for n in ("generate", "compile", "assess", "feedback")],
        *[(1, n) for n in ("generate", "compile", "test", "assess", "feedback")],
        *[(2, n) for n in ("generate", "compile", "test", "measure", "assess", "feedback")],
        (3, "finish"),
        (2, "hidden"),
        (2, "retime"),
    ]
