"""Sample tasks, steps and verdicts for the store's tests."""

from __future__ import annotations

from typing import Any

from cudaperf_agent.cuda.verdict import Diagnostic, FailedCase, Report, Speedup, Status, Timing, Verdict
from cudaperf_agent.store.records import RunStatus, Step, Trajectory
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import (
    CType,
    Extent,
    Field,
    Origin,
    Parameter,
    Role,
    StdinItem,
    Table,
    Task,
    TypeKind,
    ValueRange,
)

FLOAT = CType("float", TypeKind.FLOAT, 4, 4)
INT = CType("int", TypeKind.INT, 4, 4)
BODY = CType(
    "Body",
    TypeKind.STRUCT,
    20,
    4,
    (Field("p", FLOAT, 0, (2, 2)), Field("alive", CType("_Bool", TypeKind.BOOL, 1, 1), 16)),
)


def rich_task() -> Task:
    """A task that uses every field of the model."""
    return Task(
        name="step",
        mode="function",
        source='/* "naïve" */ void step(int n, Body *b) { }\n',
        path="a folder/step.c",
        parameters=(
            Parameter(
                "n", INT, False, Role.SCALAR, Origin.SPEC, "int n", range=ValueRange("0", "n*2", True, Origin.SPEC)
            ),
            Parameter(
                "b",
                BODY,
                True,
                Role.INOUT,
                Origin.COMMENT,
                "Body *b",
                Extent("n > 0 ? n : 0", Origin.MEASURED, 3),
                ("n", "2"),
                index=True,
                ascending=True,
                const=True,
                line=4,
            ),
        ),
        returns=FLOAT,
        tables=(Table("weights", FLOAT, (3, 3), True, 9),),
        setup="set(values, k)",
        setup_inputs=(Parameter("k", INT, False, Role.SCALAR, Origin.DEFAULT, "int k"),),
        kept_functions=("set",),
        type_declarations="typedef struct { float p[2][2]; _Bool alive; } Body;",
        stdin=(StdinItem("v", "n", ValueRange("1", None)), StdinItem("n", None, ValueRange())),
        stdin_files=("3\n1 2 3\n",),
        include_dirs=("include",),
        defines=("N=4",),
        assumptions=("b is not aliased",),
        first_line=2,
        last_line=8,
        digest="ab" * 32,
    )


def rich_verdict(status: Status = Status.CORRECT) -> Verdict:
    """A verdict that uses every field."""
    return Verdict(
        status,
        "seen \x1b[31m\u202e and \U0001f600",
        form="device",
        diagnostics=(Diagnostic("warning", "unused", 3, 7),),
        passed=3,
        total=4,
        worst_error=0.25,
        failure=FailedCase("n=3", {"x": "[1, 2]"}, "differs", "y", 2, "1", "2", 1.0, 0.5),
        reports=(Report("race", "two threads", 12, 4),),
        backend="gpu",
        device="H200",
        measured=True,
        timings=(
            Timing("device", "n=64", (1e-6, 3e-6, 2e-6), cold=1e-3, note="n"),
            Timing("end_to_end", "n=64", (1e-5,)),
        ),
        speedups=(Speedup("c -O3", 12.5, 11.0, 14.0),),
        profile={"occupancy": 0.5},
        digests={"source": "00"},
        versions={"nvcc": "13.0"},
        clocks={"sm": [1980, 1980]},
        seconds={"compile": 1.5},
    )


def new_run(store: Store, created: float = 1_800_000_000.0, **changes: Any) -> str:
    """A run with one trajectory."""
    values: dict[str, Any] = {
        "policy": "scripted",
        "backend": "gpu",
        "config": {"turns": 5},
        "trajectories": 1,
        "turns": 5,
        "created": created,
    }
    run = store.create_run(values.pop("task", None) or changes.pop("task", rich_task()), **values | changes)
    store.save_trajectory(Trajectory(run, 0, 7, RunStatus.RUNNING, created))
    return run


def step(run: str, node: str, payload: dict[str, Any], turn: int = 0, **changes: Any) -> Step:
    """A finished step."""
    return Step(run, changes.pop("trajectory", 0), turn, node, 1.0, changes.pop("finished", 2.0), payload, **changes)


GENERATED: dict[str, Any] = {
    "messages": [{"role": "user", "content": "translate"}],
    "text": "```cuda\n\x00```",
    "source": "__global__ void k() {}",
    "source_key": "cd" * 32,
    "strategy": "",
    "model": "m",
    "declined": None,
    "finish_reason": "stop",
    "usage": {"completion": 3},
    "stop": "",
}
