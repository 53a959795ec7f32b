"""Runs for the app's tests, made by the real graph and kept in a real store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graph_world import (
    Clock,
    DirectiveVerifier,
    ScriptedPolicy,
    candidate,
    make_deps,
    saxpy_task,
)
from textual.pilot import Pilot

from cudaperf_agent.cuda.verdict import Verdict
from cudaperf_agent.store.repository import Store
from cudaperf_agent.tasks.model import Task
from graph.config import GraphConfig
from graph.context import Assessment
from graph.runner import run_task
from tui.app import CudaPerfApp

NOW = 1_800_000_400.0

KERNEL = """
__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
STORY = (
    candidate("compile_error", 1) + KERNEL,
    candidate("wrong", 2) + KERNEL,
    candidate("correct 2e-4", 3) + KERNEL,
    candidate("correct 1e-4", 4) + KERNEL.replace("int i", "const int i"),
    candidate("correct 3e-4", 5) + KERNEL,
)
"""Five turns: does not compile, wrong, right, faster, slower."""

HOSTILE = (
    "// correct 1e-4\n[bold red]not markup[/] [link=http://x]l[/link]\n\x1b[31mred\x1b[0m\x1b]0;title\x07 \x07bell\n"
    "\u202eright to left\u202c \u2066isolate\u2069 שלום مرحبا\n" + "x" * 1_000_000 + "\n\0\ud800 end\n"
)


_FEATURES = ("coal", "ai", "occ", "div", "xfer", "atomics", "sync", "kernels", "tpb", "gmem", "ops")


def tell(task: Task, source: str, verdict: Verdict) -> Assessment:
    """All eleven features, of which some change from turn to turn; a hint; the reward in its parts."""
    number = len(source) % 7
    values = {name: round(0.25 * i + (number / 8 if i < 3 else 0), 3) for i, name in enumerate(_FEATURES)}
    values["tpb"] = 256.0
    hints = ({"message": "reads are strided", "line": 3},)
    worth = 1.0 if verdict.correct else -1.0
    return Assessment(values, hints, {"total": worth + 0.25, "verifiable": worth, "structural": 0.25})


async def make_run(
    store: Store,
    script: Sequence[object] = STORY,
    *,
    trajectories: int = 1,
    run_id: str = "run-story",
    backend: str = "gpu",
    started: float = 1_800_000_000.0,
) -> str:
    """A finished run of the script."""
    clock = Clock(started)
    deps = make_deps(ScriptedPolicy(script), DirectiveVerifier(backend), store, clock=clock, assess=tell)  # type: ignore[arg-type]
    config = GraphConfig(turns=len(script), trajectories=trajectories, checkpointing=False)
    return (await run_task(saxpy_task(), deps, config, run_id=run_id)).run


def app_on(store: Store, folder: Path, **options: object) -> CudaPerfApp:
    """The app with a frozen clock, exporting into `folder`."""
    return CudaPerfApp(store, export_to=folder, now=lambda: NOW, **options)  # type: ignore[arg-type]


async def until(pilot: Pilot[Any], condition: Any, *, seconds: float = 10.0) -> None:
    """Let the app work until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the app never got there"
        await pilot.pause(0.02)
